"""Private alerts to owners about problems that only they can fix, at most one in ten minutes for
each kind of problem.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeAlias

from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.journal import SendState
from bot.core.language import CATALOGUE, Bilingual, Language, Phrase, text_in
from bot.core.lru import RecentKeys
from bot.core.other_bots import ALONE, AlarmRaised, Announcer
from bot.outbox.sender import TOO_LATE, Sender
from frostagent.text.masking import Quoting, text_for_log
from frostagent.types.ports import Clock
from frostagent.types.runs import RunEvent, RunFinished, Stop
from frostagent.types.speech import Receipt, Refused, Text

logger = logging.getLogger(__name__)

QUIET = 600.0  # seconds between two alerts of one kind
MAX_KINDS = 5000  # kinds that are remembered; some are of one conversation
UNKNOWN = Phrase(
    "发到 {where} 的一条消息没有得到 QQ 的确认，可能已送达，不会重发。",
    "QQ did not confirm a message to {where}: it may have arrived, and is not sent again.",
)
LOST = Phrase(
    "发到 {where} 的一条消息没有送出：{reason}", "A message to {where} was not sent: {reason}"
)
RESTS = Phrase(
    "{where} 发不出机器人的消息（{reason}）：那里的提问先不回答，也不花钱，"
    "直到又有消息发得出去、机器人重新进群或被加为好友，或者主人在那里叫它。",
    "QQ takes no message of the bot in {where} ({reason}): questions there are not answered, "
    "at no cost, until a message gets through, the bot joins again or becomes a friend, or an "
    "owner calls it there.",
)

_Line: TypeAlias = tuple[int, str]  # owner and kind


class Owner:
    """Alerts every owner from the account that connected last; an alert that does not reach QQ
    waits for the next connection. The `quiet` owners get no alarms. Without owners there is only
    the log. Of several bots one reports each problem; a bot without an account leaves it to one
    that has one. `mask` removes secrets. `language` is the owners' language.
    """

    def __init__(
        self,
        *,
        owners: frozenset[int],
        sender: Sender,
        clock: Clock,
        mask: Callable[[str], str] = str,
        quiet: Collection[int] = (),
        language: Language = Language.CHINESE,
        announcer: Announcer = ALONE,
    ) -> None:
        self.language = language
        self.owners = sorted(owners)
        self._alarmed = [owner for owner in self.owners if owner not in quiet]
        self._sender = sender
        self._mask = mask
        self._announcer = announcer
        self._told = RecentKeys[str](MAX_KINDS, QUIET, clock.monotonic)
        self._untold: dict[_Line, str] = {}
        self._on_its_way: set[_Line] = set()
        self._account = 0
        self._connections = 0  # since the start

    def connected(self, account: int) -> None:
        """Alert from this account from now on, starting with the alerts that waited for a
        connection.
        """
        self._account = account
        self._connections += 1
        for kind in {kind for _, kind in self._untold}:
            self._announcer.tell(AlarmRaised(kind))
        self._say_untold()

    def tell(self, kind: str, text: str) -> None:
        """Raise an alarm, unless one of its kind was raised lately; never waits, never raises."""
        logger.log(
            logging.DEBUG if isinstance(text, Quoting) else logging.WARNING,
            "for the owner: %s",
            text,
        )
        if isinstance(text, Quoting):
            logger.warning("for the owner: %s", kind)
        if not self._alarmed or not self._is_new(kind):
            return
        self._keep(kind, text)  # until another bot has sent it
        if self._account:
            self._announcer.tell(AlarmRaised(kind))
        else:
            quoting = isinstance(text, Quoting)
            self._announcer.tell(AlarmRaised(kind, self._mask(text), is_quoting=quoting))

    def hear(self, alarmed: AlarmRaised) -> None:
        """Another bot alerts the owners, or asks this one to do so, once it has an account."""
        if not alarmed.text:
            self._is_new(alarmed.kind)
            self._forget(alarmed.kind)
        elif not alarmed.kind:
            self._post(alarmed.text)
        else:
            if self._is_new(alarmed.kind):
                self._keep(alarmed.kind, alarmed.text)
            if self._account:  # even if sent lately: the other bot repeats it until then
                self._announcer.tell(AlarmRaised(alarmed.kind))

    def forget(self, note: SubjectErased) -> None:
        """Drop waiting alerts that name the erased person or group."""
        for line in [one for one, text in self._untold.items() if note.is_named_in(text)]:
            del self._untold[line]

    def _forget(self, kind: str) -> None:
        """Another bot sends this kind."""
        for line in [one for one in self._untold if one[1] == kind and one not in self._on_its_way]:
            del self._untold[line]

    def _is_new(self, kind: str) -> bool:
        """Record the kind; False if it was raised lately."""
        if self._told.knows(kind):
            return False
        self._told.note(kind)
        return True

    def _keep(self, kind: str, text: str) -> None:
        self._untold |= {(owner, kind): self._mask(text) for owner in self._alarmed}
        self._say_untold()

    @property
    def is_reachable(self) -> bool:
        """Whether there is an owner and a connected account to reach them."""
        return bool(self.owners) and (bool(self._account) or self._announcer.can_alarm)

    @property
    def _is_for_others(self) -> bool:
        """Only other bots have a connected account."""
        return not self._account and self._announcer.can_alarm

    def post(self, text: str) -> None:
        """Send the text to every owner, without a limit per kind; never waits."""
        if self._is_for_others:
            self._announcer.tell(AlarmRaised("", self._mask(text)))
        else:
            self._post(text)

    def _post(self, text: str) -> None:
        for owner in self.owners:
            where = Conversation(self._account, "private", owner)
            self._sender.post(SendMessage(where, (Text(self._mask(text)),)))

    def tell_of_send(self, action: SendMessage, state: SendState, reason: str) -> None:
        where = action.conversation
        if state is SendState.UNKNOWN:
            self.tell("unknown send", UNKNOWN.format(self.language, where=where))
        else:
            line = LOST.format(self.language, where=where, reason=reason)
            # An outage loses messages in many conversations at once: one alert covers them.
            is_refused = state is SendState.REFUSED
            self.tell(f"lost send in {where}" if is_refused else "lost send", line)

    def tell_of_unreachable(self, where: Conversation, reason: str) -> None:
        self.tell(f"rest in {where}", RESTS.format(self.language, where=where, reason=reason))

    def _say_untold(self) -> None:
        if not self._account:
            return
        for line, text in self._untold.items():
            if line not in self._on_its_way:
                self._say(line, text)

    def _say(self, line: _Line, text: str) -> None:
        where = Conversation(self._account, "private", line[0])
        receipt = self._sender.post(SendMessage(where, (Text(text),)))
        if receipt is not None:
            self._on_its_way.add(line)
            receipt.add_done_callback(partial(self._learn, line, text, self._connections))

    def _learn(
        self, line: _Line, text: str, connection: int, receipt: asyncio.Future[Receipt]
    ) -> None:
        """Handle the receipt of an alert. One that was too late waits for the next connection, or
        is sent again if there was one meanwhile; one that QQ refused is dropped.
        """
        self._on_its_way.discard(line)
        is_late = receipt.result() == Refused(TOO_LATE)
        if not is_late and self._untold.get(line) == text:
            del self._untold[line]
        if not is_late or connection != self._connections:
            self._say_untold()


LINE: Final = Phrase("运行 {run} 失败（{kind}）：{reason}", "Run {run} failed ({kind}): {reason}")
NO_REASON: Final = Phrase("原因不明，请查看日志", "nobody knows why, look into the log")
LONG: Final = 30.0  # seconds; a busy machine stalls for a while, too
STALLED: Final = Phrase(
    "程序卡住了 {seconds:.0f} 秒，期间谁也听不见；卡在哪里，日志里有。",
    "The bot stood still for {seconds:.0f} s and heard nobody; where, the log says.",
)
MAX_REASON: Final = 300  # characters of an error: owners read it on a phone

# Errors that only the owner can fix, by class; others explain themselves, or are temporary.
ADVICE: Final = {
    "auth": Phrase(
        "请检查密钥（LLM_API_KEY）是否正确、是否有权限。",
        "Check the key (LLM_API_KEY): is it right, and allowed to use the model?",
    ),
    "billing": Phrase(
        "请检查模型服务的余额或额度。", "Check the balance or the quota of the model's vendor."
    ),
    "bug": Phrase(
        "这是程序的错误，详情在日志里。", "That is a fault of the program; the log has it."
    ),
    "context_overflow": Phrase(
        "对话超出了模型的上下文长度，可换用上下文更长的模型。",
        "The conversation is longer than the model's context: one with more would do.",
    ),
    "model_not_found": Phrase(
        "请检查模型名称（LLM_MODEL）与接口地址（LLM_BASE_URL）。",
        "Check the model's name (LLM_MODEL) and its address (LLM_BASE_URL).",
    ),
    "rate_limit": Phrase(
        "模型服务限流，请稍后再试或提高限额。",
        "The vendor limits the rate: try later, or have the limit raised.",
    ),
    "stalled": Phrase(
        "模型太久没有开始回答；本地模型处理得慢时可调大 LLM_FIRST_TOKEN。",
        "The model did not begin its answer in time; a slow local one needs more LLM_FIRST_TOKEN.",
    ),
    "tools_unsupported": Phrase(
        "该模型不支持工具调用，请换一个模型。", "This model takes no tools: choose another."
    ),
    "transport": Phrase(
        "连不上模型服务，请检查网络与接口地址（LLM_BASE_URL）。",
        "The model's server cannot be reached: check the network and LLM_BASE_URL.",
    ),
}
CATALOGUE.register(__name__, globals())


def stall_alerts(owner: Owner, count: Callable[[float], None]) -> Callable[[float], None]:
    """A function that takes the seconds for which the event loop was blocked, passes them to
    `count`, and alerts owners of a long block.
    """

    def stalled(seconds: float) -> None:
        count(seconds)
        if seconds >= LONG:
            owner.tell("stall", STALLED.format(owner.language, seconds=seconds))

    return stalled


class RunFailureAlerts:
    """An `Observer`. `mask` removes secrets from a vendor's words."""

    notices: Final = frozenset({RunFinished})

    def __init__(self, owner: Owner, *, mask: Callable[[str], str]) -> None:
        self._owner = owner
        self._mask = mask

    def notice(self, event: RunEvent) -> None:
        """Alert owners to a failed run, at most once in ten minutes for each class of error."""
        match event:
            case RunFinished(outcome=outcome) if outcome.stop is Stop.FAILED and not event.parent:
                kind, _, reason = outcome.error.partition(":")
                self._owner.tell(
                    f"run failed: {kind}", self._line(event.run_id, kind, reason.strip())
                )
            case _:
                pass

    def _line(self, run: str, kind: str, reason: str) -> Quoting:
        # Masked before it is cut: half a secret would not be recognized.
        said = " ".join(self._mask(reason).split())  # it may repeat people's words
        short = said if len(said) <= MAX_REASON else said[:MAX_REASON] + "…"
        language = self._owner.language
        reason = short or NO_REASON.format(language)
        line = LINE.format(language, run=run, kind=kind or "unknown", reason=reason)
        return Quoting(f"{line}\n{ADVICE[kind].format(language)}" if kind in ADVICE else line)


class StartupAlerts:
    """Keeps the alerts of parts that are built before `Owner` until they can be sent. Of several
    bots that see the same outages one `speaks`.
    """

    def __init__(self, *, speaks: bool = True) -> None:
        self._speaks = speaks
        self._told: asyncio.Queue[Bilingual] = asyncio.Queue()

    def tell(self, line: Bilingual) -> None:
        self._told.put_nowait(line)

    def tell_once(self, line: Bilingual) -> None:
        """Queue an alert that every bot of the service raises: one sends it, the others log it."""
        if self._speaks:
            self.tell(line)
        else:
            logger.info(text_for_log(line.en))

    async def pass_on(self, owner: Owner) -> None:
        """Send alerts until cancelled. The kind of an alert is its English text up to the first
        bracket.
        """
        while True:
            line = await self._told.get()
            owner.tell(line.en.partition(" (")[0], text_in(owner.language, line))

    @contextmanager
    def logged_at_the_end(self) -> Iterator[None]:
        """After the block, log the alerts that were not sent."""
        try:
            yield
        finally:
            while not self._told.empty():
                logger.error(text_for_log(self._told.get_nowait().en))
