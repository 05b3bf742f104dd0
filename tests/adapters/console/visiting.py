"""A console that listens on loopback, and a browser of sorts that visits it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
from aiohttp import web
from msgspec.structs import replace
from yarl import URL

from adapters.console.chats import CHANGES
from adapters.console.http import Origins, PageOrigin, cookie_name
from adapters.console.live import STREAMS
from adapters.console.logins import Logins
from adapters.console.server import Console
from adapters.console.site import ROUTES, Route, build_app
from adapters.console.sources import Sources
from bot.commands.why import Explanations
from bot.core.console_views import (
    ApplicantRule,
    BotStatus,
    Chat,
    ChatLine,
    ChatRow,
    ChatRows,
    CostSum,
    Finding,
    GreetingState,
    GroupState,
    JobMark,
    JobRow,
    JobRows,
    LimitState,
    OwnerDecision,
    PersonaState,
    ServerState,
    State,
    ToolAnswer,
    ToolState,
    ToolUse,
    Trace,
    TurnQuery,
    TurnRow,
    TurnRows,
    Unanswered,
    WaitingDraft,
    WebState,
)
from bot.core.conversation import Conversation
from bot.core.journal import Audited
from bot.core.language import Language
from bot.core.query_results import DayCounts, Story
from bot.core.settlement import Settled
from bot.core.trial_group import TrialLine
from bot.memory.newest import Newest
from frostagent.text.masking import Mask
from frostagent.types.errors import BotError
from tests.adapters.console.samples import NOW
from tests.adapters.console.trials import ListTrial, ListTrials
from tests.fakes import ManualClock

TOKEN = "0123456789abcdef0123456789abcdef"
AWAY = 999  # an account that no bot has just now
SECRET = "sk-very-secret-indeed"
SHORT = "none"  # what many write for a server that wants no key
SAME = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Journal:
    """What the console reads and writes, as lists; None: the journal is away."""

    lines: list[Audited] | None = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    talks: list[Chat] = field(default_factory=list)
    uses: list[ToolUse] = field(default_factory=list)
    silent: list[TurnRow] = field(default_factory=list)
    recalled: set[str] = field(default_factory=set)
    swept: set[str] = field(default_factory=set)
    queries: list[TurnQuery] = field(default_factory=list)
    following: tuple[int, int] | None = None
    ended: tuple[int, int] = (0, 0)
    counts: DayCounts = field(
        default_factory=lambda: DayCounts(turns=(("answered", 2), ("silent", 9)), dropped=(("rate", 4),))
    )
    since: list[float] = field(default_factory=list)
    sums: dict[str, tuple[CostSum, ...]] = field(default_factory=dict)

    async def audit(self, *, latest: int) -> tuple[Audited, ...] | None:
        return None if self.lines is None else tuple(reversed(self.lines))[:latest]

    async def rows(self, query: TurnQuery) -> TurnRows | None:
        self.queries.append(query)
        if self.lines is None:
            return None
        return TurnRows((*(one.row for one in self.traces), *self.silent), self.following)

    async def trace(self, turn_id: str) -> tuple[Trace, ...] | None:
        return None if self.lines is None else tuple(one for one in self.traces if one.row.turn_id == turn_id)

    async def silence(self, where: Conversation, message_id: str) -> Unanswered | None:
        found = [one for one in self.silent if (one.where, one.message_id) == (where, message_id)]
        if self.lines is None:
            return None
        if not found:
            return Unanswered(Story(asker=0))
        (row,) = found
        is_gone = message_id in self.recalled
        line = ChatLine(
            message_id=message_id, at=row.at, sender=row.asker, name=row.name, text=row.text, is_gone=is_gone
        )
        return Unanswered(Story(asker=1, wakes=False, reason=row.reason), None if message_id in self.swept else line)

    async def chats(self, before: int) -> ChatRows | None:
        rows = tuple(ChatRow(where=one.where, group=one.group, name="x", text="y", at=0) for one in self.talks)
        return None if self.lines is None else ChatRows(rows, before + 1 if rows else None)

    async def chat(self, where: Conversation, before: int) -> Chat | None:
        found = [one for one in self.talks if one.where == where] or [Chat(where=where, group="", lines=())]
        return None if self.lines is None else found[min(before, len(found) - 1)]

    async def tools(self) -> tuple[ToolUse, ...] | None:
        return None if self.lines is None else tuple(self.uses)

    async def day(self, *, since: float, until: float) -> DayCounts | None:
        return None if self.lines is None else self.counts

    async def ends(self, *, since: float) -> tuple[int, int] | None:
        self.since.append(since)
        return None if self.lines is None else self.ended

    async def costs(self, *, since: float, by: str) -> tuple[CostSum, ...] | None:
        return None if self.lines is None else self.sums.get(by, ())


@dataclass
class Place:
    """A console at work, and what it wrote and told."""

    clock: ManualClock
    journal: Journal = field(default_factory=Journal)
    told: list[str] = field(default_factory=list)
    language: Language = Language.CHINESE
    words: list[OwnerDecision] = field(default_factory=list)
    settled: Settled = field(default_factory=lambda: Settled("done", ""))
    tools: list[ToolState] = field(default_factory=list)
    called: list[tuple[str, str]] = field(default_factory=list)
    answer: ToolAnswer = field(default_factory=lambda: ToolAnswer("done", "ok", 0.25))
    found: list[Finding] | None = field(default_factory=list)
    looks: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    personas: list[PersonaState] = field(default_factory=list)
    is_stuck: bool = False
    forgotten: list[Conversation] = field(default_factory=list)
    paused: list[tuple[Conversation, bool]] = field(default_factory=list)
    trying: ListTrials = field(default_factory=ListTrials)
    first: str = "/"
    newest: Newest = field(default_factory=Newest)
    state: State = field(default_factory=State)
    limits: tuple[LimitState, ...] = ()
    drafts: tuple[WaitingDraft, ...] = ()
    jobs: list[JobRow] = field(default_factory=list)
    greetings: dict[str, GreetingState] = field(default_factory=dict)
    applicants: tuple[ApplicantRule, ...] = ()
    page_size: int = 50
    servers: tuple[ServerState, ...] = ()
    web: WebState | None = None
    console: Console = field(init=False)
    session: aiohttp.ClientSession = field(init=False)

    def sources(self) -> Sources:
        lines = self.journal.lines
        assert lines is not None
        return Sources(
            showing=self.journal,
            audits=lambda latest: self.journal.audit(latest=latest),
            explain=Explanations(self.clock.now),
            feed=self.newest,
            look=self.look,
            look_with_drafts=lambda: self.look(with_drafts=True),
            limits=lambda: self.limits,
            tools=lambda: self.tools,
            servers=lambda: self.servers,
            web=lambda: self.web,
            call=self.call,
            personas=lambda: self.personas,
            rendered=self.rendered,
            retell=self.retell,
            untell=self.untell,
            pause=lambda where: self.pause(where, silent=True),
            resume=lambda where: self.pause(where, silent=False),
            forget=self.forget,
            jobs=self.scheduled,
            job_rule=lambda job, language: job.rule and language.either(f"每 {job.rule}", f"every {job.rule}"),
            job_moment=lambda job, language: language.either(f"{job.due:g} 秒", f"at {job.due:g}"),
            cancel_job=self.cancel_job,
            group=self.group,
            greet=self.greet,
            settle=self.settle,
            waiting=lambda: len(self.state.calls) + len(self.state.petitions) + len(self.drafts),
            note=lines.append,
            tell=lambda _kind, text: self.told.append(text),
            language=self.language,
            mask=Mask([SECRET, SHORT]),
            estimate=len,
            weigh=lambda rounds, light: 1000.0 * len(rounds) + light,
            clock=self.clock,
            trying=self.trying,
            first=self.first,
            doctor=None if self.found is None else self.doctor,
        )

    async def doctor(self) -> list[Finding]:
        """What was found; where the place is stuck, once its gate is open."""
        self.looks += 1
        if self.is_stuck:
            await self.gate.wait()
        return self.found or []

    async def call(self, name: str, arguments: str) -> ToolAnswer:
        """What a tool gave; where the place is stuck, once its gate is open."""
        self.called.append((name, arguments))
        if self.is_stuck:
            await self.gate.wait()
        return self.answer

    async def retell(self, key: str, text: str) -> bool:
        self.personas = [replace(one, text=text, filed=one.text) if one.key == key else one for one in self.personas]
        return not self.is_stuck

    async def untell(self, key: str) -> bool:
        self.personas = [
            replace(one, text=one.filed or one.text, filed=None) if one.key == key else one for one in self.personas
        ]
        return not self.is_stuck

    def routes(self) -> tuple[Route, ...]:
        """All there are."""
        return ROUTES

    def streams(self) -> int:
        """The number of open streams, once somebody asked."""
        assert self.console.app is not None
        return self.console.app[STREAMS].total()

    async def pause(self, where: Conversation, *, silent: bool) -> bool:
        self.paused.append((where, silent))
        return True

    async def scheduled(self, after: JobMark, where: Conversation | None) -> JobRows | None:
        """The jobs from the marked place of the list on."""
        if self.is_stuck or self.journal.lines is None:
            return None
        found = [one for one in self.jobs if where in {None, one.where}]
        begin, end = after[1], after[1] + self.page_size
        return JobRows(tuple(found[begin:end]), (1.5, end) if len(found) > end else None)

    async def cancel_job(self, where: Conversation, number: int) -> bool:
        before = len(self.jobs)
        self.jobs = [one for one in self.jobs if (where, number) != (one.where, one.number)]
        return len(self.jobs) < before

    async def group(self, where: Conversation) -> GroupState | None:
        if self.journal.lines is None:
            return None
        states = (
            self.greetings.get(change) or GreetingState(change=change, words="", source="")
            for change in CHANGES.values()
        )
        return GroupState(greetings=tuple(states), rules=self.applicants, asks_owners=bool(self.applicants))

    async def greet(self, where: Conversation, change: Literal["joined", "left"], words: str) -> bool:
        if not self.is_stuck:
            self.greetings[change] = GreetingState(change=change, words=words, source="set", at=NOW, by="a1b2c3")
        return not self.is_stuck

    async def forget(self, where: Conversation) -> int:
        if self.is_stuck:
            raise BotError("it is away")
        self.forgotten.append(where)
        return 7

    async def look(self, *, with_drafts: bool = False) -> BotStatus:
        drafts = self.drafts if with_drafts else ()
        return BotStatus(0, self.state, 0, drafts, 3, {one.key: one.chats for one in self.personas})

    async def rendered(self, where: Conversation) -> list[str] | None:
        if where.platform_id == AWAY:
            return None
        return [f"rendered for {where}", *(one.text for one in self.personas)]

    async def settle(self, word: OwnerDecision) -> Settled:
        self.words.append(word)
        return self.settled

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.console.port}"

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, str, aiohttp.ClientResponse]:
        """Status, text and all of an answer, redirects not followed."""
        url = URL(f"http://{self.host}{path}", encoded=True)
        async with self.session.request(method, url, allow_redirects=False, **more) as answer:
            return answer.status, await answer.text(), answer

    def tries(self, *lines: TrialLine) -> ListTrial:
        """A trial that is open, in whose journal is the same as in the bot's."""
        self.trying.current = self.trying.made = trial = ListTrial(self.journal, lines=lines)
        return trial

    async def log_in(self, token: str = TOKEN, **more: Any) -> int:
        status, _, _ = await self.ask("POST", "/login", data={"token": token}, headers=SAME, **more)
        return status

    async def form(self) -> str:
        """The token of a form of the page that is open."""
        _, text, _ = await self.ask("GET", "/access")
        found = re.search(r'name="form" value="(\w+)"', text)
        assert found
        return found[1]

    def cookie(self) -> str:
        name = cookie_name(PageOrigin("http", self.host))
        found = self.session.cookie_jar.filter_cookies(URL(f"http://{self.host}/")).get(name)
        return "" if found is None else found.value


@asynccontextmanager
async def visiting(
    *more: Route, origin: str = "", port: int = 0, totp: str = "", proxy: str = "", first: str = "/"
) -> AsyncIterator[Place]:
    """A console with these routes beside its own."""
    place = Place(clock := ManualClock(), first=first)
    loads: list[Sequence[Route]] = []

    def load(logins: Logins, origins: Origins) -> web.Application:
        loads.append(more)
        return build_app(place.sources(), logins=logins, origins=origins, proxy=proxy, routes=(*ROUTES, *more))

    logins = Logins(TOKEN, totp=totp, clock=clock)
    console = Console(host="127.0.0.1", port=port, origin=origin, logins=logins, load=load)
    jar = aiohttp.CookieJar(unsafe=True)
    async with console, aiohttp.ClientSession(cookie_jar=jar) as session:
        assert not loads  # nothing is loaded before somebody asks
        place.console, place.session = console, session
        yield place
