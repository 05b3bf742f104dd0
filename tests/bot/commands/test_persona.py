from __future__ import annotations

from bot.commands.persona import HOW, NOBODY, persona_command
from bot.core.command import NOT_NOW
from bot.core.journal import PersonaChosen
from bot.memory.personas import Cast, Persona, Personas
from frostagent.types.traits import Audience
from tests.bot.commands.typed import OWNER, lines
from tests.fakes import GROUP, RecordingStore
from tests.settings import kept_settings

OTHERS = {"fox.zh": Persona("你是狐狸。", "小霜"), "Secret": Persona("x" * 500, "暗")}


async def test_a_groups_admins_see_choose_and_give_up_its_persona() -> None:
    store = RecordingStore()
    who = Personas(Cast(Persona("你是霜。", "霜"), OTHERS, {4343: "Secret"}), settings=kept_settings(store))
    command = persona_command(who)
    assert command.audience is Audience.GROUP_ADMIN
    assert await lines(command) == ["现在: 默认", "fox.zh 小霜", HOW.zh]
    assert await lines(command, "show", "fox.zh") == ["你是狐狸。"]
    assert await lines(command, "Fox.zh") == ["好，从下一句起我是 小霜。"]
    assert PersonaChosen(GROUP, "fox.zh") in store.entries
    assert (await lines(command))[0] == "现在: fox.zh"
    store.trouble = True
    assert await lines(command, "默认") == [NOT_NOW.zh]
    assert who.key(GROUP) == "fox.zh"
    store.trouble = False
    assert await lines(command, "默认") == ["好，从下一句起我是 霜。"]
    assert who.key(GROUP) == ""
    assert await lines(command, "owl") == await lines(command, "看", "owl") == [NOBODY.zh]
    assert await lines(command, "one", "two", "three") == [HOW.zh]


async def test_a_persona_of_other_groups_is_only_an_owners_to_see_and_choose() -> None:
    store = RecordingStore()
    who = Personas(Cast(Persona("", "霜"), OTHERS, {4343: "Secret"}), settings=kept_settings(store))
    command = persona_command(who)
    assert await lines(command, "secret") == await lines(command, "show", "secret") == [NOBODY.zh]
    (shown,) = await lines(command, "show", "secret", user=OWNER)
    assert shown == "x" * 400 + "…"
    assert await lines(command, "secret", user=OWNER) == ["好，从下一句起我是 暗。"]
    assert (await lines(command))[0] == "现在: Secret"
    assert "Secret 暗" in await lines(command)  # who it is, everybody there may know


async def test_of_very_many_personas_as_many_are_told_as_fit_a_phone() -> None:
    store = RecordingStore()
    many = {f"p{number:02}": Persona("", "霜") for number in range(25)}
    who = Personas(Cast(Persona("", "霜"), many), settings=kept_settings(store))
    told = await lines(persona_command(who))
    assert told[1:] == [*(f"{key} 霜" for key in sorted(many)[:20]), "还有 5 个", HOW.zh]
