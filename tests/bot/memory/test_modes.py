from __future__ import annotations

from bot.core.conversation import Conversation
from bot.core.journal import MessageObserved, PlaceSet
from bot.memory.modes import Mode, Modes, mode_of_new_groups
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore, said
from tests.settings import kept_settings


def modes(store: RecordingStore, usual: Mode = Mode.ASKING, *, told: bool = False) -> Modes:
    return Modes(settings=kept_settings(store), choices=store, usual=usual, told=told)


async def test_groups_that_the_journal_knows_are_live_but_for_those_somebody_decided_about() -> None:
    store = RecordingStore()
    other = said("hi", where=GROUP).conversation
    store.put(MessageObserved(said("hi"), overheard=True))
    known = modes(store)
    assert (known.of(GROUP), known.is_new(GROUP)) == (Mode.ASKING, False)  # nothing is read yet
    assert await known.load()
    assert (known.of(other), known.of(PRIVATE), known.is_new(other)) == (Mode.LIVE, Mode.LIVE, False)
    known.put(GROUP, Mode.ASKED)
    again = modes(store)
    assert await again.load()
    assert (again.of(GROUP), dict(again.open)) == (Mode.ASKED, {GROUP: Mode.ASKED})


async def test_nobody_is_waited_for_where_nobody_is_asked_any_more() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, "mode", "asked"))
    held = modes(store, Mode.LIVE)
    assert await held.load()
    assert held.of(GROUP) is Mode.LIVE


async def test_a_decision_holds_where_new_groups_are_live_and_one_nobody_understands_is_none() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, "mode", "off"), PlaceSet(PRIVATE, "mode", "sideways"))
    held = modes(store, Mode.LIVE)
    assert await held.load()
    assert (held.of(GROUP), held.of(PRIVATE)) == (Mode.OFF, Mode.LIVE)
    store.trouble = True
    assert not await held.keep(GROUP, Mode.LIVE)
    assert held.of(GROUP) is Mode.OFF
    assert not await modes(store).load()


async def test_a_group_that_is_live_at_once_is_news_where_somebody_is_to_hear_of_it_until_it_is_known() -> None:
    store = RecordingStore()
    known, other = GROUP, Conversation(BOT, "group", 9)
    store.put(MessageObserved(said("hi", where=known), overheard=True))
    told, untold = modes(store, Mode.LIVE, told=True), modes(store, Mode.LIVE)
    assert not told.is_news(other)  # nothing is read yet
    for each in (told, untold):
        assert await each.load()
    assert [told.is_news(where) for where in (known, PRIVATE, other)] == [False, False, True]
    assert not untold.is_news(other)
    told.put(other, Mode.LIVE)
    assert not told.is_news(other)
    again = modes(store, Mode.LIVE, told=True)
    assert await again.load()
    assert not again.is_news(other)
    asking = modes(store)
    assert await asking.load()
    assert asking.is_news(Conversation(BOT, "group", 10))


@each_case(
    ("setting", "owners", "listed", "mode"),
    [
        ("ask", True, False, Mode.ASKING),
        ("ask", False, False, Mode.LIVE),
        ("ask", True, True, Mode.LIVE),
        ("off", False, False, Mode.OFF),
        ("shadow", True, False, Mode.SHADOW),
        ("off", True, True, Mode.LIVE),
    ],
)
def test_new_groups_are_as_the_settings_say_unless_groups_are_listed_or_nobody_can_be_asked(
    setting: str, owners: bool, listed: bool, mode: Mode
) -> None:
    assert mode_of_new_groups(setting, has_owners=owners, has_listed_groups=listed) is mode
