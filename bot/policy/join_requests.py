"""Requests of friends and invites, as an owner reads them and answers. Pure.

Only we write at the beginning of a line; what a stranger wrote stands in one, cut, between 「」.
"""

from __future__ import annotations

import re

from bot.core.events import MessageReceived
from bot.core.group_admin import JoinRequest
from bot.policy.approval import INNER_QUOTES, Answer, read_answer, without_blanks, words_in
from frostagent.engine.authority import in_one_line
from frostagent.text.language import Language

MAX_COMMENT = 80  # characters

FRIEND = ("#R{number} {who} 想加机器人为好友", "#R{number} {who} wants to be the bot's friend")
INVITE = (
    "#R{number} {who} 邀请机器人进群 {group}",
    "#R{number} {who} invites the bot into group {group}",
)
SAYING = ("{line}：「{said}」", "{line}: 「{said}」")
HOW = (
    "回复「同意 R{number}」或「拒绝 R{number} 理由」，也可以引用这条回复；{days} 天内有效。",
    'Answer "approve R{number}" or "deny R{number} reason", or quote this, within {days} days.',
)
DONE = ("R{number} {word}。", "R{number} is {word}.")
YES, NO = ("同意", "yes"), ("拒绝", "no")
SUBMITTED = (
    "R{number} 已提交（{word}）：这个 OneBot 端不会说 QQ 办成没有，要确认请在 QQ 里看一下。",
    (
        "R{number} is submitted ({word}): this OneBot server does not say whether QQ did it; "
        "look in QQ to be sure."
    ),
)
EXPIRED = ("R{number} 过期了，没有处理。", "R{number} has expired, nothing was done.")
UNKNOWN = (
    "没有编号为 R{number} 的申请，可能已经过期或处理过了。",
    "There is no request R{number}; it may have expired or be settled.",
)
AGAIN = (
    "这条回复比 R{number} 的申请早，没有算数；R{number} 还在等，要回复请再发一次。",
    (
        "That answer is older than the request R{number} and is void; R{number} still waits: "
        "please answer once more."
    ),
)
REFUSED = (
    "R{number} 没有办成，QQ 没有接受：{why}",
    "R{number} could not be done, QQ refused it: {why}",
)
UNANSWERED = (
    "R{number} 办成没有，QQ 没有回答；请在 QQ 里看一下，不会再试。",
    "QQ did not answer whether R{number} was done; look in QQ, it is not tried again.",
)
OFFLINE = (
    "机器人现在没有连上 QQ，R{number} 还在等，请过一会儿再回复一次。",
    "The bot is not connected to QQ now, R{number} still waits: answer again in a while.",
)
BUSY = (
    "现在记不下来，R{number} 还在等，请过一会儿再回复一次。",
    "That cannot be written down now, R{number} still waits: answer again in a while.",
)

ANSWER = re.compile(
    r"\s*(?P<word>同意|拒绝|approve|deny)\s*[#＃]?\s*[rRｒＲ]\s*(?P<number>[0-9０-９]{1,9})(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
NUMBERED = re.compile(r"#R([0-9]{1,9}) ")


def request_line(petition: JoinRequest, *, tongue: Language = Language.CHINESE) -> str:
    """The line an owner is asked by, without how it is answered; in Chinese, or in English."""
    words = (FRIEND if petition.kind == "friend" else INVITE)[tongue]
    line = words.format(number=petition.number, who=petition.user_id, group=petition.group_id)
    said = in_one_line(petition.comment, MAX_COMMENT).translate(INNER_QUOTES)
    return SAYING[tongue].format(line=line, said=said) if said else line


def request_text(petition: JoinRequest, *, days: int, tongue: Language = Language.CHINESE) -> str:
    """All of what an owner is told."""
    return (
        f"{request_line(petition, tongue=tongue)}\n"
        f"{HOW[tongue].format(number=petition.number, days=days)}"
    )


def answer_in(message: MessageReceived) -> Answer | None:
    """The answer that a message is: `同意 R3`, or `同意`, which names none."""
    if (words := words_in(message)) is None:
        return None
    if (found := ANSWER.fullmatch(words)) is None:
        answer = read_answer(words)
        return answer if answer is not None and answer.number is None else None
    plain = read_answer(found["word"] + (f" {found['rest']}" if found["rest"].strip() else ""))
    return plain and Answer(plain.allows, int(found["number"]), plain.reason)


def number_of(petitions: dict[int, JoinRequest], text: str) -> int | None:
    """The number of the one that a line of ours asks about; None for any other."""
    found = NUMBERED.match(text)
    petition = petitions.get(int(found[1])) if found else None
    lines = (
        tuple(without_blanks(request_line(petition, tongue=tongue)) for tongue in Language)
        if petition
        else ("",)
    )
    if found is None or not without_blanks(text).startswith(lines):
        return None
    return int(found[1])
