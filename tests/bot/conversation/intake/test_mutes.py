from __future__ import annotations

import pytest

from bot.conversation.intake.mutes import MAX_MUTE, UNCERTAIN_MUTE, Mutes
from bot.domain.events import Conversation, Muted
from tests.fakes import BOT, GROUP, ManualClock


def mute(seconds: int, *, user: int = BOT) -> Muted:
    return Muted(self_id=BOT, time=0.0, conversation=GROUP, user_id=user, operator_id=1, seconds=seconds)


@pytest.mark.parametrize(
    ("event", "lasts"),
    [
        (mute(60), 60),
        (mute(10**9), MAX_MUTE),
        (mute(-1), UNCERTAIN_MUTE),
        (mute(3600, user=0), UNCERTAIN_MUTE),
    ],
)
def test_a_mute_holds_for_its_time_and_one_without_a_certain_end_not_long(event: Muted, lasts: float) -> None:
    clock = ManualClock()
    mutes = Mutes(clock=clock)
    mutes.take(event)
    clock.time += lasts - 1
    assert mutes.holds_in(GROUP)
    assert mutes.until(GROUP) == clock.time + 1
    clock.time += 2
    assert not mutes.holds_in(GROUP)


def test_a_mute_of_somebody_else_is_none_and_a_lift_ends_one() -> None:
    mutes = Mutes(clock=ManualClock())
    mutes.take(mute(60, user=5))
    assert not mutes.holds_in(GROUP)
    mutes.take(mute(60))
    mutes.take(mute(0, user=5))
    assert mutes.holds_in(GROUP)
    mutes.take(mute(0))
    assert not mutes.holds_in(GROUP)


def test_after_a_connection_nothing_is_known_of_the_mutes_of_that_account() -> None:
    mutes = Mutes(clock=ManualClock())
    mutes.take(mute(60))
    mutes.forget(20002)
    assert mutes.holds_in(GROUP)
    assert not mutes.holds_in(Conversation(BOT, "group", 1))
    mutes.forget(BOT)
    assert not mutes.holds_in(GROUP)
