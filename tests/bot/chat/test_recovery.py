from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import structs

from bot.chat.active_conversations import Arrival
from bot.chat.deduplicator import Past
from bot.chat.startup import Recoverer
from bot.chat.turn_journal import GIVEN_UP
from bot.core.actions import SendMessage
from bot.core.events import Connected, MessageRecalled, MessageReceived
from bot.core.journal import (
    MemberNumbered,
    OpenTurn,
    Recovery,
    SendChanged,
    SendQueued,
    SendState,
    StoredSend,
    TurnClosed,
    TurnOpened,
)
from bot.prompt.render import history_note
from bot.prompt.wording_zh import ZH
from bot.runtime.background import StartupLoader
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from frostagent.types.runs import Stop
from frostagent.types.speech import Quote, Refused, Text
from frostagent.types.tools import tool
from tests.bot.chat.test_unfinished import recoverer_of
from tests.bot.hall import Hall
from tests.fakes import BOT, GROUP, ScriptedModel, Step, said, until, words
from tests.fallback_lines import SORRY

HELLO = Connected(self_id=BOT, time=0.0)
CALL = ToolCall("c0", "send_message", "{}")


@tool(side_effects="external")
async def pay() -> str:
    """Has effects of its own."""
    return "paid"


@tool
async def undeclared() -> str:
    """Does not say what it does."""
    return "done"


@tool(side_effects="read")
async def look_up() -> str:
    """Changes nothing."""
    return "found"


@asynccontextmanager
async def restarted(*steps: Step) -> AsyncIterator[tuple[Hall, Recoverer]]:
    with ScriptedModel(*steps) as model:
        house = Hall(model)
        for each in (pay, undeclared, look_up):
            house.toolset.register(each)
        recoverer = recoverer_of(house, model)
        async with asyncio.timeout(30), house.outbox.open(), house.lanes.open(house.lane.do):
            yield house, recoverer


def asked(text: str = "hi", *, ago: float = 10) -> MessageReceived:
    message = said(text)
    return structs.replace(message, time=message.time - ago)


def recall(message: MessageReceived) -> MessageRecalled:
    return MessageRecalled(
        self_id=BOT,
        time=0.0,
        conversation=message.conversation,
        message_id=message.message_id,
        user_id=777,
        operator_id=777,
    )


def turn(
    question: MessageReceived,
    *messages: Message,
    retry_of: str = "",
    started: tuple[str, ...] = (),
    sends: tuple[StoredSend, ...] = (),
) -> OpenTurn:
    return OpenTurn(
        turn_id="t0",
        question=question,
        user=UserMessage("hi"),
        at=question.time,
        retry_of=retry_of,
        messages=messages,
        started=started,
        sends=sends,
    )


def send(state: SendState, *, final: bool, ago: float = 5, whole: bool = True) -> StoredSend:
    return StoredSend(
        send_id="s0",
        turn_id="t0",
        action=SendMessage(GROUP, (Text("an answer"),)),
        final=final,
        at=1_700_000_000.0 - ago,
        state=state,
        whole=whole,
    )


async def test_an_interrupted_turn_is_closed_with_a_valid_round() -> None:
    old = turn(asked(ago=500), AssistantMessage("", (CALL,)), started=("send_message",))
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(old,)))
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert closed.stop is Stop.INTERRUPTED
        user, calls, result, end = closed.round
        assert (user, calls) == (UserMessage("hi"), AssistantMessage("", (CALL,)))
        assert isinstance(result, ToolMessage)
        assert "interrupted" in result.content
        assert end == UserMessage("[系统记录]\n  你的回答被打断了。")
        assert house.transport.sent == []


async def test_a_young_question_is_asked_again_once_with_the_words_it_had() -> None:
    async with restarted(words("yes")) as (house, recoverer):
        house.history.overhear(said("what was said since then", at=False))
        old = turn(asked("how are you?", ago=300))
        await recoverer.recover(Recovery(turns=(structs.replace(old, at=house.clock.now() - 110),)))
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.store.of("turn_closed")[1:])
        closed, opened = [entry for entry in house.store.entries if not isinstance(entry, MemberNumbered)][:2]
        assert isinstance(closed, TurnClosed)
        assert isinstance(opened, TurnOpened)
        assert (closed.turn_id, closed.stop, closed.round) == ("t0", Stop.INTERRUPTED, ())
        assert (opened.retry_of, opened.user) == ("t0", UserMessage("hi"))
        assert house.transport.texts == ["yes"]
        assert house.history.messages(GROUP) == (UserMessage("hi"), AssistantMessage("yes"))
        assert len(house.history.take_overheard(GROUP)) == 1


async def test_until_its_second_try_has_begun_a_turn_stays_open() -> None:
    """The process may end once more, and the next one must still know of it."""
    async with restarted(words("yes")) as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(asked()),)))
        assert house.store.entries == []
        await house.take(HELLO)
        assert house.transport.texts == ["yes"]


async def test_a_second_try_is_not_tried_again_its_asker_is_told() -> None:
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(asked(), retry_of="t9"),)))
        await until(lambda: house.transport.sent)
        assert house.transport.texts == [SORRY]


async def test_an_old_question_is_only_written_down() -> None:
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(asked(ago=130)),)))
        await house.lanes.wait_idle()
        assert len(house.store.of("turn_closed")) == 1
        assert house.transport.sent == []


async def test_a_question_recalled_before_its_second_try_is_closed_and_not_tried() -> None:
    question = asked()
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(question),)))
        await house.take(recall(question))
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.turn_id, closed.stop, closed.error) == ("t0", Stop.STOPPED, GIVEN_UP)


async def test_a_question_that_may_have_been_answered_is_not_answered_again() -> None:
    for state in (SendState.SENDING, SendState.UNKNOWN, SendState.CONFIRMED, SendState.DRAFT):
        async with restarted() as (house, recoverer):
            stored = send(state, final=True)
            unfinished = (stored,) if state in {SendState.SENDING, SendState.UNKNOWN} else ()
            old = turn(asked(), AssistantMessage("an answer"), sends=(stored,))
            await recoverer.recover(Recovery(turns=(old,), sends=unfinished))
            await house.lanes.wait_idle()
            assert house.transport.sent == []
            (closed,) = house.store.of("turn_closed")
            assert ("an answer" in str(closed)) is (state is not SendState.DRAFT)  # that nobody has read


async def test_an_answer_that_never_reached_the_wire_is_sent_instead_of_asking_again() -> None:
    async with restarted() as (house, recoverer):
        stored = send(SendState.QUEUED, final=True)
        await recoverer.recover(Recovery(turns=(turn(asked(), sends=(stored,)),), sends=(stored,)))
        await until(lambda: house.transport.sent)
        assert house.transport.texts == ["an answer"]


async def test_who_heard_half_of_it_is_told_and_nothing_runs_twice() -> None:
    half = turn(asked(), started=("send_message",), sends=(send(SendState.CONFIRMED, final=False),))
    began = [turn(asked(), started=(name,)) for name in ("pay", "undeclared", "send_message", "gone since")]
    for old in (half, *began):
        async with restarted() as (house, recoverer):
            await recoverer.recover(Recovery(turns=(old,)))
            await until(lambda: house.transport.sent)  # used in this round of the loop only
            assert house.transport.texts == [SORRY]
            (closed,) = house.store.of("turn_closed")
            assert isinstance(closed, TurnClosed)
            assert closed.round[1:] == (history_note(ZH, ZH.about.broken_off),)


async def test_who_had_nothing_but_harmless_calls_is_answered_now() -> None:
    async with restarted(words("yes")) as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(asked(), started=("look_up",)),)))
        await house.take(HELLO)
        assert house.transport.texts == ["yes"]


async def test_who_will_hear_half_of_it_is_told_too_and_the_half_is_not_said_twice() -> None:
    stored = send(SendState.QUEUED, final=False)
    half = turn(asked(), started=("send_message",), sends=(stored,))
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(half,), sends=(stored,)))
        await house.outbox.wait_idle()
        assert house.transport.texts == ["an answer", SORRY]


async def test_what_the_asker_is_told_is_written_down_with_the_end_of_the_turn() -> None:
    """Were it not, a process that ends between the two would leave the asker without a word."""
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(turns=(turn(asked(), started=("pay",)),)))
        closed, queued = house.store.entries[:2]
        assert isinstance(closed, TurnClosed)
        assert isinstance(queued, SendQueued)
        assert (queued.turn_id, queued.final, queued.state) == ("t0", True, SendState.QUEUED)
        await house.outbox.wait_idle()
        assert len(house.store.of("send_queued")) == 1


async def test_a_send_that_was_refused_is_passed_on_to_who_tells_askers() -> None:
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(sends=(structs.replace(send(SendState.REFUSED, final=True), reason="no"),)))
        passed_on = house.outbox.settled.get_nowait()
        assert passed_on.receipt.result() == Refused("no", by_server=True)
        assert (house.transport.sent, house.lost, house.outbox.unconfirmed.sends) == ([], [], [])


async def test_old_and_incomplete_sends_are_dropped_and_written_down_and_owners_hear_of_them() -> None:
    async with restarted() as (house, recoverer):
        old, torn = send(SendState.QUEUED, final=True, ago=200), send(SendState.QUEUED, final=True, whole=False)
        await recoverer.recover(Recovery(sends=(old, torn)))
        states = [entry.state for entry in house.store.entries if isinstance(entry, SendChanged)]
        assert states == [SendState.DROPPED, SendState.DROPPED]
        assert house.transport.sent == []
        assert house.lost == ["too old after a restart", "its media were not kept over a restart"]


async def test_a_question_whose_turn_had_not_begun_is_answered_if_it_is_young() -> None:
    async with restarted(words("yes")) as (house, recoverer):
        await recoverer.recover(Recovery(waking=(asked("old"),)))
        house.clock.time += 121
        await recoverer.recover(Recovery(waking=(asked("young", ago=300),)))  # the server's clock may be another
        assert house.transport.sent == []
        await house.take(HELLO)
        assert house.transport.texts == ["yes"]
        assert house.store.of("message_observed") == []
        assert len(house.store.of("message_overheard")) == 1


async def test_a_question_that_quotes_what_only_the_server_knows_waits_for_it() -> None:
    own = said("long ago", user=BOT, at=False, message_id="77")
    question = structs.replace(said((Quote("77"), Text("why?")), at=False), time=1_700_000_000.0 - 10)
    async with restarted(words("because")) as (house, recoverer):
        house.transport.known["77"] = own
        await recoverer.recover(Recovery(waking=(question,)))
        await house.take(Connected(self_id=20002, time=0.0))
        assert (house.transport.looked_up, house.store.entries) == ([], [])
        await house.take(HELLO)
        assert house.transport.texts == ["because"]


async def test_a_question_recalled_before_its_account_is_there_is_not_answered() -> None:
    question = asked()
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(waking=(question,)))
        await house.take(recall(question), HELLO)
        assert house.transport.sent == []


async def test_an_event_taken_before_the_restart_is_not_taken_again() -> None:
    message = said("hi")
    async with restarted() as (house, recoverer):
        await recoverer.recover(Recovery(seen=((message.identity, message.time),)))
        await house.take(message)
        assert house.transport.sent == []


async def test_a_turn_whose_question_was_recalled_is_closed_and_leaves_nothing_behind() -> None:
    said_already = send(SendState.CONFIRMED, final=False)
    for sends in ((), (said_already,)):
        async with restarted() as (house, recoverer):
            old = structs.replace(turn(asked(), sends=sends), recalled=True)
            await recoverer.recover(Recovery(turns=(old,)))
            await house.lanes.wait_idle()
            (closed,) = house.store.of("turn_closed")
            assert isinstance(closed, TurnClosed)
            assert (closed.turn_id, closed.stop, closed.round) == ("t0", Stop.STOPPED, ())
            assert house.transport.sent == []


# --- a store that cannot be read at the start -----------------------------------------------------


@asynccontextmanager
async def blind(*steps: Step) -> AsyncIterator[tuple[Hall, asyncio.Event]]:
    """A start at which the store cannot be read; it can once the event is set."""
    async with restarted(*steps) as (house, recoverer), asyncio.TaskGroup() as group:
        readable = asyncio.Event()

        async def sleep(seconds: float) -> None:
            await readable.wait()
            house.store.trouble = False

        house.store.trouble = True
        loader = StartupLoader((recoverer.load,), clock=house.clock)
        await loader.start()
        house.clock.sleep = sleep  # type: ignore[method-assign]  # one call of a fake is replaced
        running = group.create_task(loader.run())
        yield house, readable
        readable.set()
        await running


async def test_it_is_settled_later_and_new_questions_are_answered_meanwhile() -> None:
    old, waits = asked("interrupted"), asked("waits")
    async with blind(words("new"), words("old"), words("waited")) as (house, readable):
        house.store.recovery = Recovery(turns=(turn(old),), waking=(waits,))
        await house.take(HELLO, said("hello?"))
        assert house.transport.texts == ["new"]
        readable.set()
        await until(lambda: len(house.transport.sent) == 3)
        assert house.transport.texts == ["new", "old", "waited"]


async def test_what_was_said_into_a_turn_is_asked_again_with_its_question() -> None:
    async with restarted(words("for tomorrow")) as (house, recoverer):
        line = UserMessage("tomorrow", sources=("2",))
        interrupted = structs.replace(turn(asked()), messages=(AssistantMessage("hm"), line))
        await recoverer.recover(Recovery(turns=(interrupted,)))
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.store.of("turn_closed")[1:])
        assert house.history.messages(GROUP)[0] == UserMessage("hi\ntomorrow", sources=("2",))


async def test_what_came_again_meanwhile_is_not_asked_again() -> None:
    question, waits = asked("interrupted"), asked("waits")
    async with blind(words("one"), words("two")) as (house, readable):
        house.store.recovery = Recovery(
            turns=(turn(question),),
            waking=(waits,),
            seen=((question.identity, question.time), (waits.identity, waits.time)),
        )
        await house.take(HELLO, question, waits)
        readable.set()
        await until(lambda: len(house.store.of("turn_closed")) == 3)
        await house.lanes.wait_idle()
        assert house.transport.texts == ["one", "two"]


async def test_who_is_connected_already_is_caught_up_with_then() -> None:
    async with blind() as (house, readable):
        await house.take(HELLO, said("in between", at=False))
        assert house.arrived == [Arrival(BOT, ())]
        house.store.recovery = Recovery(active=((GROUP, 5.0),))
        readable.set()
        await until(lambda: house.arrived[1:] == [Arrival(BOT, ((GROUP, 5.0),))])


async def test_it_is_settled_once() -> None:
    async with restarted(words("yes")) as (house, recoverer):
        house.store.recovery = Recovery(turns=(turn(asked()),))
        loader = StartupLoader((recoverer.load,), clock=house.clock)
        await loader.start()
        await loader.run()
        await house.take(HELLO)
        assert house.transport.texts == ["yes"]


async def test_a_journal_that_is_not_whole_is_not_believed_to_be() -> None:
    older = asked()
    async with restarted() as (house, recoverer):
        house.store.recovery = Recovery(whole=False)
        assert await recoverer.load()
        assert house.seen.past_of(older) is Past.LOST
