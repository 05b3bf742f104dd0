"""What a cancellation selects, and what becomes of it: one row for each reason.

`ActiveWork.cancel` (`bot/chat/active_work.py`) does what the row says, `Turns` when the run ends.
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
    """Why work is cancelled."""

    STOPPED = auto()  # by a person's word
    MUTED = auto()  # the bot may not speak there
    LAPSED = auto()  # it may still not, and an approval is worth nothing any more
    RECALLED = auto()  # its question was
    FORGOTTEN = auto()  # whoever asked, or the group, is erased
    TURN_ERASED = auto()  # it had read words of somebody who is erased
    SHUTDOWN = auto()  # the lanes are closed with the process


class Fate(Enum):
    """What becomes of a piece of work."""

    GOES_ON = auto()
    ENDS = auto()  # what was said stays, and a note tells the next prompt why no more was
    LEAVES_NOTHING = auto()  # its turn is closed without a round
    STAYS_OPEN = auto()  # its turn is left to the next start


def _no_note(_words: NoteWords) -> str:
    return ""


class Consequences(Struct, frozen=True, kw_only=True):
    """What becomes of the work that is selected, as people, the next prompt and the journal see it.

    `run` is a turn that has begun, `suspended` one that waits for an approval; the next prompt
    reads the `note` about either, and the journal keeps the `verdict` on its question. Lines said
    into a run that no model read are `unread`. A question `waiting` in a lane may end whole, with
    the verdict `waiting_why`, or be `cut`: it loses its selected lines, and ends if none of the
    others calls the bot. A question that is `preparing`, before its turn begins, ends with
    `preparing_why`.

    `withdraws_sends`: words that are ready and not on the wire are not sent; otherwise runs that
    only have to send go on. `redacts`: nothing else may read the message any more. `asks_rest`:
    what is left of a cut question in progress is asked again. `is_in_journal`: the journal is told
    what becomes of a cut question. `is_muted`: approvers read that a mute was the reason. `tells`
    is said to the asker of a suspended turn.
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
    # What waits is not asked when its turn comes (`wake_classifier`); an approval may still come.
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
    # A turn that has begun goes on: the journal takes nothing more of it. One that would still
    # begin would keep the words again.
    Reason.FORGOTTEN: Consequences(suspended=Fate.LEAVES_NOTHING, cuts=True, asks_rest=True),
    Reason.TURN_ERASED: Consequences(suspended=Fate.LEAVES_NOTHING, tells=LOST),
    Reason.SHUTDOWN: Consequences(run=Fate.STAYS_OPEN),
}


class Selector(Struct, frozen=True, kw_only=True):
    """Work by its question: all that is given must hold; nothing given selects everything.

    `asker` may be anybody of several. What was said after `said_until` (by the server's clock), or
    came at `taken_before` or later (by ours), is not selected. Questions that wait are selected
    only if nothing else is, unless `with_waiting`.
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
        """Whether it is a question, or a line of one, that is meant."""
        where, asker = message.conversation, message.sender.user_id
        is_meant = self.selects_question(where, message.message_id, asker)
        return is_meant and message.time <= self.said_until

    def selects_question(self, where: Conversation, message_id: str, asker: int) -> bool:
        """The same of one of which no more is known."""
        return (
            (self.where is None or self.where == where)
            and (self.group is None or (where.is_group and where.session_id == self.group))
            and (self.message_id is None or message_id == self.message_id)
            and (self.askers is None or asker in self.askers)
        )

    def selects_turn(self, turn_id: str, question: MessageReceived) -> bool:
        """Whether it is a turn that is meant."""
        is_meant = self.turn_id is None or turn_id == self.turn_id
        return is_meant and question.time <= self.taken_before and self.selects(question)

    def rest_of(self, task: Task) -> Task | None:
        """The question without the lines that are meant; None if the others do not call the bot."""
        return task if task.since >= self.taken_before else task.without(self.selects)
