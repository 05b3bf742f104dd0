"""A trial that is a few lists, and somebody who opens it."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.core.console_views import ConsoleQueries
from bot.core.conversation import Conversation
from bot.core.query_results import UsageSum
from bot.core.trial_group import Source, TrialLimits, TrialLine, TrialOptions, TrialRuns
from bot.memory.newest import Newest
from frostagent.types.errors import MediaError
from tests.fakes import GROUP

CEILING = TrialLimits("deepseek-chat", 0.25, 100_000, 40)


@dataclass
class ListTrial:
    """Fits `Trial`."""

    showing: ConsoleQueries
    name: str = "one"
    trouble: str = ""
    lacks: str = ""
    where: Conversation = GROUP
    wanted: TrialOptions = field(default_factory=TrialOptions)
    ceiling: TrialLimits | None = None
    people: tuple[str, ...] = ("user1", "user2")
    faults: tuple[str, ...] = ("timeout", "slow 3")
    lines: tuple[TrialLine, ...] = ()
    draft: TrialLine | None = None
    feed: Newest = field(default_factory=Newest)
    is_busy: bool = False
    spent: UsageSum = field(default_factory=UsageSum)
    said: list[tuple[str, str, bytes]] = field(default_factory=list)
    obeyed: list[str] = field(default_factory=list)
    pictures: dict[int, bytes] = field(default_factory=dict)
    broken: Exception | None = None
    is_deaf: bool = False
    patience: list[float] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)

    async def settle(self) -> None:
        pass

    async def say(self, who: str, text: str, picture: bytes = b"", *, patience: float) -> bool:
        self.patience.append(patience)
        if self.broken is not None:
            raise self.broken
        if self.is_deaf:
            return False
        self.said.append((who, text, picture))
        self.draft = None
        return True

    async def inject_fault(self, fault: str) -> None:
        self.obeyed.append(fault)

    async def picture(self, number: int) -> bytes:
        if number not in self.pictures:
            raise MediaError("it is too long ago")
        return self.pictures[number]

    async def taken(self) -> UsageSum:
        return self.spent

    def propose(self, who: str, question: str, source: Source | None = None) -> None:
        self.draft = TrialLine(who, question)
        if source is not None:
            self.sources.append(source)

    def has_words_of(self, user: int, group: int) -> bool:
        return any(user == one.user or group == one.group for one in self.sources)

    def erase(self) -> None:
        self.lines, self.draft = (), None


@dataclass
class ListTrials(TrialRuns):
    """Fits `TrialRuns`: opens what is `made` ready."""

    made: ListTrial | None = None
    current: ListTrial | None = None
    ceiling: TrialLimits | None = CEILING
    can_end: bool = True
    trouble: str = ""
    last: UsageSum | None = None
    wanted: list[TrialOptions] = field(default_factory=list)
    touched: int = 0

    def touch(self) -> None:
        self.touched += 1

    async def open(self, wanted: TrialOptions) -> str:
        self.wanted.append(wanted)
        if not self.trouble:
            self.current = self.made
        return self.trouble

    async def end(self) -> None:
        self.current = None
