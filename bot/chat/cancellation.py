"""What a cancellation selects, and its consequences: one row for each reason.

`ActiveWork.cancel` (`bot/chat/active_work.py`) carries the row out, and `Turns` when the run ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from bot.chat.tasks import Task
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.language import Phrase
from bot.policy.fallback_replies import LOST
from bot.policy.wake import Silence, Why
from bot.prompt.wording import NoteWords


class Reason(Enum):
    STOPPED = auto()  # by a person's message
    MUTED = auto()  # the bot may not speak there
    LAPSED = auto()  # it still may not, and an approval has expired
    RECALLED = auto()  # its question was recalled
    FORGOTTEN = auto()  # the asker or the group was erased
    TURN_ERASED = auto()  # it had read words of an erased person
    SHUTDOWN = auto()  # the process is ending


class Fate(Enum):
    GOES_ON = auto()
    ENDS = auto()  # its words stay, and a note in the next prompt says why it ended
    LEAVES_NOTHING = auto()  # its turn is closed without a round
    STAYS_OPEN = auto()  # the next start decides about its turn


def _no_note(_words: NoteWords) -> str:
    return ""


class Consequences(Struct, frozen=True, kw_only=True):
    """What happens to selected work, for people, the next prompt and the journal.

    `run` is for a turn that has begun, `suspended` for one that waits for an approval; the next
    prompt contains the `note` about either, and the journal the `verdict` on its question. Lines
    added to a run that no model read are `unread`. A question in a lane may end whole, with the
    verdict `waiting_why`; or be cut (`cuts`): it loses its selected lines, and ends if no other
    line calls the bot. One in preparation ends with `preparing_why`.

    `withdraws_sends`: words not yet on the wire are not sent; otherwise runs that are only sending
    go on. `redacts`: no other work may read the message. `asks_rest`: the rest of a cut question in
    progress is asked again. `is_in_journal`: the journal records what happens to a cut question.
    `is_muted`: approvers are told that a mute was the reason. `tells` is sent to the asker of a
    suspended turn.
    """

    run: Fate = Fate.GOES_ON
    suspended: Fate = Fate.GOES_ON
    note: Callable[[NoteWords], str] = _no_note
    verdict: Why = ""
    unread: Why = ""
    waiting_why: Why = ""
    preparing_why: Why = ""
    cuts: bool = False
    asks_rest: bool = False
    is_in_journal: bool = False
    redacts: bool = False
    withdraws_sends: bool = False
    is_muted: bool = False
    tells: Phrase | None = None


CONSEQUENCES: Final[Mapping[Reason, Consequences]] = {
    Reason.STOPPED: Consequences(
        run=Fate.ENDS,
        suspended=Fate.ENDS,
        note=lambda words: words.stopped,
        unread=Silence.UNREAD,
        waiting_why=Silence.STOPPED,
        withdraws_sends=True,
    ),
    # Waiting questions are dropped in their turn (`wake_classifier`); an approval may still come.
    Reason.MUTED: Consequences(
        run=Fate.ENDS,
        note=lambda words: words.broken_off,
        verdict=Silence.MUTED,
        unread=Silence.MUTED,
        preparing_why=Silence.MUTED,
    ),
    Reason.LAPSED: Consequences(
        suspended=Fate.ENDS,
        note=lambda words: words.broken_off,
        verdict=Silence.MUTED,
        is_muted=True,
    ),
    Reason.RECALLED: Consequences(
        run=Fate.LEAVES_NOTHING,
        suspended=Fate.LEAVES_NOTHING,
        unread=Silence.UNREAD,
        cuts=True,
        is_in_journal=True,
        redacts=True,
    ),
    # A turn that has begun goes on, but the journal stores no more of it. One that began later
    # would store the words again.
    Reason.FORGOTTEN: Consequences(suspended=Fate.LEAVES_NOTHING, cuts=True, asks_rest=True),
    Reason.TURN_ERASED: Consequences(suspended=Fate.LEAVES_NOTHING, tells=LOST),
    Reason.SHUTDOWN: Consequences(run=Fate.STAYS_OPEN),
}


class Selector(Struct, frozen=True, kw_only=True):
    """Selects work by its question; all given conditions must hold, and none selects all work.
    Messages said after `said_until` (by the server's clock), or received at `taken_before` or later
    (by ours), are not selected. Unless `with_waiting`, waiting questions are selected only if no
    other work is.
    """

    where: Conversation | None = None
    group: int | None = None
    message_id: str | None = None
    askers: frozenset[int] | None = None
    turn_id: str | None = None
    said_until: float = math.inf
    taken_before: float = math.inf
    with_waiting: bool = True

    def selects(self, message: MessageReceived) -> bool:
        """Whether it is a selected question, or a line of one."""
        where, asker = message.conversation, message.sender.user_id
        is_meant = self.selects_question(where, message.message_id, asker)
        return is_meant and message.time <= self.said_until

    def selects_question(self, where: Conversation, message_id: str, asker: int) -> bool:
        """`selects` without the time of the message."""
        return (
            (self.where is None or self.where == where)
            and (self.group is None or (where.is_group and where.session_id == self.group))
            and (self.message_id is None or message_id == self.message_id)
            and (self.askers is None or asker in self.askers)
        )

    def selects_turn(self, turn_id: str, question: MessageReceived) -> bool:
        is_meant = self.turn_id is None or turn_id == self.turn_id
        return is_meant and question.time <= self.taken_before and self.selects(question)

    def rest_of(self, task: Task) -> Task | None:
        """The question without the selected lines; None if no other line calls the bot."""
        return task if task.since >= self.taken_before else task.without(self.selects)
