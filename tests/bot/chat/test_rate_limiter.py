from __future__ import annotations

import asyncio
from dataclasses import replace

from msgspec import structs

from bot.budget.limits import LimitLevel
from bot.budget.spending import Spending
from bot.chat.tasks import Task
from bot.core.actions import React
from bot.core.conversation import Conversation
from bot.core.journal import OpenTurn
from bot.outbox.delivery import MAX_LINES
from bot.outbox.gestures import NOT_NOW
from bot.policy.wake import Rules, Silence, Wake
from frostagent.types.messages import Completion, ModelRequest, UserMessage
from frostagent.types.ports import Clock
from frostagent.types.traits import Rate
from tests.bot.hall import Hall, hall
from tests.fakes import GROUP as HERE
from tests.fakes import PRIVATE, said, until, words
from tests.fallback_lines import CROWDED, ENGLISH, NO_MORE, SLOW_DOWN

TWO = Rules(owners=frozenset({999}), user_rate=Rate(2, 60))


def refusals(house: Hall) -> list[str]:
    return [entry.reason for entry in house.verdicts if not entry.wakes]


async def test_who_asks_too_often_is_overheard_and_told_once_an_hour_then_by_a_sign_then_not_at_all() -> None:
    async with hall(*[words("ok")] * 5, rules=TWO) as house, house.gestures.open():
        for number in range(5):
            await house.take(said(f"question {number}", message_id=str(number)))
        await house.outbox.wait_idle()
        assert house.transport.texts == ["ok", "ok", ENGLISH[SLOW_DOWN]]
        await until(lambda: house.transport.gestures)
        assert house.transport.gestures == [React(HERE, "3", NOT_NOW)]
        assert refusals(house) == [Silence.USER] * 3
        house.clock.time += 61
        await house.take(said("later"))
        assert house.transport.texts[3:] == ["ok"]
        assert "question 4" in str(house.model.requests[-1].messages[-1])  # it was overheard
        house.clock.time += 3600 - 61 - 0.5
        house.rate_limiter.admit_command(said("/help"))
        assert [house.rate_limiter.admit_command(said("/help")) for _ in range(2)] == [True, False]
        await house.outbox.wait_idle()
        assert house.transport.texts[4:] == []  # it is not an hour yet
        house.clock.time += 61
        for number in range(3):
            await house.take(said(f"again {number}"))
        await house.outbox.wait_idle()
        assert house.transport.texts[4:] == ["ok", "ok", SLOW_DOWN]


class Spent(Spending):
    """Everybody's day is spent, until then."""

    def __init__(self, clock: Clock, *, ends: float) -> None:
        self._clock, self._ends = clock, ends

    def rung(self, where: Conversation, who: int) -> LimitLevel:
        return LimitLevel.SPENT if self._clock.now() < self._ends else LimitLevel.ALL

    def ends(self) -> float:
        return self._ends


async def test_whose_day_is_spent_is_told_once_that_day_and_then_shown_by_a_sign_each_time() -> None:
    async with hall() as house, house.gestures.open():
        stile = house.rate_limiter
        stile._spending = Spent(house.clock, ends=house.clock.time + 20_000)
        for number in range(4):
            assert stile.admit_today(Task(said("hi", message_id=str(number)), Wake("mention"), 0.0)) == Silence.DAY
            await house.outbox.wait_idle()
            house.clock.time += 4000
        assert stile.admit_today(Task(said("hi", user=5), Wake("mention"), 0.0)) == Silence.DAY
        await house.outbox.wait_idle()
        await until(lambda: len(house.transport.gestures) == 3)
        assert house.transport.texts == [NO_MORE] * 2
        assert [one.message_id for one in house.transport.gestures if isinstance(one, React)] == ["1", "2", "3"]
        house.clock.time += 4000
        assert stile.admit_today(Task(said("hi"), Wake("mention"), 0.0)) == ""
        stile._spending = Spent(house.clock, ends=house.clock.time + 20_000)
        assert stile.admit_today(Task(said("hi"), Wake("mention"), 0.0)) == Silence.DAY
        await house.outbox.wait_idle()
        assert house.transport.texts == [NO_MORE] * 3


async def test_a_persons_questions_are_counted_wherever_they_are_asked_and_an_owners_nowhere() -> None:
    async with hall(*[words("ok")] * 5, rules=TWO) as house:
        await house.take(said("one"), said("two", where=PRIVATE))
        await house.take(said("three", where=PRIVATE))
        for number in range(3):
            await house.take(said(f"owner {number}", user=999))
        assert house.transport.texts.count("ok") == 5
        assert refusals(house) == [Silence.USER]


async def test_a_group_is_counted_over_all_in_it_and_told_so_once_a_minute_the_others_by_a_sign() -> None:
    rules = Rules(group_rate=Rate(2, 100))
    async with hall(*[words("ok")] * 2, rules=rules) as house, house.gestures.open():
        for user in (1, 2, 3, 4):
            await house.take(said("hello", user=user, message_id=str(user)))
        await house.outbox.wait_idle()
        assert house.transport.texts == ["ok", "ok", CROWDED]
        await until(lambda: house.transport.gestures)
        assert house.transport.gestures == [React(HERE, "4", NOT_NOW)]
        assert refusals(house) == [Silence.GROUP] * 2
        house.clock.time += 61
        await house.take(said("hello", user=5))
        await house.outbox.wait_idle()
        assert house.transport.texts[3:] == [CROWDED]


async def test_a_command_is_one_of_its_senders_questions_wherever_it_is_typed_and_none_of_the_groups() -> None:
    rules = replace(TWO, group_rate=Rate(1, 60))
    async with hall(words("ok"), rules=rules) as house:
        lets = [house.rate_limiter.admit_command(said("/help", user=user)) for user in (777, 777, 777, 999, 999, 999)]
        assert lets == [True, True, False, True, True, True]
        await house.take(said("hello"), said("hello", user=5))
        await house.outbox.wait_idle()
        assert house.transport.texts == [SLOW_DOWN, "ok"]


async def test_where_lines_of_the_service_wait_already_a_sign_says_it() -> None:
    async with hall(rules=Rules(user_rate=Rate(1, 60))) as house, house.gestures.open():
        for user in range(1, 1 + MAX_LINES + 2):
            house.rate_limiter.admit_command(said("/help", user=user))
            house.rate_limiter.admit_command(said("/help", user=user, message_id=str(user)))
        await house.outbox.wait_idle()
        assert house.transport.texts == [SLOW_DOWN] * MAX_LINES
        await until(lambda: len(house.transport.gestures) == 2)


async def test_who_called_nobody_is_not_counted_but_the_group_is_for_an_owners_words_too() -> None:
    rules = replace(TWO, group_rate=Rate(4, 60))
    async with hall(rules=rules) as house:
        for user in (777, 777, 777, 999):
            line = Task(said("a line", user=user), Wake("chance", weak=True), 0.0)
            assert not house.rate_limiter.admit(line, is_earlier=False)
        await house.take(said("hello"))
        await house.outbox.wait_idle()
        assert (house.transport.texts, refusals(house)) == ([CROWDED], [Silence.GROUP])
        assert not house.rate_limiter.admit(Task(said("hi", where=PRIVATE), Wake("private"), 0.0), is_earlier=False)


async def test_a_turn_that_an_earlier_process_began_is_not_counted() -> None:
    rules = Rules(user_rate=Rate(1, 60))
    async with hall(words("ok"), words("ok"), rules=rules) as house:
        await house.take(said("new"))
        old = said("asked before", message_id="77")
        turn = OpenTurn(
            turn_id="t0", question=old, user=UserMessage("hi"), at=0.0, retry_of="", messages=(), started=(), sends=()
        )
        house.places.accounts.add(old.self_id)
        house.late.ask_again(old, retry=turn)
        await house.lanes.wait_idle()
        assert house.transport.texts == ["ok", "ok"]


async def test_what_joins_a_question_that_waits_is_none_of_its_own() -> None:
    gate = asyncio.Event()

    async def slow(_: ModelRequest) -> Completion:
        await gate.wait()
        return words("first")

    async with hall(slow, words("rest"), rules=TWO) as house:
        for number in range(5):
            await house.dispatcher.handle(said(f"line {number}"))
            await until(lambda: house.store.of("turn_opened"))
        gate.set()
        await house.lanes.wait_idle()
        assert house.transport.texts == ["first", "rest"]


async def test_each_question_that_nobody_comes_to_is_counted_and_its_asker_sees_a_sign_once_a_minute() -> None:
    async with hall() as house, house.gestures.open():
        elsewhere = structs.replace(HERE, session_id=1)
        for number, user, where in ((1, 7, HERE), (2, 7, HERE), (3, 8, HERE), (4, 7, elsewhere)):
            house.rate_limiter.turn_away(said("?", user=user, where=where, message_id=str(number)))
        house.clock.time += 59.5
        house.rate_limiter.turn_away(said("?", user=7, message_id="5"))
        house.clock.time += 0.5
        house.rate_limiter.turn_away(said("?", user=7, message_id="6"))
        await until(lambda: len(house.transport.gestures) == 4)
    shown = [(HERE, "1"), (HERE, "3"), (elsewhere, "4"), (HERE, "6")]
    assert house.transport.gestures == [React(where, number, NOT_NOW) for where, number in shown]
    assert house.rate_limiter.overflow == 6
