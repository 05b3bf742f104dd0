"""Waiting for somebody's word: how a call asks for it, what can be decided, when a stored wait may
be trusted.

A run that waits is data (`frostagent/types/runs.py`, SuspendedRun): it is written down, survives a
restart, and is checked here before anything of it is executed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, assert_never

from msgspec import Struct

from frostagent.types.errors import BotError
from frostagent.types.messages import ToolCall, ToolMessage
from frostagent.types.runs import Asker, PendingCall, SuspendedRun
from frostagent.types.tools import ToolContext

MAX_DIGITS = 20  # of an id that may have been a number; int() refuses thousands of digits


class Suspend(Exception):
    """Raised by a tool before it has done anything: somebody must allow this call first.

    Not a failure, so not in the error tree: once it is allowed the tool is run again from its
    beginning, with `ToolContext.allowed`. `asks` is the question people read, `seconds` how long it
    stays open. Raises ValueError for a time that is not positive and finite.
    """

    def __init__(self, asks: str, *, seconds: float) -> None:
        if not (seconds > 0 and math.isfinite(seconds)):
            raise ValueError(
                f"a wait must end: it takes a positive number of seconds, not {seconds}"
            )
        self.asks = asks
        self.seconds = seconds
        super().__init__(asks)


class BadSuspension(BotError):
    """A suspended run that cannot go on as it is: not this run's, changed since, or decided on what
    does not wait.
    """


class Allow(Struct, frozen=True, tag="allow"):
    """The call may be run, once."""

    type: ClassVar[Literal["allow"]] = "allow"


class Deny(Struct, frozen=True, tag="deny"):
    """The call must not be run; the model reads the reason."""

    reason: str
    type: ClassVar[Literal["deny"]] = "deny"


Decision: TypeAlias = Allow | Deny


class Pending(Struct, frozen=True, tag="pending"):
    """Nobody can say at once: the run is suspended for at most so many seconds, then the call is
    denied.
    """

    seconds: float
    type: ClassVar[Literal["pending"]] = "pending"


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """A call that somebody must allow. `asks` is what people read; `arguments` are those the call
    would be run with.

    `context` are the call's surroundings, as its body would get them.
    """

    run_id: str
    step: int
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    asks: str
    conversation: str
    asker: Asker
    context: ToolContext

    def __repr__(self) -> str:  # without the context, which holds all that the run has
        shown = self.__struct_fields__[:-1]
        return f"ApprovalRequest({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def digest_call(call: ToolCall, *, run_id: str, asker: str, arguments: str = "") -> str:
    """A digest that binds a wait to its call, run and asker (a user id), as hex; the layout of
    the arguments does not matter.

    `arguments` are those it will be run with, where they are known: `PendingCall.arguments`. It
    tells changed state from unchanged; it is no signature: who can write the store can write a
    fitting one.
    """
    # An id of digits is bound as a number: stored waits were, when ids were numbers.
    who = int(asker) if asker.isdecimal() and len(asker) < MAX_DIGITS else asker
    bound = [run_id, who, call.id, call.name, _canonical(call.arguments)]
    if arguments:
        bound.append(_canonical(arguments))
    return hashlib.sha256(json.dumps(bound).encode()).hexdigest()


def _canonical(arguments: str) -> str:
    """The same text for the same JSON value; what is no JSON stands for itself."""
    try:
        value: Any = json.loads(arguments)
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return arguments


def verify(
    suspended: SuspendedRun,
    *,
    run_id: str,
    conversation: str,
    asker: str,
    decided: Collection[str],
) -> None:
    """Refuse what must not go on: another run's, place's or person's state, a changed one, a
    decision on no wait.

    `asker` is a user id, `decided` the call ids that decisions are there for. Raises BadSuspension.
    """
    theirs = (suspended.run_id, suspended.conversation, suspended.asker.user_id)
    if theirs != (run_id, conversation, asker):
        raise BadSuspension(
            f"the suspended run {suspended.run_id} is another run's, conversation's or asker's"
        )
    calls = suspended.message.tool_calls
    if len(calls) != len(suspended.answers):
        raise BadSuspension(
            f"run {run_id} has {len(calls)} calls, but {len(suspended.answers)} answers"
        )
    for call, answer in zip(calls, suspended.answers, strict=True):
        match answer:
            case ToolMessage():
                fits = (answer.call_id, answer.name) == (call.id, call.name)
            case PendingCall():
                digest = digest_call(call, run_id=run_id, asker=asker, arguments=answer.arguments)
                fits = answer.call == call and answer.digest == digest
            case _:
                assert_never(answer)
        if not fits:
            raise BadSuspension(
                f"call {call.id} of run {run_id} is not what it was when it was suspended"
            )
    waiting = [pending.call.id for pending in suspended.pending]
    if not waiting or len(set(waiting)) < len(waiting):
        raise BadSuspension(f"nothing waits in run {run_id}, or two calls under one id")
    if unknown := sorted(set(decided).difference(waiting)):
        raise BadSuspension(f"no call of run {run_id} waits under the id {', '.join(unknown)}")
