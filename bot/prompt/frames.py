"""The frame of the prompt, where a model says it back: cut before it is sent, and before it is
kept. Pure.

A small model that reads `name(number): text` a hundred times writes such lines itself, and one that
is stored makes it write them for ever. Cut is only what `render`, `compose` and `notes` write, by
their own constants: our own name in front, a heading, a quotation, a note on what became of our
words; and from a line in another member's name and number on, all that follows it, unless the
answer is nothing but such lines of several members, or announces them: who sums up a vote writes
so. Numbers and names count only where they are those of people in the prompt, and nothing inside a
code block is touched: dialogues, lists of prices and tables are honest words.

Nearly all answers hold no mark of the frame; that is found out first, and costs a microsecond.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from msgspec.structs import replace

from bot.domain.actions import SENT
from bot.domain.chat import NOTED, AssistantMessage, Message, ToolCall, UserMessage
from bot.domain.events import Conversation
from bot.policy.echo import is_echo
from bot.prompt import compose, notes, render

SEND = "send_message"  # the tool whose words are ours
MOST_FRAMES = 12  # one within the other, before the first word of an answer

OPEN, CLOSE, COLON = r"[(（]", r"[)）]", r"[:：]"
MARK = r"(?:\*\*|__|[*_`])?"  # a model may make a heading of it
NAME = rf"[^\n()（）:：\[\]【】]{{1,{render.MAX_NAME}}}?"
WHO = rf"(?P<name>{NAME})\s?{OPEN}(?P<number>\d{{1,20}}){CLOSE}"
LINE = re.compile(rf"\s{{0,2}}{MARK}(?P<at>@?){WHO}{MARK}\s?{COLON}{MARK}[^\S\n]*")
LABELLED = re.compile(rf"\s*{MARK}[^\s:：]{{1,{render.MAX_NAME}}}{MARK}{COLON}")
FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
ANNOUNCED = re.compile(
    r"[:：][*_]*\s*$|(?:[如以]下|下面)[。！!～~]?\s*$|^\s*(?:#{1,6}\s|\*\*[^*]+\*\*\s*$)"
)
"""A line that announces what stands below it: with a colon, in so many words, or as its heading."""
STAGE = re.compile(r"\s*(?:[(（].*[)）]|\*[^*]+\*)\s*$")  # what happens while nobody speaks

_name, _number = re.escape("{name}"), re.escape("{number}")
_who = re.escape(render.SPEAKER).replace(_name, rf"({NAME})").replace(_number, r"(\d+)")
_says = (
    re.escape(render.LINE.format(who=render.SPEAKER, text=""))
    .replace(_name, NAME)
    .replace(_number, r"\d+")
)
SAID_BY = re.compile(
    rf"(?:^(?:  )?(?={_says})|@|{re.escape(render.QUOTED.partition('{')[0])}){_who}", re.MULTILINE
)


def _word(heading: str) -> str:
    return re.escape(heading.partition("]")[0].strip("[]"))


HEADINGS = "|".join(
    map(
        _word,
        (
            compose.QUESTION,
            compose.RECORD,
            compose.FORWARDED,
            compose.EARLIER,
            compose.PICTURES,
            notes.NOTES,
        ),
    )
)
NUMBER = re.escape(compose.NUMBER).replace(r"\ ", r"\s*").replace(r"\{id\}", r"-?\w+")
HEADING = re.compile(
    rf"\s{{0,2}}{MARK}[\[［【](?:{HEADINGS})[^\]］】\n]{{0,40}}[\]］】]{MARK}(?P<number>{NUMBER})?[^\S\n]*"
)
LABEL = re.compile(r"[\[［【][^\]］】\n]{1,20}[\]］】]")
PICTURES = re.compile(re.escape(compose.PICTURES.strip()) + r"[^\n]*")

_before, _between, _after = (
    re.escape(part.strip()) for part in re.split(r"\{who\}|\{words\}", render.QUOTED)
)
_quote = (
    rf"(?:[\[［]{_before[2:]}\s*(?!\s){NAME}(?:{OPEN}\d+{CLOSE})?\s*{_between}.{{0,400}}?{_after}"
    rf"|{re.escape(render.QUOTED_ELSEWHERE.strip())})[^\S\n]*"
)
OUR_QUOTE = re.compile(_quote)
QUOTE_INSIDE = re.compile(
    rf"(^|[。！？!?…~～;；])[^\S\n]*{_quote}"
)  # elsewhere it is what is spoken of
QUOTE = re.compile(
    rf"[\[［]{_before[2:]}(?!\s*\d{{1,3}}[\]］])(?:[\s:：][^\[\]［］\n]{{0,200}})?[\]］]"
    r"(?!\s*(?:参?见|[来出引摘]自|来源|《|https?:))[^\S\n]*"  # there it is a source
)

_part = re.escape(notes.PART).replace(r"\{number\}", r"\d+")
_fates = "|".join(
    (re.escape(notes.REFUSED).replace(r"\{reason\}", r"[^\n]*?"), notes.UNCONFIRMED, notes.QUEUED)
)
FATE = rf"(?:{_part})?(?:{_fates})"
ALL_SAID = re.compile(
    re.escape(notes.ALL_SAID[1:-1]).replace(r"\ ", r"\s*").join((OPEN + r"\s*", r"\s*" + CLOSE))
)
TRAILING_NOTE = re.compile(rf"\n?{OPEN}(?P<words>{FATE}){CLOSE}\s*$")
NOTE_LINE = re.compile(
    rf"\s*(?:{OPEN}{FATE}{CLOSE}|你上面的回答{FATE}|{notes.UNANSWERED}|{notes.BROKEN_OFF}"
    rf"|{SENT}\s*\(message_id:[^\n)]*\))\s*"
)
BRACKETS = ("(", "（", "[", "［", "【")
PLAIN = ("你上面的回答", notes.UNANSWERED, notes.BROKEN_OFF, SENT)
_inside = (
    notes.ALL_SAID,
    *notes.LEGACY,
    NOTED,
    notes.PART,
    notes.REFUSED,
    notes.UNCONFIRMED,
    notes.QUEUED,
)
SUSPECT = re.compile(
    rf"[(（\[［【]\s*(?:\d{{1,20}}\s?{CLOSE}|{HEADINGS}|{_before[2:]}|"
    + "|".join(re.escape(one.lstrip("(")[:2]) for one in _inside) + ")"
)  # fmt: skip
"""One of these is in every frame of ours, but for our own name in front."""
NARROW = str.maketrans("（）", "()")
STAND_INS = frozenset({*notes.LEGACY, notes.ALL_SAID, NOTED})


@dataclass(frozen=True)
class People:
    """Who is in a prompt: names, folded, and QQ numbers."""

    messages: tuple[Message, ...] = ()

    @classmethod
    def of(cls, messages: Iterable[Message]) -> People:
        """Those whose lines, mentions or quotations stand in it; they are looked for when somebody
        asks.
        """
        return cls(tuple(messages))

    @cached_property
    def names(self) -> frozenset[str]:
        """What they are called."""
        return frozenset(_key(name) for name, _ in self._found)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Their accounts."""
        return frozenset(number for _, number in self._found)

    @cached_property
    def _found(self) -> set[tuple[str, str]]:
        return {
            pair
            for one in self.messages
            if isinstance(one, UserMessage)
            for pair in SAID_BY.findall(one.text)
        }


@dataclass(frozen=True, slots=True)
class Frames:
    """Cuts the frame out of the bot's own words. `names` are those it goes by, `number` is its
    account.
    """

    names: tuple[str, ...] = ()
    number: int = 0
    people: People = field(default_factory=People)
    question: str = ""

    def cut(self, text: str) -> str:
        """The text without what is the frame's; the very same text where nothing of it is."""
        if self._is_clean(text):
            return text  # as nearly all are
        text = self._tally(text) or text
        for _ in range(MOST_FRAMES):
            shorter = self._cut(text)
            if shorter == text:
                return text
            text = shorter
        return ""  # frames and nothing else: a model that goes round

    def tidy(self, message: AssistantMessage) -> AssistantMessage:
        """What the model said, as it may be sent and kept: its words, and those it gives to
        `send_message`.
        """
        text = self.cut(message.text)
        if not message.tool_calls and is_echo(text, self.question):
            text = ""
        calls = tuple(map(self._tidy_call, message.tool_calls))
        if text == message.text and calls == message.tool_calls:
            return message
        return replace(message, text=text, tool_calls=calls)

    # --- the text -------------------------------------------------------------------------------------

    def _is_clean(self, text: str) -> bool:
        """Whether no frame can be in it."""
        if any(map(text.__contains__, BRACKETS)) and SUSPECT.search(text):
            return False
        return not any(map(text.__contains__, PLAIN)) and not _label_of(self.names).match(
            text.lstrip()
        )

    def _tally(self, text: str) -> str:
        """What several members say, a line for each and nothing else, without their numbers; empty
        for all else.
        """
        lines = [line for line in text.splitlines() if line.strip() and not STAGE.match(line)]
        if len(lines) < 2 or not all(map(self._is_others, lines)):
            return ""
        speakers = {match["number"] for line in lines if (match := LINE.match(line))}
        if len(speakers) < len(lines) or any(name and name in text for name in self.names):
            return ""  # they talk with each other, or with us
        return "\n".join(_without_number(line) for line in text.splitlines())

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
        if match := PICTURES.match(begin) or OUR_QUOTE.match(begin):
            return begin[match.end() :].lstrip()
        if (match := HEADING.match(begin)) and (
            match["number"] or not _is_form(begin[match.end() :], HEADING)
        ):
            return begin[match.end() :].lstrip()
        if (match := QUOTE.match(begin)) and not _is_form(begin[match.end() :], QUOTE):
            return begin[match.end() :].lstrip()
        if (match := LINE.match(begin)) and self._is_own(match):
            return begin[match.end() :].lstrip()
        return self._without_label(begin) or text

    def _without_label(self, text: str) -> str:
        """Without our name before its lines; empty where it has none, is a dialogue, or the name is
        a key of a list.
        """
        own = _label_of(self.names)
        match = own.match(text)
        if match is None or re.match(r"\n(?:[ \t]|[-*•·])", text[match.end() :]):
            return ""
        lines = [line for line in text.splitlines() if line.strip() and not STAGE.match(line)]
        labels = [own.match(line) is not None for line in lines if LABELLED.match(line)]
        if not all(labels) and (len(labels) == len(lines) or sum(labels) > 1):
            return ""
        has_code = any(map(FENCE.match, lines))
        return own.sub("", text, count=1 if has_code else 0).lstrip()

    def _lines(self, text: str) -> Iterator[str | None]:
        """The lines that are ours; None where others' begin. What a colon announces is a quotation,
        line for line.
        """
        in_code, quoting, spoken, lines = False, False, False, text.split("\n")
        for place, line in enumerate(lines):
            if in_code or FENCE.match(line):
                in_code ^= FENCE.match(line) is not None
                yield line
                continue
            if ((others := self._is_others(line)) and not quoting) or self._goes_on(lines, place):
                yield None
                return
            if line.strip():
                goes_on = spoken and any(form.match(line) for form in (LABELLED, STAGE))
                ours = self._is_ours(line) or _label_of(self.names).match(line) is not None
                begins = (
                    quoting and ours and any(map(self._is_others, lines[place + 1 : place + 2]))
                )
                spoken = others or goes_on or begins
                quoting = spoken or ANNOUNCED.search(line) is not None
            if spoken and self._is_ours(line):
                yield _without_number(line)
            elif not NOTE_LINE.fullmatch(line):
                yield self._without_asides(line)

    def _without_asides(self, line: str) -> str:
        if match := LINE.match(line):
            if self._is_own(match):
                line = line[match.end() :]
            elif match["at"] and not self._is_others(line) and self._is_known(match):
                line = f"@{match['name']} {line[match.end() :]}"  # no speaker of ours: whom it is said to
        if "`" in line:
            return line
        return ALL_SAID.sub("", QUOTE_INSIDE.sub(r"\1", line))

    def _is_ours(self, line: str) -> bool:
        match = LINE.match(line)
        return match is not None and self._is_own(match)

    def _is_others(self, line: str) -> bool:
        """Whether it is a line in another's name; one with an @ is only where that is part of the
        name.
        """
        match = LINE.match(line)
        if match is None or self._is_own(match):
            return False
        return (
            _key(f"@{match['name']}") in self.people.names if match["at"] else self._is_known(match)
        )

    def _is_known(self, match: re.Match[str]) -> bool:
        return _is_one_of(match, self.people.names, self.people.numbers)

    def _goes_on(self, lines: list[str], place: int) -> bool:
        """Whether a heading of ours begins the next turn, or a note, which the model made up."""
        match = HEADING.match(lines[place])
        if match is None or not place:
            return False
        return bool(match["number"]) or any(
            LINE.match(line) or NOTE_LINE.fullmatch(line) for line in lines[place + 1 : place + 2]
        )

    def _is_own(self, match: re.Match[str]) -> bool:
        own = frozenset(map(_key, filter(str.strip, self.names)))
        mine = match["number"] == str(
            self.number
        )  # also where somebody wrote our name and number into a prompt
        return _is_one_of(match, own, {str(self.number)}) and (
            mine or match["number"] not in self.people.numbers
        )

    # --- what is given to the tool --------------------------------------------------------------------

    def _tidy_call(self, call: ToolCall) -> ToolCall:
        if call.name != SEND or self._is_clean_json(call.arguments):
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
        """The parts with their texts cut; they may be a list, one, or JSON of either
        (`tools/send_message.py`).
        """
        match parts:
            case str():
                try:
                    inner = json.loads(parts)
                except (ValueError, RecursionError):
                    return parts
                tidied = self._tidy_parts(inner)
                return parts if tidied == inner else json.dumps(tidied, ensure_ascii=False)
            case list():
                return [
                    self._tidy_parts(part) if isinstance(part, dict) else part for part in parts
                ]
            case {"text": str(text), **rest}:
                return {"text": self.cut(text), **rest}
            case _:
                return parts

    def _is_clean_json(self, text: str) -> bool:
        """Whether no frame can be in its strings."""
        folded = text.casefold()
        named = any(name.casefold() in folded for name in self.names)
        return not named and "\\u" not in text and self._is_clean(text)

    # --- rounds of older versions ---------------------------------------------------------------------

    def told_in(self, where: Conversation, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """A stored round as the model is told of it: what older versions noted in its answers is a
        note behind them.

        A round of today is the very same object.
        """
        if all(map(self._is_as_told, messages)):
            return messages
        frames = dataclasses.replace(self, number=where.platform_id, people=People.of(messages))
        told = tuple(one for message in messages for one in tell(frames, message))
        if told == messages:
            return messages
        if any(not isinstance(message, UserMessage) for message in told):
            return told
        return (*told[:1], AssistantMessage(NOTED), *(told[1:] or (notes.note(notes.UNANSWERED),)))

    def _is_as_told(self, message: Message) -> bool:
        """Whether a message of a stored round certainly is told as it is."""
        if not isinstance(message, AssistantMessage) or message.text == NOTED:
            return True
        if not (message.text.strip() or message.tool_calls) or not self._is_clean(message.text):
            return False
        return all(
            call.name != SEND or self._is_clean_json(call.arguments) for call in message.tool_calls
        )


@lru_cache(maxsize=64)
def _label_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """One of the names with a colon, at the beginning of a line. An alias of one letter is a word
    of the language.
    """
    own = {
        name for place, name in enumerate(names) if name.strip() and (not place or len(name) > 1)
    }
    any_of = "|".join(re.escape(name) for name in sorted(own, key=len, reverse=True)) or "(?!)"
    return re.compile(
        rf"^[^\S\n]*{MARK}(?:{any_of}){MARK}\s?{COLON}{MARK}(?!//)[^\S\n]*",
        re.IGNORECASE | re.MULTILINE,
    )


def _is_form(rest: str, label: re.Pattern[str]) -> bool:
    """Whether what looks like ours is one label of several: `[提问] … [回答] …`."""
    return any(LABEL.match(line) and not label.match(line) for line in rest.splitlines())


def _without_number(line: str) -> str:
    match = LINE.match(line)
    return f"{match['name']}: {line[match.end() :]}" if match else line


def _is_one_of(match: re.Match[str], names: Collection[str], numbers: Collection[str]) -> bool:
    """Whether the line begins as ours do for one of these: under the name, or under the number and
    whatever name.

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
    return (name.strip("*_` ") or "?").casefold()


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
