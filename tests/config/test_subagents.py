from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from config.loading import load_settings
from config.secrets import secrets_of
from config.tables import key_names, read_subagents
from frostagent.types.errors import ConfigError

GOOD = """
[[subagent]]
name = "译者"
description = "翻译"
prompt = "你是译者。"
tools = ["get_weather"]
deadline = 60

[[subagent]]
name = "coder"
base_url = "https://models.test/v1/"
model = "big"
api_key = "LLM_OTHER_KEY"
"""
BASE = {"LLM_BASE_URL": "https://llm.test/v1", "LLM_MODEL": "m", "ONEBOT_ACCESS_TOKEN": "correct-horse-battery"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agents.toml"


def test_rows_are_read_and_what_is_left_out_has_its_default(file: Path) -> None:
    file.write_text(GOOD, "utf-8-sig")
    (translator, coder), problems = read_subagents(file, {"LLM_OTHER_KEY": SecretStr("sk-1")})
    assert problems == ()
    assert (translator.name, translator.tools, translator.deadline, translator.max_steps) == (
        *("译者", ["get_weather"]),
        *(60.0, 8),
    )
    assert (coder.is_coder, coder.base_url, coder.prompt) == (True, "https://models.test/v1", "")
    assert not translator.is_coder


def test_without_a_file_there_is_nothing(file: Path) -> None:
    assert read_subagents(None, {}) == ((), ())
    assert key_names(None) == key_names(file) == ()


ROW = '[[subagent]]\nname = "A"\ndescription = "d"\nprompt = "p"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "agents.toml has x, but may only have [[subagent]]"),
        ("subagent = [1]\n", "agents.toml row 1: must be a table"),
        ('[[subagent]]\nname = "A"\n', "agents.toml row 1 (A): description: is missing"),
        ('[[subagent]]\nname = "a b"\n', "agents.toml row 1 (a b): name: must be 1 to 32 letters, digits, - or _"),
        ('[[subagent]]\nname = "ab\\n"\n', "agents.toml row 1: name: must be 1 to 32"),
        (f'[[subagent]]\nname = "{"代" * 33}"\n', ": name: must be 1 to 32"),
        ('[[subagent]]\nname = ""\n', "agents.toml row 1: name: must be 1 to 32"),
        (ROW + 'modle = "x"\n', "agents.toml row 1 (A): modle: is not a known field"),
        (ROW + "max_steps = 0\n", "row 1 (A): max_steps: must be at least 1"),
        (ROW + "deadline = 300\n", "row 1 (A): deadline: must be at most 240"),
        (ROW + "max_tokens = '1'\n", "row 1 (A): max_tokens: must be a whole number"),
        (ROW + 'base_url = "models"\n', "row 1 (A): base_url: does not begin with"),
        (ROW + 'tools = ["use_subagent"]\n', "row 1 (A): tools.0: a subagent cannot ask others: take use_subagent out"),
        (ROW + 'api_key = "NOWHERE"\n', "row 1 (A): api_key: the variable NOWHERE was not set when the bot started"),
        (ROW + 'api_key = "BAD"\n', "row 1 (A): api_key: the variable BAD has a space, a line break or"),
        (ROW + ROW, "agents.toml row 2 (A): an earlier row has the same name"),
    ],
)
def test_a_mistake_is_told_with_file_row_and_field(file: Path, text: str, told: str) -> None:
    file.write_text(text, "utf-8")
    _, problems = read_subagents(file, {"BAD": SecretStr("密钥")})
    assert told in str(problems[0])
    assert problems[0].name == "SUBAGENTS_FILE"


def test_a_key_in_the_file_is_refused_and_not_repeated(file: Path) -> None:
    file.write_text(ROW + 'api_key = "sk-secret-1234"\n', "utf-8")
    _, (problem,) = read_subagents(file, {})
    assert "api_key: must be the NAME of an environment variable, never the key itself" in problem.what
    assert "1234" not in str(problem)
    assert key_names(file) == ()


def test_a_file_that_cannot_be_read_is_one_problem_and_names_no_key(file: Path) -> None:
    assert "cannot be read (No such file" in read_subagents(file, {})[1][0].what
    file.write_text("subagent = 5", "utf-8")
    assert key_names(file) == ()


@pytest.mark.parametrize("place", ["environment", ".env"])
def test_a_key_comes_from_the_environment_or_the_env_file_and_is_a_secret(
    file: Path, tmp_path: Path, place: str
) -> None:
    file.write_text(GOOD, "utf-8")
    environ, env_file = {**BASE, "SUBAGENTS_FILE": str(file)}, tmp_path / ".env"
    if place == "environment":
        environ["LLM_OTHER_KEY"] = "sk-very-secret"
    else:
        env_file.write_text("LLM_OTHER_KEY=sk-very-secret\n", "utf-8")
    settings, warnings = load_settings(environ=environ, env_file=env_file)
    assert warnings == ()
    assert settings.subagent_keys == {"LLM_OTHER_KEY": SecretStr("sk-very-secret")}
    assert "sk-very-secret" in secrets_of(settings)
    assert "sk-very-secret" not in repr(settings)


def test_all_mistakes_of_the_file_are_told_at_the_start(file: Path) -> None:
    file.write_text(ROW + "max_steps = 0\n" + ROW + "deadline = 1\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={**BASE, "SUBAGENTS_FILE": str(file)}, env_file=None)
    (problem,) = caught.value.problems
    assert "row 1 (A): max_steps" in problem.what
    assert "row 2 (A): deadline" in problem.what
