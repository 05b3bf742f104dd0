"""Why QQ did not take a message, and what the model should do about it: data, matched by what
servers say.

The words are those of `docs/protocol/onebot.md` section 2 (NapCat, LLBot) and of go-cqhttp's kernel
results.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

TOO_LONG: Final = "too long"
KERNEL_MUTED: Final = re.compile(r'"result"\s*:\s*120\b')


@dataclass(frozen=True, slots=True)
class RefusalKind:
    """One kind of refusal: how it is recognised, and what the model is told."""

    kind: str
    pattern: re.Pattern[str]
    advice: str


REFUSALS = (
    RefusalKind(
        "muted",
        re.compile(rf"{KERNEL_MUTED.pattern}|禁言|muted|banned from speaking", re.IGNORECASE),
        "the bot is muted here. Do not try again",
    ),
    RefusalKind(
        "not a friend",
        re.compile(
            r"不是好友|非好友|加好友|添加.*好友|not (a )?friend|临时会话.*(关闭|失败|禁)",
            re.IGNORECASE,
        ),
        "this person cannot be written to: not a friend of the bot. Do not try again",
    ),
    RefusalKind(
        "not in the group",
        re.compile(r"移出该群|不在(该)?群|not in (the|this) group", re.IGNORECASE),
        "the bot is not in this group any more. Do not try again",
    ),
    RefusalKind(
        "risk control",
        re.compile(r"风控|risk ?control|频繁|too frequent|被限制", re.IGNORECASE),
        "QQ's risk control stopped it. Do not send it again, and send less",
    ),
    RefusalKind(
        "too large",
        re.compile(r"too large for a cluster"),
        "its files have more than 5 MB together. Send smaller ones, or say it in words",
    ),
    RefusalKind(
        TOO_LONG,
        re.compile(r"过长|太长|too (long|large)|超(过|出).*(长度|限制|大小)", re.IGNORECASE),
        "it is too long. Send a shorter text",
    ),
    RefusalKind(
        "bad media",
        re.compile(
            r"识别URL失败|ENOENT|文件.*(不存在|失败)|不支持的(文件|图片)|下载失败"
            r"|rich media|download|base64|fetch failed|ECONNREFUSED|ENOTFOUND",
            re.IGNORECASE,
        ),
        "QQ could not use the file or url. Send it another way, or say it in words",
    ),
    RefusalKind(
        "nothing left",
        re.compile(r"消息体无法解析|未知的消息类型"),
        "QQ does not know this kind of message. Say it in words",
    ),
)


def is_too_long(reason: str) -> bool:
    """Whether this, from `explain_refusal`, says that less may be said after all."""
    return reason.startswith(f"{TOO_LONG}: ")


def is_muted(wording: str, retcode: int) -> bool:
    """Whether QQ's kernel says that the bot may not speak there. Words about a mute may be about
    anything: what was said in the message, or that there is none.
    """
    return bool(KERNEL_MUTED.search(_told(wording, retcode)))


def explain_refusal(wording: str, retcode: int) -> str:
    """The reason as the model reads it: the advice for this kind of refusal, or QQ's own words."""
    told = _told(wording, retcode)
    for refusal in REFUSALS:
        if refusal.pattern.search(told):
            return f"{refusal.kind}: {refusal.advice}"
    return wording[:200] or f"refused with code {retcode}"


def _told(wording: str, retcode: int) -> str:
    """A number alone, which is all that Lagrange says, is the kernel's result."""
    return wording or f'"result":{retcode}'
