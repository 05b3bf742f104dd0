"""The ports of the pages: everything they show and do, passed in by the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from aiohttp import web

from adapters.console.http import ADDRESS
from adapters.console.logins import LOGIN
from bot.core.console_views import (
    BotStatus,
    ConsoleQueries,
    Feed,
    Finding,
    GroupState,
    JobMark,
    JobRow,
    JobRows,
    LimitState,
    OwnerDecision,
    PersonaState,
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
    - `jobs` are those after a mark, of all chats or of one; None if they cannot be read now.
      `job_rule` says in a language how often one repeats (empty: once), `job_moment` when it comes
      next. `cancel_job` cancels the one of a number. False if there is none, or if that cannot be
      recorded now.
    - `group` is what a group says to people who join or leave, and whom it lets in; None if it
      cannot be read now. `greet` changes what it says, as `/welcome` and `/farewell` do. False if
      that cannot be recorded now.
    - `note` records an action; `tell` sends owners a line in their `language`.
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
    jobs: Callable[[JobMark, Conversation | None], Awaitable[JobRows | None]]
    job_rule: Callable[[JobRow, Language], str]
    job_moment: Callable[[JobRow, Language], str]
    cancel_job: Callable[[Conversation, int], Awaitable[bool]]
    group: Callable[[Conversation], Awaitable[GroupState | None]]
    greet: Callable[[Conversation, Literal["joined", "left"], str], Awaitable[bool]]
    settle: Callable[[OwnerDecision], Awaitable[Settled]]
    waiting: Callable[[], int]
    note: Callable[[Audited], None]
    tell: Callable[[str, str], None]
    language: Language
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
