"""Talk that nobody wrote: a seed makes people ask, chat, correct themselves, recall and stop, while the
model and its tools take their time, the connection breaks and the service restarts.

Each question has a word of its own, `Q17`, and the model answers `A17` for each it is asked: so it shows
from outside who was answered, and how often.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from bot.core.redaction import RECALLED
from bot.policy.fallback_replies import ASK_AGAIN
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    ModelRequest,
    ToolCall,
    Usage,
    UserMessage,
)
from tests.e2e.scenarios.doings import do, say
from tests.e2e.scenarios.parts import quoted_in
from tests.e2e.scenarios.stage import Stage

ASKED = re.compile(r"Q(\d+)")
TOLD = re.compile(r"[QC]\d+")
LINE = re.compile(r"^(\S+: )Q(\d+).*$", re.MULTILINE)
ANSWERED = re.compile(r"A(\d+)")
QUOTED = re.compile(r"「[^」\n]*」")
QUESTION = re.compile(r"^\[(?:提问|Question)[^\n]*$", re.MULTILINE)
OWNER = "主人"
PEOPLE = ("小明", "阿澈", "小红", OWNER)
ENDINGS = ("是什么？", "怎么样？", "", "呢")
LATELY = 20.0  # seconds in which earlier lines are part of a question
ABREAST = 3  # runs of members at once in a group
AFTERWARDS = 400.0  # seconds in which everything comes to its end


class TalkingModel:
    """Answers every question in a request; some runs look something up before, all take their time."""

    name = "talking"

    def __init__(self, chance: random.Random) -> None:
        self.requests: list[ModelRequest] = []
        self.side_by_side: list[tuple[str, ...]] = []  # who is being answered, at each request
        self._answering: list[str] = []
        self._chance = chance

    async def complete(self, request: ModelRequest) -> Completion:
        asked, asker = questions_in(request), asker_of(request)
        self.requests.append(request)
        self._answering.append(asker)
        self.side_by_side.append(tuple(self._answering))
        try:
            return await self._answer(asked)
        finally:
            self._answering.remove(asker)

    async def _answer(self, asked: Asked) -> Completion:
        looks_up = not asked.looked_up and self._chance.random() < 0.3
        await asyncio.sleep(self._chance.choice((0.2, 1.0, 4.0, 9.0)))
        if looks_up:
            call = ToolCall(f"c{len(self.requests)}", "take_time", f'{{"seconds": {self._chance.randint(1, 6)}}}')
            return Completion(AssistantMessage("", (call,)), FinishReason.TOOL_CALLS, Usage(10, 5))
        said = " ".join(f"A{number}" for number in asked.numbers) or "嗯"
        return Completion(AssistantMessage(said), FinishReason.STOP, Usage(10, 5))


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions a request is to answer, and whether its run has looked something up."""

    numbers: tuple[str, ...]
    looked_up: bool


def asker_of(request: ModelRequest) -> str:
    """Whose question it is, by name and number."""
    question = next(text for text in reversed(_said_by_people(request)) if QUESTION.search(text))
    lines = question[[*QUESTION.finditer(question)][-1].end() :].strip().splitlines()
    return lines[0].partition(":")[0].partition(" ")[0]


def _said_by_people(request: ModelRequest) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


def people_in(request: ModelRequest) -> str:
    """What people said, as a request tells it; without quotes."""
    return QUOTED.sub("", "\n".join(_said_by_people(request)))


def question_at(request: ModelRequest) -> int:
    """Where the question stands that is to be answered."""
    said = enumerate(request.messages)
    return max((at for at, one in said if isinstance(one, UserMessage) and QUESTION.search(one.text)), default=0)


def earlier(request: ModelRequest) -> tuple[Message, ...]:
    """The rounds before the question."""
    return request.messages[: question_at(request)]


def questions_in(request: ModelRequest) -> Asked:
    """Those below the heading of the question, and in what came while it was being answered."""
    last = question_at(request)
    texts = [message.text for message in request.messages[last:] if isinstance(message, UserMessage)]
    if texts and (heading := QUESTION.search(texts[0])):
        texts[0] = texts[0][heading.end() :]
    numbers = dict.fromkeys(number for text in texts for number in ASKED.findall(text))
    looked_up = any(isinstance(message, AssistantMessage) for message in request.messages[last + 1 :])
    return Asked(tuple(numbers), looked_up)


@dataclass
class Talk:
    """What a seed makes of a group. `excused` are questions that need no answer any more."""

    stage: Stage
    model: TalkingModel
    chance: random.Random
    asked: dict[str, str] = field(default_factory=dict)  # by whom, by its number
    excused: set[str] = field(default_factory=set)
    recalled: set[str] = field(default_factory=set)
    chatted: int = 0  # lines among people

    async def go_on(self, steps: int) -> None:
        """So many things happen, and then nothing for a long time."""
        for _ in range(steps):
            await self._one()
            await self.stage.loop.pass_time(self.chance.choice((0.0, 0.3, 1.0, 3.0, 7.0)))
        await self.stage.loop.pass_time(AFTERWARDS)
        await say(self.stage, PEOPLE[0], "@bot 刚才都说了什么？")
        await self.stage.loop.pass_time(AFTERWARDS)

    async def _one(self) -> None:
        name = self.chance.choice(PEOPLE)
        match self.chance.random():
            case luck if luck < 0.45:
                await self._ask(name)
            case luck if luck < 0.8:
                self.chatted += 1
                await say(self.stage, name, f"C{self.chatted}{self.chance.choice(('哈哈', '，今天真热', '吃了吗？'))}")
            case luck if luck < 0.88 and self.asked:
                number = self.chance.choice(list(self.asked))
                if f"q{number}" in self.stage.labels:
                    await do(self.stage, "recall", f"q{number}")
                    del self.stage.labels[f"q{number}"]
                    self.recalled.add(number)
                    self.excused |= self._with(number)
            case luck if luck < 0.93 and self.asked:
                await self._stop(self.chance.choice(list(self.asked.values())))
            case luck if luck < 0.96:
                await do(self.stage, "fault", "repeat 5")
                await do(self.stage, "drop", True)
                await self.stage.loop.pass_time(self.chance.choice((0.5, 5.0)))
                await do(self.stage, "back", True)
                await self.stage.loop.pass_time(30)
            case _:
                await do(self.stage, "restart", True)

    async def _ask(self, name: str) -> None:
        number = str(len(self.asked) + 1)
        self.asked[number] = name
        line = f"Q{number}{self.chance.choice(ENDINGS)}"
        if self.chance.random() < 0.2 and self._is_fresh(name):
            await say(self.stage, name, "@bot")
            await self.stage.loop.pass_time(self.chance.choice((0.5, 2.0, 6.0)))
        else:
            line = f"@bot {line}"
        await say(self.stage, name, {"say": line, "id": f"q{number}"})

    def _is_fresh(self, name: str) -> bool:
        """Whether nothing this one said lately could be meant by a mention alone."""
        lines = (happened.at for happened in self.stage.seen if happened.who == name)
        return max(lines, default=-LATELY) + LATELY <= self.stage.now

    def _with(self, recalled: str) -> set[str]:
        """A recalled question, and what its asker said beside it: merged with it, or while it was answered."""
        return {number for number, who in self.asked.items() if who == self.asked[recalled]}

    async def _stop(self, name: str) -> None:
        """Whoever asked takes it back; an owner ends what is going on, whoever asked."""
        over = self.asked.keys() if name == OWNER else (n for n, who in self.asked.items() if who == name)
        self.excused |= set(over)
        await say(self.stage, name, "@bot /stop")

    def wrong(self) -> Iterator[str]:
        """Whom nobody answered, who was answered twice, lines told twice, and recalled ones told; runs side by
        side, and rounds that changed.
        """
        requests = self.model.requests
        yield from (*self._crowded(), *self._unsteady())
        for position, request in enumerate(requests, 1):
            lines = Counter(match[0] for match in TOLD.finditer(people_in(request)))
            twice = (line for line in lines if lines[line] > 1 and not self._is_heard_apart(line))
            yield from (f"request {position} tells {line} twice" for line in twice)
        told_last = set(ASKED.findall(people_in(requests[-1])))
        yield from (f"Q{number} was recalled and is told" for number in self.recalled & told_last)
        texts = [message.text for message in self.stage.simulator.delivered]
        told = Counter(number for text in texts for number in set(ANSWERED.findall(text)))
        yield from (f"Q{number} was answered {times} times" for number, times in told.items() if times > 1)
        apologies = {quoted_in(message) for message in self.stage.simulator.delivered if message.text in ASK_AGAIN}
        told_to_ask_again = [self._with(number) for number in self.asked if self._label(number) in apologies]
        for number in self.asked.keys() - told.keys() - self.excused.union(*told_to_ask_again):
            yield f"Q{number} was not answered"

    def _unsteady(self) -> Iterator[str]:
        """Requests that do not begin as the one before, but for what was recalled. Of members side by side two
        may be done at the very same moment of this clock, and change places.
        """
        if self._by_member:
            return
        told = [[self._as_kept(one) for one in earlier(request)] for request in self.model.requests]
        for before, now in pairwise(told):
            changed = (pair for pair in zip(before, now, strict=False) if pair[0] != pair[1])
            yield from (f"what was {was} is {now_is}" for was, now_is in changed)

    def _as_kept(self, message: Message) -> Message:
        """A message of a round, as it is without what was recalled at any time."""
        if not isinstance(message, UserMessage):
            return message
        text = LINE.sub(lambda line: line[1] + RECALLED if line[2] in self.recalled else line[0], message.text)
        return UserMessage(text)

    def _crowded(self) -> Iterator[str]:
        """Runs that went on beside each other in one lane."""
        for askers in self.model.side_by_side:
            lanes = Counter(askers) if self._by_member else Counter({"all": len(askers)})
            if max(lanes.values()) > 1 or len(askers) > ABREAST:
                yield f"runs side by side: {askers}"

    def _is_heard_apart(self, line: str) -> bool:
        """Whether each of several members may have overheard it: talk, and a question that was let be."""
        return self._by_member and (line[0] == "C" or line[1:] in self.excused)

    @property
    def _by_member(self) -> bool:
        return "member" in self.stage.scenario.settings.values()

    def _label(self, number: str) -> int:
        return self.stage.labels.get(f"q{number}", 0)
