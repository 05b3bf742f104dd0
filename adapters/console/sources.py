"""Where the pages have all they show from: ports, given when the console is opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from adapters.console.routes import Visit
from bot.domain.cluster_queries import OwnerDecision, PartitionStatus
from bot.domain.console_views import (
    ConsoleQueries,
    Feed,
    Finding,
    LimitState,
    PersonaState,
    ToolAnswer,
    ToolState,
    WakeExplainer,
)
from bot.domain.events import Conversation
from bot.domain.journal import Audited, Round
from bot.domain.language import Language
from bot.domain.ports import Clock
from bot.domain.query_results import AuditQueries
from bot.domain.suspension import Settled
from bot.domain.trial_group import TrialRuns


class Pause(Protocol):
    """Keeps the bot silent somewhere, or ends that."""

    async def __call__(self, where: Conversation, *, silent: bool) -> bool: ...


class Overview(Protocol):
    """How everything is now, in all of a cluster; the words of drafts only where asked for."""

    async def __call__(self, *, with_drafts: bool = False) -> PartitionStatus: ...


class Midnight(Protocol):
    """The beginning of the day of a moment, or of one so many days later."""

    def __call__(self, now: float, *, later: int = 0) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """`forget` erases all of a group, or of the person of a private chat, gives the number of
    records, and raises BotError. `note` writes into the journal, `tell` reaches the owners on QQ;
    of lines in Chinese and English they read those of their `tongue`. `pause` gives False where it
    cannot be written down now. `mask` is for a text that is cut: half a secret is not found any
    more. `estimate` is the tokens of a text, `weigh` those of rounds, the first so many told with
    shortened results; `rendered` what stands before a conversation in its prompt, None where nobody
    knows. `retell` changes what the persona of a key is told, `untell` goes back to what it was
    told before; both give False where that cannot be done. `doctor` looks at all that the bot
    needs, where there is one. `call` runs a tool by its name, with arguments as a model writes
    them. `settle` carries out an owner's word, `waiting` is how much waits for one. `base` is what
    stands before the path of a turn's page, `first` the page that a login leads to.
    """

    showing: ConsoleQueries
    audits: AuditQueries
    explain: WakeExplainer
    feed: Feed
    look: Overview
    limits: Callable[[], Sequence[LimitState]]
    tools: Callable[[], Sequence[ToolState]]
    call: Callable[[str, str], Awaitable[ToolAnswer]]
    personas: Callable[[], Sequence[PersonaState]]
    rendered: Callable[[Conversation], Awaitable[Sequence[str] | None]]
    retell: Callable[[str, str], Awaitable[bool]]
    untell: Callable[[str], Awaitable[bool]]
    pause: Pause
    forget: Callable[[Conversation], Awaitable[int]]
    settle: Callable[[OwnerDecision], Awaitable[Settled]]
    waiting: Callable[[], int]
    note: Callable[[Audited], None]
    tell: Callable[[str, str], None]
    tongue: Language
    mask: Callable[[str], str]
    estimate: Callable[[str], float]
    weigh: Callable[[Sequence[Round], int], float]
    midnight: Midnight
    clock: Clock
    trying: TrialRuns
    base: str = ""
    first: str = "/"
    doctor: Callable[[], Awaitable[Sequence[Finding]]] | None = None


def note(
    sources: Sources,
    visit: Visit,
    action: str,
    *,
    what: str = "",
    outcome: str = "ok",
    login: str = "",
) -> None:
    """Write down what somebody did, and to what."""
    name = login or (visit.login.name if visit.login else "")
    done = Audited(
        at=sources.clock.now(),
        login=name,
        address=visit.address,
        action=action,
        object=what,
        outcome=outcome,
    )
    sources.note(done)
