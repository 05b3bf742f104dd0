"""Chooses the demo model's answer, text or tool calls, from a transcript and the offered tools.
Pure and deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import assert_never

from adapters.offline import phrases
from adapters.offline.errands import do_errand
from adapters.offline.intents import (
    Code,
    GameVersion,
    Greeting,
    Help,
    Opening,
    Other,
    Recap,
    Reminder,
    SayNothing,
    SendIntent,
    Table,
    Tale,
    Thanks,
    WeatherIntent,
    asks_what_it_says,
    find_link,
    find_search,
    recognise,
    wants_feed,
    wants_summaries,
)
from adapters.offline.phrases import Phrase
from adapters.offline.question import (
    DemoQuestion,
    Json,
    Language,
    Result,
    read_question,
    read_results,
    read_text,
)
from adapters.offline.reminders import Reminding, read_reminding

DEMO_PICTURE = "demo.png"
READ = 3  # pages read after a search
PASSAGE = 120  # characters of a page that are quoted
TEXT = re.compile(r"\n *text:\n")
RESULT = re.compile(r"^url: (\S+)$", re.MULTILINE)
LINE = re.compile(r"^text: (.+)$", re.MULTILINE)
ASIDE = re.compile(r"\s*(?:#|…|\[page|[A-Z][a-z]+: )")  # a heading, a gap, a fact


@dataclass(frozen=True, slots=True)
class DemoCall:
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Thought:
    """An answer of the model: text or calls."""

    text: str = ""
    calls: tuple[DemoCall, ...] = ()


def think(messages: Sequence[Json], tools: Collection[str]) -> Thought:
    """Answer a transcript in the wire's form, with the tools of these names at hand."""
    if not tools and (words := do_errand(messages)):
        return Thought(words)
    question = read_question(messages)
    mind = _Mind(question, read_results(messages), frozenset(tools))
    if not tools and not mind.results and (words := _as_coder(question, messages)):
        return Thought(words)
    return mind.answer()


def _as_coder(question: DemoQuestion, messages: Sequence[Json]) -> str:
    """The answer to a request for code without tools; empty for other requests.

    A system prompt that mentions Coder makes any unknown question a task.
    """
    intent = recognise(question.text)
    system = "".join(read_text(message) for message in messages if message.get("role") == "system")
    is_coder = "coder" in system.casefold() and isinstance(intent, Other)
    if not (isinstance(intent, Code) or is_coder):
        return ""
    code = phrases.find_sample(question.text)
    if code is None:
        return phrases.UNKNOWN_TASK.say(question.language)
    note = (
        phrases.ONLY_PYTHON.say(question.language)
        if phrases.asks_other_language(question.text)
        else ""
    )
    return note + phrases.SAMPLE.say(question.language, code=code)


def _passage(page: str) -> str:
    """The first prose in a result of `read_page`, or of a document in one of `look`."""
    lines = TEXT.split(page, 1)[-1].splitlines()
    prose = [line.strip() for line in lines if not ASIDE.match(line)]
    return next((line for line in prose if len(line) > 12), "".join(prose[:1]))[:PASSAGE]


@dataclass(frozen=True, slots=True)
class _Mind:
    """One question and everything known about it; each method returns the next answer."""

    question: DemoQuestion
    results: list[Result]
    tools: frozenset[str]

    @property
    def language(self) -> Language:
        return self.question.language

    def answer(self) -> Thought:
        url = find_link(self.question.text)
        if not url and self.question.link and asks_what_it_says(self.question.text):
            url = self.question.link
        if url:
            if "subscribe" in self.tools and wants_feed(self.question.text):
                return self.subscribe(url)
            if "read_page" in self.tools:
                return self.read(url)
        if "search_web" in self.tools and (words := find_search(self.question.text)):
            return self.search(words)
        match recognise(self.question.text):
            case WeatherIntent(()):
                return self.say(phrases.WHICH_CITY)
            case WeatherIntent(cities):
                calls = tuple(DemoCall("get_weather", {"city": city}) for city in cities)
                return self.look_up(calls, phrases.THE_WEATHER)
            case GameVersion(""):
                return self.say(phrases.WHICH_GAME)
            case GameVersion(game):
                return self.look_up(
                    (DemoCall("get_game_version", {"game": game}),), phrases.THE_VERSION
                )
            case Code(task):
                return self.ask_coder(task)
            case SendIntent(picture):
                return self.send(picture=picture)
            case Reminder():
                return self.remind(read_reminding(self.question.text, self.question.today))
            case Recap():
                return self.pass_on(DemoCall("chat_log", {}), phrases.SAID_BEFORE)
            case Opening() | Other() if self.question.pictures:
                return self.see()
            case Greeting() if self.question.pictures and not self.question.text:
                return self.see()
            case Opening() if self.question.handle:
                return self.look(self.question.handle)
            case SayNothing():
                return self.call(DemoCall("stay_silent", {}))
            case Tale():
                return self.say(phrases.STORY)
            case Table():
                return self.say(phrases.TABLE)
            case Greeting():
                return self.introduce(phrases.GREETING)
            case Help():
                return self.introduce(phrases.HELP)
            case Thanks():
                return self.say(phrases.THANKS)
            case Opening() | Other():
                return self.introduce(phrases.OTHER)
            case unknown:
                assert_never(unknown)

    def say(self, phrase: Phrase, **fields: str) -> Thought:
        return Thought(phrase.say(self.language, **fields))

    def see(self) -> Thought:
        """State the sizes of the images, which is all that the demo sees of them."""
        pictures = self.question.pictures
        phrase = phrases.SEES_ONE if len(pictures) == 1 else phrases.SEES_SEVERAL
        known = [f"{width} × {height}" for width, height in pictures if width]
        sizes = phrases.SIZES.say(self.language, sizes=", ".join(known)) if known else ""
        return self.say(phrase, count=str(len(pictures)), sizes=sizes)

    def introduce(self, phrase: Phrase) -> Thought:
        return self.say(phrase, skills=phrases.SKILLS.say(self.language))

    def results_of(self, name: str) -> list[Result]:
        return [result for result in self.results if result.name == name]

    def call(self, *calls: DemoCall) -> Thought:
        """Make these calls of one tool, or say that it was not offered."""
        if calls[0].name not in self.tools:
            return self.say(phrases.NOT_OFFERED, tool=calls[0].name)
        return Thought(calls=calls)

    def look_up(self, calls: tuple[DemoCall, ...], what: Phrase) -> Thought:
        """Make all calls at once, then report their results, one a line."""
        results = self.results_of(calls[0].name)
        if not results:
            return self.call(*calls)
        found = "\n".join(result.text for result in results if not result.failed)
        lines = [phrases.FOUND.say(self.language, text=found)] if found else []
        return Thought(
            "\n".join([*lines, *(self.regret(result, what) for result in results if result.failed)])
        )

    def pass_on(self, call: DemoCall, phrase: Phrase) -> Thought:
        """Call one tool, then report its result."""
        if results := self.results_of(call.name):
            return self.conclude(results[-1], phrase, phrases.NOT_OPENED)
        return self.call(call)

    def look(self, handle: str) -> Thought:
        """Open an attachment, then quote it; of a document only the beginning."""
        results = self.results_of("look")
        if not results or results[-1].failed:
            return self.pass_on(DemoCall("look", {"id": handle}), phrases.SEEN)
        text = results[-1].text
        return self.say(phrases.SEEN, text=_passage(text) if TEXT.search(text) else text)

    def remind(self, wanted: Reminding | None) -> Thought:
        """Create, list or cancel a reminder, then report the result."""
        if wanted is None or (wanted.action == "create" and not (wanted.when or wanted.rule)):
            return self.say(phrases.WHEN)
        if results := self.results_of("remind"):
            result = results[-1]
            return self.say(phrases.WHEN if result.failed else phrases.REMINDS, text=result.text)
        fields = {name: getattr(wanted, name) for name in ("words", "when", "rule", "number")}
        if wanted.action == "create" and not wanted.words:
            fields["words"] = phrases.TIME.say(self.language)
        given = {name: value for name, value in fields.items() if value}
        return self.call(DemoCall("remind", {"action": wanted.action, **given}))

    def subscribe(self, url: str) -> Thought:
        """Subscribe to the feed, then report the result."""
        if results := self.results_of("subscribe"):
            if results[-1].failed:
                why = phrases.reason(results[-1].code, self.language)
                return self.say(phrases.NOT_SUBSCRIBED, why=why)
            return self.say(phrases.REMINDS, text=results[-1].text)
        wanted = {"summary": True} if wants_summaries(self.question.text) else {}
        return self.call(DemoCall("subscribe", {"url": url, **wanted}))

    def read(self, url: str) -> Thought:
        """Read the page, then quote its beginning."""
        if results := self.results_of("read_page"):
            if results[-1].failed:
                return self.say(
                    phrases.NOT_READ, why=phrases.reason(results[-1].code, self.language)
                )
            return self.say(phrases.PAGE_SAYS, text=_passage(results[-1].text), urls=url)
        return self.call(DemoCall("read_page", {"url": url}))

    def search(self, words: str) -> Thought:
        """Search, read the first pages if possible, and quote them with their URLs."""
        if not (searched := self.results_of("search_web")):
            return self.call(DemoCall("search_web", {"query": words}))
        if searched[-1].failed:
            return self.say(
                phrases.NOT_SEARCHED, why=phrases.reason(searched[-1].code, self.language)
            )
        urls = RESULT.findall(searched[-1].text)[:READ]
        if not urls:
            return self.say(phrases.NOTHING_FOUND, words=words)
        pages = self.results_of("read_page")
        if not pages and "read_page" in self.tools:
            return self.call(*(DemoCall("read_page", {"url": url, "about": words}) for url in urls))
        told = [_passage(page.text) for page in pages if not page.failed]
        found = told or [text.strip() for text in LINE.findall(searched[-1].text)[:1]]
        return self.say(phrases.PAGE_SAYS, text="\n".join(found[:1]), urls=" ".join(urls))

    def regret(self, result: Result, what: Phrase) -> str:
        name = str(next(iter(result.arguments.values()), "?"))
        why = phrases.reason(result.code, self.language)
        return phrases.NOT_FOUND.say(
            self.language, what=what.say(self.language, name=name), why=why
        )

    def ask_coder(self, task: str) -> Thought:
        """Announce Coder, ask it and report its answer, in separate steps, so that the announcement
        is sent first.
        """
        if results := self.results_of("use_subagent"):
            return self.conclude(results[-1], phrases.CODER_SAID, phrases.CODER_FAILED)
        if {"send_message", "use_subagent"} <= self.tools and not self.results_of("send_message"):
            return self.call(
                self.message({"type": "plain", "text": phrases.ASKING_CODER.say(self.language)})
            )
        return self.call(DemoCall("use_subagent", {"subagent_name": "Coder", "content": task}))

    def send(self, *, picture: bool) -> Thought:
        if results := self.results_of("send_message"):
            return self.conclude(results[-1], phrases.SENT, phrases.NOT_SENT)
        words = phrases.PICTURE if picture else phrases.MESSAGE
        pieces = [{"type": "plain", "text": words.say(self.language)}]
        if picture:
            pieces.append({"type": "image", "path": DEMO_PICTURE})
        return self.call(self.message(*pieces))

    @staticmethod
    def message(*pieces: Json) -> DemoCall:
        return DemoCall("send_message", {"messages": list(pieces)})

    def conclude(self, result: Result, done: Phrase, failed: Phrase) -> Thought:
        if result.failed:
            return self.say(failed, why=phrases.reason(result.code, self.language))
        return self.say(done, text=result.text)
