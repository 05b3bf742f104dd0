from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from adapters.words.word_file import compile_pattern
from bot.budget.limits import LimitOverride
from bot.memory.persona_files import PersonaFiles
from bot.memory.personas import House, Persona, Personas
from config.settings import Settings
from frostagent.types.errors import ConfigError
from frostagent.types.messages import AssistantMessage, UserMessage
from frostagent.types.ports import ChatModel
from frostagent.types.traits import Audience
from tests.fakes import RecordingStore, ScriptedModel
from tests.settings import kept_settings

FOX = """+++
name = "小霜"
aliases = ["霜霜"]
groups = [4242]
model = "other"
temperature = 0.5
tools_deny = ["get_weather"]
[[examples]]
user = "会做饭吗"
bot = "会吃。"
+++
你是狐狸。
"""
GROUPS = (
    '[[group]]\nnumber = 4343\npersona = "fox"\nrules = "不剧透。"\nchance = 0.5\ntools_audience = {look = "owner"}\n'
)


def files_in(folder: Path, model: ChatModel) -> PersonaFiles:
    (folder / "fox.md").write_text(FOX, "utf-8")
    (folder / "groups.toml").write_text(GROUPS, "utf-8")
    settings = Settings(
        bot_name="霜",
        bot_aliases=("阿霜",),
        personas_dir=folder,
        groups_file=folder / "groups.toml",
        tools_audience={"look": "everyone"},
    )
    return PersonaFiles(settings, {"other": model}.__getitem__, compile_pattern)


def test_a_persona_is_its_file_and_the_settings_where_that_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "owl.md").write_text('+++\naliases = ["夜"]\n+++\n你是猫头鹰。', "utf-8")
    with ScriptedModel() as model:
        cast = files_in(tmp_path, model).cast()
        assert cast.others["fox"] == Persona(
            "你是狐狸。",
            "小霜",
            ("霜霜",),
            examples=(UserMessage("会做饭吗"), AssistantMessage("会吃。")),
            model=model,
            temperature=0.5,
            denied=frozenset({"get_weather"}),
        )
    assert cast.others["owl"] == Persona("你是猫头鹰。", "霜", ("阿霜", "夜"))
    assert cast.usual.names == ("霜", "阿霜")
    assert (cast.claimed, cast.houses) == (
        {4242: "fox"},
        {4343: House("fox", "不剧透。", 0.5, {"look": Audience.OWNER})},
    )


def test_the_usual_persona_may_have_a_front_matter_too(tmp_path: Path) -> None:
    (tmp_path / "fox.md").write_text('+++\nname = "小霜"\n+++\n你是狐狸。', "utf-8")
    with ScriptedModel() as model:
        files = PersonaFiles(Settings(bot_persona=tmp_path / "fox.md"), lambda _: model, compile_pattern)
    store = RecordingStore()
    personas = Personas(files.cast(), settings=kept_settings(store))
    assert personas.cast.usual == Persona("你是狐狸。", "小霜")
    (tmp_path / "fox.md").write_text("", "utf-8")
    (problem,) = files.reloads(personas)["the persona"]()
    assert "fox.md is empty" in str(problem)
    assert personas.cast.usual == Persona("你是狐狸。", "小霜")


def test_a_broken_file_is_told_and_the_last_good_one_stays_while_others_are_read(tmp_path: Path) -> None:
    store = RecordingStore()
    with ScriptedModel() as model:
        files = files_in(tmp_path, model)
        personas = Personas(files.cast(), settings=kept_settings(store))
        reloads = files.reloads(personas)
        assert set(reloads) == {"the folder of personas", "the file of groups"}
        (tmp_path / "fox.md").write_text("+++\nname = \n+++\nbroken", "utf-8")
        (tmp_path / "owl.md").write_text("+++\ngroups = [4300]\n+++\n你是猫头鹰。", "utf-8")
        (problem,) = reloads["the folder of personas"]()
        assert "fox.md line 2: the front matter is not TOML" in str(problem)
        assert personas.cast.others["fox"].prompt == "你是狐狸。"
        assert personas.cast.others["owl"].prompt == "你是猫头鹰。"
        assert personas.cast.claimed == {4242: "fox", 4300: "owl"}
        with pytest.raises(ConfigError, match="line 2"):
            files.cast()
        (tmp_path / "fox.md").unlink()
        assert reloads["the folder of personas"]() == ()
        assert "fox" not in personas.cast.others
        (problem,) = reloads["the file of groups"]()
        assert "row 1: persona: there are only" in str(problem)
        assert personas.cast.houses[4343].rules == "不剧透。"
        with pytest.raises(ConfigError, match="row 1: persona"):
            files.cast()
        days = list[Mapping[int, LimitOverride]]()
        personas.follow_day_limits(days.append)
        assert days == [{}]
        row = "[[group]]\nnumber = 1\npersona = 'owl'\nchance = 0.0\nday_tokens = 9\n"
        (tmp_path / "groups.toml").write_text(row)
        assert reloads["the file of groups"]() == ()
        day, audiences = LimitOverride(tokens=9), {"look": Audience.EVERYONE}
        assert personas.cast.houses == {1: House("owl", chance=0.0, audiences=audiences, day=day)}
        assert days[1:] == [{1: day}]
