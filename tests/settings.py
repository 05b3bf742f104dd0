"""A store of everything that is kept by command, over a fake journal."""

from __future__ import annotations

from bot.build import KEPT_SETTINGS
from bot.core.other_bots import ALONE, Announcer
from bot.core.ports import Store
from bot.core.query_results import Choices
from bot.settings_store import SettingsStore
from frostagent.types.ports import Clock
from tests.fakes import ManualClock, RecordingStore


def kept_settings(
    store: Store | RecordingStore,
    choices: Choices | None = None,
    *,
    clock: Clock | None = None,
    announcer: Announcer = ALONE,
) -> SettingsStore:
    """`choices` reads the journal, unless the store does."""
    if choices is None:
        assert isinstance(store, RecordingStore)
        choices = store
    return SettingsStore(
        KEPT_SETTINGS,
        store=store,
        choices=choices,
        clock=clock or ManualClock(),
        announcer=announcer,
    )
