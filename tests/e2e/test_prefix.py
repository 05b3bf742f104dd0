"""What a model reads begins as before, byte for byte, until it would be too long: that is what providers cache.

Through the whole service, in the bodies as they came: the messages, and the tools that stand before them in a cache.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from adapters.simulator.server import Simulator
from bot.prompt.wording_zh import ZH
from tests.e2e.test_restart import ask, life, nothing_happens, world_at
from tests.torture.model import ScriptedModel

ROOM = 700  # tokens: a few rounds
TALK = "我们说说今天吃什么，" * 8
QUESTIONS = [
    f"@bot {kind}#q{number} {TALK}"
    for number, kind in enumerate(("plain", "tool", "pair", "plain", "rounds", "plain", "tool") * 2, 1)
]


@dataclass(frozen=True)
class Body:
    """A request as bytes: the messages without their closing bracket, the first of them, the tools."""

    messages: bytes
    system: bytes
    tools: bytes
    forbids_calls: bool

    @property
    def lasting(self) -> bytes:
        """The messages up to what was so at the moment: all that can stand in a later request."""
        return self.messages.partition("\\n[此刻]".encode())[0]

    @property
    def is_summary(self) -> bool:
        return bool(self.before_instruction)

    @property
    def before_instruction(self) -> bytes:
        """What stands before the instruction that asks for a summary; empty in any other request."""
        before, instruction, _ = self.messages.partition(b',{"role":"user","content":"[' + "写摘要]".encode())
        return before if instruction else b""

    @classmethod
    def of(cls, body: bytes) -> Body:
        text, decoder = body.decode(), json.JSONDecoder()

        def array(name: str) -> str:
            begin = text.find(f'"{name}":[') + len(name) + 3
            return text[begin : decoder.raw_decode(text, begin)[1]] if f'"{name}":[' in text else ""

        messages = array("messages")
        system = messages[: decoder.raw_decode(messages, 1)[1]]
        forbids = json.loads(text).get("tool_choice") == "none"
        return cls(messages.removesuffix("]").encode(), system.encode(), array("tools").encode(), forbids)


async def talk(folder: Path, *, moment: float, stops: Sequence[int] = ()) -> tuple[list[bytes], list[str]]:
    """The questions one after the other, with a restart before some of them: every request, and all that was said."""
    async with ScriptedModel(nothing_happens) as model, Simulator(world_at(moment)) as simulator:
        url = await simulator.serve()
        begins = [0, *stops, len(QUESTIONS)]
        for begin, end in pairwise(begins):
            async with life(folder, model, simulator, url, bot_history_tokens=ROOM) as service:
                for question in QUESTIONS[begin:end]:
                    await ask(simulator, service, "你一句我一句", user=20002)
                    await ask(simulator, service, question)
        assert model.invalid == []
        return model.bodies, [message.text for message in simulator.delivered]


async def test_a_prompt_begins_with_the_bytes_of_the_one_before_until_the_window_moves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "bot.memory.summaries")
    bodies = [Body.of(body) for body in (await talk(tmp_path, moment=time.time()))[0]]
    prompts = [body for body in bodies if not body.is_summary]
    moved = [after for before, after in pairwise(prompts) if not after.messages.startswith(before.lasting)]
    summaries = [body for body in bodies if body.is_summary]
    assert len(prompts) > len(QUESTIONS)  # steps of one run, and runs of one conversation
    assert len({body.system for body in prompts}) == 1
    assert len({body.tools for body in prompts}) == 1
    assert prompts[0].tools.startswith(b'[{"type":"function"')
    assert 2 <= len(moved) == len(summaries) == caplog.text.count("are a summary now") < len(QUESTIONS) / 2
    for body in moved:
        assert body.messages[len(body.system) :].startswith(
            b',{"role":"user","content":"' + ZH.heading(ZH.earlier).encode()
        )
        assert b"C:done" in body.messages
    for before, body in pairwise(bodies):
        if body.is_summary:  # read from the cache that the request before it has left
            assert before.messages.startswith(body.before_instruction)
            assert (body.tools, body.forbids_calls) == (before.tools, True)
    assert not any(body.forbids_calls for body in prompts)
    with closing(sqlite3.connect(tmp_path / "bot.db")) as journal:
        used = journal.execute("SELECT conversation, prompt > 0, completion > 0 FROM usage WHERE step = 0").fetchall()
    assert used == [("10001:group:4242", 1, 1)] * len(summaries)


async def test_nothing_volatile_stands_before_the_history(tmp_path: Path) -> None:
    """The same conversation at another time, in another life: the first prompt has the same beginning."""
    first, later = [
        Body.of((await talk(tmp_path / name, moment=time.time() + seconds))[0][0])
        for name, seconds in (("now", 0), ("later", 86_400))
    ]
    assert (first.system, first.tools) == (later.system, later.tools)


async def test_restarts_change_no_byte_of_any_prompt_or_summary(tmp_path: Path) -> None:
    moment = time.time()
    bodies, said = await talk(tmp_path / "without", moment=moment)
    again, said_again = await talk(tmp_path / "with", moment=moment, stops=range(1, len(QUESTIONS)))
    assert again == bodies
    assert said_again == said
