"""What one question may take, where it is counted: in the attempts at a model; and how its rounds are told."""

from __future__ import annotations

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.journal import Remembered, Round
from bot.memory.history import History
from frostagent.engine.budget import Budget, Limits
from frostagent.types.errors import ModelAuth, ModelOverloaded, ToolsUnsupported
from frostagent.types.messages import AssistantMessage, Message, UserMessage
from tests.fakes import GROUP, RecordingStore, words
from tests.frostagent.several_models import REQUEST, TOOLS, Bench, one


async def test_each_attempt_but_the_first_is_counted_and_none_is_made_that_may_not_be() -> None:
    share = Budget(Limits(requests=3)).share()
    share.begin()
    bench = one(*[ModelOverloaded("busy")] * 3)
    assert await bench.ask(replace(REQUEST, allowance=share)) == "overloaded: busy"
    assert (len(bench.asked), share.budget.spent.requests) == (3, 3)
    assert len(bench.clock.slept) == 2


async def test_attempts_elsewhere_and_of_a_changed_request_count_as_well() -> None:
    share = Budget(Limits(requests=9)).share()
    share.begin()
    bench = Bench(([ToolsUnsupported("no tools"), ModelAuth("no")],), ([words("hi")],))
    assert await bench.ask(replace(REQUEST, tools=TOOLS, allowance=share)) == "hi"
    assert (len(bench.asked), share.budget.spent.requests) == (3, 3)


async def test_a_round_is_told_as_it_is_to_be_told_and_stored_as_it_was_before_and_after_a_restart() -> None:
    def shorter(where: Conversation, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return (*messages[:-1], AssistantMessage(f"{where.session_id}"))

    store = RecordingStore()
    history = History(store=store, told=shorter)
    await history.load(GROUP)
    kept = history.add_round(GROUP, "t1", UserMessage("one"), (AssistantMessage("two"),))
    assert kept == (UserMessage("one"), AssistantMessage("two"))
    told = history.messages(GROUP)
    assert told == (UserMessage("one"), AssistantMessage(f"{GROUP.session_id}"))
    store.remembered[GROUP] = Remembered((Round("t1", kept),), ())
    after = History(store=store, told=shorter)
    await after.load(GROUP)
    assert after.messages(GROUP) == told
