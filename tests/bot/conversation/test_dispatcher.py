from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from bot.conversation.dispatcher import Dispatcher
from bot.conversation.perception import Perception
from bot.domain.chat import Completion, ModelRequest, UserMessage
from bot.domain.errors import NotConnected
from bot.domain.events import (
    AccountChanged,
    Connected,
    Event,
    Heartbeat,
    MessageRecalled,
    MessageReceived,
    MessageSent,
    Muted,
)
from bot.domain.journal import MessageObserved, OpenTurn
from bot.domain.segments import Card, Forward, Quote, Text
from bot.policy.apologies import BUSY
from bot.policy.wake import Rules
from tests.bot.conversation.test_turn import House
from tests.fakes import BOT, GROUP, PRIVATE, ScriptedModel, Step, said, words


class Hall(House):
    """A house with its dispatcher at work."""

    def __init__(self, model: ScriptedModel, rules: Rules | None = None) -> None:
        super().__init__(model)
        self.dispatcher = Dispatcher(
            rules=rules or Rules(names=("小霜",)),
            turns=self.turns,
            perception=Perception(transport=self.transport, history=self.history),
            history=self.history,
            store=self.store,
            outbox=self.outbox,
            owner=self.owner,
            approvals=self.approvals,
            clock=self.clock,
        )

    async def take(self, *events: Event) -> None:
        for event in events:
            await self.dispatcher.handle(event)
        await self.dispatcher.lanes.wait_idle()


@asynccontextmanager
async def hall(*steps: Step, rules: Rules | None = None) -> AsyncIterator[Hall]:
    with ScriptedModel(*steps) as model:
        house = Hall(model, rules)
        async with asyncio.timeout(5), house.outbox.open(), house.dispatcher.lanes.open():
            yield house


async def test_an_event_delivered_twice_is_answered_once() -> None:
    async with hall(words("hello")) as house:
        message = said("hi")
        await house.take(message, message)
        await house.take(message)
        assert house.transport.texts == ["hello"]
        assert house.dispatcher.duplicates == 2


async def test_messages_without_a_usable_id_are_all_answered() -> None:
    async with hall(words("a"), words("b")) as house:
        await house.take(said("hi", message_id="0"), said("hi", message_id="0"))
        assert [action.segments for action in house.transport.sent] == [(Text("a"),), (Text("b"),)]


async def test_the_same_id_in_another_group_or_account_is_another_message() -> None:
    elsewhere = type(GROUP)(BOT, "group", 4343)
    async with hall(words("a"), words("b")) as house:
        await house.take(said("hi", message_id="5"), said("hi", message_id="5", where=elsewhere))
        assert sorted(house.transport.texts) == ["a", "b"]


async def test_an_event_repeated_long_after_the_window_is_new_again() -> None:
    async with hall(words("a"), words("b")) as house:
        message = said("hi")
        await house.take(message)
        house.clock.time += 601
        await house.take(message)
        assert house.transport.texts == ["a", "b"]


async def test_own_messages_never_wake() -> None:
    async with hall() as house:
        await house.take(said("小霜 hi", user=BOT), said("hi", user=BOT, where=PRIVATE))
        assert house.transport.sent == []


async def test_what_is_not_addressed_is_observed_and_read_with_the_next_question() -> None:
    async with hall(words("tea")) as house:
        await house.take(said("I like tea", user=5, name="小红", at=False), said("what does she like?"))
        user = house.history.messages(GROUP)[0]
        assert isinstance(user, UserMessage)
        assert "小红(5): I like tea" in user.text


async def test_a_quote_of_the_bot_wakes_without_a_mention_and_a_quote_of_others_does_not() -> None:
    async with hall(words("first"), words("because")) as house:
        await house.take(said("hi"))
        await house.take(said((Quote("9001"), Text("why?")), at=False))
        await house.take(said("talk", user=5, message_id="77", at=False))
        await house.take(said((Quote("77"), Text("really?")), at=False))
        assert house.transport.texts == ["first", "because"]
        overheard = house.history.take_overheard(GROUP)
        assert [message.segments[-1] for message in overheard] == [Text("talk"), Text("really?")]


async def test_a_message_sent_by_the_account_elsewhere_is_known_when_it_is_quoted() -> None:
    sent = MessageSent(self_id=BOT, time=0.0, conversation=GROUP, message_id="88", segments=(Text("from my phone"),))
    async with hall(words("yes")) as house:
        await house.take(sent, said((Quote("88"), Text("was that you?")), at=False))
        assert house.transport.texts == ["yes"]


async def test_a_recalled_question_is_not_answered() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with hall(think, words("second")) as house:
        await house.dispatcher.handle(said("first", message_id="61"))
        await house.dispatcher.handle(said("second", message_id="62"))
        await asked.wait()
        await house.take(recalled("61"))
        assert house.transport.texts == ["second"]


async def test_a_recalled_remark_is_not_read() -> None:
    async with hall(words("ok")) as house:
        await house.take(said("my password is 1234", message_id="63", at=False), recalled("63"), said("hi"))
        user = house.history.messages(GROUP)[0]
        assert isinstance(user, UserMessage)
        assert "1234" not in user.text


def recalled(message_id: str) -> MessageRecalled:
    return MessageRecalled(
        self_id=BOT, time=0.0, conversation=GROUP, message_id=message_id, user_id=777, operator_id=777
    )


def muted(seconds: int, user_id: int = BOT) -> Muted:
    return Muted(self_id=BOT, time=0.0, conversation=GROUP, user_id=user_id, operator_id=1, seconds=seconds)


async def test_a_muted_bot_does_not_ask_the_model_until_the_mute_ends() -> None:
    async with hall(words("a"), words("b"), words("c")) as house:
        await house.take(muted(60), said("hi"))
        assert house.transport.sent == []
        house.clock.time += 61
        await house.take(said("hi"))
        await house.take(muted(-1, user_id=0), said("hi"), muted(0, user_id=0), said("hi"))
        await house.take(muted(60, user_id=5), said("hi"))
        assert house.transport.texts == ["a", "b", "c"]


async def test_a_mute_whose_end_was_missed_is_not_believed_after_a_reconnect() -> None:
    async with hall(words("a")) as house:
        await house.take(muted(-1, user_id=0), said("hi"), Connected(self_id=BOT, time=0.0), said("hi"))
        assert house.transport.texts == ["a"]


async def test_our_other_account_is_heard_but_never_answered() -> None:
    async with hall(words("ok")) as house:
        await house.take(Connected(self_id=20002, time=0.0), said("hi bot", user=20002), said("hi"))
        assert house.transport.texts == ["ok"]
        user = house.history.messages(GROUP)[0]
        assert "hi bot" in str(user)


async def test_a_quote_of_a_message_in_memory_takes_no_place_in_the_lane() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("slow")

    async with hall(think, words("fast")) as house:
        await house.dispatcher.handle(said("talk", user=5, message_id="77", at=False))
        await house.dispatcher.handle(said("first"))
        for _ in range(60):
            await house.dispatcher.handle(said((Quote("77"), Text("really?")), at=False))
        await house.dispatcher.handle(said("second"))
        gate.set()
        await house.dispatcher.lanes.wait_idle()
        assert house.transport.texts == ["slow", "fast"]


async def test_a_huge_card_or_forward_is_not_kept() -> None:
    async with hall() as house:
        heavy = (Forward("f1", content="x" * 1_000_000), Card("json", data="y" * 1_000_000, prompt="news"))
        await house.take(said(heavy, at=False, message_id="70"))
        kept = house.history.known(GROUP, "70")
        assert kept is not None
        assert len(repr(kept)) < 3000


async def test_rules_decide_who_is_answered() -> None:
    rules = Rules(groups=frozenset({4242}), blocked=frozenset({666}))
    elsewhere = type(GROUP)(BOT, "group", 4343)
    async with hall(words("ok"), rules=rules) as house:
        await house.take(said("hi", where=elsewhere), said("hi", user=666), said("hi"))
        assert house.transport.texts == ["ok"]
        assert house.history.take_overheard(elsewhere) == ()


async def test_a_quote_nobody_can_look_up_without_a_connection_waits_for_one() -> None:
    async with hall(words("because")) as house:
        look_up = house.transport.get_message

        async def away(account: int, message_id: str) -> MessageReceived | None:
            raise NotConnected("away")

        house.transport.known["77"] = said("mine", user=BOT, at=False, message_id="77")
        house.transport.get_message = away  # type: ignore[method-assign]  # one call of a fake is replaced
        message = structs.replace(said((Quote("77"), Text("why?")), at=False), time=house.clock.now())
        await house.take(message)
        assert house.store.of("message_overheard") == []
        house.transport.get_message = look_up  # type: ignore[method-assign]  # and put back
        await house.take(Connected(self_id=BOT, time=0.0))
        assert house.transport.texts == ["because"]


async def test_a_flood_beyond_the_lane_is_observed_not_answered_and_its_askers_told_once() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("ok")

    async with hall(think, *[words("ok")] * 50) as house:
        await house.dispatcher.handle(said("0"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in range(60):
            await house.dispatcher.handle(said(str(number + 1)))
        gate.set()
        await house.dispatcher.lanes.wait_idle()
        assert len(house.transport.sent) == 52
        told = [action for action in house.transport.sent if Text(BUSY) in action.segments]
        observed = [entry.message for entry in house.store.entries if isinstance(entry, MessageObserved)]
        assert [action.segments[0] for action in told] == [Quote(observed[51].message_id)]  # the first without a place
        assert house.dispatcher.overflow.count == 10
        assert len(house.store.of("message_overheard")) == 10


async def test_other_events_are_taken_quietly() -> None:
    async with hall() as house:
        await house.take(
            Connected(self_id=BOT, time=0.0),
            Heartbeat(self_id=BOT, time=0.0, online=True, interval=30.0),
            AccountChanged(self_id=BOT, time=0.0, online=False, reason="kicked"),
        )
        assert house.transport.sent == []


async def test_waiting_for_a_message_to_be_settled_waits_for_its_answer() -> None:
    async with hall(words("ok")) as house:
        message = said("hi")
        async with asyncio.TaskGroup() as group:
            settled = group.create_task(house.dispatcher.wait_settled(message.identity))
            await asyncio.sleep(0)
            assert not settled.done()
            await house.dispatcher.handle(message)
        assert house.transport.texts == ["ok"]


async def test_while_stopping_a_run_ends_and_every_other_question_is_left_in_the_journal() -> None:
    asked, gate = asyncio.Event(), asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await gate.wait()
        return words("hello")

    async with hall(think) as house, asyncio.TaskGroup() as group:
        dispatcher = house.dispatcher
        await dispatcher.handle(said("first", message_id="1"))
        await asked.wait()
        await dispatcher.handle(said("waiting", message_id="2"))
        stopping = group.create_task(dispatcher.finish(within=5))
        await asyncio.sleep(0)
        assert dispatcher.stopping
        await dispatcher.handle(said("late", message_id="3", where=PRIVATE))
        dispatcher.ask_again(said("put off", message_id="4"))
        await dispatcher.handle(Connected(self_id=BOT, time=0.0))
        assert not dispatcher.resume(GROUP, "t9", {})
        gate.set()
        await stopping
        assert house.transport.texts == ["hello"]
        assert len(house.store.of("message_observed")) == 3
        assert house.store.of("message_overheard") == []
        assert len(house.store.of("turn_opened")) == len(house.store.of("turn_closed")) == 1


async def test_a_question_whose_quote_is_looked_up_while_stopping_is_not_begun() -> None:
    looking, gate = asyncio.Event(), asyncio.Event()

    async with hall() as house, asyncio.TaskGroup() as group:
        mine = said("mine", user=BOT, at=False, message_id="77")

        async def look_up(account: int, message_id: str) -> MessageReceived | None:
            looking.set()
            await gate.wait()
            return mine

        house.transport.get_message = look_up  # type: ignore[method-assign]  # one call of a fake is replaced
        await house.dispatcher.handle(said((Quote("77"), Text("why?")), at=False))
        await looking.wait()
        stopping = group.create_task(house.dispatcher.finish(within=5))
        await asyncio.sleep(0)
        gate.set()
        await stopping
        assert house.store.of("turn_opened") == house.store.of("message_overheard") == []


async def test_a_run_that_is_cut_off_leaves_its_turn_open(caplog: pytest.LogCaptureFixture) -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await asyncio.Event().wait()
        return words("never")

    async with hall(think) as house:
        await house.dispatcher.handle(said("hi"))
        await asked.wait()
        await house.dispatcher.finish(within=0)
        assert len(house.store.of("turn_opened")) == 1
        assert house.store.of("turn_closed") == []
    assert "runs that are cut off: 1" in caplog.text


async def test_an_interrupted_question_that_finds_no_place_is_told_so() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("ok")

    old = said("asked before", message_id="77")
    turn = OpenTurn(
        turn_id="t0",
        question=old,
        user=UserMessage("hi"),
        at=0.0,
        retry_of="",
        messages=(),
        started=(),
        sends=(),
    )
    async with hall(think, *[words("ok")] * 50) as house:
        for number in range(51):
            await house.dispatcher.handle(said(str(number)))
            await asyncio.sleep(0)
        await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
        house.dispatcher.ask_again(old, retry=turn)
        gate.set()
        await house.dispatcher.lanes.wait_idle()
        told = [action for action in house.transport.sent if Text(BUSY) in action.segments]
        assert [action.segments[0] for action in told] == [Quote("77")]
        assert getattr(house.store.of("turn_closed")[0], "turn_id", "") == "t0"


async def test_a_message_found_in_a_history_without_an_identity_or_of_ours_is_nothing() -> None:
    async with hall() as house:
        for message in (said("hi", message_id="0"), said("hi", user=BOT, message_id="5")):
            house.dispatcher.take_missed(message)
        await house.dispatcher.lanes.wait_idle()
        assert house.store.entries == []


async def test_where_the_bot_is_muted_nobody_is_asked_to_ask_again() -> None:
    async with hall() as house:
        house.dispatcher.preload([], [], whole=False)
        old = structs.replace(said("hi"), time=house.clock.now() - 10)
        await house.take(muted(60))
        house.dispatcher.take_missed(old)
        await house.outbox.wait_idle()
        assert house.transport.sent == []
        assert len(house.store.of("message_observed")) == 1
