"""Stop: the asker, a group admin or an owner ends the bot's work.

Like a reply to an approval request it is handled before the lanes, and never reaches the model. The
run ends with its calls, its subagents and its approval request, and sends not yet on the wire are
withdrawn; words already sent stay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bot.chat.active_work import ActiveWork
from bot.chat.cancellation import Reason, Selector
from bot.chat.message_log import MessageLog
from bot.chat.tasks import YOUNG
from bot.core.events import MessageReceived, quote_in
from bot.core.segments import Mention
from bot.core.server_clock import ServerClock
from bot.memory.history import History
from bot.outbox.gestures import Gestures
from bot.policy.permissions import authority_of
from bot.policy.wake import Local, Observe, Rules, Silence, fold_text, without_marks
from frostagent.engine.authority import is_sufficient
from frostagent.types.speech import Quote, Text
from frostagent.types.traits import Audience

COMMAND = "/stop"
EVERYTHING = "/stop all"
CHINESE = ("停", "停止", "停下", "停一下", "别说了", "别说话", "闭嘴", "住口")
ENGLISH = ("stop", "stop it", "stop that", "stop now", "stop talking", "please stop", "shut up")
WORDS = frozenset({COMMAND, EVERYTHING, *CHINESE, *ENGLISH})
LONGEST = 100  # characters
SIGNS = ("停", "别", "闭", "住", "stop", "shut")  # each stop contains one, few other messages do


@dataclass(frozen=True, slots=True)
class StopWord:
    """A message that is only a stop. `addressed`: it names the bot, by a mention or a name, which a
    `command` need not. `everything`: not only the sender's own work.
    """

    addressed: bool
    command: bool
    everything: bool


def stop_in(message: MessageReceived, names: Iterable[str]) -> StopWord | None:
    """The stop in a message that has nothing else but a mention of the bot, its name and a quote;
    else None.
    """
    if not has_sign(message):
        return None
    text = _folded(message)
    mentioned = False
    for segment in message.segments:
        match segment:
            case Mention(user_id=user_id) if user_id == message.self_id:
                mentioned = True
            case Text() | Quote():
                pass
            case _:
                return None
    text = " ".join(without_marks(text).split())
    if text not in WORDS:
        named = _without_name(text, names)
        if named not in WORDS:
            return None
        text, mentioned = named, True
    return StopWord(mentioned, text.startswith(COMMAND), text == EVERYTHING)


def has_sign(message: MessageReceived) -> bool:
    """A fast check: whether it is short, and contains a part of one of the words."""
    text = _folded(message)
    return len(text) <= LONGEST and any(map(text.__contains__, SIGNS))


def _folded(message: MessageReceived) -> str:
    words = "".join([one.text for one in message.segments if isinstance(one, Text)])
    return fold_text(words[: LONGEST + 1])


def _without_name(text: str, names: Iterable[str]) -> str:
    for name in map(without_marks, names):
        if name and text.startswith(name):
            return without_marks(text.removeprefix(name))
        if name and text.endswith(name):
            return without_marks(text.removesuffix(name))
    return text


logger = logging.getLogger(__name__)

HEARD: Final = "124"  # QQ's face OK


class StopHandler:
    """Handles stops. `rules` have the bot's names and owners."""

    def __init__(
        self,
        *,
        active_work: ActiveWork,
        server_clock: ServerClock,
        message_log: MessageLog,
        history: History,
        gestures: Gestures,
        rules: Rules,
        local: Local,
    ) -> None:
        self._active_work = active_work
        self._server_clock = server_clock
        self._message_log = message_log
        self._history = history
        self._gestures = gestures
        self._rules = rules
        self._local = local

    def take(self, message: MessageReceived) -> bool:
        """Handle a stop; False if it is none, or nothing is active: then it is ordinary chat."""
        if not has_sign(message):  # the usual case: the names need not be computed
            return False
        stop = stop_in(message, self._local(message.conversation, self._rules).names)
        if stop is None:
            return False
        where, sender = message.conversation, message.sender.user_id
        askers = self._active_work.askers(where)
        if not askers or not (
            self._is_for_us(message, stop) or (stop.command and sender in askers)
        ):
            return False
        if self._server_clock.least(message) >= YOUNG:  # it meant earlier work
            self._message_log.observe(message, Observe(Silence.LATE))
            return True
        meant = self._may_end(message, askers, everything=stop.everything)
        if not meant:
            logger.info("a stop in %s is not for %d to say", where, sender)
            self._message_log.observe(message, Observe(Silence.NOT_HIS))
            return True
        selector = Selector(where=where, askers=meant, with_waiting=stop.everything)
        ended = self._active_work.cancel(selector, Reason.STOPPED)
        logger.info("%d stops what goes on in %s: %d", sender, where, ended)
        self._message_log.forget_answer(message, kept=False)
        if where.is_group:
            self._gestures.react(message, HEARD)
        return True

    def _is_for_us(self, message: MessageReceived, stop: StopWord) -> bool:
        if stop.addressed or not message.conversation.is_group:
            return True
        quote = quote_in(message)
        quoted = self._history.known(message.conversation, quote) if quote else None
        return quoted is not None and quoted.is_own

    def _may_end(
        self, message: MessageReceived, askers: frozenset[int], *, everything: bool
    ) -> frozenset[int]:
        """Whose questions the sender may end: their own; an admin or an owner, all. `everything` in
        a group is only for the latter.
        """
        where, sender = message.conversation, message.sender
        authority = authority_of(sender, where=where, owners=self._rules.owners)
        if is_sufficient(authority, Audience.GROUP_ADMIN):
            return askers
        alone = not (everything and where.is_group)
        return askers & {sender.user_id} if alone else frozenset()
