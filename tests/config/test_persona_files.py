from __future__ import annotations

from pathlib import Path

import pytest

from config.persona_files import BUILT_IN, MAX_PROMPT, PersonaExample, by_group, read_persona_file, read_personas
from frostagent.types.errors import ConfigError

FOX = """\
+++
name = "小霜"
aliases = ["霜霜", "Frost"]
groups = [4242, 4243]
model = "deepseek-v4-flash"
temperature = 0.9
tools_deny = ["get_weather"]

[[examples]]
user = "小霜你会做饭吗"
bot = "会吃。"
+++

你是小霜，一只狐狸。
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.md"
    file.write_text(text, "utf-8")
    return file


def complaints(file: Path) -> list[str]:
    with pytest.raises(ConfigError) as failed:
        read_persona_file(file)
    return [problem.what.removeprefix(f"{file} ") for problem in failed.value.problems]


def test_a_file_says_who_the_bot_is_and_where(tmp_path: Path) -> None:
    fox = read_persona_file(write(tmp_path, "fox", FOX))
    assert (fox.key, fox.head.name, fox.head.aliases) == ("fox", "小霜", ["霜霜", "Frost"])
    assert (fox.head.groups, fox.head.model, fox.head.temperature) == ([4242, 4243], "deepseek-v4-flash", 0.9)
    assert fox.head.tools_deny == ["get_weather"]
    assert fox.head.examples == [PersonaExample(user="小霜你会做饭吗", bot="会吃。")]
    assert fox.prompt == "你是小霜，一只狐狸。"


def test_a_file_without_front_matter_is_a_prompt(tmp_path: Path) -> None:
    plain = read_persona_file(write(tmp_path, "plain", "\ufeffYou are a fox.\n\n+++ is no fence here\n"))
    assert plain.prompt == "You are a fox.\n\n+++ is no fence here"
    assert plain.head.name == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["line 1: the prompt is empty"]),
        ("+++\nname = 'x'\n+++\n \n", ["line 4: the prompt is empty"]),
        ("+++\nname = 'x'\n", ["line 1: the front matter has no end: a second line of +++"]),
        ("---\nname: x\n---\nhi\n", ["line 1: the front matter is TOML between two lines of +++, not YAML"]),
        ("+++\nname = 'x'\nmodel = \n+++\nhi\n", ["line 3: the front matter is not TOML: Invalid value"]),
        (
            "+++\nname = '''x\n+++\nhi\n",
            ["line 2: the front matter is not TOML: Expected \"'''\" (at end of document)"],
        ),
        ("x" * (MAX_PROMPT + 1), [f"line 1: the prompt has more than {MAX_PROMPT} characters"]),
        (
            "+++\nname = 'x'\ntemperature = 3.0\n+++\nhi",
            ["line 3: temperature: must be at most 2"],
        ),
        ("+++\n\nnmae = 'x'\n+++\nhi", ["line 3: nmae: is not a known field"]),
        (
            "+++\n[[examples]]\nuser = 'a'\nbot = 'b'\n[[examples]]\nuser = 'a'\n+++\nhi",
            ["line 5: examples.1.bot: is missing"],
        ),
    ],
)
def test_all_that_is_wrong_is_told_by_line(tmp_path: Path, text: str, said: list[str]) -> None:
    assert complaints(write(tmp_path, "broken", text)) == said


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "broken.md"
    file.write_bytes(b"\xff\xfe")
    assert complaints(file) == ["is not UTF-8 text"]
    assert complaints(tmp_path / "gone.md") == ["cannot be read (No such file or directory)"]


def test_a_broken_file_costs_nobody_else_his_persona_and_ones_own_come_first(tmp_path: Path) -> None:
    write(tmp_path, "fox", FOX)
    write(tmp_path, "broken", "+++\n")
    write(tmp_path, "empty", "")
    write(tmp_path, "default", "我是另一个。")
    personas, problems = read_personas(tmp_path)
    assert personas["fox"].head.name == "小霜"
    assert personas["default"].prompt == "我是另一个。"
    assert "broken" not in personas
    assert [problem.what for problem in problems] == [
        f"{tmp_path / 'broken.md'} line 1: the front matter has no end: a second line of +++",
        f"{tmp_path / 'empty.md'} line 1: the prompt is empty",
    ]


def test_a_group_that_two_claim_is_nobodys(tmp_path: Path) -> None:
    write(tmp_path, "fox", FOX)
    write(tmp_path, "owl", "+++\ngroups = [4243, 4244]\n+++\nAn owl.")
    personas, problems = read_personas(tmp_path)
    assert by_group(personas) == {4242: "fox", 4244: "owl"}
    assert [problem.what for problem in problems] == ["fox.md and owl.md both name the group 4243"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    before = {"fox": read_persona_file(write(tmp_path, "fox", FOX))}
    personas, problems = read_personas(tmp_path / "gone", before=before)
    assert set(personas) >= {"default", "fox"}
    assert [problem.what for problem in problems] == [f"{tmp_path / 'gone'} is not a folder"]


def test_the_built_in_personas_are_whole_and_each_manner_speaks_both_languages() -> None:
    personas, problems = read_personas(None)
    assert problems == ()
    manners = {key.rpartition(".")[0] for key in personas if "." in key}
    assert {f"{manner}.{language}" for manner in manners for language in ("zh", "en")} | {"default"} == set(personas)
    assert len(manners) >= 3
    for key, persona in personas.items():
        assert len(persona.prompt) < 2000, key
        assert persona.head.groups == []
    assert sorted(path.stem for path in BUILT_IN.glob("*.md")) == sorted(personas)


def example(user: str, bot: str = "b") -> str:
    return f'[[examples]]\nuser = "{user}"\nbot = "{bot}"\n'


@pytest.mark.parametrize(
    ("most", "more"),
    [
        (f'name = "{"n" * 24}"', f'name = "{"n" * 25}"'),
        ("aliases = [" + '"a", ' * 20 + "]", "aliases = [" + '"a", ' * 21 + "]"),
        (f'aliases = ["{"a" * 24}"]', f'aliases = ["{"a" * 25}"]'),
        ('aliases = ["a"]', 'aliases = [""]'),
        ("groups = [1]", "groups = [0]"),
        (f'model = "{"m" * 200}"', f'model = "{"m" * 201}"'),
        ("temperature = 2.0", "temperature = 2.1"),
        ("temperature = 0.0", "temperature = -0.1"),
        (f'tools_deny = ["{"t" * 24}"]', f'tools_deny = ["{"t" * 25}"]'),
        (example("q") * 20, example("q") * 21),
        (example("q" * 2000, "b" * 2000), example("q" * 2001)),
        (example("q"), example("")),
        (example("q"), example("q", "b" * 2001)),
        ('model = "m"', "model = 3\n"),
        ('model = "m"', 'modell = "m"'),
    ],
)
def test_each_field_has_its_bounds_and_what_is_beyond_is_told_on_its_line(tmp_path: Path, most: str, more: str) -> None:
    assert read_persona_file(write(tmp_path, "most", f"+++\n{most}\n+++\nYou are a fox.")).prompt
    (complaint, *_) = complaints(write(tmp_path, "more", f"+++\n# a fox\n{more}\n+++\nYou are a fox."))
    assert complaint.startswith("line ")
    assert int(complaint.split()[1].removesuffix(":")) >= 3


def test_of_several_examples_the_one_that_is_wrong_is_told_by_its_line(tmp_path: Path) -> None:
    head = example("q") + example("q") + example("")
    (complaint,) = complaints(write(tmp_path, "fox", f"+++\n{head}+++\nYou are a fox."))
    assert complaint.startswith("line 8: examples.2.user: ")


def test_a_prompt_may_be_as_long_as_it_says(tmp_path: Path) -> None:
    assert MAX_PROMPT == 50_000
    assert len(read_persona_file(write(tmp_path, "long", "x" * MAX_PROMPT)).prompt) == MAX_PROMPT
    assert complaints(write(tmp_path, "longer", "x" * (MAX_PROMPT + 1))) == [
        "line 1: the prompt has more than 50000 characters"
    ]


def test_front_matter_that_ends_in_the_middle_of_a_value_is_told(tmp_path: Path) -> None:
    (complaint,) = complaints(write(tmp_path, "fox", '+++\nname = "x\n+++\nYou are a fox.'))
    assert complaint.startswith("line 2: the front matter is not TOML: ")
