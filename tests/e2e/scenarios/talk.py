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

from bot.domain.chat import AssistantMessage, Completion, FinishReason, ModelRequest, ToolCall, Usage, UserMessage
from bot.policy.apologies import LOST, SORRY
from tests.e2e.scenarios.doings import do, say
from tests.e2e.scenarios.parts import quoted_in
from tests.e2e.scenarios.stage import Stage

ASKED = re.compile(r"Q(\d+)")
TOLD = re.compile(r"[QC]\d+")
ANSWERED = re.compile(r"A(\d+)")
QUOTED = re.compile(r"「[^」\n]*」")
QUESTION = re.compile(r"^\[(?:提问|Question)[^\n]*$", re.MULTILINE)
OWNER = "主人"
PEOPLE = ("小明", "阿澈", "小红", OWNER)
ENDINGS = ("是什么？", "怎么样？", "", "呢")
LATELY = 20.0  # seconds in which earlier lines are part of a question
AFTERWARDS = 400.0  # seconds in which everything comes to its end


class TalkingModel:
    """Answers every question in a request; some runs look something up before, all take their time."""

    name = "talking"

    def __init__(self, chance: random.Random) -> None:
        self.requests: list[ModelRequest] = []
        self._chance = chance

    async def complete(self, request: ModelRequest) -> Completion:
        self.requests.append(request)
        asked = questions_in(request)
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


def people_in(request: ModelRequest) -> str:
    """What people said, as a request tells it; without quotes."""
    texts = [message.text for message in request.messages if isinstance(message, UserMessage)]
    return QUOTED.sub("", "\n".join(texts))


def questions_in(request: ModelRequest) -> Asked:
    """Those below the heading of the question, and in what came while it was being answered."""
    last = max(
        (
            index
            for index, message in enumerate(request.messages)
            if isinstance(message, UserMessage) and QUESTION.search(message.text)
        ),
        default=0,
    )
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

    def wrong(self, requests: list[ModelRequest]) -> Iterator[str]:
        """Whom nobody answered, who was answered twice, lines told twice, and recalled ones told."""
        watched = ASKED if "member" in self.stage.scenario.settings.values() else TOLD  # members overhear apart
        for position, request in enumerate(requests, 1):
            lines = Counter(match[0] for match in watched.finditer(people_in(request)))
            yield from (f"request {position} tells {line} twice" for line in lines if lines[line] > 1)
        told_last = set(ASKED.findall(people_in(requests[-1])))
        yield from (f"Q{number} was recalled and is told" for number in self.recalled & told_last)
        texts = [message.text for message in self.stage.simulator.delivered]
        told = Counter(number for text in texts for number in set(ANSWERED.findall(text)))
        yield from (f"Q{number} was answered {times} times" for number, times in told.items() if times > 1)
        apologies = {quoted_in(message) for message in self.stage.simulator.delivered if message.text in (SORRY, LOST)}
        told_to_ask_again = [self._with(number) for number in self.asked if self._label(number) in apologies]
        for number in self.asked.keys() - told.keys() - self.excused.union(*told_to_ask_again):
            yield f"Q{number} was not answered"

    def _label(self, number: str) -> int:
        return self.stage.labels.get(f"q{number}", 0)
