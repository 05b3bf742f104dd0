"""The simulated group in which the bot is tried, on a page or on a terminal: its lines and
pictures, and how a tester says something.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, Protocol

from msgspec.structs import replace

from adapters.simulator import shared_media
from adapters.simulator.call import Gesture, SentMessage
from adapters.simulator.commands import obey
from adapters.simulator.console import REPLY, message_text, parse_mentions, render_gesture
from adapters.simulator.server import Simulator
from adapters.simulator.world import World
from bot.budget.limits import ALL
from bot.budget.trial_account import TrialAccount
from bot.build import App
from bot.core.console_views import ConsoleQueries
from bot.core.conversation import Conversation
from bot.core.events import Identity
from bot.core.language import Phrase
from bot.core.query_results import UsageSum
from bot.core.trial_group import BOT, Source, TrialLimits, TrialLine, TrialOptions
from bot.memory.newest import Newest
from bot.runtime.tool_discovery import Discovered
from config.settings import Settings
from frostagent.text.masking import Mask
from frostagent.types.errors import ConfigError, MediaError

SETTLED_WITHIN: Final = 600.0  # seconds for one line; a run itself ends sooner
FOUND_WITHIN: Final = 30.0
"""Seconds for a message sent while the bot is away: it may return and find it in the history."""
MAX_LINES: Final = 200
MAX_PICTURE: Final = 8 * 2**20  # bytes
MAX_PICTURES: Final = 16 * 2**20  # bytes of all pictures together
MISSED: Final = Phrase(
    "机器人没有收到：没有连上，或者账号离线。",
    "The bot did not hear that: it is not connected, or its account is offline.",
).fill()
FAULTS: Final = ("timeout", "lost", "muted", "slow 3", "offline", "online", "mute", "lift", "off")
LONGEST_NAME: Final = 40  # characters
MOST_GUESTS: Final = 8
"""If more join, the first to have joined leaves."""
MOST_SOURCES: Final = 64
"""If there are more, messages of any person may have been brought here."""


class Guests:
    def __init__(self, world: World) -> None:
        self._world = world
        self._home = next(iter(world.groups))
        self._joined: deque[int] = deque()
        self._sources: set[Source] = set()

    def admit(self, who: str, source: Source | None) -> str:
        """Let a person join, if they are not there yet. Returns their name, never the bot's."""
        own = self._world.people(self._home)
        name = " ".join(who.split())[:LONGEST_NAME] or "user1"
        taken = {one.casefold() for one, number in own.items() if number == self._world.self_id}
        while name.casefold() in taken:
            name += "·"
        if source is not None and len(self._sources) < MOST_SOURCES:
            self._sources.add(source)
        person = self._world.join(self._home, name)
        if person.user_id not in own.values():
            self._joined.append(person.user_id)
        while len(self._joined) > MOST_GUESTS:
            del self._world.group(self._home).members[self._joined.popleft()]
        return person.name

    def may_have_words_of(self, user: int, group: int) -> bool:
        """Whether messages of this person or group may have been brought here."""
        return len(self._sources) >= MOST_SOURCES or any(
            one.is_of(user, group) for one in self._sources
        )


class TriedService(Protocol):
    """What a trial needs of its service: one of `bot/app.py`, which this module cannot import."""

    @property
    def app(self) -> App: ...

    async def wait_idle(self) -> None: ...

    async def wait_settled(self, identity: Identity) -> None: ...


class OpenService(Protocol):
    """Opens a service beside the bot's own, with the tools of `aside` alone."""

    def __call__(
        self,
        settings: Settings,
        *,
        account: TrialAccount | None,
        aside: Discovered,
        mask: Mask,
        ousted: Callable[[ConfigError], None],
    ) -> AbstractAsyncContextManager[TriedService]: ...


class Album:
    """The pictures of the newest lines by number, MAX_PICTURES bytes of them at most. `on_drop` is
    called for each that is dropped.
    """

    def __init__(self, on_drop: Callable[[int], None]) -> None:
        self._pictures: dict[int, bytes] = {}
        self._on_drop = on_drop
        self._number = 0

    def add(self, data: bytes) -> int:
        self._number += 1
        self._pictures[self._number] = data
        while sum(map(len, self._pictures.values())) > MAX_PICTURES:
            oldest = next(iter(self._pictures))
            del self._pictures[oldest]
            self._on_drop(oldest)
        return self._number

    def get(self, number: int) -> bytes:
        """The picture of that number. Raises MediaError if it was dropped."""
        if (data := self._pictures.get(number)) is None:
            raise MediaError("it is too long ago")
        return data

    def replace(self, number: int, data: bytes) -> None:
        if number in self._pictures:
            self._pictures[number] = data

    def clear(self) -> None:
        while self._pictures:
            self._on_drop(self._pictures.popitem()[0])


class LineWatcher:
    """Reports on the feed when everything about a line is settled, its cost included, even if no
    request waits for that any more; `run` is its task.
    """

    def __init__(self, feed: Newest) -> None:
        self._feed = feed
        self._said: asyncio.Queue[tuple[TriedService, Simulator, int]] = asyncio.Queue()

    def watch(self, service: TriedService, simulator: Simulator, message_id: int) -> None:
        self._said.put_nowait((service, simulator, message_id))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._report_settled(*await self._said.get()))

    async def _report_settled(
        self, service: TriedService, simulator: Simulator, message_id: int
    ) -> None:
        with suppress(TimeoutError):
            await wait_settled(service, simulator, [message_id])
            await wait_idle(service)
        self._feed.add("")


class SimulatedTrial:
    """A `Trial`. `connect` it to simulator and service; the simulator reports messages."""

    def __init__(
        self, world: World, *, wanted: TrialOptions, account: TrialAccount | None = None
    ) -> None:
        self.wanted = wanted
        self.name = secrets.token_hex(4)
        self.trouble = ""
        self.faults: tuple[str, ...] = FAULTS
        self.feed = Newest()
        self.draft: TrialLine | None = None
        self._account = account
        self._guests = Guests(world)
        self._world = world
        self._home = next(iter(world.groups))
        self._lines: deque[TrialLine] = deque(maxlen=MAX_LINES)
        self._album = Album(self._drop_picture)
        self._decoded: set[int] = set()
        self.line_watcher = LineWatcher(self.feed)
        self._simulator: Simulator | None = None
        self._service: TriedService | None = None
        self._is_over = False
        self._sums = UsageSum()

    def connect(self, service: TriedService, simulator: Simulator) -> None:
        """Attach the running service. When the bot erases anyone's data, the trial is erased."""
        self._service, self._simulator = service, simulator
        service.app.forgetting.follow(lambda _: self.erase())

    def close(self) -> None:
        self._is_over = True

    @property
    def people(self) -> tuple[str, ...]:
        own, people = self._world.self_id, self._world.people(self._home)
        return tuple(name for name, number in people.items() if number != own)

    @property
    def lines(self) -> tuple[TrialLine, ...]:
        return tuple(self._lines)

    @property
    def showing(self) -> ConsoleQueries:
        return self._running.app.journal.shown

    @property
    def is_busy(self) -> bool:
        lanes = self._running.app.lanes
        return bool(lanes.active or lanes.waiting)

    @property
    def where(self) -> Conversation:
        return Conversation(self._world.self_id, "group", self._home)

    async def settle(self) -> None:
        """Wait until everything said so far can be read in the journal."""
        await self._running.app.journal.commit()

    @property
    def ceiling(self) -> TrialLimits | None:
        """The most it may spend; None if there is no limit."""
        return None if self._account is None else self._account.ceiling

    @property
    def lacks(self) -> str:
        """Why its model gets no further request; empty if it may get one."""
        return "" if self._account is None else self._account.lacks

    async def taken(self) -> UsageSum:
        """What its requests used, by its journal. Requests in progress count as far as known."""
        rows = None
        if not self._is_over:
            await self.settle()
            rows = await self.showing.costs(since=0.0, by="model")
        if rows:
            names = UsageSum.__struct_fields__
            self._sums = UsageSum(*(sum(getattr(one.usage, n) for one in rows) for n in names))
        told, known = self._sums, self._running.app.spending.taken(ALL)
        prompt = max(told.prompt, round(known.tokens) - told.completion)
        made = 0 if self._account is None else self._account.requests  # some may have failed
        return replace(
            told,
            requests=max(told.requests, made),
            prompt=prompt,
            cost=max(told.cost, known.cost),
        )

    def note(self, who: str, text: str) -> None:
        self._add(TrialLine(who, text))

    def note_sent(self, message: SentMessage) -> None:
        """Add a message that the bot sent and the members received."""
        names = {number: name for name, number in self._world.people(self._home).items()}
        shown = [(one, picture_of(one)) for one in message.segments]
        pictures = tuple(self._album.add(data) for _, data in shown if data)
        bare = dataclasses.replace(message, segments=tuple(one for one, data in shown if not data))
        said = message_text(bare, names, home=self._home)
        said = REPLY.sub("", f"{said} ").strip()
        self._add(TrialLine(BOT, said, str(message.message_id), pictures))

    def note_said(self, message_id: int) -> None:
        """Add a message that a member sent elsewhere, as on a terminal."""
        stored = self._world.messages.find(message_id)
        names = {number: name for name, number in self._world.people(self._home).items()}
        spoken = SentMessage(message_id, stored.segments, group_id=self._home)
        text = message_text(spoken, names, home=self._home)
        who = names.get(stored.author, str(stored.author))
        self._add(TrialLine(who, text, str(message_id)))
        if self._simulator is not None:
            self.line_watcher.watch(self._running, self._simulator, message_id)

    def note_gesture(self, gesture: Gesture) -> None:
        """Add something that the bot did without text, such as a poke."""
        names = {number: name for name, number in self._world.people(self._home).items()}
        self.note(BOT, render_gesture(gesture, names).removeprefix(f"{BOT}: "))

    def propose(self, who: str, question: str, source: Source | None = None) -> None:
        """Prepare a question; its asker joins the group."""
        self.draft = TrialLine(self._guests.admit(who, source), question)

    def has_words_of(self, user: int, group: int) -> bool:
        """Whether messages of this person or group may have been brought here."""
        return self._guests.may_have_words_of(user, group)

    def erase(self) -> None:
        self.draft = None
        self._lines.clear()
        self._album.clear()
        self.feed.add("")

    async def say(
        self, who: str, text: str, picture: bytes = b"", *, patience: float = SETTLED_WITHIN
    ) -> bool:
        """Say something as that member, and wait `patience` seconds at most until everything about
        it is settled. Returns whether it was said. Raises MediaError for an invalid picture.
        """
        is_said = False
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                jpeg = await self._running.app.decoder.decode(picture) if picture else b""
                simulator = self._simulator
                if simulator is None or who not in self.people or self.lacks:
                    return False
                is_said = True
                await self._say(simulator, who, text, jpeg)
        return is_said

    async def _say(self, simulator: Simulator, who: str, text: str, jpeg: bytes) -> None:
        people = self._world.people(self._home)
        segments, pictures = parse_mentions(text, people, self._world.self_id), tuple[int, ...]()
        if jpeg:
            pictures = (number := self._album.add(jpeg),)
            self._decoded.add(number)
            segments = [shared_media.own_picture(self._world, _name(number), jpeg), *segments]
        self.draft = None
        self._add(line := TrialLine(who, text, pictures=pictures))
        said = await simulator.say(segments, user_id=people[who])
        if line in self._lines:  # nothing was erased meanwhile
            self._lines[self._lines.index(line)] = replace(line, message_id=str(said))
        if said in simulator.missed:
            self._add(TrialLine("", MISSED, happened="missed"))
        self.line_watcher.watch(self._running, simulator, said)
        await wait_settled(self._running, simulator, [said])
        await wait_idle(self._running)

    async def inject_fault(self, fault: str) -> None:
        if fault in self.faults and self._simulator is not None:
            reply = await obey(self._simulator, f"!{fault}")
            self._add(TrialLine("", f"!{fault}: {reply}", happened=fault))

    async def picture(self, number: int) -> bytes:
        """Return the image of a line as JPEG. The bot's images are untrusted, so decoded apart."""
        data = self._album.get(number)
        if number not in self._decoded:
            data = await self._running.app.decoder.decode(data)
            self._album.replace(number, data)
            self._decoded.add(number)
        return data

    @property
    def _running(self) -> TriedService:
        if self._service is None:
            raise RuntimeError("the trial is not connected")
        return self._service

    def _add(self, line: TrialLine) -> None:
        self._lines.append(line)
        self.feed.add(line.message_id)

    def _drop_picture(self, number: int) -> None:
        self._decoded.discard(number)
        self._world.contents.pop(_name(number), None)


def _name(number: int) -> str:
    return f"picture{number}.jpg"


def picture_of(segment: Mapping[str, Any]) -> bytes:
    """The picture in this segment; empty if there is none, or a very large one."""
    scheme, _, rest = str(segment["data"].get("file") or "").partition("://")
    if segment["type"] == "image" and scheme == "base64" and len(rest) <= MAX_PICTURE * 4 // 3:
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(rest)
    return b""


async def wait_idle(service: TriedService) -> None:
    """Wait until nothing is being answered or sent. Raises TimeoutError."""
    async with asyncio.timeout(SETTLED_WITHIN):
        await service.wait_idle()


async def wait_settled(
    service: TriedService, simulator: Simulator, messages: Sequence[int]
) -> None:
    """Wait until the bot has finished with these messages. Raises TimeoutError.

    Messages sent while the bot was away are given at most FOUND_WITHIN seconds: a bot that returns
    finds them in the history.
    """
    world = simulator.world

    async def settled(message_id: int) -> None:
        await service.wait_settled(
            (world.self_id, "group", next(iter(world.groups)), str(message_id))
        )

    async with asyncio.timeout(SETTLED_WITHIN):
        for message_id in messages:
            if message_id not in simulator.missed:
                await settled(message_id)
    with suppress(TimeoutError):
        async with asyncio.timeout(FOUND_WITHIN):
            await simulator.wait_connected(timeout=FOUND_WITHIN)
            for message_id in messages:
                if message_id in simulator.missed and world.online:
                    await settled(message_id)
