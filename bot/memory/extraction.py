"""Extracts facts from conversations in the background, after several rounds or when a talk has
ended.

A talk is what was said around rounds of the bot; conversations without rounds cost nothing. A
failed request is not repeated. After a restart, unfinished talks are read from the journal again,
unless part of them was erased.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from msgspec import Struct

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import (
    Entry,
    LogQuery,
    MessageErased,
    MessageObserved,
    RequestPurpose,
    TurnClosed,
    TurnOpened,
    UsageAdded,
)
from bot.core.lru import LRU, DefaultLRU
from bot.core.memories import MemoriesForgotten, StoredFact
from bot.core.ports import Store
from bot.core.task_context import current_errand, current_run
from bot.memory.remembering import Remembering
from bot.memory.speakers import Speakers
from bot.prompt.extraction import ExtractedFact, SaidLine, extraction_request, read_facts
from bot.prompt.render import View, plain
from bot.runtime.background import retry_until_loaded
from bot.settings_store import PlaceSetting, SettingsStore
from frostagent.types.errors import ModelError
from frostagent.types.ports import ChatModel, Clock

RECENT: Final = 24 * 3600.0  # seconds after which an unfinished talk is dropped


class OpenTalk(Struct, frozen=True):
    """A talk: its first turn, and its start by the server's clock."""

    turn_id: str
    since: float

    def __str__(self) -> str:
        return f"{self.since:.0f} {self.turn_id}"


def _read(text: str) -> OpenTalk | None:
    since, _, turn_id = text.partition(" ")
    return OpenTalk(turn_id, float(since)) if since.isdecimal() and turn_id else None


OPEN_TALK: Final = PlaceSetting[OpenTalk]("talk", read=_read)


class OpenTalks:
    """At most one open talk per conversation, kept across restarts."""

    def __init__(self, *, settings: SettingsStore, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    async def load(self) -> None:
        """Return once the stored talks are loaded; retries until then."""
        await retry_until_loaded(lambda: self._settings.load(OPEN_TALK), self._clock)

    def begin(self, where: Conversation, talk: OpenTalk) -> None:
        """Open a talk unless one is open there."""
        if self.of(where) is None:
            self.resume(where, talk)

    def resume(self, where: Conversation, talk: OpenTalk) -> None:
        """Open this talk in place of a later one."""
        self._settings.put(OPEN_TALK, where, talk)

    def end(self, where: Conversation) -> None:
        self._settings.put(OPEN_TALK, where, None)

    def end_all(self) -> None:
        for where in tuple(self._settings.all(OPEN_TALK)):
            self.end(where)

    def of(self, where: Conversation) -> OpenTalk | None:
        return self._settings.get(OPEN_TALK, where)

    def recent(self, most: int) -> dict[Conversation, OpenTalk]:
        """Return the latest `most` open talks, oldest first. Talks older than RECENT are closed."""
        begin = self._clock.now() - RECENT
        for where, talk in tuple(self._settings.all(OPEN_TALK).items()):
            if talk.since < begin:
                self.end(where)
        talks = self._settings.all(OPEN_TALK).items()
        return dict(sorted(talks, key=lambda one: one[1].since)[-most:])


ROUNDS = 8  # rounds of the bot until facts are extracted
QUIET = 1200.0  # seconds without a round after which a talk has ended
LOOK = 60.0  # seconds between two checks for ended talks
LINES = 120  # latest lines of a talk
LEAST = 3  # lines; shorter talks hold no facts
PLACES = 500  # talks in memory
PICKED_WITHIN = 60.0  # seconds of one request
MOMENT = 30.0  # seconds for which extraction yields to questions
CJK = re.compile(r"[\u3400-\u9fff]")
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Talk:
    lines: deque[MessageReceived] = field(default_factory=lambda: deque(maxlen=LINES))
    rounds: int = 0
    last: float = 0.0  # end of the last round, monotonic
    turn_id: str = ""
    since: float = 0.0  # server time; earlier lines are not read from the journal again


def _line(message: MessageReceived, speakers: Speakers) -> SaidLine | None:
    view = View(number=partial(speakers.number, message.conversation))
    text = plain(message.segments, view, self_id=message.self_id)
    if not text or not message.has_identity:
        return None
    sender = message.sender
    number = speakers.number(message.conversation, sender.user_id)
    name = sender.card or sender.nickname
    return SaidLine(sender.user_id, number, message.message_id, text, name)


async def _give_way(quiet: Callable[[], Awaitable[object]], seconds: float) -> float:
    """Wait for `quiet`, at most `seconds`. Returns the seconds left."""
    time = asyncio.get_running_loop().time
    end = time() + seconds
    with suppress(TimeoutError):
        async with asyncio.timeout_at(end):
            await quiet()
    return max(0.0, end - time())


class Extraction:
    """A `JournalObserver` that asks the model for one talk at a time. A request is charged to the
    talk's last turn; while `is_spent` is true for that turn, the request is skipped.
    """

    sees: Final = frozenset(
        {MessageObserved, MessageErased, MemoriesForgotten, TurnOpened, TurnClosed}
    )

    def __init__(
        self,
        *,
        model: ChatModel,
        remembering: Remembering,
        speakers: Speakers,
        store: Store,
        clock: Clock,
        open_talks: OpenTalks,
        is_spent: Callable[[str], bool] | None = None,
        patience: float = PICKED_WITHIN,
    ) -> None:
        self._patience = patience  # seconds of one request
        self._model = model
        self._remembering = remembering
        self._speakers = speakers
        self._store = store
        self._clock = clock
        self._open = open_talks
        self._is_spent = is_spent
        self._talks = DefaultLRU[Conversation, _Talk](PLACES, _Talk)
        self._turns = LRU[str, Conversation](PLACES)
        self._recalled = LRU[tuple[Conversation, str], None](PLACES)
        self._due = asyncio.Event()
        self._times_forgotten = 0

    def see(self, entry: Entry) -> None:
        """Collect lines and ends of rounds. Never waits."""
        match entry:
            case MessageObserved(message=message) if not message.is_own:
                self._talks.use(message.conversation).lines.append(message)
            case MessageErased(conversation=where, message_id=message_id):
                self._let_go(where, lambda line: line.message_id == message_id)
                self._recalled.keep((where, message_id), None)
            case MemoriesForgotten(said=said):
                self._times_forgotten += 1
                for where, user in said:
                    self._forget_there(where, user)
            case TurnOpened(turn_id=turn_id, question=question):
                self._turns.keep(turn_id, question.conversation)
            case TurnClosed(turn_id=turn_id) if turn_id in self._turns:
                self._end_round(self._turns.pop(turn_id), turn_id)
            case _:
                pass

    def forget(self) -> None:
        """Drop all talks after an erasure, and discard the facts of a request under way."""
        self._times_forgotten += 1
        self._talks.clear()
        self._open.end_all()

    def _end_round(self, where: Conversation, turn_id: str) -> None:
        talk = self._talks.use(where)
        talk.rounds, talk.last = talk.rounds + 1, self._clock.monotonic()
        talk.turn_id = turn_id
        if talk.lines:
            since = max(talk.since, talk.lines[0].time)
            self._open.begin(where, OpenTalk(turn_id, since))
        if talk.rounds >= ROUNDS:
            self._due.set()

    def _forget_there(self, where: Conversation, user: int) -> None:
        talk = self._talks.use(where)
        talk.since = max((line.time + 1 for line in talk.lines), default=talk.since)
        self._open.end(where)
        self._let_go(where, partial(_is_by, user))

    def _let_go(self, where: Conversation, is_gone: Callable[[MessageReceived], bool]) -> None:
        lines = self._talks.use(where).lines
        kept = [line for line in lines if not is_gone(line)]
        lines.clear()
        lines.extend(kept)

    @asynccontextmanager
    async def open(self, quiet: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
        """Extract facts while the block runs, whenever it is `quiet` or after MOMENT seconds.
        Unfinished work is cancelled at the end.
        """
        async with asyncio.TaskGroup() as group:
            works = self._work(quiet), self._tick(), self._find_again()
            tasks = [group.create_task(work) for work in works]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    async def _find_again(self) -> None:
        """Load unfinished talks of an earlier process; each counts as one round."""
        forgotten = self._times_forgotten
        await self._open.load()
        if forgotten != self._times_forgotten:
            self._open.end_all()  # the loaded talks may predate the erasure
        for where, known in self._open.recent(PLACES).items():
            latest = await self._store.search(LogQuery(conversation=where, limit=LINES))
            # Their people may have numbers, which facts refer to.
            remembered = await self._store.remember(where)
            if remembered is None or latest is None:
                continue
            if self._open.of(where) is not known:
                continue  # closed or erased meanwhile
            self._speakers.learn(where, remembered.members)
            talk = self._talks.use(where)
            lines = {line.identity: line for line in latest if self._is_of(known, line)}
            lines |= {line.identity: line for line in talk.lines}
            talk.lines.clear()
            talk.lines.extend(lines.values())
            talk.rounds, talk.turn_id = talk.rounds + 1, talk.turn_id or known.turn_id
            talk.last = self._clock.monotonic()

    def _is_of(self, talk: OpenTalk, line: MessageReceived) -> bool:
        is_recalled = (line.conversation, line.message_id) in self._recalled
        return line.time >= talk.since and not (line.is_own or is_recalled)

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(LOOK)
            self._due.set()

    async def _work(self, quiet: Callable[[], Awaitable[object]]) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            left = MOMENT  # seconds for all talks: a bot that is never quiet extracts facts too
            for where in [where for where, talk in self._talks.items() if self._is_due(talk)]:
                left = await _give_way(quiet, left)
                talk = self._talks.get(where)  # it may have been erased or evicted meanwhile
                if talk is not None and self._is_due(talk):
                    await self._extract(where, talk)

    def _is_due(self, talk: _Talk) -> bool:
        is_quiet = talk.last + QUIET <= self._clock.monotonic()
        return talk.rounds >= ROUNDS or (talk.rounds > 0 and is_quiet)

    async def _extract(self, where: Conversation, talk: _Talk) -> None:
        told = (_line(message, self._speakers) for message in talk.lines)
        lines = [line for line in told if line is not None]
        turn_id, known, forgotten = talk.turn_id, self._open.of(where), self._times_forgotten
        if self._is_spent and self._is_spent(turn_id):
            return
        current_run.set(turn_id)  # charges the request to this turn
        current_errand.set(RequestPurpose.FACTS)
        talk.rounds = 0
        talk.lines.clear()
        self._open.end(where)
        if len(lines) < LEAST:
            return
        try:
            async with asyncio.timeout(self._patience):
                await self._ask(where, lines, turn_id)
        except asyncio.CancelledError:  # the next process resumes it
            if known is not None and forgotten == self._times_forgotten:
                self._open.resume(where, known)
            raise
        except (ModelError, TimeoutError) as error:
            logger.warning("no facts of %s: %r", where, error)
        except Exception:
            logger.exception("no facts of %s", where)

    async def _ask(self, where: Conversation, lines: list[SaidLine], turn_id: str) -> None:
        chinese = any(CJK.search(line.text) for line in lines)
        forgotten = self._times_forgotten
        completion = await self._model.complete(extraction_request(lines, chinese=chinese))
        if usage := completion.usage:
            model = completion.endpoint or completion.model
            now = self._clock.now()
            self._store.put(UsageAdded(turn_id=turn_id, model=model, usage=usage, at=now))
        facts = read_facts(completion, lines)

        def wanted(fact: ExtractedFact) -> bool:
            is_recalled = any((where, source) in self._recalled for source in fact.sources)
            # After an erasure, any of these facts may be about the erased person or fact.
            return not is_recalled and forgotten == self._times_forgotten

        for fact in facts:
            await self._remembering.keep(
                StoredFact(
                    memory_id="",
                    scope=where,
                    subject=fact.subject,
                    author=fact.author,
                    text=fact.text,
                    kind=fact.kind,
                    sources=fact.sources,
                ),
                wanted=partial(wanted, fact),
                picked=True,
            )
        logger.info("%d facts of %s are remembered", len(facts), where)


def _is_by(user: int, line: MessageReceived) -> bool:
    return line.sender.user_id == user
