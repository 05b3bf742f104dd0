"""Everything that is said, as rows with a state: queued -> sending -> confirmed, refused, unknown,
withdrawn, dropped.

Order is kept in each conversation (`bot/outbox/queues.py`), and nothing is on the wire twice
(`bot/outbox/sender.py`): only a QUEUED row is ever sent (again). A send whose caller was
cancelled is withdrawn if it has not been on the wire, seen to its end if it has. Of words of a turn
that may be lost, and of those that got lost once nobody waited for their receipt any more, somebody
is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import pairwise

from bot.core.actions import SendMessage
from bot.core.cluster_messages import SubjectErased
from bot.core.events import MessageReceived
from bot.core.journal import Entry, SendState, StoredSend
from bot.core.refusals import is_of_place
from bot.outbox.queues import Queues
from bot.outbox.screening import Screen
from bot.outbox.sender import Carrier
from bot.outbox.sends import Rows, Send, Tell
from bot.outbox.shadow import Shadow
from bot.outbox.unconfirmed import Unconfirmed
from bot.outbox.unreachable import UnreachablePlaces
from frostagent.types.conversation import Conversation
from frostagent.types.speech import Confirmed, Drafted, Queued, Receipt, Refused

PATIENCE = 10.0  # seconds a caller waits for a send that is not on the wire yet

FULL = "too many messages are waiting to be sent here"
STOPPED = "its run was stopped"
RESTARTED = "the bot was restarted before an answer came"


class Outbox:
    """Sends, in order, what it is given, as the `screen` leaves it; where there is a `shadow`, what
    is not said `openly` stays there. `tell` hears of the words of turns only, see `Send`: lines
    about lines would never end.
    """

    def __init__(
        self,
        *,
        rows: Rows,
        carrier: Carrier,
        queues: Queues,
        tell: Tell,
        screen: Screen | None = None,
        shadow: Shadow | None = None,
    ) -> None:
        self._shadow = shadow
        self._rows = rows
        self._carrier = carrier
        self._queues = queues
        self._tell = tell
        self.screen = screen

    def open(self) -> AbstractAsyncContextManager[None]:
        """Say what is queued while the block runs, see `Queues.open`."""
        return self._queues.open()

    async def finish(self, *, within: float) -> None:
        """Begin to say nothing more, and wait so many seconds, see `Queues.finish`."""
        await self._queues.finish(within=within)

    async def wait_idle(self) -> None:
        """Return once nothing is left to be sent."""
        await self._queues.wait_idle()

    @property
    def unconfirmed(self) -> Unconfirmed:
        """The sends whose fate nobody knows."""
        return self._carrier.unconfirmed

    @property
    def settled(self) -> asyncio.Queue[Send]:
        """The sends of turns whose fate became known late, see `Rows`."""
        return self._rows.settled

    @property
    def unreachable(self) -> UnreachablePlaces:
        """The places where QQ takes nothing of the bot."""
        return self._carrier.unreachable

    def spoke(self, where: Conversation) -> float:
        """When something was last said there, see `Rows.spoke`."""
        return self._rows.spoke(where)

    def screened(
        self, actions: Sequence[SendMessage], earlier: str = ""
    ) -> tuple[SendMessage, ...]:
        """The messages as they may leave, behind what was said in the same place `earlier`."""
        return tuple(actions) if self.screen is None else self.screen(actions, earlier)

    # --- saying -----------------------------------------------------------------------------------

    async def send(
        self,
        action: SendMessage,
        *,
        turn_id: str = "",
        final: bool = False,
        patience: float = PATIENCE,
    ) -> Receipt:
        """Say it; the receipt. Waiting: it will be said once QQ is back, within two minutes."""
        (receipt,) = await self.send_all((action,), turn_id=turn_id, final=final, patience=patience)
        return receipt

    async def send_all(
        self,
        actions: Sequence[SendMessage],
        *,
        turn_id: str = "",
        final: bool = False,
        pauses: Sequence[float] = (),
        patience: float = PATIENCE,
    ) -> tuple[Receipt, ...]:
        """Say these in one conversation, nothing in between; a receipt for each. `pauses` are the
        seconds to wait before each, once it could be said.

        After one that was refused, or whose fate is unknown, the rest is not sent and has no
        receipt. All are taken, or none where too many wait.
        """
        sends = self._enqueue(actions, turn_id=turn_id, final=final)
        if not sends:
            return (Refused(FULL),)
        for send, pause in zip(sends, pauses, strict=False):
            send.pause = pause
        return await _receipts(sends, patience, self._rows)

    def post(
        self,
        action: SendMessage,
        *,
        turn_id: str = "",
        final: bool = False,
        openly: bool = False,
        name: str = "",
    ) -> asyncio.Future[Receipt] | None:
        """Say it as soon as it can be; its receipt, to be waited for or not. None if too many
        wait. The id of its row begins with that `name`.
        """
        sends = self._enqueue((action,), turn_id=turn_id, final=final, openly=openly, name=name)
        return sends[0].receipt if sends else None

    def post_with(
        self,
        *entries: Entry,
        action: SendMessage,
        turn_id: str = "",
        question: MessageReceived | None = None,
    ) -> None:
        """Say it, as an answer (to the `question` of a turn that does not go on), and write that
        down with these entries: both are known of, or neither, whenever the process ends. It is on
        the wire only after all of that is durable, wherever the store can promise it.
        """
        shown = self.screened((action,))
        if self._shadow is not None and self._shadow.is_active_in(action.conversation):
            self._shadow.keep(shown, *entries, turn_id=turn_id, final=True, question=question)
            return
        self._queue_with(*entries, actions=shown, turn_id=turn_id)

    async def publish(
        self, *entries: Entry, actions: Sequence[SendMessage], turn_id: str, name: str
    ) -> tuple[Receipt, ...]:
        """The same for what an owner wants said, in a shadow too; the receipts, as of `send_all`.
        The ids of its rows begin with that `name`.
        """
        shown = self.screened(actions)
        sends = self._queue_with(*entries, actions=shown, turn_id=turn_id, name=name)
        return await _receipts(sends, PATIENCE, self._rows)

    def _queue_with(
        self, *entries: Entry, actions: Sequence[SendMessage], turn_id: str, name: str = ""
    ) -> list[Send]:
        sends = [self._new(one, turn_id=turn_id, final=True, name=name) for one in actions]
        _chain(sends)
        self._rows.queued_all(sends, *entries)
        self._queues.append(sends, most=None)
        return sends

    @property
    def open_sends(self) -> list[Send]:
        """The sends that wait, are on the wire, or may have been: no receipt tells."""
        return [*self._queues.sends, *self.unconfirmed.sends]

    def lines(self, where: Conversation) -> int:
        """How many messages of no turn wait there."""
        return sum(not send.turn_id for send in self._queues.unsent(where))

    def unsent(self, where: Conversation) -> set[str]:
        """The turns some of whose words wait there, and have not been on the wire."""
        return {send.turn_id for send in self._queues.unsent(where)}

    def withdraw(self, where: Conversation, turn_ids: Collection[str]) -> int:
        """Say nothing more there of these turns; how many messages of them waited."""
        sends = [send for send in self._queues.unsent(where) if send.turn_id in turn_ids]
        for send in sends:
            self._rows.withdraw(send, STOPPED)
        return len(sends)

    def forget(self, note: SubjectErased) -> None:
        """Say nothing of no turn any more that is about who is forgotten."""
        self._queues.forget(note)

    def resume(self, stored: StoredSend) -> None:
        """Say what an earlier process wrote down as queued, and never put on the wire."""
        send = Send.of(stored, SendState.QUEUED, self._teller(stored.turn_id))
        self._queues.append((send,), most=None)  # it was taken already

    def drop(self, stored: StoredSend, reason: str) -> None:
        """Give up what an earlier process wrote down as queued: nobody expects it any more."""
        send = Send.of(stored, SendState.QUEUED, self._teller(stored.turn_id))
        self._rows.changed(send, SendState.DROPPED, reason=reason)
        send.settle(Refused(reason), reason)

    def remember_refused(self, stored: StoredSend) -> None:
        """QQ refused this just before an earlier process ended, which may have told nobody."""
        send = Send.of(stored, SendState.REFUSED)
        blocks = is_of_place(stored.reason)
        send.settle(Refused(stored.reason, by_qq=True, blocks_place=blocks))
        self._rows.settle(send)

    def remember_unknown(self, stored: StoredSend) -> None:
        """Look out for what an earlier process put on the wire without hearing more of it; it is
        never sent again.
        """
        send = Send.of(stored, SendState.UNKNOWN, self._teller(stored.turn_id))
        self.unconfirmed.add(send)
        if stored.state is not SendState.UNKNOWN:  # else that process has told it
            self._rows.changed(send, SendState.UNKNOWN, reason=RESTARTED)
            send.report(RESTARTED)

    def _enqueue(
        self,
        actions: Sequence[SendMessage],
        *,
        turn_id: str,
        final: bool,
        openly: bool = False,
        name: str = "",
    ) -> list[Send]:
        shown, shadow = self.screened(actions), self._shadow
        if shadow is not None and not openly and shadow.is_active_in(actions[0].conversation):
            return shadow.keep(shown, turn_id=turn_id, final=final)
        sends = [self._new(one, turn_id=turn_id, final=final, name=name) for one in shown]
        _chain(sends)
        return sends if self._queues.append(sends) else []

    def _new(self, action: SendMessage, *, turn_id: str, final: bool, name: str = "") -> Send:
        tell = self._teller(turn_id)
        return self._rows.new(action, turn_id=turn_id, final=final, tell=tell, name=name)

    def _teller(self, turn_id: str) -> Tell | None:
        return self._tell if turn_id else None

    def report(self, action: SendMessage, reason: str) -> None:
        """Tell whoever hears of losses of one whose receipt was waited for."""
        self._tell(action, SendState.REFUSED, reason)

    # --- what others see --------------------------------------------------------------------------

    def connected(self) -> None:
        """Let what waits try again, and what is in doubt be looked for: an account is there
        (again).
        """
        self._carrier.connected()

    def seen(self, message: MessageReceived) -> None:
        """Confirm the send that this message of the account itself can be, one on the wire rather
        than one long lost.
        """
        self.compare([message])

    def tells(self, message: MessageReceived) -> bool:
        """Whether a message that is told as somebody's is a file that was sent there a moment ago,
        see `Unconfirmed.tells`.
        """
        where = message.conversation
        return self.unconfirmed.tells(message, self._delivered(where))

    def compare(self, history: Iterable[MessageReceived]) -> None:
        """Confirm the sends that a conversation's history shows as said; each message confirms
        one.
        """
        self.unconfirmed.compare(history, self._delivered)

    def _delivered(self, where: Conversation) -> list[Send]:
        """The sends there that may have been delivered."""
        return [*self._queues.on_wire(where), *self.unconfirmed.at(where)]


def _chain(sends: Iterable[Send]) -> None:
    """Say none of them unless the one before it arrived."""
    for before, send in pairwise(sends):
        send.after = before


async def _receipts(sends: Sequence[Send], patience: float, rows: Rows) -> tuple[Receipt, ...]:
    """The receipts of these, up to the first that is not confirmed; where nobody waits any more,
    what has not been on the wire is withdrawn.
    """
    receipts: list[Receipt] = []
    try:
        for send in sends:
            send.awaited = True
        for send in sends:
            receipts.append(receipt := await send.hear(patience))
            if isinstance(receipt, Queued | Drafted):
                return (*receipts, *[receipt] * (len(sends) - len(receipts)))
            if not isinstance(receipt, Confirmed):
                break
    except asyncio.CancelledError:
        for send in sends:
            rows.withdraw(send, STOPPED)
        raise
    finally:
        for send in sends:
            send.awaited = False
    return tuple(receipts)
