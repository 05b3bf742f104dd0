from __future__ import annotations

from msgspec import structs

from bot.chat.tasks import Task
from bot.core.errors import NotConnected
from bot.core.events import Connected, MessageReceived
from bot.policy.wake import Rules, Silence, Wake
from frostagent.types.speech import Quote, Text
from tests.bot.chat.test_recovery import turn
from tests.bot.hall import hall
from tests.cases import each_case
from tests.fakes import BOT, said, words


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


async def test_a_question_whose_latest_line_called_nobody_is_asked_when_the_account_is_back() -> None:
    async with hall(words("yes")) as house:
        call, aside = said("hi"), said("you know", at=False)
        task = Task(aside, Wake("mention"), house.clock.now(), lines=(call,), beside=(aside,))
        house.put_off.add(task)
        await house.take(Connected(self_id=BOT, time=0.0))
        assert house.transport.texts == ["yes"]


async def test_while_stopping_what_is_put_off_is_left_for_the_next_start_however_old_it_is() -> None:
    async with hall() as house:
        house.late.ask_again(said("hi"))
        house.clock.time += 121
        await house.lanes.finish(within=0)
        await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
        assert house.store.entries == []


@each_case("text", ["小霜真可爱", "I like tea"])
async def test_a_weak_wake_is_weak_still_when_its_turn_is_repeated(text: str) -> None:
    async with hall(words(""), rules=Rules(names=("小霜",), chance=1.0)) as house:
        question = said(text, at=False)
        house.late.ask_again(question, retry=turn(question))
        await house.take(Connected(self_id=BOT, time=0.0))
        await house.outbox.wait_idle()
        assert house.transport.sent == []
        assert house.store.of("turn_closed")


@each_case(
    ("text", "at", "blocked", "why"),
    [("you know", False, 0, ""), ("hi", True, 0, Silence.STALE), ("hi", True, 777, "the sender is blocked")],
)
async def test_what_is_not_asked_again_says_why_only_where_it_called(
    text: str, at: bool, blocked: int, why: str
) -> None:
    async with hall(rules=Rules(blocked=frozenset({blocked}))) as house:
        house.late.ask_again(said(text, at=at))
        house.clock.time += 121
        await house.take(Connected(self_id=BOT, time=0.0))
        reasons = [one.reason for one in house.verdicts]
        assert (reasons, len(house.store.of("message_overheard"))) == ([why] if why else [], 1)
