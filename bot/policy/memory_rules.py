"""Rules of memory: which facts are kept, about whom, where they may be shown, and how they are
found. Pure.

Wrong memories are worse than none: an instruction to the bot, a secret or a person's number is
never kept, no matter who asks. What was said in private never appears in a group.

Chinese is written without spaces, so its words are indexed by pairs of characters, or by a single
character that stands alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise

from bot.core.conversation import Conversation
from bot.core.memories import Kind, StoredFact, Visibility
from bot.core.run_ids import number_of
from frostagent.models.tokens import estimate_text
from frostagent.text.lazy_regex import lazy_regex
from frostagent.text.masking import KEYS
from frostagent.text.similarity import is_similar
from frostagent.text.visible_text import visible_text
from frostagent.types.runs import Asker
from frostagent.types.traits import Audience

MAX_TEXT = 200  # characters of one fact
ALIKE = 85.0  # percent

ORDER = lazy_regex(
    r"忽略|无视|指令|提示词|系统(?:消息|规则)|管理员权限|主人(?:的)?权限|听(?:从|命于)"
    r"|(?:从现在|从今)(?:开始|起|以后)|(?<![A-Za-z])(?:你|机器人|助手|bot)\s*(?:必须|应当|应该|一定要|务必|只能|不许|不准|不要|别|得|要|是)"
    r"|(?:每次|以后|永远|始终|一律)(?:都|请|要|得|必须|一定|务必|只)*(?:回答|回复|说|发|调用|执行|发送|用)"
    r"|(?:回答|回复|答话|说话|讲话|结尾|句尾|每句话?)(?:里|后面?|时|都)*(?:要|得|请|必须|一定|务必)+[带加用以说讲]"
    r"|(?:结尾|句尾|每句话?后?面?)都?加"
    r"|(?:不要|别|不许|不准|禁止)再?(?:回答|回复|理会|搭理|理睬|告诉|提醒)|(?:回答|回复)(?:时|之?前|的时候)"
    r"|(?:见到|看到|遇到|提到|凡是).{0,20}就(?:说|骂|发|回|叫|喊|@)"
    r"|(?:你|机器人|助手|bot)的?(?:主人|管理员|开发者)"
    r"|\b(?:ignore|disregard|override|system prompt|instructions?|jailbreak|pretend|from now on)\b"
    r"|\b(?:you|the bot|the assistant) (?:must|should|shall|are|have to|may not|will|need to)\b"
    r"|\b(?:answer|reply|respond) (?:with|in|only)\b"
    r"|\b(?:every|each|all) (?:answer|reply|replies|response|message|sentence)s?\b"
    r"|\b(?:owner|master|admin|developer) of (?:the|this) bot\b"
    r"|\b(?:bot|assistant)'?s (?:owner|master|admin|developer)\b"
    r"|\b(?:always|never) (?:answer|reply|respond|say|send|call|use|obey|follow)\b",
    re.IGNORECASE,
)
"""An instruction to the bot, not a fact about a person."""

SECRET = lazy_regex(
    r"密码|口令|验证码|密钥|私钥|身份证|银行卡|信用卡|助记词"
    r"|\b(?:passwords?|passwd|pass ?phrase|pin code|api[ _-]?keys?|tokens?|secrets?|private key)\b",
    re.IGNORECASE,
)
DIGIT = r"[\d零〇一二三四五六七八九幺壹贰叁肆伍陆柒捌玖]"
NUMBER = lazy_regex(
    rf"{DIGIT}(?:[ \-._/,、]?{DIGIT}){{4,}}|[\w.+-]+@[\w-]+\.\w|(?:微信|qq|手机|帐|账)号",
    re.IGNORECASE,
)
"""Five or more digits or digit words: accounts, phone and card numbers; and account names."""
QUESTION = lazy_regex(
    r"\?|[吗呢]\W*$|(?:谁|哪里|哪儿|多少|多长|多久|几点)(?!都|也)"
    r"|^(?:who|whose|what|where|when|why|how|which|does|do|is|are|can)\b",
    re.IGNORECASE,
)
"""A question, which small models record as a statement."""
FRAME = lazy_regex(r"^\W*[\[【]|#\d+\s*:")
"""A heading or the start of a line of a prompt."""
YEARS = lazy_regex(r"(?<!\d)(?:19|20)\d\d[-./年 ]{1,2}\d{1,2}(?:[-./月 ]{1,2}\d{1,2})?(?!\d)")


def fact_problem(text: str) -> str:
    """Return why this is not kept, for the model; empty if it may be kept."""
    folded = unicodedata.normalize("NFKC", text[: MAX_TEXT + 1])
    if not folded.strip():
        return "there is nothing to remember"
    if len(text) > MAX_TEXT:
        return f"at most {MAX_TEXT} characters: say it shorter"
    if SECRET.search(folded) or KEYS.search(folded):
        return "passwords, keys and other secrets are not remembered"
    if NUMBER.search(YEARS.sub("", folded)):
        return "numbers of people (accounts, telephones, cards) are not remembered"
    if FRAME.search(folded):
        return "only facts are remembered, no headings and no lines of somebody's"
    if QUESTION.search(folded):
        return "only facts are remembered, no questions"
    if ORDER.search(folded):
        return "only facts are remembered, no instructions on how to answer"
    return ""


def is_same_fact(text: str, other: str) -> bool:
    """Whether the later text states the same fact again, about the same person."""
    return is_similar(text, other, least=ALIKE)


def fact_line(text: str) -> str:
    """The fact in one line, without invisible characters."""
    return " ".join(visible_text(text).split())


def is_owners_word(asker: Asker) -> bool:
    """Whether an owner asks, and no text of others is in the prompt."""
    return asker.is_owner and asker.authority is Audience.OWNER


def may_change(asker: Asker, *, subject: int) -> bool:
    """Whether the asker may write or erase facts about this person (0: about the conversation)."""
    return is_owners_word(asker) or subject in {0, number_of(asker)}


def may_forget(asker: Asker, memory: StoredFact, *, where: Conversation) -> bool:
    """Whether the asker may erase this fact: its person may; if it is about the conversation, its
    author or an admin there may.
    """
    if is_owners_word(asker):
        return True
    if memory.subject:
        return memory.subject == number_of(asker)
    is_admin = where.is_group and asker.role in {"owner", "admin"}
    return memory.scope == where and (is_admin or memory.author == number_of(asker))


def may_surface(memory: StoredFact, *, where: Conversation, asker: int) -> bool:
    """Whether a fact may be shown in this conversation to this asker."""
    if memory.scope == where:
        return True
    if where.is_group and not memory.scope.is_group:
        return False
    match memory.visibility:
        case Visibility.HERE:
            return False
        case Visibility.PERSON:
            return memory.subject == asker
        case Visibility.EVERYWHERE:
            return True


LONGEST = 1000  # characters of a question or a fact that are read
MOST = 80  # words of a question
ROWS = 5
TOKENS = 300.0

CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
RUN = lazy_regex(rf"[{CJK}]+|(?:(?![{CJK}_])\w)+")
STOP_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    什么 怎么 怎样 这个 那个 哪个 为什 么样 一下 知道 可以 是不 不是 我们 你们 他们 还有 没有 就是
    现在 记得 the an is are was do does did what who how why when where which you me my your of to
    in on it and or for with this that know remember please
    """,
    )
)
"""Words so common that they find nothing."""


OF_KIND = {
    Kind.TASTE: "喜欢 口味 爱好 忌口 likes",
    Kind.NAME: "称呼 叫什 name",
    Kind.PLAN: "计划 安排 plans",
}
"""Words in questions that ask for facts of this kind."""


def fact_terms(memory: StoredFact) -> tuple[str, ...]:
    """The words that find this fact: its own, and those of its kind."""
    return tuple(dict.fromkeys((*terms(memory.text), *OF_KIND.get(memory.kind, "").split())))


def terms(text: str) -> tuple[str, ...]:
    """Return the index words of a text, each once, in order."""
    folded = unicodedata.normalize("NFKC", text[:LONGEST]).casefold()
    found: dict[str, None] = {}
    for run in RUN.findall(folded):
        found.update(dict.fromkeys(word for word in _words(run) if word not in STOP_WORDS))
    return tuple(found)[:MOST]


def _words(run: str) -> tuple[str, ...]:
    if re.match(rf"[{CJK}]", run) is None:
        return (run,) if len(run) > 1 or run.isdigit() else ()
    return tuple(map("".join, pairwise(run))) if len(run) > 1 else (run,)


def characters(text: str) -> tuple[str, ...]:
    """The single characters of a short question, which no pair of characters covers."""
    return tuple(term for term in terms(text) if len(term) == 1 and re.match(rf"[{CJK}]", term))


def rank_facts(found: Iterable[StoredFact], question: str, *, asker: int) -> tuple[StoredFact, ...]:
    """Return the few facts to show: by the number of matching words, then the asker's own first,
    then the most recently used; duplicates are dropped.
    """
    asked = set(terms(question))
    scored = [(len(asked.intersection((*fact_terms(one), *one.text))), one) for one in found]
    scored.sort(key=lambda pair: (-pair[0], pair[1].subject != asker, -pair[1].used))
    told: dict[str, StoredFact] = {}
    left = TOKENS
    for score, one in scored:
        cost = estimate_text(one.text)
        if score and one.text not in told and cost <= left and len(told) < ROWS:
            told[one.text] = one
            left -= cost
    return tuple(told.values())
