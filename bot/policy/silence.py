"""Recognizes text by which a model chooses silence instead of sending nothing. Pure.

Models learn such text from many bots and write it in many forms: `*No response*`, （不回复）,
`finish()`, [SILENT], {"action": "no_reply"}. People must not see it, and a model that finds it in
its history repeats it. The tables hold phrases; brackets and marks around them are handled
separately.
"""

from __future__ import annotations

import json
import re
import unicodedata
from enum import Enum

from frostagent.text.lazy_regex import lazy_regex
from frostagent.text.similarity import letters_only


class Silent(Enum):
    """How certain it is that a text is silence when an answer is expected."""

    CHOSEN = "says that nothing is said, in a dress that no answer has"
    CONTROL = "a command to a program: may be asked for"
    MOOD = "a word for silence, or plain words that nothing is said: may answer anything"


LONGEST = 240  # characters
HINT = lazy_regex(
    r"[回应答默静说话言语声睬搭插参潜吭视略读发出空无停束过待]|repl|respon|answer|output|message|turn|silen|quiet"
    r"|nothing|finish|end|pass|skip|wait|stop|exit|quit|idle|no|nu?il|null|empty|ignore"
)
"""Every silence contains one of these. For case-folded text: IGNORECASE is five times slower."""
MOST_REASONS = 600  # characters of reasons before it
DEEPEST = 6  # brackets and marks around it

I_DO = r"(?:我|机器人|bot)?(?:就|还是|先|这次|此处|暂时|仍|继续|应该|可以|选择|决定|打算){0,3}"
NOT = (
    r"(?:不|无需|无须|毋须|不用|不必|不需要?|没必要|没有必要|不予|不做|不作|不进行|跳过|略过)"
    r"(?:进行|做出?|作出?|任何|再){0,2}"
)
REPLY = (
    r"(?:回复|回答|回应|应答|答复|作答|发言|响应|理会|搭理|接话|插话|参与|说话|出声)"
    r"(?:(?:这[条句个]|此条?|该条?|任何)?(?:消息|内容|话|问题))?[了哦吧呢]?"
)
I_WILL = r"(?:i )?(?:(?:will|should|choose to|decide to|need to|'ll) )?"
DO_NOT = r"(?:do not|don't|not|won't|will not|does not|doesn't|no need to|not going to)"
NO_REPLY = (
    r"no ?(?:response|reply|replies|answer|output|message)"
    r"(?: is)?(?: (?:needed|required|necessary|given|expected|sent|here|from me))?"
    r"(?: to (?:this|that)(?: message)?)?(?: at this time)?"
)
CHOSEN = (
    I_DO + NOT + REPLY,
    I_DO + r"(?:保持|维持)(?:沉默|安静|静默)[了哦吧]?",
    I_DO + r"(?:无视|忽略)(?:这条|此条?|该条?)?(?:消息|内容|话|问题)?",
    r"已读不回|(?:继续)?潜水|不吭声|一言不发|沉默不语|什么[也都][不没]说|没什么[要可]说的?",
    r"(?:无|空|静默|沉默)(?:回复|回应|回答|输出|响应|应答)",
    r"不(?:发送?|输出)(?:任何)?(?:消息|内容|东西|文字)",
    NO_REPLY,
    I_WILL
    + DO_NOT
    + r" (?:reply|respond|answer)(?:ing)?(?: to)?(?: (?:this|that|it))?(?: message)?",
    I_WILL + r"(?:stay|keep|remain)(?:s|ing)? (?:silent|quiet)",
    r"(?:say|says|saying|said) nothing(?: at all)?|nothing to (?:say|reply|add)",
    r"(?:skip|ignore)(?:s|ped|d|ing)? (?:the |this |that )?(?:reply|response|message|turn)",
    r"(?:silent|empty|null) (?:reply|response|message)",
)
MOOD = (
    r"沉默(?:着|中|了|地.{0,6})?|静默|无言|不语|默不作声",
    r"silence|silent",
    r"(?:falls|goes|is|was) (?:silent|quiet)",
)
CONTROL = (
    r"finish(?:ed)?|end|pass|skip|wait|stop|exit|quit|idle|no ?op|none|null|nil|empty|ignore",
    r"no action|do nothing|nothing|(?:stop|wait|end) (?:talking|reply)",
    r"end (?:turn|conversation|chat|dialogue?)",
    r"空|无|停止|结束|跳过|忽略|等待|结束对话|停止回复",
)
_CHOSEN, _MOOD, _CONTROL = (lazy_regex("|".join(table)) for table in (CHOSEN, MOOD, CONTROL))

PLAIN = ("**", "__", "`", '"', "'", "“”", "‘’", "「」", "『』")  # marks that an answer may have
STAGE = ("*", "_", "~", "()", "《》")  # marks of a stage direction
CODE = ("[]", "【】", "<>", "{}", "〈〉", "〔〕")  # marks of text for a program
CALL = lazy_regex(r"([a-z][a-z_ .-]{1,30}|[\u3400-\u9fff]{1,8})\([^()]{0,40}\);?")
KEYED = lazy_regex(
    r"(?:final )?(?:action|decision|answer|reply|response|动作|行动|决定|回复|回答) ?[:=] ?(.+)"
)
FENCED = lazy_regex(r"```\w*\s(.*)```", re.DOTALL)
DECISIONS = frozenset({"action", "decision", "should_reply", "should_respond", "need_reply"})
REPLIES = frozenset({"response", "reply"})
TEXTS = frozenset({"content", "text", "message", "answer"})
KEYS = DECISIONS | REPLIES | TEXTS
CLAUSE = lazy_regex(r"[,，;；:：。.!！—\n]+| - ")
ENDS = " \n。.!！~…、,，"

ASKS_FOR_WORDS = lazy_regex(
    r"[字词话叫称谜猜念读写讲演扮翻译]|英[文语]|中文|日[文语]|意思|成语|角色|函数|方法|命令|代码|语句|关键|参数|接口|回[复答应]"
    r"|如何|怎么|怎样|返回|json|how\b|word|term|letter|spell|anagram|translat|synonym|mean|method|function|command|code|keyword|call"
    r"|pretend|say|write|type|print|output|repl|respon|answer",
    re.IGNORECASE,
)
"""A question whose answer may be such a word."""


def silence_in(text: str) -> Silent | None:
    """Return the kind of silence, or None if the text says anything else."""
    if len(text) > LONGEST or not HINT.search(text.casefold()):
        return None  # the usual case for long texts
    whole = unicodedata.normalize("NFKC", text).casefold().strip()
    if (kind := _kind_of(whole)) is not None or "\n" not in whole:
        return kind
    kinds = [_kind_of(line.strip()) for line in whole.split("\n") if line.strip()]
    return kinds[0] if kinds[0] is not None and None not in kinds else None


def _ends_in_silence(text: str) -> bool:
    """Whether the last line, after reasons, is certainly silence."""
    *before, last = text.strip().split("\n")
    return bool(before) and len(text) <= MOST_REASONS and silence_in(last) is Silent.CHOSEN


def keeps_silent(text: str, before: str = "", *, asked: str, weak: bool) -> bool:
    """Whether the text is silence and not an answer to `asked`. After a `weak` wake every kind
    counts. Otherwise the model is asked again, and an ambiguous text counts as an answer if it
    repeats `before`.
    """
    kind = silence_in(text)
    if kind is None or weak:
        return kind is not None or (weak and _ends_in_silence(text))
    letters, is_again = (
        letters_only(text),
        bool(before) and letters_only(text) == letters_only(before),
    )
    if kind is Silent.MOOD or (letters and letters in letters_only(asked)):
        return not is_again
    return not (kind is Silent.CONTROL and is_again and ASKS_FOR_WORDS.search(asked))


def _kind_of(text: str) -> Silent | None:
    if text[:1] == "{" and (inner := _of_json(text)):
        return inner
    if text == "[null]":
        return None  # valid JSON
    words, dress = _undressed(text)
    if _CHOSEN.fullmatch(words):
        return Silent.CHOSEN if dress else Silent.MOOD
    if _MOOD.fullmatch(words):
        return Silent.CHOSEN if dress == "code" and words.isascii() else Silent.MOOD
    if dress == "code" and _CONTROL.fullmatch(words):
        return Silent.CONTROL
    # silence with its reason: （他们在自己聊，无需回复）
    clauses = [clause.strip(ENDS) for clause in CLAUSE.split(words)] if dress else []
    if len(clauses) > 1 and any(map(_CHOSEN.fullmatch, clauses)):
        return Silent.CHOSEN
    return None


def _undressed(text: str) -> tuple[str, str]:
    """The text without marks, and their meaning: "code" before "stage" before ""."""
    dress, words = "", text
    for _ in range(DEEPEST):
        before, words = words, words.strip(ENDS).removesuffix("/")
        if fenced := FENCED.fullmatch(words):
            words = fenced[1]
        elif called := CALL.fullmatch(words):
            words, dress = called[1], "code"
        elif keyed := KEYED.fullmatch(words):
            words, dress = keyed[1], "code"
        else:
            words, found = _without_marks(words)
            dress = found if found == "code" or not dress else dress
        if words == before:
            break
    if "_" in words:
        dress = "code"
    return " ".join(re.split(r"[\s_-]+", words)), dress


def _without_marks(words: str) -> tuple[str, str]:
    for marks, dress in ((PLAIN, ""), (STAGE, "stage"), (CODE, "code")):
        for pair in marks:
            begin, end = (pair, pair) if pair in {"**", "__"} else (pair[0], pair[-1])
            inner = words[len(begin) : len(words) - len(end)]
            if words.startswith(begin) and words.endswith(end) and inner.strip():
                return inner, dress
    return words, ""


def _of_json(text: str) -> Silent | None:
    """Silence as the only content of a JSON object: `{"action": "no_reply"}`. Any other value may
    be the answer: `{"answer": 0}`.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    said = [(key, value) for key, value in given.items() if key in KEYS]
    if any(value and not _is_silence(value) for _, value in said):
        return None
    if any(_decides(key, value) for key, value in said):
        return Silent.CHOSEN
    return Silent.MOOD if any(value for _, value in said) else None


def _decides(key: str, value: object) -> bool:
    if key in REPLIES and not value:
        return value is None or value == ""
    if key in TEXTS:
        return isinstance(value, str) and _says_for_certain(value.casefold())
    return True


def _says_for_certain(text: str) -> bool:
    words, _ = _undressed(text)
    return _CHOSEN.fullmatch(words) is not None or _kind_of(text) is Silent.CHOSEN


def _is_silence(value: object) -> bool:
    words, _ = _undressed(value.casefold()) if isinstance(value, str) else ("", "")
    return any(form.fullmatch(words) for form in (_CHOSEN, _MOOD, _CONTROL))
