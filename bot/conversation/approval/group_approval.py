"""New groups: the owners are asked about each in private, and reply by quoting the question or with
the group's number.

A group that waits for a decision has that as its mode in the journal, and the number is the group's
own: both survive a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from bot.conversation.approval.approvals import Approvers
from bot.conversation.approval.owner_replies import Meant
from bot.conversation.intake.server_clock import ServerClock
from bot.core.events import MessageReceived
from bot.core.language import join_pairs
from bot.memory.modes import OPEN, Modes
from bot.policy.approval import message_words, words_in
from bot.policy.new_groups import (
    DECIDED,
    DONE,
    LEFT_ALONE,
    MET,
    NAMES,
    QUESTION,
    VOID,
    GroupWord,
    Mode,
    group_in,
    read_word,
)
from bot.speaking.postbox import Postbox
from frostagent.text.language import Bilingual, fill_pair
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.speech import Receipt, Refused

logger = logging.getLogger(__name__)

LATELY = 600.0  # seconds in which a second owner may mean what the first one decided
AGAIN = 3600.0  # seconds until a question that reached nobody is asked once more


class GroupApproval:
    """Asks about new groups, and takes the replies."""

    def __init__(
        self,
        *,
        modes: Modes,
        approvers: Approvers,
        postbox: Postbox,
        server_clock: ServerClock,
        clock: Clock,
    ) -> None:
        self._modes = modes
        self._approvers = approvers
        self._postbox = postbox
        self._server_clock = server_clock
        self._clock = clock
        self._asked: dict[Conversation, float] = {}
        self._met: list[Conversation] = []  # live by the settings, and not told of yet
        self._decided: dict[int, tuple[int, float]] = {}  # the latest, by account

    def meet(
        self,
        message: MessageReceived,
        calls: Callable[[MessageReceived], bool],
        tell: Callable[[str, str], None] | None = None,
    ) -> None:
        """Something was said: the owners are asked about a new group, unless one of them `calls`
        the bot there, or `tell` reaches them where the settings have decided.
        """
        where = message.conversation
        mode = self._modes.of(where)
        if self._modes.is_news(where):  # before the message, which makes the group known
            self._modes.put(where, mode)
            if mode is Mode.OFF and tell is not None:
                line = LEFT_ALONE[self._approvers.tongue].format(group=where.session_id)
                tell(f"new group {where}", line)
            elif mode is Mode.LIVE:
                self._met.append(where)
        if mode is Mode.LIVE:
            return
        if mode in OPEN and message.sender.user_id in self._approvers.owners and calls(message):
            logger.info("%s is live: an owner speaks to the bot there", where)
            self._modes.put(where, Mode.LIVE)
        elif mode is Mode.ASKING and where in self._modes.open:
            self._ask(where)

    def news(self) -> Bilingual | None:
        """A line of the groups that are live by the settings and first spoke since it was asked
        last; None where there are none.
        """
        if not self._met:
            return None
        groups = [(name, name) for name in (str(where.session_id) for where in self._met)]
        self._met.clear()
        return fill_pair(MET, groups=join_pairs(groups))

    def _ask(self, where: Conversation) -> None:
        now = self._clock.monotonic()
        if now - self._asked.get(where, -AGAIN) < AGAIN:
            return
        self._asked[where] = now
        words = QUESTION[self._approvers.tongue].format(group=where.session_id)
        logger.info("a new group, %s: the owners are asked", where)
        if self._approvers.terminal is not None:
            self._approvers.terminal(words)
        for owner in sorted(self._approvers.owners):
            to = Conversation(where.platform_id, "private", owner)
            if not self._postbox.post(to, words, then=partial(self._learn, where)):
                self._unheard(where)

    def _learn(self, where: Conversation, receipt: Receipt) -> None:
        if isinstance(receipt, Refused):
            self._unheard(where)
        elif self._modes.of(where) is Mode.ASKING:
            self._modes.put(where, Mode.ASKED)

    def _unheard(self, where: Conversation) -> None:
        logger.warning("%s waits for an owner's word, but a line to one did not arrive", where)

    def take_reply(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        """Fits `ReplyHandler`: an answer in private."""
        words = None if message.conversation.is_group else words_in(message)
        if words is None or (said := read_word(words)) is None:
            return False
        group = said.group
        if group is None and quoted is not None:
            group = group_in(message_words(quoted))
        return self._is_settled(message, said, group) if group else False

    def meant_by(self, message: MessageReceived) -> list[Meant]:
        """Fits `ReplyHandler`: the groups that wait, or if none does, the one that another owner
        was faster with.
        """
        account = message.self_id
        words = None if message.conversation.is_group else words_in(message)
        if words is None or (said := read_word(words)) is None:
            return []
        if said.group is not None:
            return []
        waiting = [each.session_id for each in self._modes.open if each.platform_id == account]
        if not waiting:
            group, at = self._decided.get(account, (0, 0.0))
            waiting = [group] if group and self._clock.monotonic() - at < LATELY else []
        word = NAMES[said.mode][self._approvers.tongue]
        return [
            Meant(
                name=str(group),
                example=f"{word} {group}",
                take=partial(self._is_settled, message, said, group),
            )
            for group in waiting
        ]

    def _is_settled(self, message: MessageReceived, said: GroupWord, group: int) -> bool:
        here = message.conversation
        where = Conversation(here.platform_id, "group", group)
        if self._modes.is_new(where):
            return False
        reply = partial(self._postbox.post, here, quote=message.message_id)
        tongue = self._approvers.tongue
        if (mode := self._modes.of(where)) not in OPEN:
            if not self._server_clock.is_missed(message):
                reply(DECIDED[tongue].format(group=group, mode=NAMES[mode][tongue]))
            return True
        if self._server_clock.is_missed(message):  # an old word looks like a new one in a history
            reply(VOID[tongue].format(group=group))
            return True
        logger.info("%s is %s: an owner says so", where, said.mode)
        self._modes.put(where, said.mode)
        self._decided[here.platform_id] = (group, self._clock.monotonic())
        reply(DONE[said.mode][tongue].format(group=group))
        return True
