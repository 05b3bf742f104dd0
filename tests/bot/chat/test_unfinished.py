from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from bot.chat.perception import Senses
from bot.chat.startup import Recoverer
from bot.core.events import MessageReceived
from bot.core.journal import OpenTurn, Recovery, Remembered, Round, UsageAdded
from bot.core.ports import Seen
from bot.core.segments import Picture
from bot.core.task_context import current_run
from bot.memory.personas import Cast, Persona
from frostagent.models.failover import ANSWER, Failover
from frostagent.models.tokens import PICTURE
from frostagent.models.upstreams import Upstream
from frostagent.types.messages import AssistantMessage, UserMessage
from frostagent.types.ports import ChatModel
from frostagent.types.speech import Text
from tests.bot.hall import Hall
from tests.fakes import GROUP, CountingIds, ManualClock, RecordingStore, ScriptedModel, Step, said, until, words

ROUND = Round("t-1", (UserMessage("[提问]\n小明#1: and before?"), AssistantMessage("that was then " * 40)))


def failover_of(model: ChatModel) -> Failover:
    return Failover([Upstream(model)], clock=ManualClock(), ids=CountingIds())


def recoverer_of(house: Hall, model: ChatModel) -> Recoverer:
    return Recoverer(
        store=house.store,
        history=house.history,
        context_builder=house.context_builder,
        model=failover_of(model),
        seen=house.seen,
        rate_limiter=house.rate_limiter,
        late_messages=house.late,
        suspensions=house.suspensions,
        turn_journal=house.ledger,
        outbox=house.outbox,
        toolset=house.toolset,
        clock=house.clock,
    )


@asynccontextmanager
async def restarted(*steps: Step) -> AsyncIterator[tuple[Hall, Recoverer]]:
    """A process that begins, after a round that an earlier one has kept."""
    with ScriptedModel(*steps) as model:
        house = Hall(model)
        house.model = model
        house.store.remembered[GROUP] = Remembered((ROUND,))
        async with asyncio.timeout(30), house.outbox.open():
            yield house, recoverer_of(house, model)


def cut_off(question: MessageReceived | None = None, *, turn_id: str = "t0", uncounted: bool = True) -> OpenTurn:
    question = question or said("hi")
    return OpenTurn(
        turn_id=turn_id,
        question=question,
        user=UserMessage("[提问]\n小明#1: hi", sources=(question.message_id,)),
        at=question.time,
        retry_of="",
        messages=(),
        started=(),
        sends=(),
        uncounted=uncounted,
    )


def added(store: RecordingStore) -> UsageAdded:
    """The only entry."""
    (entry,) = store.entries
    assert isinstance(entry, UsageAdded)
    return entry


async def test_a_request_that_was_cut_off_counts_as_much_as_is_reserved_when_it_is_made_again() -> None:
    async with restarted(words("yes")) as (house, recoverer):
        turn = cut_off()
        house.store.recovery = left = Recovery(turns=(turn,))
        assert await recoverer.read() == left
        taken = added(house.store)
        await house.turns.answer(turn.question, retry=turn)
        (request,) = house.model.requests
    assert "that was then" in request.messages[2].text
    assert len(request.tools) == 1
    name, usage = failover_of(house.model).estimate(request)
    assert usage.completion == ANSWER
    assert (taken.turn_id, taken.step, taken.model, taken.usage) == ("t0", 1, name, usage)
    assert taken.payer is None  # the turn says it


async def test_of_turns_that_a_row_tells_of_nothing_is_counted() -> None:
    async with restarted() as (house, recoverer):
        counted, not_yet = cut_off(turn_id="t0", uncounted=False), cut_off(turn_id="t1")
        house.store.recovery = Recovery(turns=(counted,))
        await recoverer.read()
        assert (house.store.entries, house.store.asked) == ([], [])
        house.store.recovery = Recovery(turns=(counted, not_yet))
        await recoverer.read()
        assert added(house.store).turn_id == "t1"


async def test_a_persona_has_its_own_model_counted() -> None:
    async with restarted() as (house, recoverer):
        with ScriptedModel() as own:
            own.name = "own@elsewhere"
            cast = Cast(Persona("be nice", "Frost", model=failover_of(own)))
            house.personas.become(cast)
            house.store.recovery = Recovery(turns=(cut_off(),))
            await recoverer.read()
    assert added(house.store).model == "own@elsewhere"


async def test_pictures_of_the_question_count_where_they_are_seen() -> None:
    class Blurred:
        async def see(self, account: int, image: Picture) -> Seen:
            raise AssertionError("nobody looks at the start")

    taken = []
    for sight in (None, Blurred()):
        async with restarted() as (house, recoverer):
            house.perception._senses = Senses(sight)
            question = said((Text("hi"), Picture("a.png"), Picture("b.png")))
            house.store.recovery = Recovery(turns=(cut_off(question),))
            await recoverer.read()
            taken.append(added(house.store).usage.prompt)
    blind, seeing = taken
    assert 2 * PICTURE - 500 < seeing - blind < 2 * PICTURE + 500  # a blind one is told of that


async def test_what_is_counted_is_no_run_of_the_process_and_leaves_nothing_of_the_history_as_it_was() -> None:
    async with restarted(words("yes")) as (house, recoverer):
        house.store.recovery = Recovery(turns=(cut_off(),))
        before = current_run.get()
        await recoverer.read()
        assert current_run.get() == before
        closed = Round("t0", (UserMessage("[提问]\n小明#1: hi"), AssistantMessage("broken off")))
        house.store.remembered[GROUP] = Remembered((ROUND, closed))
        await house.turns.answer(said("what now?"))
        (request,) = house.model.requests
    assert AssistantMessage("broken off") in request.messages


async def test_what_came_while_it_was_counted_is_read() -> None:
    async with restarted() as (house, recoverer):
        turn = cut_off()
        house.store.recovery = Recovery(turns=(turn,))
        recalled = Recovery(turns=(replace(turn, recalled=True),))

        async with asyncio.TaskGroup() as group:
            reading = group.create_task(recoverer.read())
            await until(lambda: house.store.asked)
            house.store.recovery = recalled
        assert reading.result() == recalled
        assert added(house.store).turn_id == "t0"


async def test_where_the_journal_cannot_be_read_any_more_nothing_is_counted_yet() -> None:
    async with restarted() as (house, recoverer):
        house.store.recovery = Recovery(turns=(cut_off(),))
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(recoverer.read())
            await until(lambda: house.store.asked)
            house.store.trouble = True
        assert reading.result() is None
        assert house.store.entries == []
        house.store.trouble = False
        await recoverer.read()
        assert added(house.store).turn_id == "t0"
