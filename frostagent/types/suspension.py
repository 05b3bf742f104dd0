"""Waiting for an approval: how a call asks for one, the possible decisions, and the check of a
stored wait.

A waiting run is data (`SuspendedRun`): it is stored, survives a restart, and is verified here
before any of it is executed.
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
    """Raised by a tool before it has done anything: this call needs an approval.

    Not a failure, so not in the error tree: once approved, the tool runs again from its beginning
    with `ToolContext.allowed`. `asks` is the question for people, `seconds` the time to answer it.

        if not context.allowed:
            raise Suspend(f"Delete {path}?", seconds=600)

    Raises ValueError for a time that is not positive and finite.
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
    """A suspended run cannot continue: another run's, changed, or a decision fits no wait."""


class Allow(Struct, frozen=True, tag="allow"):
    """The call may be run, once."""

    type: ClassVar[Literal["allow"]] = "allow"


class Deny(Struct, frozen=True, tag="deny"):
    """The call must not be run. The model reads the reason."""

    reason: str
    type: ClassVar[Literal["deny"]] = "deny"


Decision: TypeAlias = Allow | Deny


class Pending(Struct, frozen=True, tag="pending"):
    """No decision yet: the run is suspended for at most `seconds`, then the call is denied."""

    seconds: float
    type: ClassVar[Literal["pending"]] = "pending"


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """A call that needs an approval. `asks` is the question for people.

    `arguments` are the final ones; `context` is what the body would get.
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

    def __repr__(self) -> str:  # without the context, which holds the whole state of the run
        shown = self.__struct_fields__[:-1]
        return f"ApprovalRequest({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def digest_call(call: ToolCall, *, run_id: str, asker: str, arguments: str = "") -> str:
    """A hex digest that binds a wait to its call, run and asker (a user id). JSON layout does not
    matter.

    `arguments` are the final ones, if known (`PendingCall.arguments`). The digest detects changed
    state. It is not a signature: anyone who can write the store can write a matching one.
    """
    # An id of digits is hashed as a number: stored waits date from when ids were numbers.
    who = int(asker) if asker.isdecimal() and len(asker) < MAX_DIGITS else asker
    bound = [run_id, who, call.id, call.name, _canonical(call.arguments)]
    if arguments:
        bound.append(_canonical(arguments))
    return hashlib.sha256(json.dumps(bound).encode()).hexdigest()


def _canonical(arguments: str) -> str:
    """The same text for equal JSON values; other text unchanged."""
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
    """Verify that a suspended run may continue: same run, conversation and asker, unchanged calls,
    and decisions only on waiting calls.

    `asker` is a user id; `decided` has call ids. Raises BadSuspension.
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
