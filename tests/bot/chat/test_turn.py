from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from bot.approvals.decision import Approvers
from bot.approvals.tool_calls import ToolApprovals
from bot.budget.turn_budget import TurnBudget
from bot.chat.active_turn import ActiveTurn, ActiveTurns
from bot.chat.cancellation import Reason
from bot.chat.context_builder import ContextBuilder, PromptContext, Turn
from bot.chat.lanes import Lanes, Order
from bot.chat.mutes import Mutes
from bot.chat.perception import Perception, Senses
from bot.chat.pokes import AnsweredPokes
from bot.chat.suspended import SuspendedTurns
from bot.chat.tasks import Resume, Work, due_of, person_of
from bot.chat.turn import Turns
from bot.chat.turn_journal import TurnJournal
from bot.core.actions import React, SendMessage
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import MessageReceived
from bot.core.journal import Entry, TurnClosed
from bot.core.ports import PictureReader
from bot.core.server_clock import ServerClock
from bot.memory.history import History
from bot.memory.modes import Modes
from bot.memory.personas import Cast, Persona, Personas
from bot.memory.recorder import Recorder
from bot.outbox.delivery import Delivery, Postbox
from bot.outbox.gestures import LONG, WORKING, Gestures
from bot.outbox.owner_alerts import Owner
from frostagent.engine.budget import NO_LIMITS, Budget, BudgetShare, Limits
from frostagent.engine.engine import Engine, Run
from frostagent.engine.toolset import Toolset
from frostagent.types.messages import Completion, ModelRequest, SystemMessage, ToolMessage
from frostagent.types.ports import ChatModel, Media
from frostagent.types.runs import Stop
from frostagent.types.speech import Attachment, MediaKind, Quote, Text
from tests.bot.budget.till import unlimited
from tests.bot.outbox.post import build_outbox, build_shadow
from tests.cases import each_case
from tests.fakes import (
    BOT,
    GROUP,
    PRIVATE,
    CountingIds,
    ManualClock,
    RecordingStore,
    RecordingTransport,
    ScriptedModel,
    Step,
    SteppedClock,
    calls,
    said,
    until,
    words,
)
from tests.settings import kept_settings
from tools.send_message import send_message

OWNER = 999


class AnyMedia:
    """A media folder that has every file."""

    async def attach(self, kind: MediaKind, *, path: str = "", url: str = "", name: str = "") -> Attachment:
        return Attachment(kind, f"base64://{path or url}", name)


def lanes_of(clock: ManualClock) -> tuple[Lanes[Work], Mutes]:
    """Lanes in which people take turns, and the mutes that what goes on there waits for."""
    mutes = Mutes(clock=clock)
    return Lanes[Work](clock=clock, order=Order(person_of, partial(due_of, muted_until=mutes.until))), mutes


def mark_recalled(house: House, question: MessageReceived) -> None:
    """What a recall does to the turn of a question that goes on, but for its task."""
    [live] = [live for live in house.live.at(question.conversation) if live.message == question]
    live.cancelled = Reason.RECALLED


class House:
    """The rooms a turn needs, with fakes at the ports."""

    model: ScriptedModel

    def __init__(
        self,
        model: ChatModel,
        store: RecordingStore | None = None,
        sight: PictureReader | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.transport, self.store = RecordingTransport(), store or RecordingStore()
        self.history = History(store=self.store)
        self.clock = clock = ManualClock()
        self.patience = SteppedClock()  # of those who wait for an answer
        self.lost: list[str] = []  # why messages were lost, as owners hear it
        self.outbox, sender = build_outbox(
            self.transport, self.store, clock, report_loss=lambda _action, _state, reason: self.lost.append(reason)
        )
        self.owner = Owner(owners=frozenset({OWNER}), sender=sender, clock=clock)
        # What a turn waits for is asked here, not in QQ: tests decide by themselves what becomes of it.
        self.asked: list[str] = []
        self.lanes, self.mutes, self.ages = *lanes_of(clock), ServerClock(clock)
        self.toolset = Toolset([send_message], clock=clock)
        engine = Engine(
            model=model, toolset=self.toolset, clock=clock, observer=Recorder(store=self.store, clock=clock)
        )
        self.perception = Perception(transport=self.transport, history=self.history, senses=Senses(sight))
        self.gestures = Gestures(transport=self.transport, clock=self.patience)
        self.live = ActiveTurns(store=self.store, clock=clock)
        self.prompt_context = PromptContext(history=self.history, speakers=self.history.speakers)
        self.settings_store = kept_settings(self.store, clock=clock)
        self.pokes = AnsweredPokes(self.settings_store)
        self.modes = Modes(settings=self.settings_store, choices=self.store)
        self.shadow = build_shadow(self.store, sender, clock)
        self.postbox = Postbox(outbox=self.outbox, history=self.history, clock=clock)
        self.personas = Personas(Cast(Persona("be nice", "Frost")), settings=self.settings_store)
        self.approvers = Approvers(frozenset({OWNER}), self.asked.append)
        self.approvals = ToolApprovals(
            approvers=self.approvers,
            resume=lambda where, *resume: self.lanes.put(where, Resume(*resume)),
            postbox=self.postbox,
            reply_postbox=Postbox(outbox=self.outbox, history=self.history, clock=clock, openly=True),
            server_clock=self.ages,
            clock=clock,
        )
        self.ledger = TurnJournal(self.store, self.history, clock, spending=unlimited())
        self.suspensions = SuspendedTurns(
            store=self.store,
            approvals=self.approvals,
            turn_journal=self.ledger,
            history=self.history,
        )
        delivery = Delivery(
            outbox=self.outbox,
            history=self.history,
            clock=clock,
            name=lambda where: self.personas.of(where).name,
        )
        self.context_builder = ContextBuilder(
            perception=self.perception,
            prompt_context=self.prompt_context,
            delivery=delivery,
            personas=self.personas,
            owners=frozenset({OWNER}),
            ports={Media: AnyMedia()},
            turn_budget=TurnBudget(unlimited(), limits=limits),
            ids=CountingIds(),
        )
        self.turns = Turns(
            engine=engine,
            context_builder=self.context_builder,
            delivery=delivery,
            suspensions=self.suspensions,
            approvals=self.approvals,
            store=self.store,
            history=self.history,
            turn_journal=self.ledger,
            live=self.live,
            gestures=self.gestures,
            shadow=self.shadow,
        )


@asynccontextmanager
async def living(*steps: Step, sight: PictureReader | None = None, limits: Limits = NO_LIMITS) -> AsyncIterator[House]:
    """A house with a scripted model, its outbox at work."""
    with ScriptedModel(*steps) as model:
        house = House(model, sight=sight, limits=limits)
        house.model = model
        async with asyncio.timeout(30), house.outbox.open():
            yield house


def speak(text: str, **more: object) -> tuple[str, str]:
    return "send_message", json.dumps({"messages": [{"type": "plain", "text": text}], **more}, ensure_ascii=False)


async def test_the_final_words_answer_the_question_with_a_quote() -> None:
    async with living(words("hello")) as house:
        await house.turns.answer(said("hi", message_id="7"))
    assert house.transport.sent == [SendMessage(GROUP, (Quote("7"), Text("hello")))]
    system, user = house.model.requests[0].messages
    assert isinstance(system, SystemMessage)
    assert system.text.startswith("be nice")
    assert "]\n小明#1: hi\n[此刻] " in user.text


async def test_a_turn_that_is_over_leaves_nothing_to_the_cycle_collector() -> None:
    def there() -> dict[int, str]:
        kinds = {ActiveTurn, Turn, Run, BudgetShare, Budget}
        return {id(one): type(one).__name__ for one in gc.get_objects() if type(one) in kinds}

    gc.collect()
    gc.disable()
    try:
        before = there()
        async with living(words("hello")) as house:
            async with asyncio.TaskGroup() as group:
                group.create_task(house.turns.answer(said("hi")))
            house.model.requests.clear()
            left = {key: name for key, name in there().items() if key not in before}
    finally:
        gc.enable()
    assert left == {}


async def test_what_the_tool_says_is_on_the_wire_before_the_next_model_request() -> None:
    async def look(request: ModelRequest) -> Completion:
        assert house.transport.texts == ["wait a moment"]
        return words("the answer")

    async with living(calls(speak("wait a moment")), look) as house:
        await house.turns.answer(said("hi"))
    assert house.transport.texts == ["wait a moment", "the answer"]
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.content == "消息已发送 (message_id: 9001)"


async def test_a_refused_message_is_told_to_the_model_and_may_be_said_in_the_end() -> None:
    async with living(calls(speak("hello")), words("hello")) as house:
        house.transport.failures = [ActionRefused("send_group_msg", retcode=1200, wording="禁言中")]
        await house.turns.answer(said("hi"))
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "not delivered: 'muted: the bot is muted here. Do not try again'" in result.content
    assert house.transport.texts == ["hello"]


async def test_a_message_that_may_have_been_delivered_is_never_said_again() -> None:
    async with living(calls(speak("hello")), words("hello")) as house:
        house.transport.failures = [ActionUnanswered("no answer")]
        await house.turns.answer(said("hi"))
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "may have been delivered" in result.content
    assert "Do not repeat it" in result.content
    assert house.transport.texts == []


async def test_a_bug_is_as_quiet_as_any_other_failure() -> None:
    async def broken(request: ModelRequest) -> Completion:
        raise LookupError("internal detail")

    async with living(broken) as house:
        await house.turns.answer(said("hi"))
    assert house.transport.texts == ["抱歉，这次没能回答上来，请稍后再试。（编号 t1）"]


async def test_even_an_owner_does_not_reach_another_account() -> None:
    async with living(calls(speak("psst", session="20002:group:5555")), words("done")) as house:
        await house.turns.answer(said("tell them", user=OWNER))
    assert house.transport.texts == ["done"]


@each_case("session", ["nonsense", "1:2:3", "10001:channel:5"])
async def test_a_session_that_is_none_is_an_error_for_the_model(session: str) -> None:
    async with living(calls(speak("psst", session=session)), words("done")) as house:
        await house.turns.answer(said("hi"))
    result = house.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert result.content.endswith("[TOOL_INVALID_ARGUMENTS]")


async def test_naming_the_active_session_is_allowed_to_everybody() -> None:
    async with living(calls(speak("here", session=str(GROUP))), words("")) as house:
        await house.turns.answer(said("hi"))
    assert house.transport.texts == ["here"]


async def test_a_turn_cancelled_by_the_end_of_the_process_stays_open_for_the_next_start() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with living(calls(speak("one moment")), think) as house:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.answer(said("first")))
            await asked.wait()
            task.cancel()
        assert house.store.of("turn_closed") == []
        assert [entry.type for entry in house.store.entries] == [
            "member_numbered", "turn_opened", "step_finished", "tool_started", "send_queued", "send_changed",
            "tool_finished", "usage_added",
        ]  # fmt: skip


async def test_a_turn_whose_answer_could_not_be_said_before_the_end_stays_open_too() -> None:
    """Else the next start would take the question for answered."""
    async with living(words("the answer")) as house:
        house.transport.failures.append(NotConnected("away"))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.answer(said("hi")))
            await until(lambda: house.store.of("send_changed"))
            task.cancel()
        assert house.transport.sent == []
        assert house.store.of("turn_closed") == []


async def test_a_disowned_question_leaves_nothing_behind_when_its_turn_is_cancelled() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with living(think, words("yes")) as house:
        first = said("first")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.answer(first))
            await asked.wait()
            mark_recalled(house, first)
            task.cancel()
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.round) == (Stop.STOPPED, ())
        await house.turns.answer(said("second"))
        assert [message.type for message in house.model.requests[-1].messages] == ["system", "user"]


async def test_a_store_in_trouble_does_not_keep_the_bot_from_answering() -> None:
    async with living(words("hello")) as house:
        house.store.trouble = True
        await house.turns.answer(said("hi"))
        assert house.transport.texts == ["hello"]


async def test_a_temporary_session_is_answered_through_its_group() -> None:
    where = type(PRIVATE)(BOT, "private", 777, via_group=4242)
    async with living(calls(speak("one", session=str(where))), words("two")) as house:
        await house.turns.answer(said("hi", where=where))
    assert [action.conversation.via_group for action in house.transport.sent] == [4242, 4242]


async def test_a_question_recalled_while_its_turn_is_written_down_leaves_no_turn_open() -> None:
    class Slow(RecordingStore):
        async def commit(self, *entries: Entry) -> bool:
            self.put(*entries)
            await asyncio.Event().wait()
            return True

    with ScriptedModel() as model:
        house = House(model, store=Slow())
        question = said("hi")
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            task = group.create_task(house.turns.answer(question))
            await until(lambda: house.store.of("turn_opened"))
            mark_recalled(house, question)
            task.cancel()
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, closed.round) == (Stop.STOPPED, ())


async def test_whoever_asked_sees_a_sign_once_the_model_has_thought_for_long() -> None:
    thought = asyncio.Event()

    async def think(_request: ModelRequest) -> Completion:
        await thought.wait()
        return words("a")

    async with living(think) as house, asyncio.TaskGroup() as group, house.gestures.open():
        asking = group.create_task(house.turns.answer(said("hi", message_id="7")))
        await house.patience.advance(LONG)
        assert house.transport.gestures == [React(GROUP, "7", WORKING)]
        thought.set()
        await asking
