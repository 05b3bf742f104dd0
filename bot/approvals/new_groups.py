"""New groups: owners are asked about each in private, and reply by quoting the question or with the
group's number. Survives a restart: the journal keeps "asking" as the group's mode.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from bot.approvals.decision import Approvers, Candidate, Choice, Reply, private_words
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, message_words
from bot.core.language import CATALOGUE, Bilingual, Phrase, join_lines
from bot.core.server_clock import ServerClock
from bot.memory.modes import NAMES, OPEN, Mode, Modes
from bot.outbox.delivery import Postbox
from frostagent.types.ports import Clock
from frostagent.types.speech import Receipt, Refused

logger = logging.getLogger(__name__)

LATELY = 600.0  # seconds in which a second owner's reply may mean the group just decided
AGAIN = 3600.0  # seconds before a question that was not delivered is repeated

WORDS: Final[Mapping[str, Choice]] = {
    "上线": "live",
    "live": "live",
    "影子": "shadow",
    "shadow": "shadow",
    "忽略": "off",
    "ignore": "off",
}

QUESTION = Phrase(
    "新群 {group}：有人说话了。我先只看不说。\n"
    "要我在那里回答吗？请引用这条回复，或带上群号（如“上线 {group}”）：\n"
    "上线（live）/ 影子（shadow，回答先给你看）/ 忽略（ignore）",
    "New group {group}: somebody spoke there. I only read along for now.\n"
    'Shall I answer there? Quote this, or name the group (as in "live {group}"):\n'
    "live / shadow (you see my answers first) / ignore",
)
LEFT_ALONE = Phrase(
    "新群 {group}：有人说话了。按设置（BOT_NEW_GROUP=off）我只看不说；"
    "要我在那里回答，就发 /live {group}。",
    "New group {group}: somebody spoke there. By the settings (BOT_NEW_GROUP=off) I only read "
    "along; /live {group} has me answer there.",
)
MET = Phrase(
    "第一次在这些群里看到有人说话：{groups}。按设置（BOT_NEW_GROUP=live），谁叫我我都回答；"
    "不要我在哪个群里说话，就发 /off 加上群号。",
    "New groups in which somebody spoke: {groups}. By the settings (BOT_NEW_GROUP=live) "
    "whoever calls me there is answered; /off with the number of a group has me only read "
    "along.",
)
BEGINS = re.compile(r"(?:新群 ([0-9]{1,19})：|New group ([0-9]{1,19}): )")
ANSWER = re.compile(
    r"\s*(?P<word>上线|影子|忽略|live|shadow|ignore)(?:\s*(?P<group>[0-9]{1,19}))?[\s。.!！]*",
    re.IGNORECASE | re.ASCII,
)
DONE = {
    Mode.LIVE: Phrase(
        "好，群 {group} 上线了：有人叫我，我就回答。",
        "Fine, group {group} is live: whoever calls me there is answered.",
    ),
    Mode.SHADOW: Phrase(
        "好，群 {group} 先当影子：我的回答作为草稿给你看，你说发才发。",
        "Fine, group {group} is a shadow: you see my answers, and say which are published.",
    ),
    Mode.OFF: Phrase(
        "好，群 {group} 忽略：我只看不说。", "Fine, group {group} is ignored: I only read along."
    ),
}
VOID = Phrase(
    "这条回复是断线时发的，没有算数；群 {group} 还在等，请再回复一次。",
    "That answer came while I was away and is void; group {group} still waits: answer again.",
)
DECIDED = Phrase(
    "群 {group} 已经定了：{mode}。要改就发 /live、/shadow 或 /off {group}。",
    "Group {group} is decided already: {mode}. To change it: /live, /shadow or /off {group}.",
)
CATALOGUE.register(__name__, globals())


class NewGroups:
    """The `DecisionHandler` of new groups."""

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
        self._met: list[Conversation] = []  # live by the settings, not reported yet
        self._decided: dict[int, tuple[int, float]] = {}  # the latest number and time, by account

    @property
    def open(self) -> Mapping[Conversation, Mode]:
        return self._modes.open

    def meet(
        self,
        message: MessageReceived,
        calls: Callable[[MessageReceived], bool],
        tell: Callable[[str, str], None] | None = None,
    ) -> None:
        """Ask owners about a new group. It becomes live at once if an owner `calls` the bot there.
        `tell` alerts them to a new group that the settings ignore.
        """
        where = message.conversation
        mode = self._modes.of(where)
        if self._modes.is_news(where):  # the recorded message makes the group known
            self._modes.put(where, mode)
            if mode is Mode.OFF and tell is not None:
                line = LEFT_ALONE.format(self._approvers.language, group=where.session_id)
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
        """A line about the groups that are live by the settings and first spoke since the last
        call; None if there are none.
        """
        if not self._met:
            return None
        groups = [str(where.session_id) for where in self._met]
        self._met.clear()
        return MET.fill(groups=join_lines(groups))

    def _ask(self, where: Conversation) -> None:
        now = self._clock.monotonic()
        if now - self._asked.get(where, -AGAIN) < AGAIN:
            return
        self._asked[where] = now
        words = QUESTION.format(self._approvers.language, group=where.session_id)
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

    def read_reply(self, message: MessageReceived) -> Reply | None:
        return None if (words := private_words(message)) is None else read_group_reply(words)

    def find_number(self, quoted: MessageReceived) -> int | None:
        return group_in(message_words(quoted)) or None

    def list_candidates(self, message: MessageReceived, reply: Reply) -> list[Candidate]:
        """The groups that wait; if there are none, the one that another owner has just decided."""
        account = message.self_id
        waiting = [each.session_id for each in self._modes.open if each.platform_id == account]
        if not waiting:
            group, at = self._decided.get(account, (0, 0.0))
            waiting = [group] if group and self._clock.monotonic() - at < LATELY else []
        word = NAMES[Mode(reply.choice)].format(self._approvers.language)
        return [Candidate(group, str(group), f"{word} {group}") for group in waiting]

    def accept(self, message: MessageReceived, number: int, reply: Reply) -> bool:
        """A reply about an unknown group is ordinary chat. One that was missed and found in a
        history decides nothing.
        """
        here, language = message.conversation, self._approvers.language
        where = Conversation(here.platform_id, "group", number)
        if not number or self._modes.is_new(where):
            return False
        is_missed = self._server_clock.is_missed(message)
        tell = partial(self._postbox.post, here, quote=message.message_id)
        if (mode := self._modes.of(where)) not in OPEN:
            if not is_missed:
                tell(DECIDED.format(language, group=number, mode=NAMES[mode].format(language)))
            return True
        if is_missed:  # in a history an old reply looks like a new one
            tell(VOID.format(language, group=number))
            return True
        mode = Mode(reply.choice)
        logger.info("%s is %s: an owner says so", where, mode)
        self._modes.put(where, mode)
        self._decided[here.platform_id] = (number, self._clock.monotonic())
        tell(DONE[mode].format(language, group=number))
        return True


# --- reading replies: pure ------------------------------------------------------------------------


def read_group_reply(text: str) -> Reply | None:
    match = ANSWER.fullmatch(text)
    if match is None:
        return None
    named = match["group"]
    return Reply(WORDS[match["word"].lower()], None if named is None else int(named))


def group_in(text: str) -> int:
    """The group that a question of the bot asks about; 0 for any other text."""
    match = BEGINS.match(text)
    return int(match[1] or match[2]) if match else 0
