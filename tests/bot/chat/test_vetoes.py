from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from msgspec import structs

from bot.chat.tasks import Task
from bot.core.segments import Mention
from bot.memory.modes import Mode
from bot.policy.wake import Observe, Rules, Silence, Wake
from bot.quiet.rule import Hours, Quiet, QuietRule
from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.speech import Quote, Text
from frostagent.types.traits import Audience
from tests.bot.chat.test_blocked_words import Loan
from tests.bot.hall import Hall, hall, muted
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, Step, said, until, words

LOOPING = Rules(loop=6)


def verdicts(house: Hall) -> list[tuple[bool, str]]:
    return [(entry.wakes, entry.reason) for entry in house.verdicts]


def gated(answer: str) -> tuple[asyncio.Event, Step]:
    """A model that answers once it may."""
    gate = asyncio.Event()

    async def think(_: ModelRequest) -> Completion:
        await gate.wait()
        return words(answer)

    return gate, think


async def test_a_question_that_waited_too_long_is_not_answered_but_read() -> None:
    gate, slow = gated("first")
    async with hall(slow, words("third"), rules=Rules(stale=120)) as house:
        for user, text in ((5, "one"), (777, "two")):
            await house.dispatcher.handle(said(text, user=user))
        await until(lambda: house.store.of("turn_opened"))
        house.clock.time += 121
        gate.set()
        await house.lanes.wait_idle()
        assert verdicts(house) == [(True, "mention"), (True, "mention"), (False, Silence.STALE)]
        await house.take(said("three"))
        assert house.transport.texts == ["first", "third"]
        assert "two" in str(house.model.requests[-1].messages[-1])


async def test_what_was_found_later_waited_since_it_was_said() -> None:
    gate, slow = gated("first")
    async with hall(slow, rules=Rules(stale=120)) as house:
        await house.dispatcher.handle(said("one"))
        await until(lambda: house.store.of("turn_opened"))
        house.clock.time += 10
        house.late.preload([], [])
        house.late.take_missed(structs.replace(said("two"), time=house.clock.time - 100))
        house.clock.time += 21
        gate.set()
        await house.lanes.wait_idle()
        assert (house.transport.texts, verdicts(house)[-1]) == (["first"], (False, Silence.STALE))


@each_case("ahead", [0, 7200])
async def test_what_a_server_tells_late_is_not_answered_but_read_whichever_clock_is_wrong(ahead: int) -> None:
    async with hall(words("yes"), rules=Rules(stale=120)) as house:
        house.late.preload([], [])
        now = house.clock.time - ahead
        await house.take(structs.replace(said("hi", at=False), time=now))
        for age in (122, 120):
            await house.take(structs.replace(said(f"{age} s old"), time=now - age))
        assert (house.transport.texts, verdicts(house)) == (["yes"], [(False, Silence.STALE), (True, "mention")])
        assert "122 s old" in str(house.model.requests[0].messages[-1])


async def test_what_is_young_when_it_comes_may_be_too_old_when_its_turn_does() -> None:
    gate, slow = gated("first")
    async with hall(slow, rules=Rules(stale=120)) as house:
        await house.dispatcher.handle(structs.replace(said("one"), time=house.clock.time))
        await until(lambda: house.store.of("turn_opened"))
        house.late.preload([], [])
        await house.dispatcher.handle(structs.replace(said("two", user=5), time=house.clock.time - 100))
        house.clock.time += 30
        gate.set()
        await house.lanes.wait_idle()
        assert (house.transport.texts, verdicts(house)[-2:]) == (["first"], [(True, "mention"), (False, Silence.STALE)])


async def test_the_server_of_one_account_tells_nothing_of_anothers() -> None:
    async with hall(words("yes"), rules=Rules(stale=120)) as house:
        house.late.preload([], [])
        await house.take(said("hi", at=False))
        elsewhere = structs.replace(GROUP, platform_id=BOT + 1)
        hours_behind = said((Mention(BOT + 1), Text("hi")), where=elsewhere, at=False)
        await house.take(structs.replace(hours_behind, self_id=BOT + 1, time=1e9))
        assert house.transport.texts == ["yes"]


async def test_where_the_operator_wants_it_no_question_waits_too_long() -> None:
    gate, slow = gated("first")
    async with hall(slow, words("second"), rules=Rules(stale=0)) as house:
        for user, text in ((5, "one"), (777, "two")):
            await house.dispatcher.handle(said(text, user=user))
        await until(lambda: house.store.of("turn_opened"))
        house.clock.time += 10_000
        gate.set()
        await house.lanes.wait_idle()
        assert house.transport.texts == ["first", "second"]


async def test_a_question_in_front_of_which_the_bot_was_muted_is_not_asked() -> None:
    gate, slow = gated("first")
    async with hall(slow) as house:
        await house.dispatcher.handle(said("one"))
        await until(lambda: house.model.requests)
        for event in (said("two"), muted(60), said("three")):
            await house.dispatcher.handle(event)
        gate.set()
        await house.lanes.wait_idle()
        assert verdicts(house) == [(True, "mention")] * 2 + [(False, Silence.MUTED)] * 3


async def test_two_bots_that_answer_each_other_are_cut_off_and_the_owner_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with hall(*[words(f"answer {n}") for n in range(6)], words("again"), rules=LOOPING) as house:
        house.owner.connected(BOT)
        for number in range(10):
            await house.take(said(f"{number}" * 9, user=5, name="霜狐\n#A1 同意"))
            house.clock.time += 1
        await house.outbox.wait_idle()
        asked = [text for text in house.transport.texts if text.startswith("answer")]
        told = [text for text in house.transport.texts if "霜狐 A1 同意(5)" in text]
        assert (len(asked), len(told), caplog.text.count("for the owner")) == (6, 1, 1)
        assert verdicts(house)[-1] == (False, Silence.LOOP)
        looped = [one.until for one in house.verdicts if one.reason == Silence.LOOP]
        assert looped == [house.clock.time - len(looped) + 600] * len(looped)  # from the first of them on
        assert [one.until for one in house.verdicts if one.wakes] == [0] * 6
        assert house.wake_classifier.end(said("hi", user=6), Silence.LOOP) == 0
        house.clock.time += 600
        await house.take(said("still there?", user=5))
        assert house.transport.texts[-1] == "again"


async def test_an_owner_may_be_as_fast_as_he_likes() -> None:
    async with hall(*[words("ok")] * 9, rules=replace(LOOPING, owners=frozenset({5}))) as house:
        for _ in range(9):
            await house.take(said("again", user=5))
        assert house.transport.texts == ["ok"] * 9


async def test_quotes_that_had_to_be_looked_up_are_wakes_of_a_loop_too() -> None:
    async with hall(*[words("ok")] * 6, rules=LOOPING) as house:
        for number in range(8):
            house.transport.known[f"q{number}"] = said("x", user=BOT, at=False, message_id=f"q{number}")
            await house.take(said((Quote(f"q{number}"), Text("again and again")), user=5, at=False))
        assert house.transport.texts == ["ok"] * 6
        assert verdicts(house)[-2:] == [(True, "quote"), (False, Silence.LOOP)]


async def test_a_question_in_front_of_which_the_bot_was_silenced_is_not_asked() -> None:
    gate, slow = gated("first")
    async with hall(slow) as house:
        for user, text in ((5, "one"), (777, "two")):
            await house.dispatcher.handle(said(text, user=user))
        await until(lambda: house.store.of("turn_opened"))
        await house.quiet_hours.mute(GROUP)
        gate.set()
        await house.lanes.wait_idle()
        assert (house.transport.texts, verdicts(house)[-1]) == (["first"], (False, Silence.SILENCED))
        assert house.verdicts[-1].until == 0


async def test_where_it_is_quiet_nobody_joins_in_and_a_name_beside_a_quote_is_no_call() -> None:
    async with hall(rules=Rules(names=("小霜",), chance=1.0)) as house:
        await house.quiet_hours.keep_quiet(GROUP, house.clock.now() + 600)
        house.transport.known["q"] = said("x", at=False, message_id="q")
        await house.take(said("anybody?", at=False), said((Quote("q"), Text("小霜，看看")), at=False))
        assert (house.model.requests, verdicts(house)) == ([], [(True, "name"), (False, Silence.QUIET)])
        assert [one.until for one in house.verdicts] == [0, house.clock.now() + 600]


async def test_the_first_veto_is_the_reason_in_the_order_of_arrivals_and_in_that_of_lanes() -> None:
    async with hall(rules=Rules(stale=120, loop=1)) as house:
        judged = house.wake_classifier
        judged._blocked_words._words = Loan()
        await house.quiet_hours.mute(GROUP)
        line = said("a loan?", user=5)
        asked = Task(line, Wake("quote"), house.clock.now() - 121)
        assert judged.judge_arrival(line, judged.gather_facts(line)) == Observe(Silence.WORDS)
        assert [
            judged.judge_in_lane(structs.replace(asked, looked_up=one), judged.gather_facts(line))
            for one in (False, True)
        ] == [
            Silence.SILENCED,
            Silence.SILENCED,
        ]
        await house.quiet_hours.end_override(GROUP)
        assert [
            judged.judge_in_lane(structs.replace(asked, looked_up=one), judged.gather_facts(line))
            for one in (False, True)
        ] == [
            Silence.WORDS,
            Silence.WORDS,
        ]
        house.mutes.apply(muted(60))
        assert judged.judge_arrival(line, judged.gather_facts(line)) == Observe(Silence.MUTED)
        assert judged.judge_in_lane(asked, judged.gather_facts(line)) == Silence.MUTED
        assert not judged.would_answer(said("hi"))


async def test_talk_that_is_not_for_the_bot_has_no_verdict() -> None:
    async with hall() as house:
        await house.take(said("hi", at=False), said((Quote("7"), Text("why?")), at=False))
        assert verdicts(house) == []
        assert len(house.history.take_overheard(GROUP)) == 2


async def test_in_a_group_that_is_not_live_only_owners_commands_are_answered() -> None:
    async with hall() as house:
        for mode in Mode:
            house.modes.put(GROUP, mode)
            live = Audience.EVERYONE if mode is Mode.LIVE else Audience.OWNER
            is_held = mode not in {Mode.LIVE, Mode.SHADOW}
            assert (house.wake_classifier.commanders(GROUP), house.modes.is_held(GROUP)) == (live, is_held)


async def test_where_nobody_but_owners_is_answered_only_a_groups_admins_command() -> None:
    rules = Rules(quiet=QuietRule((Hours(0, 1440),), Quiet.ALL))
    async with hall(rules=rules) as house:
        commanders = house.wake_classifier.commanders
        assert (commanders(GROUP), commanders(PRIVATE)) == (Audience.GROUP_ADMIN, Audience.EVERYONE)
        await house.quiet_hours.mute(PRIVATE)
        assert commanders(PRIVATE) is Audience.GROUP_ADMIN
