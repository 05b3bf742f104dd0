"""Removes the prompt's frame from answers, before they are sent and before they are stored. Pure.

A small model that reads `name#number: text` a hundred times writes such lines itself, and a stored
one makes it continue for ever. Only what `render` and `compose` write, by their own constants, is
removed: the bot's name at the start, a heading, a quotation, a note on delivery. A line in another
member's name and number is removed with all that follows, unless the answer consists of such lines
of several members, or announces them, as a summary of votes does. Numbers and names count only if
they belong to people in the prompt. Code blocks are never touched: dialogues, price lists and
tables are legitimate.

Headings of other bots are removed in the same way (`bot/prompt/speaker_headings.py`).

Nearly all answers contain no mark of the frame; checking for that first takes a microsecond.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from msgspec import Struct, field

from bot.prompt import frame_patterns
from bot.prompt.participants import Participants, name_key
from bot.prompt.speaker_headings import (
    SpeakerHeading,
    Sure,
    heading_of,
    may_have_heading,
    speakers_in_json,
)
from frostagent.text.visible_text import visible_text

MOST_FRAMES = 12  # nested frames before the first word of an answer
MOST_IN_A_ROW = MOST_FRAMES**2
LONGEST_STAND_IN = max(map(len, frame_patterns.STAND_INS))

REMEMBERED = 4_000  # characters of a text whose check is cached


class FrameRemover(Struct, frozen=True):
    """Removes the frame from the bot's text. `names` are its names, `number` is its account."""

    names: tuple[str, ...] = ()
    number: int = 0
    people: Participants = field(default_factory=Participants)

    def cut(self, text: str) -> str:
        """Return the text without the frame, or the same object if it has none.

        Invisible characters do not hide a frame.
        """
        seen = visible_text(text)
        if self.is_clean(seen):
            return text  # the usual case
        left = self._without_frames(seen)
        if left == seen:
            return text
        kept = self._without_frames(text)  # keeps joiners unless they hide a frame
        return kept if visible_text(kept) == left else left

    def _without_frames(self, text: str) -> str:
        text = self._tally(text) or text
        for _ in range(MOST_FRAMES):
            shorter = self._cut(self._without_json(text))
            if shorter == text:
                return text
            text = shorter
        return ""  # nothing but frames: the model is in a loop

    def is_clean(self, text: str) -> bool:
        """Whether the text certainly holds no frame."""
        look = _is_clean if len(text) <= REMEMBERED else _is_clean.__wrapped__
        return look(text, self.names)

    def may_be_anothers(self, text: str) -> bool:
        """Whether one line, or the whole text, is in another person's name in a form that an answer
        may also have: `[10:00] Tom: ...`, `Tom(345678901): ...`, JSON of name and text. Several
        such lines are a list.
        """
        if not may_have_heading(text):
            return False
        if len(speakers_in_json(text)) == 1:
            return True  # certain cases were cut before
        lines = [line for line in text.splitlines() if line.strip()]
        if any(map(frame_patterns.FENCE.match, lines)) or self._is_dialogue(lines):
            return False
        found = [place for place, line in enumerate(lines) if self._may_be_anothers(line)]
        return len(found) == 1 and not any(
            frame_patterns.ANNOUNCED.search(line) for line in lines[max(0, found[0] - 1) : found[0]]
        )

    def _may_be_anothers(self, line: str) -> bool:
        found = self._heading_of(line)
        if found is None or self._names_us(found):
            return False
        match found.sure:
            case Sure.CERTAIN:
                return False  # cut before
            case Sure.DOUBTFUL | Sure.KNOWN:
                return not self._is_anybodys(found)
            case Sure.NAMED:
                return self._is_anybodys(found)  # `[Tom]: 3 votes` alone is not cut

    def _tally(self, text: str) -> str:
        """Return the lines without numbers if the text consists of one line each of several
        members, else an empty string.
        """
        lines = [
            line
            for line in text.splitlines()
            if line.strip() and not frame_patterns.STAGE.match(line)
        ]
        if len(lines) < 2 or not all(map(self._is_certainly_others, lines)):
            return ""
        speakers = set(map(_speaker_of, lines))
        if len(speakers) < len(lines) or any(name and name in text for name in self.names):
            return ""  # a conversation among them, or with the bot
        return "\n".join(_without_number(line) for line in text.splitlines())

    def _cut(self, text: str) -> str:
        words = text.strip()
        if (
            len(words) <= LONGEST_STAND_IN
            and words.translate(frame_patterns.NARROW) in frame_patterns.STAND_INS
        ):
            return ""
        begun = text
        for _ in range(MOST_IN_A_ROW):  # only at the start: `[heading] name#2: words`
            begun, before = self._without_beginning(begun), begun
            if begun == before:
                break
        else:
            return ""
        kept, whole = [], True
        for line in self._lines(begun):
            if line is None:
                whole = False
                break
            kept.append(line)
        if not whole and all(self._is_said_back(line) for line in kept if line.strip()):
            return ""  # a copied log whose first lines lack the numbers
        cut = "\n".join(kept)
        if cut == text:
            return text
        return cut.strip() if whole else cut.rstrip()

    def _without_beginning(self, text: str) -> str:
        """Remove the frame before the first word of an answer."""
        begin = text.lstrip()
        first = begin[: LONGEST_STAND_IN + 1].translate(frame_patterns.NARROW)
        for stand_in in frame_patterns.STAND_INS:
            if first.startswith(f"{stand_in}\n"):
                return begin[len(stand_in) :].lstrip()
        if match := frame_patterns.BESIDE.match(begin) or frame_patterns.OUR_QUOTE.match(begin):
            return begin[match.end() :].lstrip()
        if (match := frame_patterns.HEADING.match(begin)) and (
            match["number"]
            or match["moment"]
            or not _is_form(begin[match.end() :], frame_patterns.HEADING)
        ):
            return begin[match.end() :].lstrip()
        if (match := frame_patterns.QUOTE.match(begin)) and not _is_form(
            begin[match.end() :], frame_patterns.QUOTE
        ):
            return begin[match.end() :].lstrip()
        if (match := frame_patterns.LINE.match(begin)) and self._is_own(match):
            return begin[match.end() :].lstrip()
        if (found := self._heading_of(begin.partition("\n")[0])) and self._is_ours_in_front(
            found, begin
        ):
            return found.words_of(begin).lstrip()
        return self._without_label(begin) or text

    def _is_ours_in_front(self, found: SpeakerHeading, text: str) -> bool:
        """Whether this heading is the bot's own: it has the bot's name, or the name of no one in
        the prompt, which the model takes for its own.
        """
        if found.sure is Sure.CERTAIN:
            return self._names_us(found) or not self._is_anybodys(found)
        return self._names_us(found) and not self._is_dialogue(text.split("\n"))

    def _without_json(self, text: str) -> str:
        """Return the text in an answer that is JSON of speaker and text."""
        own: list[str] = []
        spoken = speakers_in_json(text)
        for name, number, words, certain in spoken:
            if (not name and not number) or self._is_us(name, number):
                own.append(words)
            elif own:
                break  # another person's lines begin
            elif self._is_known_name(name):
                return "" if certain or self.people.has_said(name, words) else text
            elif certain and len(spoken) == 1:
                own.append(words)
            else:
                return text  # several unknown speakers: data
        return "\n".join(own) or text

    def _without_label(self, text: str) -> str:
        """Remove the bot's name before lines. Empty if there is none, if it is a dialogue, or if
        the name is a key of a list.
        """
        own = _label_of(self.names)
        match = own.match(text)
        if match is None or re.match(r"\n(?:[ \t]|[-*•·])", text[match.end() :]):
            return ""
        lines = [
            line
            for line in text.splitlines()
            if line.strip() and not frame_patterns.STAGE.match(line)
        ]
        labels = [
            own.match(line) is not None for line in lines if frame_patterns.LABELLED.match(line)
        ]
        if not all(labels) and (len(labels) == len(lines) or sum(labels) > 1):
            return ""
        has_code = any(map(frame_patterns.FENCE.match, lines))
        return own.sub("", text, count=1 if has_code else 0).lstrip()

    def _lines(self, text: str) -> Iterator[str | None]:
        """Yield the bot's own lines, then None where another person's lines begin. Lines announced
        by a colon are a quotation and stay.
        """
        in_code, quoting, spoken, lines = False, False, False, text.split("\n")
        talks, begun = self._is_dialogue(lines), False
        for place, line in enumerate(lines):
            if in_code or frame_patterns.FENCE.match(line):
                in_code ^= frame_patterns.FENCE.match(line) is not None
                yield line
                continue
            others = self._is_others(line) or (
                not talks and self._is_foreign(line, first=not begun)
            )
            begun = begun or bool(line.strip())
            if (others and not quoting) or self._goes_on(lines, place):
                yield None
                return
            if line.strip():
                goes_on = spoken and any(
                    form.match(line) for form in (frame_patterns.LABELLED, frame_patterns.STAGE)
                )
                ours = self._is_ours(line) or _label_of(self.names).match(line) is not None
                begins = (
                    quoting and ours and any(map(self._is_others, lines[place + 1 : place + 2]))
                )
                spoken = others or goes_on or begins
                quoting = spoken or frame_patterns.ANNOUNCED.search(line) is not None
            if spoken and self._is_ours(line):
                yield _without_number(line)
            elif not (
                frame_patterns.NOTE_LINE.fullmatch(line) or frame_patterns.BESIDE.fullmatch(line)
            ):
                yield self._without_asides(line if talks else self._without_heading(line))

    def _without_asides(self, line: str) -> str:
        if match := frame_patterns.LINE.match(line):
            if self._is_own(match):
                line = line[match.end() :]
            elif match["at"] and not self._is_others(line) and self._is_known(match):
                # an addressee, not a speaker
                line = f"@{match['name']} {line[match.end() :]}"
        if "`" in line:
            return line
        line = self.people.without_numbers(line)
        return frame_patterns.ALL_SAID.sub("", frame_patterns.QUOTE_INSIDE.sub(r"\1", line))

    def _without_heading(self, line: str) -> str:
        """Remove another bot's kind of heading; if it does not name the bot, the name stays."""
        found = self._heading_of(line)
        if found is None or not (found.sure is Sure.CERTAIN or self._names_us(found)):
            return line
        words = found.words_of(line)
        return words if self._names_us(found) else f"{found.name}: {words}"

    def _is_foreign(self, line: str, *, first: bool = False) -> bool:
        """Whether the line is in another person's name, in another bot's form. As the `first` line
        of an answer, a bare name may be the topic instead.
        """
        found = self._heading_of(line)
        if found is None or self._names_us(found) or (first and found.sure is Sure.NAMED):
            return False
        return found.sure is Sure.CERTAIN or self._is_anybodys(found)

    def _is_certainly_others(self, line: str) -> bool:
        found = self._heading_of(line)
        is_certain = found is not None and found.sure is Sure.CERTAIN and self._is_foreign(line)
        return self._is_others(line) or is_certain

    def _is_dialogue(self, lines: list[str]) -> bool:
        """Whether every line has a speaker, as in a dialogue, and is not copied from the log."""
        speakers = set[str]()
        for line in lines:
            if not line.strip() or frame_patterns.STAGE.match(line):
                continue
            found = self._heading_of(line)
            if found is None or found.sure is Sure.CERTAIN:
                return False
            if self.people.has_said(found.name, line[found.end :]):
                return False
            speakers.add(found.name)
        return len(speakers) > 1

    def _heading_of(self, line: str) -> SpeakerHeading | None:
        """Return the heading of a line, its certainty resolved by the people in the prompt."""
        found = heading_of(line)
        if found is None or found.sure is not Sure.KNOWN:
            return found
        return found._replace(sure=Sure.CERTAIN if self._is_anybodys(found) else Sure.DOUBTFUL)

    def _names_us(self, found: SpeakerHeading) -> bool:
        return self._is_us(found.name, found.number)

    def _is_us(self, name: str, number: str) -> bool:
        own = map(name_key, filter(str.strip, self.names))
        return (bool(name) and name_key(name) in own) or (
            number == str(self.number) and number not in self.people.numbers
        )

    def _is_anybodys(self, found: SpeakerHeading) -> bool:
        """Whether it names the bot or a person in the prompt."""
        return (
            self._names_us(found)
            or self._is_known_name(found.name)
            or found.number in self.people.numbers
        )

    def _is_known_name(self, name: str) -> bool:
        return bool(name) and name_key(name) in self.people.names

    def _is_ours(self, line: str) -> bool:
        match = frame_patterns.LINE.match(line)
        return match is not None and self._is_own(match)

    def _is_others(self, line: str) -> bool:
        """Whether the line is in another person's name; with an @ only if that is in the name."""
        match = frame_patterns.LINE.match(line)
        if match is None or self._is_own(match):
            return False
        return (
            name_key(f"@{match['name']}") in self.people.names
            if match["at"]
            else self._is_known(match)
        )

    def _is_said_back(self, line: str) -> bool:
        """Whether the member named before the line said exactly this."""
        match = frame_patterns.LABELLED.match(line)
        return match is not None and self.people.has_said(match["name"], line[match.end() :])

    def _is_known(self, match: re.Match[str]) -> bool:
        if match["sign"] in frame_patterns.SIGNS:
            name = name_key(match["name"])
            return name in self.people.names or is_short_name(
                name, self.people.called(match["number"])
            )
        return _is_one_of(match, self.people.names, self.people.numbers)

    def _goes_on(self, lines: list[str], place: int) -> bool:
        """Whether a heading of ours begins an invented next turn or note."""
        match = frame_patterns.HEADING.match(lines[place])
        if match is None or not place:
            return False
        return bool(match["number"] or match["moment"]) or any(
            frame_patterns.LINE.match(line) or frame_patterns.NOTE_LINE.fullmatch(line)
            for line in lines[place + 1 : place + 2]
        )

    def _is_own(self, match: re.Match[str]) -> bool:
        own = frozenset(map(name_key, filter(str.strip, self.names)))
        if match["sign"] in frame_patterns.SIGNS:
            name = name_key(match["name"])
            return name in own and name not in self.people.called(match["number"])
        # also if someone wrote the bot's name and number into a prompt
        mine = match["number"] == str(self.number)
        return _is_one_of(match, own, {str(self.number)}) and (
            mine or match["number"] not in self.people.numbers
        )


def is_short_name(name: str, names: Collection[str]) -> bool:
    """Whether it may be a short form of a name, as 澈澈 of 阿澈. ASCII letters do not count."""
    return any(char in known for known in names for char in name if not char.isascii())


@lru_cache(maxsize=512)  # called before sending and before storing, maybe hundreds of texts apart
def _is_clean(text: str, names: tuple[str, ...]) -> bool:
    if any(map(text.__contains__, frame_patterns.BRACKETS)) and frame_patterns.SUSPECT.search(text):
        return False
    if may_have_heading(text):
        return False
    return not any(map(text.__contains__, frame_patterns.PLAIN)) and not _label_of(names).match(
        text.lstrip()
    )


@lru_cache(maxsize=64)
def _label_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Match a name with a colon at the start of a line. One-letter aliases are ordinary words."""
    own = {
        name for place, name in enumerate(names) if name.strip() and (not place or len(name) > 1)
    }
    any_of = "|".join(re.escape(name) for name in sorted(own, key=len, reverse=True)) or "(?!)"
    return re.compile(
        rf"^[^\S\n]*{frame_patterns.MARK}(?:{any_of}){frame_patterns.MARK}\s?{frame_patterns.COLON}{frame_patterns.MARK}(?!//)[^\S\n]*",
        re.IGNORECASE | re.MULTILINE,
    )


def _is_form(rest: str, label: re.Pattern[str]) -> bool:
    """Whether the apparent heading is one label of several, as in `[提问] … [回答] …`."""
    lines = dict.fromkeys(rest.splitlines())  # a model in a loop repeats lines
    return any(frame_patterns.LABEL.match(line) and not label.match(line) for line in lines)


def _speaker_of(line: str) -> str:
    """The line's speaker: the number, or else the name."""
    if match := frame_patterns.LINE.match(line):
        return match["number"]
    found = heading_of(line)
    return (found.number or name_key(found.name)) if found else ""


def _without_number(line: str) -> str:
    if match := frame_patterns.LINE.match(line):
        return f"{match['name']}: {line[match.end() :]}"
    found = heading_of(line)
    if found is None or found.sure not in {Sure.CERTAIN, Sure.KNOWN}:
        return line
    return f"{found.name}: {found.words_of(line)}"


def _is_one_of(match: re.Match[str], names: Collection[str], numbers: Collection[str]) -> bool:
    """Whether the line begins with one of these names, or with one of these numbers and any name.

    A sentence that ends in a name does not count: "he said Tom(2002): ...".
    """
    name = name_key(match["name"])
    if name in names:
        return True
    if match["number"] not in numbers:
        return False
    is_name = re.fullmatch(r"[\w·]+|[\W_]+", name) is not None
    return is_name and not name.endswith(tuple(names))
