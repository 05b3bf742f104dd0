"""The simulated group that the bot is tried in, on a page or on a terminal: what was said there,
its pictures, and how somebody says something.
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
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from msgspec.structs import replace
from pydantic import SecretStr

from adapters.simulator import shared_media
from adapters.simulator.call import Gesture, SentMessage
from adapters.simulator.commands import obey
from adapters.simulator.console import REPLY, parse_mentions, render, render_gesture
from adapters.simulator.server import Simulator
from adapters.simulator.world import World
from adapters.storage.store import SqlStore
from bot.domain.console_views import ConsoleQueries
from bot.domain.errors import ConfigError, MediaError
from bot.domain.events import Conversation, Identity
from bot.domain.masking import Mask
from bot.domain.query_results import UsageSum
from bot.domain.trial_group import BOT, Source, TrialLimits, TrialLine, TrialOptions
from bot.memory.newest import Newest
from bot.memory.spending import ALL
from bot.trial.trial_budget import TrialBudget
from bot.web import Shown
from bot.wiring.discovery import Discovered
from bot.wiring.resources import Resources
from bot.wiring.service import Rooms
from config.settings import Settings
from config.values import Owners


def isolated_settings(
    settings: Settings, folder: str, *, people: frozenset[int] = frozenset()
) -> dict[str, Any]:
    """The settings that a trial or the terminal chat changes: it keeps its data in this folder, and
    settings for QQ's groups, people and hours do not apply. Owners are only those among `people`.
    """
    nobody = frozenset[int]()
    owners = settings.bot_owners
    return {
        "store_url": SecretStr(f"sqlite:///{folder}/journal.db"),
        # The bot's folder holds its drafts; a journal without rows of them would delete them.
        "media_dir": Path(folder) / "media",
        "onebot_mode": "forward",
        "bot_role": "all",
        "broker_url": SecretStr(""),
        "web_port": 0,
        "console_port": 0,
        "bot_groups": nobody,
        "bot_users": nobody,
        "bot_block": nobody,
        "bot_owners": Owners(owners & people, owners.quiet & people),
        "bot_new_group": "live",
        "bot_quiet": (),
        "bot_digest": None,
        "bot_user_rate": None,  # testers type fast
        "bot_group_rate": None,
        "bot_loop": 0,
    }


LONGEST_NAME: Final = 40  # characters
MOST_GUESTS: Final = 8
"""The first to join leaves when more do."""
MOST_SOURCES: Final = 64
"""If there are more, anybody's words are taken to be among what was brought."""


class Guests:
    """The people whose questions were brought into the simulated group, in its only group."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._home = next(iter(world.groups))
        self._joined: deque[int] = deque()
        self._sources: set[Source] = set()

    def welcome(self, who: str, source: Source | None) -> str:
        """Let somebody join unless they are there. Returns their name, which is never the bot's."""
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

    def are_from(self, user: int, group: int) -> bool:
        """Whether words of this person, or of this group, may be among what was brought."""
        return len(self._sources) >= MOST_SOURCES or any(
            one.is_of(user, group) for one in self._sources
        )


T = TypeVar("T")

SETTLED_WITHIN: Final = 600.0  # seconds for one line; a run itself ends sooner
FOUND_WITHIN: Final = 30.0
"""Seconds for a line that nobody heard: the bot may come back and find it in the history."""
KEPT: Final = 200  # lines
LARGEST: Final = 8 * 2**20  # bytes of a picture
ALBUM: Final = 16 * 2**20  # bytes of all that are kept to be shown
MISSED: Final = "Nobody heard that: the bot is not connected, or its account is offline."
FAULTS: Final = ("timeout", "lost", "muted", "slow 3", "offline", "online", "mute", "lift", "off")


class TriedService(Protocol):
    """The parts that are needed of a service that is tried."""

    @property
    def journal(self) -> SqlStore: ...

    @property
    def rooms(self) -> Rooms: ...

    @property
    def shown(self) -> Shown: ...

    @property
    def means(self) -> Resources: ...

    async def wait_idle(self) -> None: ...

    async def wait_settled(self, identity: Identity) -> None: ...


class Wraps(Protocol):
    """Puts something around a port, or nothing."""

    def __call__(self, port: T, /) -> T: ...


class Opens(Protocol):
    """Opens a service `aside` of another one, with these tools."""

    def __call__(
        self,
        settings: Settings,
        *,
        wrap: Wraps,
        aside: Discovered,
        mask: Mask,
        ousted: Callable[[ConfigError], None],
    ) -> AbstractAsyncContextManager[TriedService]: ...


class Album:
    """The pictures of the newest lines, by number: ALBUM bytes of them at most."""

    def __init__(self, dropped: Callable[[int], None]) -> None:
        self._pictures: dict[int, bytes] = {}
        self._dropped = dropped
        self._number = 0

    def keep(self, data: bytes) -> int:
        """Keep one; its number."""
        self._number += 1
        self._pictures[self._number] = data
        while sum(map(len, self._pictures.values())) > ALBUM:
            oldest = next(iter(self._pictures))
            del self._pictures[oldest]
            self._dropped(oldest)
        return self._number

    def get(self, number: int) -> bytes:
        """The one of that number. Raises MediaError where it is kept no more."""
        if (data := self._pictures.get(number)) is None:
            raise MediaError("it is too long ago")
        return data

    def put(self, number: int, data: bytes) -> None:
        """A better form of one."""
        if number in self._pictures:
            self._pictures[number] = data

    def clear(self) -> None:
        """Keep none."""
        while self._pictures:
            self._dropped(self._pictures.popitem()[0])


class SeenOut:
    """Has it be news what became of each line, and its cost, also where nobody waits for that any
    more; `run` is its task.
    """

    def __init__(self, feed: Newest) -> None:
        self._feed = feed
        self._said: asyncio.Queue[tuple[TriedService, Simulator, int]] = asyncio.Queue()

    def follow(self, service: TriedService, simulator: Simulator, said: int) -> None:
        """Somebody said that."""
        self._said.put_nowait((service, simulator, said))

    async def run(self) -> None:
        """See to their ends what is said."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._see_out(*await self._said.get()))

    async def _see_out(self, service: TriedService, simulator: Simulator, said: int) -> None:
        with suppress(TimeoutError):
            await settle(service, simulator, [said])
            await finish(service)
        self._feed.add("")


class SimulatedTrial:
    """Fits `Trial`. The simulator tells it what the bot says; `connect` it with both."""

    def __init__(
        self, world: World, *, wanted: TrialOptions, budget: TrialBudget | None = None
    ) -> None:
        self.wanted = wanted
        self.name = secrets.token_hex(4)
        self.trouble = ""
        self.faults: tuple[str, ...] = FAULTS
        self.feed = Newest()
        self.draft: TrialLine | None = None
        self._budget = budget
        self._guests = Guests(world)
        self._world = world
        self._home = next(iter(world.groups))
        self._lines: deque[TrialLine] = deque(maxlen=KEPT)
        self._album = Album(self._forget)
        self._decoded: set[int] = set()
        self.seen_out = SeenOut(self.feed)
        self._simulator: Simulator | None = None
        self._service: TriedService | None = None
        self._is_over = False
        self._sums = UsageSum()

    def connect(self, service: TriedService, simulator: Simulator) -> None:
        """From now on something can be said; whoever is forgotten there, is here, too."""
        self._service, self._simulator = service, simulator
        service.rooms.forgetting.follow(lambda _: self.erase())

    def close(self) -> None:
        """Its journal is away from now on."""
        self._is_over = True

    @property
    def people(self) -> tuple[str, ...]:
        """Whoever may speak."""
        own, people = self._world.self_id, self._world.people(self._home)
        return tuple(name for name, number in people.items() if number != own)

    @property
    def lines(self) -> tuple[TrialLine, ...]:
        """The lines that were said, oldest first."""
        return tuple(self._lines)

    @property
    def showing(self) -> ConsoleQueries:
        """Its own journal."""
        return self._running.journal.shown

    @property
    def is_busy(self) -> bool:
        """Whether the bot is at an answer."""
        lanes = self._running.rooms.on.lanes
        return bool(lanes.active or lanes.waiting)

    @property
    def where(self) -> Conversation:
        """The group."""
        return Conversation(self._world.self_id, "group", self._home)

    async def settle(self) -> None:
        """Wait until what was said so far can be read there."""
        await self._running.journal.commit()

    @property
    def ceiling(self) -> TrialLimits | None:
        """The most it takes."""
        return None if self._budget is None else self._budget.most

    @property
    def lacks(self) -> str:
        """Why its model is asked nothing more."""
        return "" if self._budget is None else self._budget.lacks

    async def taken(self) -> UsageSum:
        """The sum its requests took, by its budget, else by the journal; of those under way as far
        as known.
        """
        if self._budget is not None:
            return self._budget.taken
        rows = None
        if not self._is_over:
            await self.settle()
            rows = await self.showing.costs(since=0.0, by="model")
        if rows:
            names = UsageSum.__struct_fields__
            self._sums = UsageSum(*(sum(getattr(one.usage, n) for one in rows) for n in names))
        told, known = self._sums, self._running.shown.spending.taken(ALL)
        prompt = max(told.prompt, round(known.tokens) - told.completion)
        return replace(told, prompt=prompt, cost=max(told.cost, known.cost))

    def note(self, who: str, text: str) -> None:
        """Something was said, or happened."""
        self._add(TrialLine(who, text))

    def note_sent(self, message: SentMessage) -> None:
        """The bot said something, and people got it."""
        names = {number: name for name, number in self._world.people(self._home).items()}
        shown = [(one, picture_of(one)) for one in message.segments]
        pictures = tuple(self._album.keep(data) for _, data in shown if data)
        bare = dataclasses.replace(message, segments=tuple(one for one, data in shown if not data))
        said = render(bare, names, home=self._home).removeprefix(f"{BOT}: ").rstrip()
        said = REPLY.sub("", f"{said} ").strip()
        self._add(TrialLine(BOT, said, str(message.message_id), pictures))

    def note_said(self, message_id: int) -> None:
        """Somebody said something elsewhere, as on a terminal."""
        stored = self._world.messages.find(message_id)
        names = {number: name for name, number in self._world.people(self._home).items()}
        spoken = SentMessage(message_id, stored.segments, group_id=self._home)
        text = render(spoken, names, home=self._home).removeprefix(f"{BOT}: ")
        who = names.get(stored.author, str(stored.author))
        self._add(TrialLine(who, text, str(message_id)))
        if self._simulator is not None:
            self.seen_out.follow(self._running, self._simulator, message_id)

    def note_gesture(self, gesture: Gesture) -> None:
        """The bot made a sign without words."""
        names = {number: name for name, number in self._world.people(self._home).items()}
        self.note(BOT, render_gesture(gesture, names).removeprefix(f"{BOT}: "))

    def propose(self, who: str, question: str, source: Source | None = None) -> None:
        """Let a question stand ready."""
        self.draft = TrialLine(self._guests.welcome(who, source), question)

    def has_words_of(self, user: int, group: int) -> bool:
        """Whether anything of theirs was brought here."""
        return self._guests.are_from(user, group)

    def erase(self) -> None:
        """Let go of all that was said here."""
        self.draft = None
        self._lines.clear()
        self._album.clear()
        self.feed.add("")

    async def say(
        self, who: str, text: str, picture: bytes = b"", *, patience: float = SETTLED_WITHIN
    ) -> bool:
        """Say something as that member, and wait until all that comes of it is settled, no longer
        than `patience`; whether it was said. Raises MediaError for a picture that is none.
        """
        is_said = False
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                jpeg = await self._running.means.media.decoder.decode(picture) if picture else b""
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
            pictures = (number := self._album.keep(jpeg),)
            self._decoded.add(number)
            segments = [shared_media.own_picture(self._world, _name(number), jpeg), *segments]
        self.draft = None
        self._add(line := TrialLine(who, text, pictures=pictures))
        said = await simulator.say(segments, user_id=people[who])
        if line in self._lines:  # nobody was forgotten meanwhile
            self._lines[self._lines.index(line)] = replace(line, message_id=str(said))
        if said in simulator.missed:
            self._add(TrialLine("", MISSED, happened="missed"))
        self.seen_out.follow(self._running, simulator, said)
        await settle(self._running, simulator, [said])
        await finish(self._running)

    async def inject_fault(self, fault: str) -> None:
        """Let one of the faults go wrong."""
        if fault in self.faults and self._simulator is not None:
            told = await obey(self._simulator, f"!{fault}")
            self._add(TrialLine("", f"!{fault}: {told}", happened=fault))

    async def picture(self, number: int) -> bytes:
        """A picture of a line; what the bot sends may be a stranger's, and is unpacked as such."""
        data = self._album.get(number)
        if number not in self._decoded:
            data = await self._running.means.media.decoder.decode(data)
            self._album.put(number, data)
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

    def _forget(self, number: int) -> None:
        self._decoded.discard(number)
        self._world.contents.pop(_name(number), None)


def _name(number: int) -> str:
    return f"picture{number}.jpg"


def picture_of(segment: Mapping[str, Any]) -> bytes:
    """The picture that is in this part of a message; empty where none is, or a very large one."""
    scheme, _, rest = str(segment["data"].get("file") or "").partition("://")
    if segment["type"] == "image" and scheme == "base64" and len(rest) <= LARGEST * 4 // 3:
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(rest)
    return b""


async def finish(service: TriedService) -> None:
    """Wait until nothing is being answered or sent. Raises TimeoutError."""
    async with asyncio.timeout(SETTLED_WITHIN):
        await service.wait_idle()


async def settle(service: TriedService, simulator: Simulator, said: Sequence[int]) -> None:
    """Wait until the bot is there, and has done all that comes of these messages. Raises
    TimeoutError.

    Nobody waits for long until a bot comes back, and finds what it did not hear.
    """
    world = simulator.world

    async def settled(message_id: int) -> None:
        await service.wait_settled(
            (world.self_id, "group", next(iter(world.groups)), str(message_id))
        )

    async with asyncio.timeout(SETTLED_WITHIN):
        for message_id in said:
            if message_id not in simulator.missed:
                await settled(message_id)
    with suppress(TimeoutError):
        async with asyncio.timeout(FOUND_WITHIN):
            await simulator.wait_connected(timeout=FOUND_WITHIN)
            for message_id in said:
                if message_id in simulator.missed and world.online:
                    await settled(message_id)
