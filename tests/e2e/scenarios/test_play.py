"""A script that is not true is told so, whatever of it is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.simulator.call import SentMessage
from adapters.simulator.wire import text
from frostagent.types.messages import AssistantMessage, ModelRequest, ToolCall, ToolMessage, UserMessage
from tests.e2e.scenarios.laws import broken_by, unpaired
from tests.e2e.scenarios.loop import ScriptedClock, ScriptedLoop
from tests.e2e.scenarios.play import play

SCRIPT = """
title: none of this is true
model:
  - {say: 香山, wait: 4}
  - nobody asks for this
script:
  - 小明: {say: "@bot 去哪里？", id: q}
  - after: 10
"""
FALSE = [
    "sent: []",
    "sent: [泰山]",
    "sent: [{say: 香山, quotes: nothing}]",
    "sent: [{has: 泰}]",
    "sent: [{say: 香山, mentions: [阿澈]}]",
    "sent: [{say: 香山, to: 阿澈}]",
    "sent: [{say: 香山, forward: [香山]}]",
    "count: 2",
    "gestures: []",
    "requests: 2",
    "cancelled: [1]",
    "shown: [哪里, 去]",
    "hidden: [去哪里]",
    "asked: [small]",
    "pictures: 1",
    "fetched: [cat.png]",
    "heard: [明天下雨]",
]


@pytest.mark.parametrize("false", FALSE)
def test_what_is_not_so_is_told(false: str, tmp_path: Path) -> None:
    file = tmp_path / "0-false.yaml"
    file.write_text(f"{SCRIPT}    {false}\n", "utf-8")
    told, unasked = play(file, tmp_path).wrong
    assert told.startswith("at 10.0 s: ")
    assert "nobody asks for this" in unasked


def test_a_request_without_an_answer_and_a_strange_word_are_told(tmp_path: Path) -> None:
    file = tmp_path / "0-strange.yaml"
    file.write_text('title: t\nscript: [{小明: "@bot 去哪里？"}]\n', "utf-8")
    assert play(file, tmp_path).wrong[0].startswith("request 1 has no answer")
    file.write_text("title: t\nscript: [{snet: []}]\n", "utf-8")
    with pytest.raises(ValueError, match="snet"):
        play(file, tmp_path)
    file.write_text("title: t\nof: nothing\nscript: []\n", "utf-8")
    with pytest.raises(ValueError, match="nothing"):
        play(file, tmp_path)


def test_calls_and_results_are_pairs() -> None:
    calls, result = AssistantMessage(tool_calls=(ToolCall("c1", "t", "{}"),)), ToolMessage("c1", "t", "ok")
    other = UserMessage("well?")
    whole, early, missing = (calls, result, other), (calls, other, result), (other, calls)
    assert [len(list(unpaired(1, ModelRequest(messages)))) for messages in (whole, early, missing)] == [0, 2, 1]


def test_what_holds_everywhere_is_told_where_it_does_not() -> None:
    request = ModelRequest((UserMessage("小明(20002): hi"),))
    reply = {"type": "reply", "data": {"id": "7"}}
    sent = [SentMessage(1, (reply, text("好")), 4242), SentMessage(2, (reply, text("好")), 4242)]
    leak = SentMessage(3, (text("阿澈#3: 好"),), 4242)
    number, frame, twice = broken_by([request], [*sent, leak], [20002])
    assert "tells a QQ number: 20002" in number
    assert "阿澈#3" in frame
    assert "said 2 times" in twice


def test_time_passes_only_as_it_is_told_to() -> None:
    loop = ScriptedLoop()
    clock, woken = ScriptedClock(loop), []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        await loop.run_in_executor(None, lambda: None)
        woken.append(seconds)

    async def run() -> None:
        loop.freeze()
        async with asyncio.TaskGroup() as group:
            for seconds in (5, 1):
                group.create_task(sleep(seconds))
            await loop.pass_time(4.9)
            assert woken == [1]
            await loop.pass_time(0.1)
            assert (woken, clock.monotonic()) == ([1, 5], 5.0)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(run())
