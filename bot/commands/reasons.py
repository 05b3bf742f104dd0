"""Why a message woke the bot or not, how a run ended, and which settings and commands decide each.
Every reason and every ending is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from bot.approvals.decision import NO_OWNER
from bot.approvals.tool_call_wording import NOT_PROMISED, TOO_LONG, TOO_MANY, UNREACHABLE
from bot.core.documents import NEEDS_LIBRARIES
from bot.core.journal import Undelivered, Unfinished
from bot.core.language import CATALOGUE, Bilingual, Phrase, bilingual
from bot.policy.wake import Silence
from frostagent.types.errors import ERROR
from frostagent.types.runs import Stop
from frostagent.words import ENGLISH

NO_SETTING: Final = Phrase("没有设置决定它", "no setting")
NOTHING: Final = NO_SETTING.fill()
DAY: Final = "BOT_DAY_COST_…, BOT_DAY_TOKENS_…, GROUPS_FILE, /limit"
AUDIENCES: Final = "TOOLS_AUDIENCE, GROUPS_FILE"
BY_NAME: Final = Phrase(
    f"TOOLS_DENY，人设里的 tools_deny，或今天的额度快用完了（{DAY}）",
    f"TOOLS_DENY, a persona's tools_deny, or little is left for today ({DAY})",
)


WORD: Final = Phrase(
    "要人同意才做，{why}；TOOLS_APPROVE 说哪些工具要先问",
    "it needed an approval, and {why}; TOOLS_APPROVE says which tools ask first",
)
BY_WORD: Final = WORD.fill(why=Phrase("没有同意", "was denied"))
IN_TIME: Final = WORD.fill(why=Phrase("没有在时限内办成", "got none in time"))
NO_ONE: Final = WORD.fill(
    why=Phrase("可是没有主人能问（BOT_OWNERS 是空的）", "there is no owner (BOT_OWNERS is empty)")
)
NONE_REACHED: Final = WORD.fill(
    why=Phrase("可是 BOT_OWNERS 里的主人都联系不上", "none of BOT_OWNERS could be reached")
)
INSTALL: Final = Phrase(
    "没有装额外的库 web：pip install 'frostagent[web]'，Docker 下在 .env 里设 EXTRAS=web",
    "the extra web is not installed: pip install 'frostagent[web]', with Docker EXTRAS=web in .env",
)
UNSET: Final = (TOO_MANY, TOO_LONG, NOT_PROMISED, ENGLISH.nobody_to_ask)
"""Why nobody's word could count, where no setting decides that."""
DENIED_BY: Final[tuple[tuple[str, str | Phrase | None], ...]] = (
    (NEEDS_LIBRARIES, INSTALL),
    (ENGLISH.denied, BY_NAME),
    (ENGLISH.only_for.partition("{who}")[0], AUDIENCES),
    (ENGLISH.not_allowed.format(reason=NO_OWNER), NO_ONE),
    (ENGLISH.not_allowed.format(reason=UNREACHABLE), NONE_REACHED),
    (ENGLISH.not_allowed.format(reason=ENGLISH.nobody_answered), IN_TIME),
    *((ENGLISH.not_allowed.format(reason=why), None) for why in UNSET),
    (ENGLISH.not_allowed.partition("{reason}")[0], BY_WORD),
)
"""The beginning of the sentence that the model reads about a denied call, and what decides the
denial; the first match counts. Journals contain these sentences: if one changes, the old one stays
here as well.
"""
CHANCE: Final = "BOT_CHANCE, GROUPS_FILE"
CHIME_IN: Final = "BOT_CHIME_IN, GROUPS_FILE"
CALLED_BY: Final = f"BOT_NAME, BOT_ALIASES, BOT_PREFIXES, BOT_AT_ALL, BOT_CHIME_IN, {CHANCE}"
"""What would have woken the bot without a mention or a quote."""


class Worded(Struct, frozen=True):
    """The words for a reason or an ending, and the settings and commands that decide it, or
    NO_SETTING.
    """

    words: Phrase
    decides: str | Phrase

    @property
    def deciding(self) -> Bilingual:
        """What decides it, in both languages."""
        return bilingual(self.decides)


CALLS: Final[Mapping[str, Worded]] = {
    "private": Worded(Phrase("私聊", "written in private"), NO_SETTING),
    "mention": Worded(Phrase("被 @", "mentioned"), NO_SETTING),
    "quote": Worded(Phrase("引用了我的话", "quoted me"), NO_SETTING),
    "retry": Worded(Phrase("上次中断，补答", "asked again after a crash"), NO_SETTING),
    "job": Worded(Phrase("到了定好的时间", "its moment had come"), "/reminders"),
    "name": Worded(Phrase("叫了我的名字", "called by name"), "BOT_NAME, BOT_ALIASES"),
    "prefix": Worded(Phrase("用了前缀", "began with a prefix"), "BOT_PREFIXES"),
    "all": Worded(Phrase("@全体成员", "everybody was mentioned"), "BOT_AT_ALL"),
    "chance": Worded(Phrase("随机插话", "joined in by chance"), CHANCE),
    "chime": Worded(Phrase("看了大家的聊天，主动开口", "chimed in after reading along"), CHIME_IN),
}
SILENCES: Final[Mapping[str, Worded]] = {
    Silence.BLOCKED: Worded(Phrase("对方在不理会的名单上", "the sender is blocked"), "BOT_BLOCK"),
    Silence.NOT_IN_GROUPS: Worded(
        Phrase("这个群不在名单上", "the group is not on the list"), "BOT_GROUPS"
    ),
    Silence.NOT_LISTED: Worded(
        Phrase("对方不在名单上", "the sender is not on the list"), "BOT_USERS"
    ),
    Silence.ROBOT: Worded(
        Phrase("对方是机器人", "the sender is a robot"),
        Phrase(
            "BOT_ROBOTS 里写了，QQ 说它是，或者是我自己的账号（后两种没有设置能改）",
            "BOT_ROBOTS, or QQ says so, or it is one of my own accounts (no setting changes"
            " the last two)",
        ),
    ),
    Silence.MUTED: Worded(
        Phrase("我在这里被禁言了", "I am muted here"),
        Phrase("QQ 群管理员的禁言，没有设置决定它", "the group's admins in QQ, no setting"),
    ),
    Silence.CLOSED: Worded(
        Phrase("QQ 不收我发到这里的消息", "QQ accepts no message from me here"),
        Phrase(
            "QQ 说的（不在群里、不是好友，或者对方不收），没有设置决定它",
            "QQ says so (not in the group, not a friend, or messages are refused), no setting",
        ),
    ),
    Silence.LOOP: Worded(
        Phrase(
            "和对方互相回复太多次，先停十分钟",
            "we answered each other too often: a pause of ten minutes",
        ),
        "BOT_LOOP",
    ),
    Silence.WORDS: Worded(Phrase("用了词表里的词", "its words are on a list"), "WORDS_FILE"),
    Silence.SILENCED: Worded(Phrase("被 /禁声 了", "silenced by /mute"), "/mute, /unmute"),
    Silence.HELD: Worded(
        Phrase("主人还没让我在这里说话", "no owner has let me speak here yet"),
        "BOT_NEW_GROUP, /live, /shadow, /off",
    ),
    Silence.QUIET: Worded(
        Phrase("现在要安静", "it is quiet here now"),
        "BOT_QUIET, BOT_QUIET_MODE, GROUPS_FILE, /quiet",
    ),
    Silence.STALE: Worded(Phrase("轮到它时已经太久了", "its turn came too late"), "BOT_STALE"),
    Silence.LATE: Worded(
        Phrase("重连时找到的，已经回答过或太旧", "found after a reconnect, answered or too old"),
        NO_SETTING,
    ),
    Silence.UNREAD: Worded(Phrase("还没看到就被叫停了", "stopped before I read it"), "/stop"),
    Silence.STOPPED: Worded(Phrase("还没轮到就被叫停了", "stopped before its turn"), "/stop"),
    Silence.NOT_HIS: Worded(
        Phrase("叫停的人没有权限停下它", "the person who said stop may not stop that"), "BOT_OWNERS"
    ),
    Silence.FULL: Worded(Phrase("排队的问题太多了", "too many questions were waiting"), "BOT_LANE"),
    Silence.USER: Worded(Phrase("问得太快了", "its sender asks too often"), "BOT_USER_RATE"),
    Silence.GROUP: Worded(
        Phrase("这会儿群里问得太多", "too many questions of that group"), "BOT_GROUP_RATE"
    ),
    Silence.DAY: Worded(Phrase("今天的额度用完了", "today's budget is used up"), DAY),
}
STOPS: Final[Mapping[Stop, Worded]] = {
    Stop.ANSWERED: Worded(Phrase("回答了", "answered"), NO_SETTING),
    Stop.SILENT: Worded(
        Phrase("选择不说话", "chose to stay silent"),
        Phrase(
            "人设（BOT_PERSONA）和模型；TOOLS_DENY=stay_silent 不让它这样选",
            "the persona (BOT_PERSONA) and the model; TOOLS_DENY=stay_silent removes the choice",
        ),
    ),
    Stop.STOPPED: Worded(  # of what its kind does not say, as older journals have it of all
        Phrase("被叫停", "was stopped"),
        Phrase("/stop，或者它的问题没有了", "/stop, or its question was recalled"),
    ),
    Stop.DENIED: Worded(
        Phrase("没有得到允许", "was not allowed"), f"TOOLS_DENY, TOOLS_APPROVE, {AUDIENCES}"
    ),
    Stop.FAILED: Worded(Phrase("失败了", "failed"), NO_SETTING),  # but for what its kind says
    Stop.OUT_OF_BUDGET: Worded(
        Phrase("预算用完了", "ran out of budget"), f"BOT_RUN_REQUESTS, BOT_RUN_TOKENS, {DAY}"
    ),
    Stop.INTERRUPTED: Worded(Phrase("被重启打断", "was interrupted by a restart"), NO_SETTING),
}
UNDELIVERED: Final[Mapping[str, Phrase]] = {
    Undelivered.NOT_DELIVERED: Phrase("没有送到", "not delivered"),
    Undelivered.UNCONFIRMED: Phrase("没有得到 QQ 的确认", "not confirmed by QQ"),
}
"""The endings of turns whose answers did not arrive, or perhaps did not; no setting decides those.
"""
GOES_ON: Final = Phrase("还在进行", "is running")
WAITS: Final = Phrase("在等主人答复", "waits for an owner")
FALLBACKS: Final = "LLM_FALLBACKS"
FAILURES: Final[Mapping[str, str | Phrase]] = {
    "model": "LLM_MODEL, LLM_FALLBACKS",
    "auth": "LLM_API_KEY",
    "billing": "LLM_API_KEY, LLM_FALLBACKS",
    "rate_limit": "LLM_PARALLEL, LLM_FALLBACKS",
    "overloaded": "LLM_FALLBACKS",
    "context_overflow": "LLM_CONTEXT, BOT_HISTORY_TOKENS",
    "content_filter": NO_SETTING,
    "tools_unsupported": "LLM_MODEL, LLM_DIALECT",
    "tool_use_failed": "LLM_MODEL",
    "images_unsupported": "LLM_VISION_MODEL",
    "bad_history": "LLM_DIALECT",
    "model_not_found": "LLM_MODEL",
    "day_spent": DAY,
    "rejected": "LLM_MODEL, LLM_DIALECT",
    "transport": "LLM_BASE_URL, LLM_FALLBACKS",
    "stalled": "LLM_FIRST_TOKEN, LLM_FALLBACKS",
    "limit": "BOT_MAX_STEPS",
    "deadline": NO_SETTING,
    "empty": "LLM_MODEL",
    "tool": "TOOLS_DENY",
    "bug": NO_SETTING,
}
"""What decides a failure, by its kind."""
NO_OTHER: Final = Phrase(
    "没有设置决定它；设了 LLM_FALLBACKS，就会换一个模型再问",
    "no setting; with LLM_FALLBACKS, another model would be asked",
)
"""What decides a failure that another model could have avoided, if there is no other model."""
BREAKS: Final[Mapping[str, str | Phrase]] = {
    "hook": Phrase("程序自己的钩子，没有设置决定它", "a hook of the program, no setting"),
    "given_up": Phrase(
        "没有设置决定它：问题或读到的话被撤回或忘掉了，另起一轮来答，或者重启后没有再问",
        "no setting: its question or a message it read was recalled or erased, another turn"
        " answers it, or it was not asked again after a restart",
    ),
}
"""What stopped a run other than /stop, by its kind."""
DETAIL: Final = Phrase("{reason}（{detail} 分，满分 10）", "{reason} ({detail} of 10)")
CATALOGUE.register(__name__, globals())

OPEN: Final = frozenset({"day_spent"})
"""Kinds that everyone may see; the others are failures of services."""

REASONS: Final[Mapping[str, Worded]] = {**CALLS, **SILENCES}


def words_of(reason: str) -> Bilingual:
    """The reason that woke the bot, or kept it silent."""
    if reason in REASONS:
        return bilingual(REASONS[reason].words)
    called, _, detail = reason.partition(" ")
    if called in CALLS and detail:
        return DETAIL.fill(reason=CALLS[called].words, detail=detail)
    return bilingual(reason)


def deciding(reason: str) -> Bilingual:
    """What decides that reason."""
    called = reason.partition(" ")[0]
    key = called if called in CALLS else reason
    return REASONS[key].deciding if key in REASONS else NOTHING


def end_of(stop: str) -> Bilingual:
    """How a run ended (an `Ending`)."""
    if stop in UNDELIVERED:
        return UNDELIVERED[stop].fill()
    if stop in {*Unfinished}:
        return (WAITS if stop == Unfinished.WAITING else GOES_ON).fill()
    return bilingual(STOPS[Stop(stop)].words if stop in STOPS else stop or GOES_ON)


def deciding_end(
    stop: str, error: str = "", *, is_owner: bool = True, has_fallbacks: bool = True
) -> Bilingual | None:
    """What decides that a run ended like this, with this error. None if it was answered or is
    running, or if the kind of failure is unknown or for owners only. LLM_FALLBACKS decides nothing
    unless it is set.
    """
    if stop not in STOPS or stop == Stop.ANSWERED:
        return None
    kind = error.partition(":")[0]
    if stop == Stop.FAILED:
        told = FAILURES.get(kind) if is_owner or kind in OPEN else None
        if isinstance(told, str) and not has_fallbacks:
            others = [one for one in told.split(", ") if one != FALLBACKS]
            return bilingual(", ".join(others)) if others else NO_OTHER.fill()
        return None if told is None else bilingual(told)
    if stop == Stop.STOPPED and kind in BREAKS:
        return bilingual(BREAKS[kind])
    return STOPS[Stop(stop)].deciding


def deciding_denial(name: str, denied: str) -> Bilingual | None:
    """What decides that a call of this tool was denied in these words. None if that was the asker,
    an earlier call, the arguments, or a temporary failure.
    """
    words = denied.removeprefix(ERROR)
    for begins, decides in DENIED_BY:
        if words.startswith(begins.format(name=name)):
            return None if decides is None else bilingual(decides)
    return None
