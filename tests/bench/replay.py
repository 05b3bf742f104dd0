"""A made log, said to the whole service over a real websocket: what an answered message costs, how much of a request
is the one before again, and what of the talk the model was shown.

`python -m tests.bench.replay --asked 4 --lines 1000 --seed 1` prints the figures of one log.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from pydantic import SecretStr

from adapters.offline.brain import Thought
from adapters.simulator.server import Simulator
from adapters.simulator.wire import mention, text
from adapters.simulator.world import Person, World
from bot.app import Service, open_service
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from config.settings import Settings
from frostagent.models.tokens import DIGIT, estimate, estimate_messages
from frostagent.types.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolSpec,
    UserMessage,
)
from tests.bench.talk import ANSWERS, Line, Talk, make_talk
from tests.bench.weight import Weight, weigh
from tests.torture.model import Asked, ScriptedModel

Json: TypeAlias = dict[str, Any]

GROUP = 4242
PICTURE = re.compile(r"\[(?:图片|picture)[^\]]*\]$")
MENTION = re.compile(r"^@[^#(]*(?:#\d+|\(\d+\)) ")
BEGINNING = 20  # characters by which a line is known again
DIGITS = [bytes([digit]) for digit in b"0123456789"]
COUNTED = re.compile(r"\(另有 (\d+) 条")
WAITING = {
    "bot_debounce": 0.0,
    "bot_steer": False,
    "bot_pace": False,
    "bot_memory": False,
    "bot_stale": 0.0,
    "bot_loop": 0,
    "bot_user_rate": None,
    "bot_group_rate": None,
}
"""Settings that only make a replay wait: hours are said in seconds."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came: its tokens, estimated by classes of characters, those of its history as the bot counts
    them, its messages as bytes, and what people said in it.
    """

    tokens: float
    history: float
    tools: int
    messages: tuple[bytes, ...]
    users: tuple[str, ...]
    is_summary: bool

    @classmethod
    def of(cls, body: bytes) -> Request:
        read = json.loads(body)
        tools = read.get("tools", [])
        specs = tuple(ToolSpec(**tool["function"]) for tool in tools)
        parts = [json.dumps(message, ensure_ascii=False).encode() for message in read["messages"]]
        messages = tuple(map(message_of, read["messages"]))
        return cls(
            stand_in(ModelRequest(messages, specs), body),
            estimate_messages(messages[1:-1]),
            len(json.dumps(tools, ensure_ascii=False).encode()) if tools else 0,
            tuple(parts),
            tuple(message["content"] for message in read["messages"] if message["role"] == "user"),
            read.get("tool_choice") == "none",
        )

    @property
    def question(self) -> str:
        """What is asked, with what was overheard before it."""
        return self.users[-1]

    @property
    def size(self) -> int:
        """In bytes, tools included: they stand first in every cache."""
        return self.tools + sum(map(len, self.messages))

    def goes_on_from(self, before: Request) -> bool:
        """Whether the history of the request before stands at its beginning, byte for byte."""
        history = before.messages[:-1]
        return self.messages[: len(history)] == history

    def shared(self, before: Request) -> int:
        """How many of its bytes are those the request before began with."""
        shared = self.tools
        for ours, theirs in zip(self.messages, before.messages, strict=False):
            if ours != theirs:
                return shared + next(n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
            shared += len(ours)
        return shared


@dataclass(slots=True)
class Replay:
    """What came of a log. `since` has, for each question, what was said from the one before on and not taken back;
    `taken_back` are the questions before which something was recalled that a request had told. `heard` are the ids of
    all messages up to the last question that were not recalled, `told` those that stand in a round. `weights` are what
    the service kept in memory after half of the log, and after all of it.
    """

    talk: Talk
    requests: list[Request] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    since: list[list[str]] = field(default_factory=list)
    taken_back: set[int] = field(default_factory=set)
    heard: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    weights: tuple[Weight, ...] = ()

    @property
    def asked(self) -> list[Request]:
        """The requests that are for an answer."""
        return [request for request in self.requests if not request.is_summary]

    @property
    def tokens(self) -> float:
        """Of all requests, for one answer."""
        return sum(request.tokens for request in self.requests) / len(self.answers)

    @property
    def largest(self) -> float:
        """The tokens of the longest request."""
        return max(request.tokens for request in self.requests)

    @property
    def kept(self) -> float:
        """The share of what was sent before that the next request begins with."""
        pairs = list(pairwise(self.asked))
        return sum(after.shared(before) for before, after in pairs) / sum(before.size for before, _ in pairs)

    @property
    def moves(self) -> list[int]:
        """The questions before which the window moved: the first message behind the system's is another."""
        pairs = enumerate(pairwise(self.asked), 1)
        return [
            place
            for place, (before, after) in pairs
            if before.messages[1] != after.messages[1] and place not in self.taken_back
        ]

    @property
    def unsteady(self) -> list[int]:
        """The questions whose prompt began otherwise than the one before, though no window moved and nothing was
        recalled.
        """
        excused = self.taken_back.union(self.moves)
        pairs = enumerate(pairwise(self.asked), 1)
        return [place for place, (before, after) in pairs if place not in excused and not after.goes_on_from(before)]

    @property
    def steady(self) -> float:
        """What is kept of the request before, window moves and recalls aside."""
        excused = self.taken_back.union(self.moves)
        pairs = [pair for place, pair in enumerate(pairwise(self.asked), 1) if place not in excused]
        return sum(after.shared(before) for before, after in pairs) / sum(before.size for before, _ in pairs)

    @property
    def cached(self) -> float:
        """The share of a request that a cache has from the one before."""
        pairs = list(pairwise(self.asked))
        return sum(after.shared(before) for before, after in pairs) / sum(after.size for _, after in pairs)

    @property
    def shown(self) -> float:
        """The share of the talk that the model was shown, the rest being counted."""
        said = sum(map(len, self.since))
        return 1 - sum(map(counted, self.asked)) / said

    @property
    def unaccounted(self) -> list[tuple[int, list[str]]]:
        """The questions before which something was said that is neither shown nor counted, and what."""
        wrong = []
        for place, (request, said) in enumerate(zip(self.asked, self.since, strict=True)):
            missing = not_shown(request.question, said)
            if len(missing) != counted(request):
                wrong.append((place, missing))
        return wrong

    @property
    def forgotten(self) -> list[str]:
        """The rounds that left the window and are in no summary: neither in a request for one, nor as a line."""
        summaries = [user for request in self.requests if request.is_summary for user in request.users]
        pairs = list(pairwise(self.asked))
        gone = []
        for before, after in [pairs[place - 1] for place in self.moves]:
            told = "\n".join((*summaries, *after.users))
            gone += [user for user in map(asked_in, before.users) if user[:BEGINNING] not in told]
        return gone

    def table(self) -> str:
        """The figures, for people."""
        asked, moves = self.asked, len(self.moves)
        half, end = self.weights
        return (
            f"{len(self.talk.people)} people, {len(self.talk.lines)} lines, {len(self.answers)} answered\n"
            f"tokens an answered message   {self.tokens:8.0f}   (largest request {self.largest:.0f})\n"
            f"of the request before kept   {self.steady:8.1%}   (window moves and recalls aside)\n"
            f"with them                    {self.kept:8.1%}   ({moves} moves, {len(self.taken_back)} recalls)\n"
            f"of a request in the cache    {self.cached:8.1%}\n"
            f"of the talk shown            {self.shown:8.1%}   (neither shown nor counted: {len(self.unaccounted)})\n"
            f"summaries                    {len(self.requests) - len(asked):8}\n"
            f"kept in memory at half       {half.size / 2**20:8.2f} MiB  ({half.objects} objects)\n"
            f"and at the end               {end.size / 2**20:8.2f} MiB  ({end.objects} objects)\n"
        )


def stand_in(request: ModelRequest, body: bytes) -> float:
    """What a tokenizer counts that takes each digit for itself, as Qwen's does: the rest is as estimated everywhere."""
    return estimate(request) + sum(map(body.count, DIGITS)) * (1 - DIGIT)


def message_of(message: Json) -> Message:
    """A message of a request as the estimate takes it."""
    match message["role"]:
        case "system":
            return SystemMessage(message["content"])
        case "assistant":
            made = [call["function"] for call in message.get("tool_calls") or ()]
            calls = tuple(ToolCall("", call["name"], call["arguments"]) for call in made)
            return AssistantMessage(message.get("content") or "", calls)
        case _:
            return UserMessage(str(message["content"]))


def counted(request: Request) -> int:
    """How many lines the request says there are besides."""
    found = COUNTED.search(request.question)
    return int(found[1]) if found else 0


def not_shown(question: str, said: Sequence[str]) -> list[str]:
    """What of this stands in no line of its own."""
    shown = Counter(words_of(line) for line in question.splitlines() if ": " in line)
    return list((Counter(said) - shown).elements())


def words_of(line: str) -> str:
    """What was said in a line, without who, whom it mentions, the picture, and a mark of a quote."""
    words = PICTURE.sub("", line.partition(": ")[2]).removeprefix(ZH.unreadable).removeprefix(EN.unreadable)
    return MENTION.sub("", words).strip()


def asked_in(user: str) -> str:
    """The line that asks."""
    return [line for line in user.splitlines() if line and line[0] not in " [("][-1]


async def nothing_happens(_asked: Asked) -> None:
    """Nobody waits."""


class Replaying:
    """Says a log line by line, and waits for the answer to each question."""

    def __init__(self, talk: Talk, simulator: Simulator, service: Service) -> None:
        self._talk, self._simulator, self._service = talk, simulator, service
        self._ids: list[int] = []
        self._gone: dict[int, list[int]] = {}  # places that are taken back before this one
        self._said: dict[int, str] = {}  # by its place, since the last question
        self.since: list[list[str]] = []
        self.taken_back: set[int] = set()
        self.weights: list[Weight] = []

    async def run(self) -> None:
        """All of it."""
        half = len(self._talk.lines) // 2
        for place, line in enumerate(self._talk.lines):
            if place == half:
                self.weights.append(await self._weigh())
            for gone in self._gone.pop(place, ()):
                if self._said.pop(gone, None) is None:
                    self.taken_back.add(len(self.since))
                await self._simulator.push(self._simulator.world.recall(self._ids[gone]))
            await self._say(place, line)
        self.weights.append(await self._weigh())

    async def _weigh(self) -> Weight:
        await self._service.wait_settled((self._simulator.world.self_id, "group", GROUP, str(self._ids[-1])))
        await self._service.wait_idle()
        return weigh(self._service)

    async def _say(self, place: int, line: Line) -> None:
        world = self._simulator.world
        quoted = None if line.quoted is None else self._ids[line.quoted]
        known = quoted is not None and world.messages.knows(quoted)
        segments = [{"type": "reply", "data": {"id": str(quoted)}}] if known else []
        segments += [mention(line.mentions)] if line.mentions else []
        segments += [mention(world.self_id)] if line.asks else []
        segments += [text(f" {line.text}" if segments else line.text)]
        if line.picture:
            segments += [{"type": "image", "data": {"file": f"{place}.jpg", "summary": "", "url": ""}}]
        message_id = await self._simulator.say(segments, group_id=GROUP, user_id=line.user_id)
        self._ids.append(message_id)
        if line.taken_back is not None:
            self._gone.setdefault(place + line.taken_back, []).append(place)
        if not line.asks:
            self._said[place] = line.text
            return
        self.since.append(list(self._said.values()))
        self._said.clear()
        await self._service.wait_settled((world.self_id, "group", GROUP, str(message_id)))
        await self._service.wait_idle()


async def replay(talk: Talk, folder: Path, **more: Any) -> Replay:
    """Say the log to a service whose journal is in this folder."""
    numbers = iter(range(10**6))

    def answer(asked: Asked) -> Thought:
        return Thought(ANSWERS[next(numbers) % len(ANSWERS)] if asked.conversation else "大家聊了周末和报错，还没定。")

    world = World()
    world.add_group(GROUP, "什么都聊", [Person(number, name) for number, name in talk.people.items()])
    async with ScriptedModel(nothing_happens, answer) as model, Simulator(world) as simulator:
        url = await simulator.serve()
        known = {name: value for name, value in WAITING.items() if name in Settings.model_fields}
        settings = Settings(
            llm_base_url=model.base_url,
            llm_model="demo",
            onebot_mode="forward",
            onebot_url=url,
            store_url=SecretStr(f"sqlite:///{folder}/bot.db"),
            bot_send_rate=0.0,
            web_port=0,
            **{**known, **more},
        )
        async with open_service(settings) as service:
            await simulator.wait_connected()
            replaying = Replaying(talk, simulator, service)
            await replaying.run()
        requests = [Request.of(body) for body in model.bodies]
        answers = [sent.text for sent in simulator.delivered]
        heard, told = read_ids(folder / "bot.db")
        return Replay(
            talk, requests, answers, replaying.since, replaying.taken_back, heard, told, tuple(replaying.weights)
        )


def read_ids(file: Path) -> tuple[set[str], set[str]]:
    """The ids of the messages in a journal up to the last question, recalled ones aside, and of those in rounds."""
    with closing(sqlite3.connect(file)) as connection:
        last = "(SELECT max(id) FROM messages WHERE NOT overheard)"
        heard = connection.execute(f"SELECT message_id FROM messages WHERE NOT erased AND id <= {last}").fetchall()
        rounds = connection.execute("SELECT round FROM turns WHERE round IS NOT NULL").fetchall()
    told = {source for (text,) in rounds for source in json.loads(text)[0].get("sources", ())}
    return {message_id for (message_id,) in heard}, told


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.replay", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--asked", type=float, default=4.0, help="lines of a hundred that are for the bot")
    options = parser.parse_args()
    talk = make_talk(options.seed, lines=options.lines, asked=options.asked / 100)
    with TemporaryDirectory(prefix="replay-") as folder:
        sys.stdout.write(asyncio.run(replay(talk, Path(folder))).table())


if __name__ == "__main__":
    main()
