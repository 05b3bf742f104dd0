"""The meaning of a server's "failed", as data: one row for each way to say it. Pure.

Servers answer "failed" both if QQ did not accept a message and if no confirmation came in time.
What QQ may have accepted is never sent again (onebot.md 6.1), so a failure is judged in two steps:
its fate (`FATES`, the first match counts), and, if it was certainly refused, its kind (`KINDS`).

A number inside the words is QQ's own, and counts; other words may quote the message. So a
conversation is unreachable only for such a number, or if the words are QQ's whole sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from frostagent.text.lazy_regex import lazy_regex

Removable: TypeAlias = Literal["quote", "mention"]
"""A part that a refused message may be sent without."""

TOO_LONG: Final = "too long"
MUTED: Final = "muted"
MAX_WORDS: Final = 160  # characters of a server's own words that are passed on
SENDS: Final = lazy_regex(r"send_(group_|private_)?(forward_)?msg")
FORWARDS: Final = lazy_regex(r"send_(group_|private_)?forward_msg")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The meaning of a failure. If it `may_be_done`, nothing else is known. `advice` is for the
    model, `words` are QQ's or the server's own. `retry_without` is what to leave out in one more
    try, in this order. If it `blocks_place`, QQ accepts nothing there until a sign of life.
    """

    kind: str = ""
    advice: str = ""
    words: str = ""
    retry_without: tuple[Removable, ...] = ()
    blocks_place: bool = False
    may_be_done: bool = False

    @property
    def reason(self) -> str:
        """The reason for the model: what to do about it, or the server's own words if there is
        nothing else.
        """
        return f"{self.kind}: {self.advice}" if self.kind else self.words

    @property
    def full_reason(self) -> str:
        """The reason with the server's own words, for the journal and the owners."""
        return f"{self.reason} ({self.words})" if self.kind else self.words


def judge_refusal(wording: str, retcode: int, action: str = "send_msg") -> Refusal:
    """Judge a server's "failed" to this action, by its words (possibly empty) and its code."""
    words, result = _own_words(wording, retcode), _result_in(wording)
    if result in (None, 0) and _may_be_done(wording, retcode, action):
        return Refusal(words=words, may_be_done=True)
    if result is None and not wording:
        result = retcode  # a code alone, as from Lagrange, is the kernel's result
    for row in KINDS:
        if row.fits(words, wording, retcode, result):
            return Refusal(row.kind, row.advice, words, row.retry_without, row.blocks_place)
    return Refusal(words=words)


def is_too_long(reason: str) -> bool:
    """Whether a shorter message may be accepted."""
    return reason.startswith(f"{TOO_LONG}: ")


def is_muted(reason: str) -> bool:
    """Whether the reason is a mute, which is not a fault."""
    return reason.startswith(f"{MUTED}: ")


def is_of_place(reason: str) -> bool:
    """Whether QQ refuses all messages in a conversation for this reason."""
    return any(row.blocks_place and reason.startswith(f"{row.kind}: ") for row in KINDS)


def failure_in(data: object) -> tuple[int, str] | None:
    """QQ's own result and words inside the data of an answer that the server calls "ok", if it is a
    failure: NapCat passes them on unchecked (set_essence_msg, set_msg_emoji_like,
    set_input_status).
    """
    if not isinstance(data, dict) or "errMsg" not in data:
        return None
    for name in ("result", "errCode"):
        value = data.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value != 0:
            return value, str(data["errMsg"] or "")
    return None


# --- parsing the words ----------------------------------------------------------------------------

ECHOES: Final = lazy_regex(r"invoke timeout", re.IGNORECASE)
"""Older LLBots quote the message itself after this (LuckyLilliaBot src/ntqqapi/api/msg.ts)."""
_KERNEL: Final = r"(?:EventRet:\s*|^\s*(?=\{[^{}]*\}\s*$))\{[^{}]*?"
"""The beginning of QQ's own object, as NapCat quotes it, or if it is the whole text."""
RESULT: Final = lazy_regex(
    _KERNEL + r'"result"\s*:\s*(-?\d+)'
    r"|^(?:Error: |Internal error: )*发送消息失败 \(code=(-?\d+)\)"  # LLBot
    r"|\brejected: result=(-?\d+)\b"  # SnowLuma
)
ERR_MSG: Final = lazy_regex(
    _KERNEL + r'"errMsg"\s*:\s*"([^"]+)"'
    r"|^(?:Error: |Internal error: )*发送消息失败 \(code=-?\d+\): *(\S.*)"
    r"|\brejected: result=-?\d+ err=(\S.*)",
    re.DOTALL,
)
PREFIX: Final = lazy_regex(r"^(?:(?:Internal )?[Ee]rror: *)+")


def _result_in(wording: str) -> int | None:
    """The result code of QQ's kernel inside a server's words, if any."""
    found = None if ECHOES.search(wording) else RESULT.search(wording)
    return int(next(filter(None, found.groups()))) if found else None


def _own_words(wording: str, retcode: int) -> str:
    """QQ's words, else the server's, in one line; the code if there are none."""
    found = None if ECHOES.search(wording) else ERR_MSG.search(wording)
    words = next(filter(None, found.groups())) if found else PREFIX.sub("", wording)
    line = " ".join(words.split())
    return line[:MAX_WORDS] if line else f"refused with code {retcode}"


def _words(pattern: str) -> re.Pattern[str]:
    return lazy_regex(pattern, re.IGNORECASE | re.DOTALL)


# --- whether it may have been done ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fate:
    """Matches answers with one of these retcodes and with these words, to these actions; an empty
    condition matches all.
    """

    may_be_done: bool
    retcodes: tuple[int, ...] = ()
    words: re.Pattern[str] | None = None
    actions: re.Pattern[str] | None = None

    def fits(self, words: str, retcode: int, action: str) -> bool:
        if self.retcodes and retcode not in self.retcodes:
            return False
        if self.actions is not None and self.actions.fullmatch(action) is None:
            return False
        return self.words is None or self.words.search(words) is not None


FATES: Final = (
    # The call itself was not understood or not allowed: it was never carried out (onebot.md 2).
    _Fate(False, retcodes=(400, 401, 403, 404, 413, 1400, 1401, 1403, 1404)),
    # NapCat: a forward that QQ accepted but did not confirm in time; the text of the timeout is
    # lost (napcat-onebot action/msg/SendMsg.ts).
    _Fate(True, words=_words(r"发送转发消息（res_id|^消息体无法解析"), actions=FORWARDS),
    # NapCat: "Timeout: NTEvent ...sendMsg". LLBot: "waitForSelfEcho timeout", after QQ accepted it;
    # older ones "invoke timeout, ...sendMsg, [the message]" (LuckyLilliaBot
    # src/ntqqapi/api/msg.ts).
    _Fate(True, words=_words(r"time[- ]?out\b.*sendmsg|waitForSelfEcho")),
    # Files are downloaded and uploaded to QQ before there is a message.
    _Fate(False, words=_words(r"SsoSendLongMsg|download|upload|highway|下载|上传|识别URL")),
    # Any other timeout.
    _Fate(True, words=_words(r"time[ds]?[- ]?out\b|超时")),
    # Lagrange v1: no answer from QQ (Lagrange.Core OperationLogic.SendMessage: 9057, before that
    # 9000) ...
    _Fate(True, retcodes=(9000, 9057), actions=SENDS),
    # ... and "failed" with QQ's result 0 and no words: it accepted the message without an id.
    _Fate(True, retcodes=(0,), words=_words(r"^$"), actions=SENDS),
    # The standard's "async": it will be done, without a report.
    _Fate(True, retcodes=(1,), words=_words(r"^$"), actions=SENDS),
    # go-cqhttp: the message left, but its echo did not come: risk control, or a lost echo.
    _Fate(
        True,
        retcodes=(100,),
        words=_words(r"SEND_MSG_API_ERROR|请参考\s*go-cqhttp\s*端输出"),
        actions=SENDS,
    ),
)


def _may_be_done(words: str, retcode: int, action: str) -> bool:
    fits = (row.may_be_done for row in FATES if row.fits(words, retcode, action))
    return next(fits, False)


# --- why it was refused ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Kind:
    """Matches refusals with one of QQ's `results`, or whose own words are a `sentence`, or whose
    wording contains these `words`, with one of these retcodes (empty: any).
    """

    kind: str
    advice: str
    results: tuple[int, ...] = ()
    sentence: re.Pattern[str] | None = None
    words: re.Pattern[str] | None = None
    retcodes: tuple[int, ...] = ()
    retry_without: tuple[Removable, ...] = ()
    blocks_place: bool = False

    def fits(self, own: str, wording: str, retcode: int, result: int | None) -> bool:
        if result is not None and result in self.results:
            return True
        if self.sentence is not None and self.sentence.fullmatch(own):
            return True
        has_code = not self.retcodes or retcode in self.retcodes
        if self.words is None:
            return bool(self.retcodes) and has_code
        return has_code and self.words.search(wording) is not None


_IS_MUTED: Final = "the bot is muted here. Do not try again"
_NO_FRIEND: Final = "this person cannot be written to: not a friend of the bot. Do not try again"
_CLOSED: Final = "this person's settings let nothing of the bot through. Do not try again"
_LEFT: Final = "the bot is not in this group any more. Do not try again"
_NO_QUOTE: Final = "QQ does not know the quoted message any more. Say it without the quote"
_NO_MENTION: Final = "somebody mentioned cannot be found here. Say it without the mention"
_EITHER: Final = "QQ could not make a message of it. Say it in plain words, without quotes"

KINDS: Final = (
    _Kind(
        MUTED,
        _IS_MUTED,
        results=(120,),  # on every server
        sentence=_words(
            r"当前处于被禁言状态"  # LLBot checks before it sends
            r"|(发送失败，?)?(你|您)已被禁言[^：:]{0,12}"
            r"|(发送失败，?)?(当前群|本群|该群)(已|开启了?)(全员|全体)?禁言[^：:]{0,12}"
        ),
        blocks_place=True,
    ),
    _Kind(MUTED, _IS_MUTED, words=_words(r"禁言|muted|banned from speaking")),
    _Kind(
        "not in the group",
        _LEFT,
        results=(110,),
        sentence=_words(
            r"(发送失败，?)?(你|您)已被移出(该|此|本)群[^：:]{0,12}"
            r"|(发送失败，?)?(你|您|机器人|bot ?)(已经?)?不在(该|此|本)群[^：:]{0,4}"
            r"|(the )?bot is not (a member of|in) (the|this) group\.?"
            r"|(该|此|本)?群[聊组]?( ?\d+ ?)?不存在"
            r"|(the )?group( \d+)? (was )?not found\.?|(ERR_)?GROUP_NOT_FOUND"
        ),
        blocks_place=True,
    ),
    _Kind(
        "not a friend",
        _NO_FRIEND,
        results=(16,),
        sentence=_words(
            r"(发送失败，?)?请?先?添加对方为好友[^：:]{0,8}"
            r"|(发送失败，?)?(对方|TA)(还|已经?)?不是(你|您|机器人)?的?好友[^：:]{0,16}"
            r"|(发送失败，?)?(你|您|机器人)(还|已经?)?不是对方的?好友[^：:]{0,16}"
            r"|(发送失败，?)?(你|您)与对方不在共同的群[^：:]{0,20}"
            r"|不能发送临时(消息|会话)"
            r"|(ERR_)?FRIEND_NOT_FOUND|好友不存在"
            r"|(cannot send to user \d+ in group \d+: )?no such temp session"
        ),
        blocks_place=True,
    ),
    _Kind(
        "not allowed by this person",
        _CLOSED,
        sentence=_words(
            r"(发送失败，?)?(由于)?对方(的隐私设置|设置了?隐私|拒绝接收|拒收|不接受|已拒绝)[^：:]{0,24}"
            r"|(发送失败，?)?(你|您)已被对方(屏蔽|拉黑|加入黑名单)[^：:]{0,12}"
        ),
        blocks_place=True,
    ),
    _Kind(
        "mention",
        _NO_MENTION,
        words=_words(
            r"get uid error|uin转换到uid"  # NapCat
            r"|(group )?member (was )?not found|no such member|member .{0,20}not in (the )?group"
            r"|(被?[@艾]特?|at ?)的?(人|成员|用户|对象).{0,8}(不在|不存在|不是)"
            r"|(该|此|群)成员.{0,4}(不在|不存在|未找到)|找不到(该|此)?群?成员|MEMBER_NOT_FOUND"
        ),
        retry_without=("mention",),
    ),
    _Kind(
        "quote",
        _NO_QUOTE,
        words=_words(
            r"^(error: )*被?(引用|回复)的?.{0,12}(不存在|失败|过期|找不到|未找到|无效|已被撤回)"
            r"|^(error: )*(消息|原消息|源消息|该消息)(已)?(不存在|被撤回|过期)"
            r"|(找不到|未找到|没有找到|无法获取)(被|要|该)?(引用|回复)"
            r"|(reply|quoted?|source|original)( to)?( message| msg| id| seq)?.{0,24}"
            r"(not (found|exist)|invalid|expired|missing|does ?n[o']t exist)"
            r"|(message|msg) .{0,24}not (found|exist|in cache)|message not found|MSG_NOT_FOUND"
            r"|Sequence contains no (matching )?elements?"  # Lagrange
            r"|Cannot read propert.{0,60}(source|reply|quote|msgSeq|senderUin|user_id)"
        ),
        retry_without=("quote",),
    ),
    _Kind(
        "not a friend",
        _NO_FRIEND,
        words=_words(r"不是好友|非好友|加好友|添加.*好友|not (a )?friend|临时会话.*(关闭|失败|禁)"),
    ),
    _Kind(
        "not in the group",
        _LEFT,
        words=_words(r"移出该群|不在(该)?群|not in (the|this) group"),
    ),
    _Kind(
        "risk control",
        "QQ's risk control stopped it. Do not send it again, and send less",
        words=_words(r"风控|risk ?control|频繁|too frequent|被限制"),
    ),
    _Kind(
        "too large",
        "its files have more than 5 MB together. Send smaller ones, or say it in words",
        words=_words(r"too large for a cluster"),
    ),
    _Kind(
        TOO_LONG,
        "it is too long. Send a shorter text",
        words=_words(r"过长|太长|too (long|large)|超(过|出).*(长度|限制|大小)"),
    ),
    _Kind(
        "bad media",
        "QQ could not use the file or url. Send it another way, or say it in words",
        words=_words(
            r"识别URL失败|ENOENT|文件.*(不存在|失败)|不支持的(文件|图片)|下载失败"
            r"|rich media|download|base64|fetch failed|ECONNREFUSED|ENOTFOUND"
        ),
    ),
    _Kind(
        "nothing left",
        "QQ does not know this kind of message. Say it in words",
        words=_words(r"消息体无法解析|未知的消息类型"),
    ),
    # Lagrange answers 200 and nothing else if it failed to build the message, mostly for a quote
    # missing in its database; 400 and 1400 are parameters that a server rejected, 1500 is onebots'
    # for a message it could not build.
    _Kind(
        "not understood",
        _EITHER,
        words=_words(r"^$"),
        retcodes=(200, 1200),
        retry_without=("quote", "mention"),
    ),
    _Kind(
        "not understood", _EITHER, retcodes=(400, 1400, 1500), retry_without=("quote", "mention")
    ),
)
"""Why a message was refused; the first match counts. The sentences are QQ's, or a server's own
(`docs/protocol/onebot.md` section 2); 120, 110 and 16 mean the same on all servers.
"""
