"""Every fault of the simulator, armed for one question to the whole service: who hears what of it, and how often.

The second question comes when nothing goes wrong any more; its prompt shows what the model knows of the first answer.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from adapters.offline.phrases import GREETING, SKILLS, THANKS
from adapters.offline.server import OfflineModel
from adapters.onebot.calls import OneBotCalls
from adapters.simulator.faults import Fault, parse_fault
from adapters.simulator.server import Simulator
from bot.app import Service, open_service
from bot.outbox import outbox, sender
from bot.outbox.owner_alerts import LOST as NOT_SENT
from bot.outbox.owner_alerts import RESTS, UNKNOWN
from frostagent.models.openai.client import OpenAIModel
from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.ports import ChatModel
from tests.e2e.scenarios.doings import DOINGS
from tests.e2e.scenarios.script import files, read_scenario
from tests.e2e.small_world import ASKER, GROUP, SmallWorld
from tests.e2e.test_watching import OWNER, TOKEN, settings
from tests.e2e.town import noted
from tests.fakes import until
from tests.fallback_lines import ENGLISH, LOST, TOO_LONG

T = TypeVar("T")

ACCOUNT = 10001
HERE, IN_PRIVATE = f"{ACCOUNT}:group:{GROUP}", f"{ACCOUNT}:private:{ASKER}"
PATIENCE = 15.0  # seconds for a whole test; the machine may be busy
UNANSWERED = 0.5  # seconds until a call counts as unanswered, where a test waits that out
ANSWER, SECOND_ANSWER = GREETING.say("en", skills=SKILLS.en), THANKS.en
ANSWERS = "SELECT conversation, state, message_id FROM sends WHERE final ORDER BY id"
LEFT_OPEN = "SELECT turn_id FROM turns WHERE closed IS NULL"
OWN_WORDS = ("NTEvent", "EventChecker", "Timeout", "errMsg", "发送失败", "识别URL失败")


@dataclass(frozen=True, slots=True)
class HeldModel:
    """A model that is not asked before its gate is open."""

    model: ChatModel
    gate: asyncio.Event

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, request: ModelRequest) -> Completion:
        await self.gate.wait()
        return await self.model.complete(request)


@dataclass(frozen=True, slots=True)
class Evening:
    """The service, with people who ask it something."""

    running: Service
    simulator: Simulator
    world: SmallWorld
    model: OfflineModel
    gate: asyncio.Event

    @property
    def heard(self) -> list[str]:
        """What people other than the owner got."""
        return [message.text for message in self.simulator.delivered if message.user_id != OWNER]

    @property
    def owner_heard(self) -> list[str]:
        return [message.text for message in self.simulator.delivered if message.user_id == OWNER]

    @property
    def prompts(self) -> list[list[dict[str, Any]]]:
        return [request["messages"] for request in self.model.requests]

    def times_asked(self, words: str) -> int:
        """How often the model was asked a question, the steps after its calls aside."""
        return sum(prompt[-1]["role"] == "user" and words in prompt[-1]["content"] for prompt in self.prompts)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Until something holds in the service itself."""
        await until(condition, seconds=PATIENCE)

    async def say(self, words: str, *, private: bool = False) -> int:
        if private:
            return await self.simulator.say_private(words, user_id=ASKER)
        return await self.simulator.say(f"@bot {words}", user_id=ASKER)

    async def settle(self, message_id: int, *, private: bool = False) -> None:
        """Until the question has been taken, and nothing is left to do."""
        kind, session = ("private", ASKER) if private else ("group", GROUP)
        await self.running.wait_settled((ACCOUNT, kind, session, str(message_id)))
        await self.running.wait_idle()

    async def ask(self, words: str, *, private: bool = False) -> None:
        await self.settle(await self.say(words, private=private), private=private)

    async def ask_again(self, *, private: bool = False) -> list[dict[str, Any]]:
        """The second question, when nothing goes wrong any more: it gets its one answer. What the model was shown."""
        self.simulator.faults.disarm()
        before = self.heard
        await self.simulator.wait_connected()
        await self.ask("thanks", private=private)
        assert self.heard == [*before, SECOND_ANSWER]
        assert self.times_asked("thanks") == 1
        return self.prompts[-1]


@asynccontextmanager
async def evening(folder: Path, *, reports_self: bool = False) -> AsyncIterator[Evening]:
    """One life of the service, its journal in this folder; nothing that the tests wait for lasts for ever."""
    world, gate = SmallWorld(reports_self=reports_self), asyncio.Event()
    gate.set()

    def wrap(port: T, /) -> T:
        model: Any = port
        held: Any = HeldModel(model, gate)
        return held if isinstance(port, OpenAIModel) else port

    async with (
        asyncio.timeout(PATIENCE),
        OfflineModel() as model,
        open_service(settings(model.base_url, folder), wrap=wrap) as running,
        Simulator(world, reconnect=0.05) as simulator,
    ):
        simulator.dial(f"ws://127.0.0.1:{running.port}/", token=TOKEN)
        await simulator.wait_connected()
        it = Evening(running, simulator, world, model, gate)
        await it.until(lambda: any(one.server for one in running.app.peers.accounts()))  # the last call but ours
        yield it


def rows(folder: Path, query: str = ANSWERS) -> list[tuple[str, ...]]:
    """What the journal has."""
    with closing(sqlite3.connect(folder / "journal.db")) as journal:
        return journal.execute(query).fetchall()


def shorten(monkeypatch: pytest.MonkeyPatch, function: Any, name: str, seconds: float) -> None:
    """A wait that is the default of a keyword."""
    assert name in function.__kwdefaults__
    monkeypatch.setitem(function.__kwdefaults__, name, seconds)


@pytest.fixture(autouse=True)
def _look_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LOOK_AFTER", 0.02)


# --- what becomes of the answer -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "looks"),
    [
        pytest.param(Fault.TIMEOUT, 1, id="QQ does not confirm it"),
        pytest.param(Fault.SILENCE, 1, id="the server never answers"),
        pytest.param(Fault.SLOW, 0, id="the server answers late"),
        pytest.param(Fault.NEXT_CONNECTION, 1, id="the server answers on the next connection"),
    ],
)
@pytest.mark.parametrize("reports_self", [False, True], ids=["in the history", "as message_sent"])
async def test_an_answer_that_arrived_is_known_to_and_never_said_again(
    fault: Fault,
    looks: int,
    reports_self: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`looks` at the history it costs, but for a new connection none where the account reports its own messages."""
    if fault is Fault.SILENCE:
        shorten(monkeypatch, OneBotCalls.__init__, "deadline", UNANSWERED)
    async with evening(tmp_path, reports_self=reports_self) as it:
        it.simulator.faults.arm(fault, value=0.1)
        await it.ask("hello")
        assert it.heard == [ANSWER]
        assert len(it.simulator.sent) == 1
        is_spared = reports_self and fault is not Fault.NEXT_CONNECTION
        await it.simulator.wait_until(lambda: it.world.looks == (0 if is_spared else looks))
        shown = await it.ask_again()
        assert shown[-2] == {"role": "assistant", "content": ANSWER}
        assert it.times_asked("hello") == 1
        assert it.owner_heard == []
    assert "bot.outbox.sender" not in {record.name for record in caplog.records}
    ids = [str(message.message_id) for message in it.simulator.delivered]
    assert rows(tmp_path) == [(HERE, "confirmed", message_id) for message_id in ids]


async def test_an_answer_of_the_server_that_comes_too_late_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shorten(monkeypatch, OneBotCalls.__init__, "deadline", UNANSWERED)
    caplog.set_level(logging.DEBUG, logger="adapters.onebot.calls")
    async with evening(tmp_path) as it:
        it.simulator.faults.arm(Fault.SLOW, value=UNANSWERED + 0.1)
        await it.ask("hello")
        assert (it.heard, it.world.looks) == ([ANSWER], 1)
        await it.until(lambda: "an answer nobody waits for" in caplog.text)
        assert (await it.ask_again())[-2]["content"] == ANSWER
        assert it.times_asked("hello") == 1
        assert it.owner_heard == []


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.RISK], ids=["the server loses it", "risk control swallows it"])
async def test_an_answer_that_cannot_be_found_is_not_repeated_and_the_owner_and_the_model_know(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if fault is Fault.LOST:
        shorten(monkeypatch, OneBotCalls.__init__, "deadline", UNANSWERED)
    async with evening(tmp_path) as it:
        it.simulator.faults.arm(fault)
        await it.ask("hello")
        assert it.heard == []
        assert it.owner_heard == [UNKNOWN.zh.format(where=HERE)]
        assert [message.text for message in it.simulator.sent if message.group_id] == [ANSWER]
        shown = await it.ask_again()
        assert noted(shown, "没有得到 QQ 的确认，可能已送达，不要重复\n", answer=ANSWER)
        assert it.times_asked("hello") == 1
    assert f"sent to {HERE} without an answer, it may have been delivered" in caplog.text
    assert [state for _, state, _ in rows(tmp_path)] == ["unknown", "confirmed"]


async def live_again(it: Evening, fault: Fault) -> None:
    """What is told where the bot may speak once more."""
    world, incidents = it.simulator.world, it.simulator.incidents
    about = {"post_type": "notice", "self_id": world.self_id, "time": int(world.now())}
    match fault:
        case Fault.MUTED:
            await incidents.lift_all()
            await incidents.lift()
        case Fault.REFUSE:
            joined = {"notice_type": "group_increase", "group_id": GROUP, "user_id": world.self_id}
            await it.simulator.push({**about, **joined})
        case Fault.NOT_FRIEND:
            await it.simulator.push({**about, "notice_type": "friend_add", "user_id": ASKER})
        case _:
            pass


@pytest.mark.parametrize(
    ("fault", "reason", "line"),
    [
        (Fault.REFUSE, "not in the group: the bot is not in this group any more. Do not try again", None),
        (Fault.MUTED, "muted: the bot is muted here. Do not try again", None),
        (Fault.NOT_FRIEND, "not a friend: this person cannot be written to: not a friend of the bot", None),
        (Fault.TOO_LONG, "too long: it is too long. Send a shorter text", ENGLISH[TOO_LONG]),
        (Fault.BAD_MEDIA, "bad media: QQ could not use the file or url", ENGLISH[LOST]),
    ],
    ids=["it left the group", "it is muted", "it is no friend", "the answer is too long", "the media cannot be had"],
)
async def test_an_answer_that_qq_refuses_is_noted_for_the_model_without_the_words_of_the_error(
    fault: Fault, reason: str, line: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The asker hears of it where QQ may take another line, owners of all but a mute."""
    private = fault is Fault.NOT_FRIEND
    async with evening(tmp_path) as it:
        it.simulator.faults.arm(fault)
        await it.ask("hello", private=private)
        assert it.heard == ([line] if line else [])
        assert {ANSWER, *it.heard} <= {message.text for message in it.simulator.sent}
        await live_again(it, fault)  # a mute, or that the bot is gone, is believed until then
        shown = await it.ask_again(private=private)
        assert noted(shown, f"没有送达: {reason}", answer=ANSWER)
        assert it.times_asked("hello") == 1
        place = IN_PRIVATE if private else HERE
        report = RESTS if fault in (Fault.REFUSE, Fault.NOT_FRIEND) else NOT_SENT
        told = [] if fault is Fault.MUTED else [report.zh.partition("{reason}")[0].format(where=place)]
        assert [line.startswith(begins) for line, begins in zip(it.owner_heard, told, strict=True)] == [True] * len(
            told
        )
        assert not [words for words in OWN_WORDS if words in "".join((*it.heard, str(it.prompts)))]
    assert f"not sent to {IN_PRIVATE if private else HERE}: " in caplog.text
    assert rows(tmp_path)[0][1:] == ("refused", "")


async def test_a_picture_that_qq_cannot_use_is_told_to_the_model_which_says_so_in_words(tmp_path: Path) -> None:
    async with evening(tmp_path) as it:
        it.simulator.faults.arm(Fault.BAD_MEDIA)
        await it.ask("send me a message with a picture")
        assert [message.message_id != 0 for message in it.simulator.sent] == [False, True]
        assert it.prompts[-1][-1]["role"] == "tool"
        assert "bad media: QQ could not use the file or url" in it.prompts[-1][-1]["content"]
        (apology,) = it.heard
        assert apology.startswith("Sorry, ")
        await it.ask_again()
        assert it.times_asked("picture") == 1
        assert not [words for words in OWN_WORDS if words in "".join((*it.heard, str(it.prompts)))]


async def test_answers_out_of_order_each_belong_to_their_own_message(tmp_path: Path) -> None:
    async with evening(tmp_path) as it:
        it.simulator.faults.arm(Fault.DISORDER, value=2)
        here, in_private = await it.say("hello"), await it.say("hello", private=True)
        await it.settle(here)
        await it.settle(in_private, private=True)
        assert it.heard == [ANSWER, ANSWER]
        ids = {(HERE if sent.group_id else IN_PRIVATE): str(sent.message_id) for sent in it.simulator.delivered}
        await it.ask_again()
        assert it.times_asked("hello") == 2
    assert {where: message_id for where, _, message_id in rows(tmp_path)[:2]} == ids
    assert {state for _, state, _ in rows(tmp_path)} == {"confirmed"}


# --- what becomes of the question -----------------------------------------------------------------


async def test_a_question_that_is_told_twice_is_answered_once(tmp_path: Path) -> None:
    async with evening(tmp_path) as it:
        it.simulator.faults.arm(Fault.DUPLICATE)
        await it.ask("hello")
        await it.until(lambda: it.running.app.deduplicator.duplicates == 1)
        await it.running.wait_idle()
        assert it.heard == [ANSWER]
        await it.ask_again()
        assert it.times_asked("hello") == 1


@pytest.mark.parametrize("answered", [True, False], ids=["after its answer", "while it is thought about"])
async def test_events_that_are_told_again_after_a_reconnect_are_not_answered_again(
    answered: bool, tmp_path: Path
) -> None:
    async with evening(tmp_path) as it:
        it.simulator.faults.arm(Fault.REPEAT, value=2)
        await it.simulator.say("just talking", user_id=ASKER)
        it.gate.clear()
        asked = await it.say("hello")
        if answered:
            it.gate.set()
            await it.settle(asked)
        await it.simulator.sockets.reconnect()
        await it.simulator.wait_connected()
        await it.until(lambda: it.running.app.deduplicator.duplicates >= 2)
        it.gate.set()
        await it.settle(asked)
        assert it.heard == [ANSWER]
        shown = await it.ask_again()
        assert it.times_asked("hello") == 1
        assert str(shown).count("just talking") == 1


async def test_a_question_whose_connection_is_replaced_is_answered_once_on_the_new_one(tmp_path: Path) -> None:
    """The history, which is looked at after the reconnect, has the question too."""
    async with evening(tmp_path) as it:
        it.gate.clear()
        it.simulator.faults.arm(Fault.RECONNECT, value=0)
        asked = await it.say("hello")
        await it.simulator.wait_connected()
        await it.simulator.wait_until(lambda: it.world.looks == 1)
        it.gate.set()
        await it.settle(asked)
        assert it.heard == [ANSWER]
        shown = await it.ask_again()
        assert shown[-2]["content"] == ANSWER
        assert it.times_asked("hello") == 1
    assert [state for _, state, _ in rows(tmp_path)] == ["confirmed", "confirmed"]


async def test_an_answer_for_which_there_is_no_connection_waits_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, outbox.Outbox.send_all, "patience", 0.05)
    async with evening(tmp_path) as it:
        it.simulator.faults.arm(Fault.DROP, value=2 * PATIENCE)
        asked = await it.say("hello")
        await it.running.wait_settled((ACCOUNT, "group", GROUP, str(asked)))
        assert it.simulator.sent == []
        it.simulator.sockets.come_back()
        await it.simulator.wait_delivered(1)
        await it.settle(asked)
        assert it.heard == [ANSWER]
        shown = await it.ask_again()
        assert noted(shown, "当时连不上 QQ，排队等待发送，可能没有送达\n", answer=ANSWER)
        assert it.times_asked("hello") == 1
        assert it.owner_heard == []
    assert [state for _, state, _ in rows(tmp_path)] == ["confirmed", "confirmed"]


@pytest.mark.parametrize("seconds", [0.0, 0.1], ids=["at once", "while it is thought about"])
async def test_a_question_that_is_recalled_gets_no_answer_and_is_forgotten(seconds: float, tmp_path: Path) -> None:
    async with evening(tmp_path) as it:
        it.gate.clear()
        it.simulator.faults.arm(Fault.RECALL, value=seconds)
        await it.ask("hello")  # it ends: what the gate holds is given up
        it.gate.set()
        shown = await it.ask_again()
        assert [message["role"] for message in shown] == ["system", "user"]
        assert "hello" not in shown[-1]["content"]
        assert (len(it.prompts), len(it.simulator.sent), it.owner_heard) == (1, 1, [])
    assert [state for _, state, _ in rows(tmp_path)] == ["confirmed"]
    assert rows(tmp_path, LEFT_OPEN) == []


def test_every_fault_there_is_is_tried_here_or_in_a_scenario() -> None:
    here = Path(__file__).read_text("utf-8")
    armed = {line["fault"] for file in files() for line in read_scenario(file, DOINGS).lines if "fault" in line}
    there = {parse_fault(words).fault for words in armed}
    assert [fault for fault in Fault if f"Fault.{fault.name}" not in here and fault not in there] == []
