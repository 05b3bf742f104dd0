"""Adds lines of an asker to their running question: those addressed to the bot, and those that
closely follow and are for no one else. Other people's questions wait as usual.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from bot.chat.active_turn import ActiveTurns, Line
from bot.chat.coalescer import is_for_others
from bot.chat.context_builder import PromptContext, names_page
from bot.chat.message_log import MessageLog
from bot.chat.question_queue import QuestionQueue
from bot.chat.tasks import Facts, Task, make_task
from bot.core.events import MessageReceived, quote_in
from bot.memory.history import History
from bot.policy.permissions import asker_of
from bot.policy.wake import Observe, Silence, Verdict, Wake, Why
from bot.prompt.render import View, plain
from frostagent.types.traits import Audience

logger = logging.getLogger(__name__)

CLOSE = 8.0  # seconds after the last line


class Steering:
    """Adds lines to running turns, unless it is off. A line that, with its asker's other lines,
    contains blocked words (`stops`) is neither added nor a question of its own.
    """

    def __init__(
        self,
        *,
        live: ActiveTurns,
        message_log: MessageLog,
        question_queue: QuestionQueue,
        history: History,
        prompt_context: PromptContext,
        stops: Callable[[Iterable[MessageReceived]], bool],
        owners: frozenset[int] = frozenset(),
        is_on: bool = True,
        reads_links: bool = False,
    ) -> None:
        """`reads_links`: the bot's own lines may contain what a page says."""
        self._reads_links = reads_links
        self._live = live
        self._message_log = message_log
        self._question_queue = question_queue
        self._history = history
        self._prompt_context = prompt_context
        self._stops = stops
        self._owners = owners
        self._is_on = is_on

    def take(self, message: MessageReceived, verdict: Verdict, facts: Facts) -> bool:
        """Add the line to a running turn; False if it belongs to none."""
        live = self._live.of(message) if self._is_on else None
        if live is None or not self._prompt_context.is_at_hand(message.conversation):
            return False
        if not plain(message.segments, View(), self_id=message.self_id):
            return False
        quoted = self._message_log.quoted_by(message)
        if quoted is None and quote_in(message):
            return False  # no time to look it up: it may be an owner's reply
        task, heard = None, verdict
        if isinstance(verdict, Wake) and not verdict.is_uncalled:
            task = make_task(message, verdict, facts)
            if task.lost or task.told:
                return False
        elif is_talk(verdict) and belongs(message, live.latest, quoted):
            heard = Observe()
        else:
            return False
        if self._lessens(message, quoted):
            return False
        if self._stops((*live.said, message)):
            if task is not None:
                self._message_log.observe(message, Observe(Silence.WORDS))
            return task is not None
        self._message_log.observe_steering(message, heard)
        unread = partial(self._unread, message, task)
        view = live.turn.view if live.turn else None
        user = self._prompt_context.addition(message, view, quoted=quoted)
        live.say(Line(message, user, unread))
        logger.info("message %s steers the run of %s", message.message_id, live.message.message_id)
        return True

    def _lessens(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        """Whether the line would reduce the run's authority: past steps cannot be undone."""
        if self._reads_links and names_page(quoted):
            return True
        asker = asker_of(message, owners=self._owners, quoted=quoted)
        return {asker.authority, asker.overheard} != {Audience.OWNER}

    def _unread(self, message: MessageReceived, task: Task | None, why: Why) -> None:
        """The turn ended without reading it: it becomes a question again, joins a waiting one, or
        is overheard.
        """
        if task is None:
            if why or not self._question_queue.rejoin_message(message):
                self._history.overhear(message)
        elif why:
            self._question_queue.dismiss(task, why)
        else:
            self._question_queue.enqueue(task)


def is_talk(verdict: Verdict) -> bool:
    """Whether the line did not call the bot, and nothing speaks against reading it."""
    if isinstance(verdict, Observe):
        return not verdict.reason
    return isinstance(verdict, Wake) and verdict.is_uncalled


def belongs(
    message: MessageReceived, latest: MessageReceived, quoted: MessageReceived | None = None
) -> bool:
    """Whether a line that calls no one closely follows this one, and is for no one else."""
    is_close = 0 <= message.time - latest.time <= CLOSE
    return is_close and not is_for_others(message, quoted)
