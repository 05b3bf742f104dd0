"""Finds rows of a history that are known messages under other ids. Pure.

Some servers give a message one id in its event and another in a history (Lagrange.Core#265). Such a
row is matched by sender, time and content. Rows and known lines are paired one to one, in order, so
that two equal lines within a second stay two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from bot.core.events import MessageReceived
from bot.core.journal import KnownLine
from bot.core.segments import File, Forward, Mention, Picture, Record, Segment, Sticker, Video
from bot.policy.answered_questions import SKEW
from frostagent.types.speech import Quote, Text

CLOSE = 2.0  # seconds between event and row, which use the same clock
AT_ONCE = 1.0  # the same, if only the time is known

LineKey: TypeAlias = Callable[[KnownLine], Hashable]
RowKey: TypeAlias = Callable[[MessageReceived], Hashable]


def find_aliases(history: Sequence[MessageReceived], known: Iterable[KnownLine]) -> dict[str, str]:
    """Return the new ids of known lines, mapped to the ids by which they are known."""
    lines = {one.message_id: one for one in known}
    shown = {row.message_id for row in history}
    free = [one for one in lines.values() if one.message_id not in shown]
    rows = [row for row in history if row.has_identity and row.message_id not in lines]
    found: dict[str, str] = {}
    agrees = any(row.has_identity and row.message_id in lines for row in history)
    for line_key, row_key in (BY_CONTENT, BY_SENDER, BY_TIME):
        if line_key is not BY_CONTENT[0] and agrees and not found:
            break  # nothing shows that the ids differ
        waiting: defaultdict[Hashable, list[KnownLine]] = defaultdict(list)
        for line in sorted(free, key=lambda one: one.time):
            if (key := line_key(line)) is not None:
                waiting[key].append(line)
        for row in sorted(rows, key=lambda one: one.time):
            if row.message_id in found:
                continue
            if line_of_row := _first(waiting[row_key(row)], row):
                found[row.message_id] = line_of_row.message_id
    return found


def _first(waiting: list[KnownLine], row: MessageReceived) -> KnownLine | None:
    """Take the first line that can be this row. Earlier lines cannot match later rows either."""
    within = SKEW if row.is_own else CLOSE  # own messages have our clock's time
    while waiting:
        line = waiting[0]
        if line.segments is None:
            within = AT_ONCE
        if line.time > row.time + within:
            return None
        del waiting[0]
        if line.time >= row.time - within:
            return line
    return None


def is_row_of(row: MessageReceived, event: MessageReceived) -> bool:
    """Whether a row read from a history is this event, which arrived later."""
    return (
        row.conversation == event.conversation
        and row.sender.user_id == event.sender.user_id
        and abs(row.time - event.time) <= AT_ONCE
        and message_fingerprint(row.segments) == message_fingerprint(event.segments)
    )


def rename_messages(
    history: Sequence[MessageReceived], names: dict[str, str]
) -> tuple[MessageReceived, ...]:
    """Replace the ids of messages and quotes in the history by the known ones."""
    if not names:
        return tuple(history)
    return tuple(
        replace(
            row,
            message_id=names.get(row.message_id, row.message_id),
            segments=tuple(
                Quote(names.get(part.message_id, part.message_id))
                if isinstance(part, Quote)
                else part
                for part in row.segments
            ),
        )
        for row in history
    )


def message_fingerprint(segments: Collection[Segment]) -> Hashable:
    """What event and history agree on: text without spaces, mentions, and the number of media.
    Merged forwards agree on nothing else.
    """
    if any(isinstance(part, Forward) for part in segments):
        return "forward"
    words = "".join(part.text for part in segments if isinstance(part, Text))
    media = sum(isinstance(part, Picture | Record | Video | File | Sticker) for part in segments)
    others = sorted(
        str(part.user_id) if isinstance(part, Mention) else part.type
        for part in segments
        if not isinstance(part, Text | Quote | Picture | Record | Video | File | Sticker)
    )
    return "".join(words.split()), media, tuple(others)


BY_CONTENT: tuple[LineKey, RowKey] = (
    lambda line: (
        None if line.segments is None else (line.sender, message_fingerprint(line.segments))
    ),
    lambda row: (row.sender.user_id, message_fingerprint(row.segments)),
)
# A recalled line has no content, and a forgotten line no sender. A row next to it is a missed
# message, unless the history is known to use other ids: it shows some line under another id, or
# none under its own. (Lines read from such a history before are known by its ids.)
BY_SENDER: tuple[LineKey, RowKey] = (
    lambda line: (line.sender or None) if line.segments is None else None,
    lambda row: row.sender.user_id,
)
BY_TIME: tuple[LineKey, RowKey] = (
    lambda line: "" if line.segments is None and not line.sender else None,
    lambda _row: "",
)
