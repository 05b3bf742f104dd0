from __future__ import annotations

from dataclasses import replace

from bot.core.conversation import Conversation
from bot.memory.personas import KEPT, Cast, House, Persona, Personas
from bot.policy.wake import Rules
from bot.settings_store import SettingsStore
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore
from tests.settings import kept_settings

USUAL, FOX, OWL = Persona("usual", "霜"), Persona("fox", "小霜", ("霜霜",)), Persona("owl", "夜")
OTHER = Conversation(BOT, "group", 4343)
CAST = Cast(USUAL, {"fox": FOX, "owl": OWL}, {4242: "fox"})


def personas(cast: Cast = CAST, settings: SettingsStore | None = None) -> Personas:
    return Personas(cast, settings=settings or kept_settings(RecordingStore()))


async def test_a_choice_comes_before_the_operators_file_and_that_before_the_personas_own_groups() -> None:
    store = RecordingStore()
    who = personas(settings=kept_settings(store))
    assert (who.of(GROUP), who.of(OTHER), who.of(PRIVATE)) == (FOX, USUAL, USUAL)
    who.become(replace(CAST, houses={4242: House("owl")}))
    assert who.of(GROUP) == OWL
    assert await who.choose(GROUP, "fox")
    assert who.of(GROUP) == FOX
    settings = kept_settings(store)
    again = personas(replace(CAST, houses={4242: House("owl")}), settings)
    assert again.of(GROUP) == OWL
    assert await settings.load()
    assert again.of(GROUP) == FOX
    assert await again.choose(GROUP, "")
    assert again.of(GROUP) == OWL


async def test_what_cannot_be_written_down_changes_nothing_and_what_cannot_be_read_is_asked_again() -> None:
    store = RecordingStore()
    settings = kept_settings(store)
    who = personas(settings=settings)
    store.trouble = True
    assert not await who.choose(OTHER, "owl")
    assert who.of(OTHER) == USUAL
    assert not await settings.load()
    store.trouble = False
    assert await settings.load()
    assert who.of(OTHER) == OWL  # the store had kept it in memory


async def test_a_persona_that_is_gone_is_passed_by() -> None:
    who = personas()
    await who.choose(GROUP, "owl")
    who.become(replace(CAST, others={"fox": FOX}))
    assert who.of(GROUP) == FOX


def test_house_rules_stand_behind_the_persona_in_their_group_alone() -> None:
    who = personas(replace(CAST, claimed={}, houses={4242: House(rules="不剧透。")}))
    assert who.of(GROUP) == replace(USUAL, prompt="usual\n\n不剧透。")
    assert who.of(OTHER) == USUAL
    who.become(replace(CAST, houses={4242: House(rules="只说英文。")}))
    assert who.of(GROUP).prompt == "fox\n\n只说英文。"
    who.become(replace(CAST, houses={4242: House(rules="只说中文。")}))
    assert who.of(GROUP).prompt == "fox\n\n只说中文。"


def test_it_wakes_by_the_names_and_the_chance_of_the_place() -> None:
    rules = Rules(names=("霜",), chance=0.1)
    who = personas(replace(CAST, houses={4242: House(chance=0.0), 4343: House("owl", chance=0.5)}))
    assert who.rules(PRIVATE, rules) is rules
    assert who.rules(GROUP, rules) == Rules(names=("小霜", "霜霜"), chance=0.0)
    assert who.rules(OTHER, rules) == Rules(names=("夜",), chance=0.5)
    who.become(replace(CAST, houses={4343: House("owl", chance=0.2)}))
    assert who.rules(OTHER, rules) == Rules(names=("夜",), chance=0.2)


async def test_a_changed_text_counts_from_the_next_look_on_whatever_the_files_say() -> None:
    store = RecordingStore()
    settings = kept_settings(store)
    who = personas(replace(CAST, houses={4242: House("fox", rules="不剧透。")}), settings)
    assert not await who.change("", "before the others are read")
    assert await settings.load()
    assert who.of(OTHER).prompt == "usual"
    assert await who.change("", "be silly")
    assert await who.change("fox", "red fox")
    assert not await who.change("gone", "x")
    assert (who.of(OTHER).prompt, who.of(GROUP).prompt) == ("be silly", "red fox\n\n不剧透。")
    who.become(replace(CAST, usual=replace(USUAL, prompt="from the file")))
    assert (who.of(OTHER).prompt, who.text(""), who.is_changed("")) == ("be silly", "be silly", True)
    assert await who.go_back("")
    assert (who.of(OTHER).prompt, who.is_changed("")) == ("from the file", False)
    settings = kept_settings(store)
    again = personas(settings=settings)
    assert await settings.load()
    assert again.of(GROUP).prompt == "red fox"


async def test_only_the_last_texts_are_kept_and_behind_them_is_the_files() -> None:
    store = RecordingStore()
    settings = kept_settings(store)
    who = personas(settings=settings)
    assert await settings.load()
    for number in range(KEPT + 5):
        assert await who.change("", str(number))
    backs = [who.text("") for _ in range(KEPT) if await who.go_back("")]
    assert backs == [*(str(number) for number in range(KEPT + 3, 4, -1)), "usual"]
    assert not await who.go_back("")
    store.trouble = True
    assert not await who.change("", "x")
    assert who.text("") == "usual"
