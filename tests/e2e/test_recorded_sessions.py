"""The recorded conversations lived through once more: the real engine, writer, client and reader, a server that plays
what the vendor said, tools that give the results of then. Every request is judged by the rules of its vendor.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import aiohttp

from bot.core.conversation import Conversation
from frostagent.engine.engine import Engine, Run, RunState
from frostagent.engine.external_tools import foreign_tool, our_name
from frostagent.engine.toolset import Toolset
from frostagent.models.failover import Failover
from frostagent.models.openai.client import OpenAIModel
from frostagent.models.openai.dialects import DIALECTS, choose_dialect
from frostagent.models.openai.history import NO_OUTPUT
from frostagent.models.upstreams import Upstream
from frostagent.types.messages import Message, ToolMessage, ToolSpec
from frostagent.types.runs import Asker, Outcome, Stop
from frostagent.types.tools import Tool
from tests.fakes import CountingIds, ManualClock, RecordingObserver
from tests.frostagent.openai.checker import complaints
from tests.frostagent.openai.conftest import Vendor
from tests.frostagent.openai.corpus import shared
from tests.frostagent.openai.sessions import DIALECT_OF, Turn
from tests.frostagent.openai.test_history import named

HERE = Conversation(10001, "private", 20002)
NAMES = frozenset(row.name for row in DIALECTS)
FAILED = Counter({"content_filter": 3, "model_not_found": 3, "rejected": 4})
FAILED_OF_SHARED = Counter({"content_filter": 3, "model_not_found": 5, "rejected": 4})
OVER = b'{"choices":[{"message":{"content":"over"},"finish_reason":"stop"}]}'


def runs_of(session: list[Turn]) -> Iterator[list[Turn]]:
    """The turns that are the steps of one run: a question, then results of the calls before them."""
    run: list[Turn] = []
    for turn in session:
        goes_on = (
            bool(turn.said) and turn.said != turn.messages and all(isinstance(item, ToolMessage) for item in turn.said)
        )
        if run and not goes_on:
            yield run
            run = []
        run.append(turn)
    yield run


def results_of(run: list[Turn]) -> list[str]:
    return [item.content for turn in run[1:] for item in turn.said if isinstance(item, ToolMessage)]


def stub(spec: ToolSpec, results: list[str]) -> Tool:
    """A tool that takes anything and gives the next result of then."""

    async def execute(**_: object) -> str:
        return results.pop(0) if results else "ok"

    return foreign_tool(spec.name, spec.description, {"type": "object"}, execute, repeatable=True)


def played(turn: Turn) -> bytes:
    """The answer, with our names for its tools: some are in an alphabet that our own never are."""
    body = turn.body
    for name in {tool.name for tool in turn.tools}:
        body = re.sub(rf'("name"\s*:\s*)"{re.escape(name)}"'.encode(), rf'\g<1>"{our_name(name)}"'.encode(), body)
    return body


def dialect_of(turn: Turn) -> str:
    name = DIALECT_OF.get(turn.vendor, turn.vendor)
    return name if name in NAMES else choose_dialect("", turn.name).name


def results_in_call_order(messages: list[Any]) -> list[str]:
    """What each call of a body got, by its id; ids are only its step's."""
    found: list[str] = []
    for index, message in enumerate(messages):
        calls = message.get("tool_calls", ())
        results = {result["tool_call_id"]: result["content"] for result in messages[index + 1 : index + 1 + len(calls)]}
        found += (results[call["id"]] for call in calls)
    return found


async def live(
    run: list[Turn], history: tuple[Message, ...], vendor: Vendor, session: aiohttp.ClientSession
) -> Outcome:
    """The run, with that history before its question."""
    vendor.asked.clear()
    vendor.plays.clear()
    for turn in run:
        vendor.say(played(turn), status=turn.status)
    vendor.say(OVER)
    results = results_of(run)
    clock = ManualClock()
    client = OpenAIModel(session=session, base_url=vendor.url, api_key="", model="recorded", dialect=dialect_of(run[0]))
    tools = {tool.name: tool for tool in run[0].tools}.values()
    toolset = Toolset([stub(tool, results) for tool in tools], clock=clock)
    model = Failover([Upstream(client)], clock=clock, ids=CountingIds())
    engine = Engine(model=model, toolset=toolset, clock=clock, observer=RecordingObserver())
    outcome = await engine.run(Run(id="r", conversation=str(HERE), asker=Asker("1"), transcript=history), RunState())
    assert isinstance(outcome, Outcome)
    return outcome


async def test_recorded_conversations_go_through_the_engine(
    sessions: list[list[Turn]], vendor: Vendor, session: aiohttp.ClientSession
) -> None:
    judged = followed = 0
    failed: Counter[str] = Counter()
    for run in (run for recorded in sessions for run in runs_of(recorded)):
        first = run[0]
        calls = {call.id: call.name for item in first.messages for call in getattr(item, "tool_calls", ())}
        outcome = await live(run, named(first.messages, calls), vendor, session)
        bodies = [asked.body for asked in vendor.asked]
        for body in bodies:
            assert complaints(body, dialect_of(first)) == [], first.name
        judged += len(bodies)
        if outcome.stop is Stop.FAILED:
            failed[outcome.error.partition(":")[0]] += 1
            continue
        assert len(bodies) >= len(run), first.name
        if any(turn.failed for turn in run):
            continue  # what failed was asked again by ourselves, not told as a result as the client of then did
        sent = results_in_call_order(bodies[-1]["messages"])
        wanted = [text or NO_OUTPUT for text in results_of(run)]
        before = sum(isinstance(message, ToolMessage) for message in first.messages)
        assert sent[before : before + len(wanted)] == wanted, first.name
        followed += len(wanted)
    assert failed == FAILED + (FAILED_OF_SHARED if shared() else Counter())
    assert judged > (370 if shared() else 110)
    assert followed > (130 if shared() else 25)
