"""The frame of the prompt, where a model says it back: cut before it is sent, and before it is kept. Pure.

A small model that reads `name(number): text` a hundred times writes such lines itself, and one that is stored makes it
write them for ever. Cut is only what `render`, `compose` and `notes` write, by their own constants: our own name in
front, a heading, a quotation, a note on what became of our words; and from a line in another member's name on, all that
follows it. Numbers and names count only where they are those of people in the prompt, and nothing inside a code block
is touched: dialogues, lists of prices and tables are honest words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rapidfuzz import fuzz

from bot.domain.actions import SENT
from bot.domain.chat import NOTED, AssistantMessage, Message, ToolCall, UserMessage
from bot.domain.events import Conversation
from bot.policy.repetition import already_said, bare
from bot.prompt import compose, notes, render

SEND = "send_message"  # the tool whose words are ours
ECHO = 90.0  # percent: a question said back
MOST_FRAMES = 12  # one within the other, before the first word of an answer
FEW_WORDS = 3  # a name or a number alone is said back by who answers with it
LONG_ENOUGH = 8  # letters and digits: people greet in fewer, and are greeted back in the same words

OPEN, CLOSE, COLON = r"[(（]", r"[)）]", r"[:：]"
MARK = r"(?:\*\*|__|[*_`])?"  # a model may make a heading of it
NAME = rf"[^\n()（）:：\[\]【】]{{1,{render.MAX_NAME}}}?"
WHO = rf"(?P<name>{NAME})\s?{OPEN}(?P<number>\d{{1,20}}){CLOSE}"
LINE = re.compile(rf"\s{{0,2}}{MARK}@?{WHO}{MARK}\s?{COLON}{MARK}[^\S\n]*")
LABELLED = re.compile(rf"\s*{MARK}[^\s:：]{{1,{render.MAX_NAME}}}{MARK}{COLON}")
FENCE = re.compile(r"\s{0,3}(?:```|~~~)")

SAID_BY = re.compile(
    r"(?:^(?:  )?|@|" + re.escape(render.QUOTED.partition("{")[0]) + ")"
    + re.escape(render.SPEAKER).replace(r"\{name\}", rf"({NAME})").replace(r"\{number\}", r"(\d+)"),
    re.MULTILINE,
)  # fmt: skip


def _word(heading: str) -> str:
    return re.escape(heading.partition("]")[0].strip("[]"))


HEADINGS = "|".join(
    map(_word, (compose.QUESTION, compose.RECORD, compose.FORWARDED, compose.EARLIER, compose.PICTURES, notes.NOTES))
)
NUMBER = re.escape(compose.NUMBER).replace(r"\ ", r"\s*").replace(r"\{id\}", r"-?\w+")
HEADING = re.compile(
    rf"\s{{0,2}}{MARK}[\[［【](?:{HEADINGS})[^\]］】\n]{{0,40}}[\]］】]{MARK}(?P<number>{NUMBER})?[^\S\n]*"
)
LABEL = re.compile(r"[\[［【][^\]］】\n]{1,20}[\]］】]")
PICTURES = re.compile(re.escape(compose.PICTURES.strip()) + r"[^\n]*")

_before, _between, _after = (re.escape(part.strip()) for part in re.split(r"\{who\}|\{words\}", render.QUOTED))
OUR_QUOTE = re.compile(rf"[\[［]{_before[2:]}\s*{NAME}(?:{OPEN}\d+{CLOSE})?\s*{_between}.{{0,400}}?{_after}[^\S\n]*")
QUOTE = re.compile(rf"[\[［]{_before[2:]}(?!\s*\d{{1,3}}[\]］])(?:[\s:：][^\[\]［］\n]{{0,200}})?[\]］][^\S\n]*")

_part = re.escape(notes.PART).replace(r"\{number\}", r"\d+")
_fates = "|".join((re.escape(notes.REFUSED).replace(r"\{reason\}", r"[^\n]*?"), notes.UNCONFIRMED, notes.QUEUED))
FATE = rf"(?:{_part})?(?:{_fates})"
ALL_SAID = re.compile(re.escape(notes.ALL_SAID[1:-1]).replace(r"\ ", r"\s*").join((OPEN + r"\s*", r"\s*" + CLOSE)))
TRAILING_NOTE = re.compile(rf"\n?{OPEN}(?P<words>{FATE}){CLOSE}\s*$")
NOTE_LINE = re.compile(
    rf"\s*(?:{OPEN}{FATE}{CLOSE}|你上面的回答{FATE}|{notes.UNANSWERED}|{notes.BROKEN_OFF}"
    rf"|{SENT}\s*\(message_id:[^\n)]*\))\s*"
)
SUSPECT = re.compile(
    r"[()（）\[\]［］【】]|" + "|".join(map(re.escape, ("你上面的回答", notes.UNANSWERED, notes.BROKEN_OFF, SENT)))
)
"""What no frame of ours is without, but for our own name."""
NARROW = str.maketrans("（）", "()")
STAND_INS = frozenset({*notes.LEGACY, notes.ALL_SAID, NOTED})

WORDS = re.compile(r"[A-Za-z]{2,}|[\u3400-\u9fff]")
ASKING = re.compile(
    r"[吗吧谁哪几]|什么|怎么|怎样|多少|为何|为什么|是不是|有没有|能不能|会不会|要不要|可不可以|是否|能否"
)
"""What makes a question of a sentence: without it the same words are its answer."""

ASKS_TO_REPEAT = re.compile(
    r"复述|重复|照[着抄]|原样|跟我|学我|朗?读|翻译|改写|润色|校对|纠正|改正|修改|更正|格式|标点|大写|小写|排版|背|\b(?:repeat|echo|say|copy|translate|rephrase|fix|correct|format|upper|lower|capitali[sz]e|punctuate)",
    re.IGNORECASE,
)
GREETING = re.compile(
    r"你们?好|大家|各位|[早晚]上好|[早晚]安|再见|谢谢|恭喜|发财|加油|祝|新[年春]|生日|[佳春元中]?[节宵秋]|快乐|愉快|健康|身体|万事|如意|顺利|平安"
    r"|\b(?:happy|hello|good|morning|night|evening|thank|thanks|you|congratulations|merry|christmas|new|year|welcome)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class People:
    """Who is in a prompt: names, folded, and QQ numbers."""

    names: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, messages: Iterable[Message]) -> People:
        """Those whose lines, mentions or quotations stand in it."""
        found = {pair for one in messages if isinstance(one, UserMessage) for pair in SAID_BY.findall(one.text)}
        names = frozenset(_key(name) for name, _ in found)
        return cls(names, frozenset(number for _, number in found))


@dataclass(frozen=True, slots=True)
class Frames:
    """Cuts the frame out of the bot's own words. `names` are those it goes by, `number` is its account."""

    names: tuple[str, ...] = ()
    number: int = 0
    people: People = field(default_factory=People)
    question: str = ""

    def cut(self, text: str) -> str:
        """The text without what is the frame's; the very same text where nothing of it is."""
        if not SUSPECT.search(text) and not any(name and name.casefold() in text.casefold() for name in self.names):
            return text  # as nearly all are
        for _ in range(MOST_FRAMES):
            shorter = self._cut(text)
            if shorter == text:
                return text
            text = shorter
        return ""  # frames and nothing else: a model that goes round

    def tidy(self, message: AssistantMessage) -> AssistantMessage:
        """What the model said, as it may be sent and kept: its words, and those it gives to `send_message`."""
        text = self.cut(message.text)
        if not message.tool_calls and self.is_echo(text):
            text = ""
        calls = tuple(map(self._tidy_call, message.tool_calls))
        if text == message.text and calls == message.tool_calls:
            return message
        return replace(message, text=text, tool_calls=calls)

    def is_echo(self, text: str) -> bool:
        """Whether it is nothing but the question, said back; who asks for that, or greets, gets it."""
        if len(text) > 2 * len(self.question) or len(self.question) > 2 * len(text):
            return False
        if len(bare(GREETING.sub("", text))) < LONG_ENOUGH or ASKS_TO_REPEAT.search(self.question):
            return False
        if "```" in text or text.count("\n") > self.question.count("\n"):
            return False
        if len(WORDS.findall(text)) < FEW_WORDS or not {*ASKING.findall(self.question)} <= {*ASKING.findall(text)}:
            return False
        # What differs in a number, a name or a negation is an answer, however much of the question is in it.
        said, asked = (one.rstrip("?？ ") for one in (text, self.question))
        return already_said(said, (asked,)) and fuzz.ratio(bare(said), bare(asked)) >= ECHO

    # --- the text -------------------------------------------------------------------------------------

    def _cut(self, text: str) -> str:
        if text.strip().translate(NARROW) in STAND_INS:
            return ""
        begun = self._without_beginning(text)
        kept, whole = [], True
        for line in self._lines(begun):
            if line is None:
                whole = False
                break
            kept.append(line)
        cut = "\n".join(kept)
        if cut == text:
            return text
        return cut.strip() if whole else cut.rstrip()

    def _without_beginning(self, text: str) -> str:
        """Without what stands before the first word of an answer."""
        begin = text.lstrip()
        for stand_in in STAND_INS:
            if begin.translate(NARROW).startswith(f"{stand_in}\n"):
                return begin[len(stand_in) :].lstrip()
        if match := PICTURES.match(begin) or OUR_QUOTE.match(begin) or QUOTE.match(begin):
            return begin[match.end() :].lstrip()
        if (match := HEADING.match(begin)) and not self._is_form(begin, match):
            return begin[match.end() :].lstrip()
        if match := self._own_name(begin):
            return begin[match.end() :].lstrip()
        return text

    def _is_form(self, text: str, heading: re.Match[str]) -> bool:
        """Whether what looks like our heading is one label of several: `[提问] … [回答] …`."""
        if heading["number"]:
            return False
        return any(LABEL.match(line) and not HEADING.match(line) for line in text[heading.end() :].splitlines())

    def _own_name(self, text: str) -> re.Match[str] | None:
        """Our name and a colon at the beginning, unless it is a part in a dialogue, or a key of a list."""
        if (match := LINE.match(text)) and self._is_own(match):
            return match
        names = "|".join(re.escape(name) for name in sorted(self.names, key=len, reverse=True) if name.strip())
        if not names:
            return None
        match = re.match(rf"{MARK}(?:{names}){MARK}\s?{COLON}{MARK}(?!//)[^\S\n]*", text, re.IGNORECASE)
        rest = text[match.end() :] if match else ""
        lines = [line for line in text.splitlines() if line.strip()]
        is_dialogue = len(lines) > 1 and all(map(LABELLED.match, lines))
        return None if is_dialogue or re.match(r"\n(?:[ \t]|[-*•·])", rest) else match

    def _lines(self, text: str) -> Iterator[str | None]:
        """The lines that are ours; None where others' begin. What a colon announces is a quotation, line for line."""
        in_code, quoting, lines = False, False, text.split("\n")
        for place, line in enumerate(lines):
            if in_code or FENCE.match(line):
                in_code ^= FENCE.match(line) is not None
                yield line
                continue
            if ((others := self._is_others(line)) and not quoting) or self._goes_on(lines, place):
                yield None
                return
            if line.strip():
                quoting = others or line.rstrip().endswith((":", "："))
            if not NOTE_LINE.fullmatch(line):
                yield self._without_asides(line)

    def _without_asides(self, line: str) -> str:
        if (match := LINE.match(line)) and self._is_own(match):
            line = line[match.end() :]
        if "`" in line:
            return line
        return ALL_SAID.sub("", OUR_QUOTE.sub("", line))

    def _is_others(self, line: str) -> bool:
        """Whether it is a line in another's name."""
        match = LINE.match(line)
        if match is None or self._is_own(match):
            return False
        return _is_one_of(match, self.people.names, self.people.numbers)

    def _goes_on(self, lines: list[str], place: int) -> bool:
        """Whether a heading of ours begins the next turn, which the model made up."""
        match = HEADING.match(lines[place])
        if match is None or not place:
            return False
        return bool(match["number"]) or any(LINE.match(line) for line in lines[place + 1 : place + 2])

    def _is_own(self, match: re.Match[str]) -> bool:
        own = frozenset(map(_key, filter(str.strip, self.names)))
        mine = match["number"] == str(self.number)  # also where somebody wrote our name and number into a prompt
        return _is_one_of(match, own, {str(self.number)}) and (mine or match["number"] not in self.people.numbers)

    # --- what is given to the tool --------------------------------------------------------------------

    def _tidy_call(self, call: ToolCall) -> ToolCall:
        if call.name != SEND:
            return call
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return call
        if not isinstance(arguments, dict) or "messages" not in arguments:
            return call
        tidied = arguments | {"messages": self._tidy_parts(arguments["messages"])}
        if tidied == arguments:
            return call
        return replace(call, arguments=json.dumps(tidied, ensure_ascii=False))

    def _tidy_parts(self, parts: Any) -> Any:
        """The parts with their texts cut; they may be a list, one, or JSON of either (`tools/send_message.py`)."""
        match parts:
            case str():
                try:
                    inner = json.loads(parts)
                except (ValueError, RecursionError):
                    return parts
                tidied = self._tidy_parts(inner)
                return parts if tidied == inner else json.dumps(tidied, ensure_ascii=False)
            case list():
                return [self._tidy_parts(part) if isinstance(part, dict) else part for part in parts]
            case {"text": str(text), **rest}:
                return {"text": self.cut(text), **rest}
            case _:
                return parts

    # --- rounds of older versions ---------------------------------------------------------------------

    def told_in(self, where: Conversation, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """A stored round as the model is told of it: what older versions noted in its answers is a note behind them.

        A round of today is the very same object.
        """
        frames = replace(self, number=where.platform_id, people=People.of(messages))
        told = tuple(one for message in messages for one in tell(frames, message))
        if told == messages:
            return messages
        if any(not isinstance(message, UserMessage) for message in told):
            return told
        return (*told[:1], AssistantMessage(NOTED), *(told[1:] or (notes.note(notes.UNANSWERED),)))


def _is_one_of(match: re.Match[str], names: Collection[str], numbers: Collection[str]) -> bool:
    """Whether the line begins as ours do for one of these: under the name, or under the number and whatever name.

    A sentence that ends in such a name is none: "he said Tom(2002): ...".
    """
    name = _key(match["name"])
    if name in names:
        return True
    if match["number"] not in numbers:
        return False
    is_name = re.fullmatch(r"[\w·]+|[\W_]+", name) is not None
    return is_name and not name.endswith(tuple(names))


def _key(name: str) -> str:
    """The name as it is looked up: models put marks around it."""
    return (name.strip("@*_` ") or "?").casefold()


def tell(frames: Frames, message: Message) -> Iterator[Message]:
    """A message of a stored round as the model is told of it: none, one, or one and a note."""
    if not isinstance(message, AssistantMessage) or message.text == NOTED:
        yield message
        return
    text, noted = message.text, notes.LEGACY.get(message.text, "")
    if match := TRAILING_NOTE.search(text):
        text, noted = text[: match.start()], notes.delivery_note(match["words"])
    tidied = frames.tidy(replace(message, text=text))
    if tidied.text.strip() or tidied.tool_calls:
        yield message if tidied == message else tidied
    if noted:
        yield notes.note(noted)
