"""The words of the prompt: all that a model reads from us and that is no tool's.

They are an interface, in one file for each language: `wording_zh.py`, `wording_en.py`. Signs stand
in both alike: a speaker is `name#2`, a heading is in square brackets, a quotation in 「」.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frostagent.words import Words


@dataclass(frozen=True, slots=True, eq=False)
class SegmentWords:
    """Names for what is no text, as they stand in brackets."""

    face: str
    sticker: str
    picture: str
    animated: str
    voice: str
    video: str
    file: str
    forward: str
    card: str
    keys: str
    dice: str
    rps: str
    poke: str
    person: str
    group: str
    place: str
    music: str
    share: str


@dataclass(frozen=True, slots=True, eq=False)
class NoteWords:
    """Notes on what became of the bot's words; `refused` takes a reason, `part` and `drafted` a
    number.
    """

    unanswered: str
    stopped: str
    silent: str
    broken_off: str
    answer: str
    part: str
    refused: str
    unconfirmed: str
    queued: str
    drafted: str


@dataclass(frozen=True, slots=True, eq=False)
class SummaryWords:
    """The request for a summary, and its parts; `omitted` takes a number, `brought` the names of
    tools. `request` stands behind the conversation itself.
    """

    instructions: str
    request: str
    before: str
    conversation: str
    bot: str
    omitted: str
    brought: str


@dataclass(frozen=True, slots=True, eq=False)
class Wording:
    """One language's words. `rules` takes the name of the bot and the headings.

    `quoted` takes who and words, `more` a number. `places` are those of pictures: question, quoted,
    forwarded; `lacks` say why something cannot be had. `here` takes the name of a group. `examples`
    are questions as a model reads them, and answers to these: for one that said the frame back.
    """

    language: str
    rules: str
    own: str
    earlier: str
    record: str
    forwarded: str
    question: str
    added: str
    pictures: str
    now: str
    recalled: str
    notes: str
    more: str
    nothing: str
    everybody: str
    quoted: str
    elsewhere: str
    unreadable: str
    weekdays: tuple[str, ...]
    places: Mapping[str, str]
    described: str
    lacks: Mapping[str, str]
    blind: str
    here: str
    private: str
    comma: str
    roles: Mapping[str, str]
    segments: SegmentWords
    about: NoteWords
    summary: SummaryWords
    examples: tuple[tuple[str, str], ...]
    engine: tuple[Words, Words]

    def heading(self, word: str, moment: str = "") -> str:
        """A heading of the frame: `[提问 14:10]`."""
        return f"[{word} {moment}]" if moment else f"[{word}]"
