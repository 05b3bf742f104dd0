"""The outbox of all messages: screens them, keeps them as drafts in shadow mode, queues them in
order, and follows them until the receipt is known.

If its caller is cancelled, a send is withdrawn unless it has been on the wire; else it is
completed. Words of a turn that may be lost, or are lost while no caller awaits the receipt, are
reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from bot.core.actions import SendMessage
from bot.core.blocked_words import BlockedWords
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.journal import Entry, SendState, StoredSend
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.refusals import is_of_place
from bot.outbox.owner_alerts import Owner
from bot.outbox.sender import Sender
from bot.outbox.sends import LossReporter, Send, SendJournal
from bot.outbox.shadow import Shadow
from bot.policy.blocked_words import screen_continuation, screen_messages
from bot.prompt.prompt_language import language_of_text
from frostagent.types.speech import Confirmed, Drafted, Queued, Receipt, Refused

logger = logging.getLogger(__name__)

PATIENCE = 10.0  # seconds a caller waits for a send that is not on the wire yet

FULL = "too many messages are waiting to be sent here"
STOPPED = "its run was stopped"
RESTARTED = "the bot was restarted before an answer came"

TOLD = Phrase(
    "发到 {where} 的话里有词表（WORDS_FILE 第 {line} 行）不让说的，那一句没有发。",
    "A sentence to {where} had words of line {line} of WORDS_FILE in it: it was not said.",
)
CATALOGUE.register(__name__, globals())


class Screen:
    """Removes words that the operator blocks from messages, and alerts owners. Messages to owners
    are not screened: they must read what they decide on. `withheld` counts since the start.
    """

    def __init__(self, *, words: BlockedWords, owner: Owner, owners: Collection[int]) -> None:
        self._words = words
        self._owner = owner
        self._owners = owners
        self._line = 0
        self.withheld = 0

    def __call__(
        self, actions: Sequence[SendMessage], earlier: str = "", /
    ) -> tuple[SendMessage, ...]:
        """The screened messages: the same number, in the same order, as a continuation of `earlier`
        words.
        """
        before = tuple(actions)
        if not before or self._is_owners(before[0]):
            return before
        self._line = 0
        alone = screen_messages(before, self._withholds, self._language_of)
        after = screen_continuation(earlier, alone, self._withholds, self._language_of)
        if after != before:
            after = screen_messages(after, self._withholds, self._language_of)  # once more
            self.withheld += 1
            where = before[0].conversation
            logger.warning("withheld from %s: line %d of the word list", where, self._line)
            line = TOLD.format(self._owner.language, where=where, line=self._line)
            self._owner.tell(f"words in {where}", line)
        return after

    def _language_of(self, words: str) -> Language:
        return language_of_text(words, usual=self._owner.language)

    def _withholds(self, text: str) -> bool:
        line = self._words.blocks_answer(text)
        self._line = self._line or line
        return bool(line)

    def _is_owners(self, action: SendMessage) -> bool:
        where = action.conversation
        return not where.is_group and where.session_id in self._owners


class Outbox:
    """Sends messages through the `screen`; in a conversation in shadow mode they become drafts,
    unless sent `openly`. `report_loss` receives only words of turns (see `Send`): alerts about
    alerts would never end. It lives as long as the sender.
    """

    def __init__(
        self,
        *,
        journal: SendJournal,
        sender: Sender,
        report_loss: LossReporter,
        screen: Screen | None = None,
        shadow: Shadow | None = None,
    ) -> None:
        self._shadow = shadow
        self._journal = journal
        self._sender = sender
        self.report_loss = report_loss
        self.screen = screen
        self.unconfirmed = sender.unconfirmed
        self.unreachable = sender.unreachable
        self.open = sender.open
        self.connected = sender.connected
        self.finish = sender.finish
        self.wait_idle = sender.wait_idle
        self.settled = journal.settled
        self.spoke = journal.last_sent

    # --- sending ----------------------------------------------------------------------------------

    def screened(
        self, actions: Sequence[SendMessage], earlier: str = ""
    ) -> tuple[SendMessage, ...]:
        """The messages as the screen leaves them, as a continuation of `earlier` words."""
        return tuple(actions) if self.screen is None else self.screen(actions, earlier)

    async def send(
        self,
        action: SendMessage,
        *,
        turn_id: str = "",
        final: bool = False,
        patience: float = PATIENCE,
    ) -> Receipt:
        """Send it, and return the receipt. `Queued` means that it is sent if QQ reconnects within
        two minutes.
        """
        (receipt,) = await self.send_all((action,), turn_id=turn_id, final=final, patience=patience)
        return receipt

    async def send_all(
        self,
        actions: Sequence[SendMessage],
        *,
        turn_id: str = "",
        final: bool = False,
        pauses: Sequence[float] = (),
        is_screened: bool = False,
        patience: float = PATIENCE,
    ) -> tuple[Receipt, ...]:
        """Send these in one conversation with no others in between; returns a receipt for each.
        `pauses` are the seconds that each takes to type. All are queued, or none if the queue is
        full. After one that was refused, or whose outcome is unknown, the rest is not sent and has
        no receipt.
        """
        shown = actions if is_screened else self.screened(actions)
        sends = self._take(shown, turn_id=turn_id, final=final)
        if not sends:
            return (Refused(FULL),)
        for send, pause in zip(sends, pauses, strict=False):
            send.pause = pause
        return await _receipts(sends, patience, self._journal)

    def post(
        self,
        action: SendMessage,
        *,
        turn_id: str = "",
        final: bool = False,
        openly: bool = False,
        name: str = "",
    ) -> asyncio.Future[Receipt] | None:
        """Queue it; returns the future receipt, None if the queue is full. The id of its row begins
        with `name`.
        """
        shown = self.screened((action,))
        sends = self._take(shown, turn_id=turn_id, final=final, openly=openly, name=name)
        return sends[0].receipt if sends else None

    def post_with(
        self,
        *entries: Entry,
        action: SendMessage,
        turn_id: str = "",
        question: MessageReceived | None = None,
    ) -> None:
        """Queue it as an answer (to the `question` of a turn that has ended), and write the entries
        in the same transaction. It is sent only after that is durable, if the store can promise it.
        """
        shown = self.screened((action,))
        if self._shadow is not None and self._shadow.is_active_in(action.conversation):
            self._shadow.keep(shown, *entries, turn_id=turn_id, final=True, question=question)
            return
        self._queue_with(*entries, actions=shown, turn_id=turn_id)

    def claim(
        self, action: SendMessage, claimed: Callable[[str], Sequence[Entry]], *, name: str = ""
    ) -> asyncio.Future[Receipt]:
        """The same for a line of no turn, with the entries that are `claimed` by the id of its row,
        which begins with `name`; its receipt. In a shadow too: the caller looks.
        """
        (shown,) = self.screened((action,))
        sends = self._sends_of((shown,), turn_id="", final=True, name=name)
        self._journal.record_all(sends, *claimed(sends[0].send_id))
        self._sender.enqueue(sends, most=None)
        return sends[0].receipt

    async def publish(
        self, *entries: Entry, actions: Sequence[SendMessage], turn_id: str, name: str
    ) -> tuple[Receipt, ...]:
        """`post_with` for several messages that an owner publishes, also in shadow mode; returns
        receipts as `send_all` does. The ids of its rows begin with `name`.
        """
        shown = self.screened(actions)
        sends = self._queue_with(*entries, actions=shown, turn_id=turn_id, name=name)
        return await _receipts(sends, PATIENCE, self._journal)

    def _take(
        self,
        actions: Sequence[SendMessage],
        *,
        turn_id: str,
        final: bool,
        openly: bool = False,
        name: str = "",
    ) -> list[Send]:
        shadow = self._shadow
        if shadow is not None and not openly and shadow.is_active_in(actions[0].conversation):
            return shadow.keep(actions, turn_id=turn_id, final=final)
        sends = self._sends_of(actions, turn_id=turn_id, final=final, name=name)
        return sends if self._sender.enqueue(sends) else []

    def _queue_with(
        self, *entries: Entry, actions: Sequence[SendMessage], turn_id: str, name: str = ""
    ) -> list[Send]:
        sends = self._sends_of(actions, turn_id=turn_id, final=True, name=name)
        self._journal.record_all(sends, *entries)
        self._sender.enqueue(sends, most=None)
        return sends

    def _sends_of(
        self, actions: Sequence[SendMessage], *, turn_id: str, final: bool, name: str = ""
    ) -> list[Send]:
        """Sends in a chain: each leaves only if the one before it arrived."""
        sends: list[Send] = []
        for action in actions:
            send = self._journal.create(
                action,
                turn_id=turn_id,
                final=final,
                on_loss=self.report_loss if turn_id else None,
                name=name,
            )
            send.after = sends[-1] if sends else None
            sends.append(send)
        return sends

    # --- waiting sends ----------------------------------------------------------------------------

    @property
    def open_sends(self) -> list[Send]:
        """The sends that wait, are on the wire, or are unconfirmed."""
        return [*self._sender.sends, *self.unconfirmed.sends]

    def lines(self, where: Conversation) -> int:
        """The number of waiting messages there that belong to no turn."""
        return sum(not send.turn_id for send in self._sender.unsent(where))

    def unsent(self, where: Conversation) -> set[str]:
        """The turns with words waiting there that have not been on the wire."""
        return {send.turn_id for send in self._sender.unsent(where)}

    def withdraw(self, where: Conversation, turn_ids: Collection[str]) -> int:
        """Withdraw the waiting messages of these turns; returns their number."""
        sends = [send for send in self._sender.unsent(where) if send.turn_id in turn_ids]
        for send in sends:
            self._journal.withdraw(send, STOPPED)
        return len(sends)

    # --- sends of an earlier process --------------------------------------------------------------

    def resume(self, stored: StoredSend) -> None:
        """Send what an earlier process queued and never put on the wire."""
        send = self._restored(stored, SendState.QUEUED)
        self._sender.enqueue((send,), most=None)  # its place was taken before

    def drop(self, stored: StoredSend, reason: str) -> None:
        """Drop what an earlier process queued, as it is no longer wanted."""
        send = self._restored(stored, SendState.QUEUED)
        self._journal.settle(send, SendState.DROPPED, Refused(reason), reason=reason)

    def remember_refused(self, stored: StoredSend) -> None:
        """Announce a refusal that an earlier process may not have reported before it ended."""
        send = Send.of(stored, SendState.REFUSED)
        blocks = is_of_place(stored.reason)
        send.settle(Refused(stored.reason, by_server=True, blocks_place=blocks))
        self._journal.announce(send)

    def remember_unknown(self, stored: StoredSend) -> None:
        """Look for what an earlier process put on the wire without learning its outcome. It is
        never sent again.
        """
        send = self._restored(stored, SendState.UNKNOWN)
        self.unconfirmed.add(send)
        if stored.state is not SendState.UNKNOWN:  # else that process has reported it
            self._journal.change(send, SendState.UNKNOWN, reason=RESTARTED)
            send.report_loss(RESTARTED)

    def _restored(self, stored: StoredSend, state: SendState) -> Send:
        return Send.of(stored, state, self.report_loss if stored.turn_id else None)

    # --- confirmation by events and histories -----------------------------------------------------

    def seen(self, message: MessageReceived) -> None:
        """Confirm the send that this message of the account matches, preferably one on the wire."""
        self.compare([message])

    def compare(self, history: Iterable[MessageReceived]) -> None:
        """Confirm the sends that a conversation's history contains; each message confirms one."""
        self.unconfirmed.compare(history, self._delivered)

    def tells(self, message: MessageReceived) -> bool:
        """Whether a message attributed to another sender is a file that was just sent there."""
        return self.unconfirmed.tells(message, self._delivered)

    def _delivered(self, where: Conversation) -> list[Send]:
        return [*self._sender.on_wire(where), *self.unconfirmed.at(where)]


async def _receipts(
    sends: Sequence[Send], patience: float, journal: SendJournal
) -> tuple[Receipt, ...]:
    """The receipts up to the first that is not confirmed. If the caller is cancelled, sends that
    have not been on the wire are withdrawn.
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
            journal.withdraw(send, STOPPED)
        raise
    finally:
        for send in sends:
            send.awaited = False
    return tuple(receipts)
