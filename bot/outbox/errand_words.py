"""Cleans an errand's text before it is sent. Pure."""

from __future__ import annotations

from bot.outbox.layout import split_text, strip_markdown
from bot.policy.cq_codes import strip_meaningless_codes
from bot.prompt.frame_removal import FrameRemover
from frostagent.text.visible_text import without_controls


def errand_words(text: str, *, limit: int, names: tuple[str, ...] = ()) -> str:
    """The text without prompt frames, CQ codes, control characters and Markdown. If it is longer
    than `limit` characters, it is cut at the end of a sentence. `names` are the bot's names.
    """
    words = strip_meaningless_codes(FrameRemover(names).cut(without_controls(text)))
    words = strip_markdown(words).strip()
    return words if len(words) <= limit else f"{split_text(words, limit - 1)[0]}…"
