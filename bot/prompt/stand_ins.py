"""What models write in the place of an answer, after a stand-in or a note of ours that they read:
`(已回答)`, `[未回复]`, `[回答] 三点`, a mention and no word. Pure.
"""

from __future__ import annotations

import re

from bot.prompt import marks

OPEN, CLOSE = r"[(（\[［【]\s*", r"\s*[)）\]］】]"
_beside = (
    r"(?:已经?|未|没有?|不|无|尚|待|正在|可以?|请|你|您|我|的|了|被|过|用|需要?|以上|上面"
    r"|这[条个次]|本[条次])"
)
_about = (
    r"(?:回答|回复|答复|应答|作答|答|回|发送|发出|送达|记录|记下|记住|记|写完?|备注|补充|提及|提到|提问|问题"
    r"|引用|处理|收录|忽略|跳过|略过|省略|留空|空白?|内容|文字|消息|答案|已读|已阅)"
)
ON_ANSWERING = re.compile(rf"\s*{OPEN}{_beside}*{_about}(?:{_beside}|{_about})*{CLOSE}[。.!！]?")
"""Brackets with nothing in them but words on answering."""
NUMBERED = re.compile(rf"\s*{OPEN}[^\n()（）\[\]]{{1,24}}{marks.HASH}\d+{CLOSE}\s*")
MADE_UP = re.compile(rf"\s*{OPEN}[\u3400-\u9fff\s]{{1,8}}{CLOSE}[。.!！]?\s*")
NUMBER = re.compile(r"\s*[(（]\s*\d{1,3}\s*[)）][。.]?\s*")
ASKS_NUMBER = re.compile(
    r"[几哪选第]|多少|等于|[+*/=×÷]|\b(?:how|which|numbers?|choose|pick)\b", re.IGNORECASE
)
SAYS_SOMETHING = re.compile(
    r"[笑哭泪叹摊捂挥点摇鼓抱歪眨瞪吐愣脸手头眼嘴肩汗喵汪狗猫萌晕怒羞睡]|沉默|无语|[一二两三四五六七八九十百千半零]"
)
"""What people do in brackets, and numbers."""
DONE = re.compile(
    rf"\s*{OPEN}(?:(?:已|未|没)(?:{_beside}|{_about})*{CLOSE}[。.!！]?\s*"
    rf"|{_beside}*{_about}(?:{_beside}|{_about})*(?<=\w)\s*[)）]\s+)(?=\S)"
)
HEADING = re.compile(
    r"\s*[\[［【]\s*(?:问题?|提问|回答|答案?|回复|答复|question|asked|answer(?:ed)?|reply)\s*[\]］】][:：]?\s*",
    re.IGNORECASE,
)
MENTIONS = re.compile(rf"\s*(?:@[^\s@#＃，,。！!]{{1,24}}(?:{marks.HASH}\d+)?[\s，,。.！!]*)+")
CALLS = re.compile(
    r"谁|哪|叫|喊|艾特|@|圈|找|提醒|通知|人|\b(?:who|whose|which|name|call|ping|mention|tag|remind|notify|anybody|anyone)\b",
    re.IGNORECASE,
)


def asks_for_somebody(asked: str) -> bool:
    """Whether a name is an answer."""
    return CALLS.search(asked) is not None


def without_stand_in(text: str, asked: str, *, has_read: bool = False) -> str:
    """The text without such words, in its place or in front of it; the very same text where it has
    none. Who `has_read` one of ours makes up others.
    """
    if text.lstrip()[:1] in ("(", "（", "[", "［", "【"):
        if ON_ANSWERING.fullmatch(text.rstrip()) or NUMBERED.fullmatch(text):
            return ""
        if has_read and MADE_UP.fullmatch(text) and not SAYS_SOMETHING.search(text):
            return ""
        if has_read and NUMBER.fullmatch(text) and not ASKS_NUMBER.search(asked):
            return ""
        if (match := DONE.match(text)) and len(DONE.findall(text)) == 1:
            text = text[match.end() :]
        if (match := HEADING.match(text)) and not marks.LABEL.search(text[match.end() :]):
            text = text[match.end() :]
    if text.lstrip()[:1] == "@" and MENTIONS.fullmatch(text) and not asks_for_somebody(asked):
        return ""
    return text
