"""The `ChatLog` port over the journal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, tzinfo

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import LogQuery
from bot.core.person_lookup import find_person
from bot.core.ports import LogPage, Members, Store
from bot.core.segments import Card, Link, Markdown
from bot.policy.permissions import authority_of
from frostagent.engine.authority import lowest_authority
from frostagent.types.errors import InvalidArguments, ToolFailed
from frostagent.types.ports import Clock
from frostagent.types.traits import Audience

MAX_LINES = 40
MAX_WORDS = 8
LINE = re.compile(r"^[^\n#:]*#\d+(?: ↩[^\n]*?)?: ")
"""The sender's name and number at the start of a line in a prompt."""
WEEKDAY = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|星期[一二三四五六日]", re.IGNORECASE
)
"""Prompts show a weekday after a date."""
DAY = "%Y-%m-%d"
MINUTE = f"{DAY} %H:%M"
MORE = '(There is more before these: ask again with until="{until}".)'
NOTHING = "(Nothing of that was said here, or it is not kept any more.)"

Render = Callable[[MessageReceived], str]
"""Renders a message as a line of a prompt."""


class StoredChatLog:
    """Times are in `zone`, or in this machine's time zone if it is None."""

    def __init__(
        self,
        *,
        store: Store,
        members: Members,
        render: Render,
        owners: frozenset[int],
        clock: Clock,
        zone: tzinfo | None = None,
    ) -> None:
        self._store = store
        self._owners = owners
        self._members = members
        self._render = render
        self._clock = clock
        self._zone = zone

    async def read(
        self, conversation: Conversation, *, since: str, until: str, who: str, words: str
    ) -> LogPage:
        """Return the latest matching lines. Raises InvalidArguments, ToolFailed."""
        wanted = tuple(LINE.sub("", words).split())[:MAX_WORDS]
        query = LogQuery(
            conversation=conversation,
            since=self._moment("since", since) if since.strip() else 0.0,
            until=self._moment("until", until, end=True) if until.strip() else 1e12,
            sender=self._person(conversation, who) if who.strip() else 0,
            words=wanted,
        )
        found = await self._store.search(query)
        if found is None:
            raise ToolFailed("the log cannot be read just now. Say so; do not guess.")
        lines = {message: self._render(message) for message in found}
        fit = [message for message, line in lines.items() if _has(line, wanted)]
        shown = fit[-MAX_LINES:]
        is_all = len(shown) == len(fit) and len(found) < query.limit
        text = "\n".join(self._told(shown, lines, is_all=is_all)) or NOTHING
        voices = [self._authority(message) for message in shown]
        return LogPage(
            text, tuple(message.message_id for message in shown), lowest_authority(voices)
        )

    def _authority(self, message: MessageReceived) -> Audience:
        """The title of a card may be written by anyone, so a card counts as EVERYONE."""
        if any(isinstance(segment, Card | Link | Markdown) for segment in message.segments):
            return Audience.EVERYONE
        return authority_of(message.sender, where=message.conversation, owners=self._owners)

    def _told(
        self, shown: list[MessageReceived], lines: dict[MessageReceived, str], *, is_all: bool
    ) -> Iterator[str]:
        day = ""
        if shown and not is_all:
            yield MORE.format(until=f"{self._at(shown[0].time):{MINUTE}}")
        for message in shown:
            at = self._at(message.time)
            if f"{at:{DAY}}" != day:
                day = f"{at:{DAY}}"
                yield f"[{day}]"
            yield f"{at:%H:%M} {lines[message]}"

    def _at(self, time: float) -> datetime:
        return datetime.fromtimestamp(time, self._zone)

    def _moment(self, name: str, text: str, *, end: bool = False) -> float:
        """Parse a time to seconds since 1970; with `end`, the last moment of that minute or day."""
        now = self._at(self._clock.now())
        text_only = WEEKDAY.sub(" ", text)
        plain = " ".join(text_only.replace("T", " ").replace("/", "-").replace("：", ":").split())
        length = timedelta(minutes=1)
        at = self._read(plain, MINUTE) or self._read(f"{now:%Y}-{plain}", MINUTE)
        if at is None and (at := self._read(f"{now:{DAY}} {plain}", MINUTE)):
            at = at - timedelta(days=1) if at.timestamp() > now.timestamp() else at
        if at is None:
            at, length = self._read(plain, DAY), timedelta(days=1)
        if at is None:
            told = f"{name}: {text[:40]!r} is no time; write 14:02, 2026-11-22 14:02 or 2026-11-22"
            raise InvalidArguments(told, fields=(told,))
        return (at + length).timestamp() - 0.001 if end else at.timestamp()

    def _read(self, text: str, form: str) -> datetime | None:
        try:
            return datetime.strptime(text, form).replace(tzinfo=self._zone)
        except ValueError:
            return None

    def _person(self, conversation: Conversation, who: str) -> int:
        user_id = find_person(who, self._members, conversation)
        if user_id is None:
            told = (
                f"who: nobody has the number {who[:40]!r} here; write it as in #2, or leave it out"
            )
            raise InvalidArguments(told, fields=(told,))
        return user_id


def _has(line: str, words: Iterable[str]) -> bool:
    return all(word.casefold() in line.casefold() for word in words)
