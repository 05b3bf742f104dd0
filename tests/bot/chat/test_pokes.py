"""A poke is answered by one line now and then, where the bot may speak and to whom it listens."""

from __future__ import annotations

from bot.core.conversation import Conversation
from bot.core.events import Poked
from bot.policy.wake import Rules
from tests.bot.hall import Hall, hall, muted
from tests.fakes import BOT, GROUP, PRIVATE
from tests.fallback_lines import HERE, HERE_IN_PRIVATE

APART = 60.0


def poked(where: Conversation = GROUP, *, by: int = 777, target: int = BOT, time: float = 0.0) -> Poked:
    return Poked(self_id=BOT, time=time, conversation=where, user_id=by, target_id=target)


async def poke(house: Hall, *events: Poked) -> list[str]:
    """Poke the bot; all that it has said by then."""
    await house.take(*events)
    await house.outbox.wait_idle()
    return house.transport.texts


async def test_a_poke_is_answered_once_a_minute_in_each_place_without_a_model() -> None:
    async with hall() as house:
        assert await poke(house, poked(), poked(by=778)) == [HERE]
        assert await poke(house, poked(PRIVATE)) == [HERE, HERE_IN_PRIVATE]
        house.clock.time += APART - 1
        assert len(await poke(house, poked(time=APART))) == 2
        house.clock.time += 1
        assert await poke(house, poked(time=APART)) == [HERE, HERE_IN_PRIVATE, HERE]


async def test_one_that_was_answered_is_not_answered_when_it_is_told_again_by_whichever_process() -> None:
    async with hall() as house:
        assert await poke(house, poked(), poked(PRIVATE)) == [HERE, HERE_IN_PRIVATE]
        kept = house.store.entries
        assert [type(one).__name__ for one in kept].index("PlaceSet") < [type(one).__name__ for one in kept].index(
            "SendQueued"
        )
    async with hall() as later:
        later.store.entries += kept
        assert await later.settings_store.load()
        assert not await poke(later, poked(), poked(PRIVATE), poked(time=APART - 1))
        assert await poke(later, poked(time=APART)) == [HERE]


async def test_pokes_that_waited_long_are_answered_by_one_line() -> None:
    async with hall() as house:
        assert await poke(house, *(poked(time=number * APART) for number in range(5))) == [HERE]


async def test_pokes_of_others_and_its_own_are_nothing_to_it() -> None:
    async with hall() as house:
        assert not await poke(house, poked(target=778), poked(by=BOT))


async def test_whom_it_does_not_listen_to_and_where_it_may_not_speak_gets_no_line() -> None:
    async with hall(rules=Rules(blocked=frozenset({777}), groups=frozenset({4242}))) as house:
        elsewhere = Conversation(BOT, "group", 5)
        assert not await poke(house, poked(), poked(elsewhere, by=778))
        await house.take(muted(600))
        assert not await poke(house, poked(by=778))
