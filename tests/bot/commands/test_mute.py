from __future__ import annotations

from bot.commands.mute import DONE, LIFTED, mute_command, unmute_command
from bot.commands.phrases import NOT_NOW, STILL_QUIET
from bot.memory.quiet_overrides import QuietOverride, QuietOverrides
from frostagent.types.traits import Audience
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, ManualClock, RecordingStore


async def test_a_groups_admins_silence_the_bot_and_let_it_speak_again() -> None:
    store, is_night = RecordingStore(), False
    quiet_overrides = QuietOverrides(store=store, choices=store, clock=ManualClock(NOW))
    mute, unmute = mute_command(quiet_overrides), unmute_command(quiet_overrides, lambda *_: is_night)
    assert mute.audience is unmute.audience is Audience.GROUP_ADMIN
    assert await lines(mute) == [DONE[0]]
    assert quiet_overrides.of(GROUP) == QuietOverride(is_mute=True)
    store.trouble = True
    assert await lines(unmute) == await lines(mute) == [NOT_NOW[0]]
    store.trouble = False
    is_night = True
    assert await lines(unmute) == [STILL_QUIET[0]]
    is_night = False
    assert await lines(unmute, chinese=False) == [LIFTED[1]]
    assert quiet_overrides.of(GROUP) is None
