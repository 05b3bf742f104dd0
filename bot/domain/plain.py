"""Messages as a line of text, for people who read them elsewhere than in QQ. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bot.domain.actions import SentSegment
from bot.domain.segments import Mention, Quote, Segment, Text


def plain_words(segments: Iterable[Segment | SentSegment], *, own: int = 0) -> str:
    """A message as a line of text: whatever is no words is named in brackets. Quotes, and
    mentions of the `own` account, are left out.
    """
    parts = []
    for segment in segments:
        match segment:
            case Text(text=text):
                parts.append(text)
            case Quote():
                pass
            case Mention(user_id=user_id) if user_id == own:
                pass
            case Mention(user_id=user_id, name=name):
                parts.append(f"@{name or user_id} ")
            case _:
                parts.append(f"[{segment.type}]")
    return "".join(parts).strip()
