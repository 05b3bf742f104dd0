"""The text of prompts, apart from that of tools.

It is an interface, with one file per language: `wording_zh.py`, `wording_en.py`. Both use the same
marks: a speaker is `name#2`, a heading is in square brackets, a quotation in 「」.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frostagent.words import Words


@dataclass(frozen=True, slots=True, eq=False)
class SegmentWords:
    """Names of non-text segments, shown in brackets."""

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
    """Notes on deliveries; `refused` takes a reason, `part` and `drafted` take a number."""

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
    """The request for a summary, and its parts. `omitted` takes a number, `brought` the names of
    tools. `request` follows the conversation itself.
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
    """The text of one language. `rules` takes the bot's name and the headings.

    `about_links` begins with the heading `links`. `quoted` takes who and words, `more` a number.
    `places` are those of images: question, quoted, forwarded; `lacks` are the reasons why something
    is missing. `here` takes the name of a group. `examples` are rendered questions with their
    answers, for a model that repeated the frame.
    """

    language: str
    rules: str
    own: str
    relayed: str  # the bot, passing on words of others
    earlier: str
    record: str
    forwarded: str
    question: str
    added: str
    pictures: str
    now: str
    recalled: str
    notes: str
    links: str
    about_links: str
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
        return f"[{word} {moment}]" if moment else f"[{word}]"
