"""From a call to its answer: what the world makes of it, and what a fault makes of that. No
sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from adapters.simulator import actions
from adapters.simulator.call import Call, CallAnswer, Done, SentMessage
from adapters.simulator.faults import ARRIVED, REFUSED, SENDING, Armed, Fault, Faults
from adapters.simulator.wire import Json
from adapters.simulator.world import World


@dataclass(frozen=True, slots=True)
class CallReply:
    """The result of a call: the frame that answers it (None: nothing ever does), and what was done.

    The answer comes `delay` seconds late, or on the `next_connection`. `asked` is the message the
    bot wanted to be sent, whatever became of it; its id is 0 where nobody gets it.
    """

    frame: Json | None
    done: Done = field(default_factory=Done)
    asked: SentMessage | None = None
    delay: float = 0.0
    next_connection: bool = False

    @property
    def in_order(self) -> bool:
        """Whether the bot hears that it is done before it hears what it caused, as with NapCat on a
        good day.
        """
        return bool(
            self.frame
            and self.frame["status"] == "ok"
            and not self.delay
            and not self.next_connection
        )


def reply_to(world: World, faults: Faults, text: str | bytes) -> CallReply:
    """Carry out the call in a frame, as far as no fault is armed that hits it."""
    call = actions.read_call(text)
    if isinstance(call, CallAnswer):
        return CallReply(call.frame)
    if call.action == "get_msg" and (armed := faults.use(Fault.NO_MESSAGE)):
        return CallReply(call.refuse(armed.refusal).frame)
    if call.action not in actions.SENDS:
        answer = actions.perform(world, call)
        return CallReply(answer.frame, answer.done)
    slow = faults.use(Fault.SLOW)
    message = actions.message_in(call)
    segments = message.segments if message is not None else ()
    reply = _send(world, call, faults.use(*SENDING, segments=segments))
    asked = reply.done.sent or message
    return replace(reply, asked=asked, delay=slow.value if slow else 0.0)


def _send(world: World, call: Call, struck: Armed | None) -> CallReply:
    """Deliver a message or not, and answer what the fault has it answered."""
    match struck:
        case Armed(fault=Fault.LOST):
            return CallReply(None)
        case Armed(fault=fault) if fault in REFUSED:
            return CallReply(call.refuse(struck.refusal).frame)
        case _:
            answer = actions.perform(world, call)
    reply = CallReply(answer.frame, answer.done)
    if answer.done.sent is None:  # refused without any fault
        return reply
    match struck:
        case Armed(fault=fault) if fault in ARRIVED:
            return replace(reply, frame=call.refuse(struck.refusal).frame)
        case Armed(fault=Fault.SILENCE):
            return replace(reply, frame=None)
        case Armed(fault=Fault.NEXT_CONNECTION):
            return replace(reply, next_connection=True)
        case _:
            return reply
