"""The ports of the pages: everything they show and do, passed in by the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from adapters.console.http import ADDRESS
from adapters.console.logins import LOGIN
from bot.core.console_views import (
    BotStatus,
    ConsoleQueries,
    Feed,
    Finding,
    LimitState,
    OwnerDecision,
    PersonaState,
    ScheduledJob,
    ServerState,
    ToolAnswer,
    ToolState,
    WakeExplainer,
    WebState,
)
from bot.core.conversation import Conversation
from bot.core.journal import Audited, Round
from bot.core.language import Language
from bot.core.settlement import Settled
from bot.core.trial_group import TrialRuns
from frostagent.types.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """- `audits` are the last N entries of the audit log, the latest first; None if they cannot be
      read now.
    - `look` returns the current state of all bots, `look_with_drafts` also the texts of
      drafts.
    - `pause` pauses a chat, `resume` resumes it. False if that cannot be recorded now.
    - `forget` erases a group, or the person of a private chat, and returns the row count.
      Raises BotError.
    - `jobs` are the reminders of a chat, their rules in words of a language; None if they cannot
      be read now. `cancel_job` cancels the one of a number. False if there is none, or if that
      cannot be recorded now.
    - `note` records an action; `tell` sends owners a line in the language of their `tongue`.
    - `mask` hides secrets in a text that will be cut: half a secret cannot be recognised.
    - `estimate` counts the tokens of a text, `weigh` those of rounds, the first N of them with
      shortened results.
    - `rendered` is the part of a prompt before the conversation; None if it is not known.
    - `retell` changes the text of a persona, `untell` restores the previous one. False if that
      cannot be done.
    - `doctor` runs the checks, if there are any. `call` runs a tool with JSON arguments.
    - `settle` applies an owner's decision, `waiting` counts the pending ones.
    - `first` is the page after a login.
    """

    showing: ConsoleQueries
    audits: Callable[[int], Awaitable[Sequence[Audited] | None]]
    explain: WakeExplainer
    feed: Feed
    look: Callable[[], Awaitable[BotStatus]]
    look_with_drafts: Callable[[], Awaitable[BotStatus]]
    limits: Callable[[], Sequence[LimitState]]
    tools: Callable[[], Sequence[ToolState]]
    call: Callable[[str, str], Awaitable[ToolAnswer]]
    personas: Callable[[], Sequence[PersonaState]]
    rendered: Callable[[Conversation], Awaitable[Sequence[str] | None]]
    retell: Callable[[str, str], Awaitable[bool]]
    untell: Callable[[str], Awaitable[bool]]
    pause: Callable[[Conversation], Awaitable[bool]]
    resume: Callable[[Conversation], Awaitable[bool]]
    forget: Callable[[Conversation], Awaitable[int]]
    jobs: Callable[[Conversation, Language], Awaitable[Sequence[ScheduledJob] | None]]
    cancel_job: Callable[[Conversation, int], Awaitable[bool]]
    settle: Callable[[OwnerDecision], Awaitable[Settled]]
    waiting: Callable[[], int]
    note: Callable[[Audited], None]
    tell: Callable[[str, str], None]
    tongue: Language
    mask: Callable[[str], str]
    estimate: Callable[[str], float]
    weigh: Callable[[Sequence[Round], int], float]
    clock: Clock
    trying: TrialRuns
    first: str = "/"
    doctor: Callable[[], Awaitable[Sequence[Finding]]] | None = None
    servers: Callable[[], Sequence[ServerState]] = tuple
    web: Callable[[], WebState | None] = lambda: None


SOURCES: Final = web.AppKey("sources", Sources)


def note(
    request: web.Request, action: str, *, what: str = "", outcome: str = "ok", login: str = ""
) -> None:
    """Record an action in the audit log, for this `login` or the visitor's."""
    sources, own = request.app[SOURCES], request.get(LOGIN)
    done = Audited(
        at=sources.clock.now(),
        login=login or (own.name if own else ""),
        address=request[ADDRESS],
        action=action,
        object=what,
        outcome=outcome,
    )
    sources.note(done)
