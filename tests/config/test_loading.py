"""What loads, from where; every problem at once, each under the name that was typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.core.language import Language, text_in
from config.loading import is_configured, load_settings, terminal_language
from config.secrets import secrets_of
from config.settings import Settings, read_persona
from frostagent.types.errors import ConfigError
from tests.cases import each_case
from tests.config.reading import GOOD, TOKEN, load, problems


def test_three_names_are_enough_for_the_service() -> None:
    settings, warnings = load(GOOD)
    assert warnings == ()
    assert settings == Settings(
        llm_base_url="https://api.deepseek.com/v1", llm_model="deepseek-chat", onebot_access_token=SecretStr(TOKEN)
    )


def test_the_names_of_the_go_frostagent_load(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "UPSTREAM_ENDPOINT=https://old.test/v1\nUPSTREAM_API_KEY=k\nMODEL_NAME=old\nSYSTEM_PROMPT=Be a fox.\n"
    )
    settings, _ = load_settings(environ={"ONEBOT_ACCESS_TOKEN": TOKEN}, env_file=file)
    assert settings.main_model.base_url == "https://old.test/v1"
    assert settings.main_model.api_key.get_secret_value() == "k"
    assert settings.main_model.model == "old"
    assert read_persona(settings).prompt == "Be a fox."
    assert not {"old", "https://old.test/v1"} & secrets_of(settings), "the log may name them"


def test_an_older_name_of_ours_is_understood_in_the_file_and_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("BOT_RUN_SENDS=3\n")
    settings, warnings = load_settings(environ=GOOD, env_file=file)
    assert (settings.bot_max_sends, warnings) == (3, ())
    settings, warnings = load({**GOOD, "BOT_RUN_SENDS": "4"})
    assert (settings.bot_max_sends, warnings) == (4, ())


def test_what_is_on_by_itself_is_off_with_0() -> None:
    limits = ("BOT_USER_RATE", "BOT_GROUP_RATE", "BOT_SEND_RATE", "BOT_LOOP", "BOT_RUN_REQUESTS", "BOT_MAX_SENDS")
    settings, warnings = load({**GOOD, **dict.fromkeys((*limits, "BOT_DIGEST"), "0"), "BOT_NEW_GROUP": "live"})
    assert warnings == ()
    assert [getattr(settings, name.lower()) for name in limits] == [None, None, 0.0, 0, 0, 0]
    assert (settings.bot_digest, settings.bot_new_group) == (None, "live")


def test_a_problem_is_told_under_the_name_that_was_typed() -> None:
    with pytest.raises(ConfigError) as caught:
        load({"UPSTREAM_ENDPOINT": "old.test", "MODEL_NAME": "your-model", "ONEBOT_ACCESS_TOKEN": TOKEN})
    assert [problem.name for problem in caught.value.problems] == ["UPSTREAM_ENDPOINT", "MODEL_NAME"]


def test_all_problems_come_at_once_in_the_order_of_the_variables(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("LOG_LEVEL=loud\nLLM_API_KEY=sk-xxxx\nBOT_MAX_STEPS=many\nLLM_MODLE=x\nMEDIA_SEND=url\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={"BOT_OWNER": "1", "BOT_OWNERS": "me"}, env_file=file)
    assert [problem.name for problem in caught.value.problems] == [
        "LLM_BASE_URL",
        "LLM_API_KEY",
        "LLM_MODEL",
        "ONEBOT_ACCESS_TOKEN",
        "BOT_OWNERS",
        "BOT_MAX_STEPS",
        "MEDIA_SEND",
        "LOG_LEVEL",
        "LLM_MODLE",
        "BOT_OWNER",
    ]
    assert all(problem.what and problem.fix for problem in caught.value.problems)


def test_a_misspelt_name_in_the_environment_explains_the_one_that_is_missing() -> None:
    said = problems({"LLM_MODEL": "", "LLM_MODLE": "x", "WEB_SERVICE_PORT": "80"})
    assert [line.partition(":")[0] for line in said] == ["LLM_MODEL", "LLM_MODLE"]
    assert "Did you mean LLM_MODEL?" in said[1]


def test_an_unreadable_file_is_told_alone(tmp_path: Path) -> None:
    [problem] = problems({"LOG_LEVEL": "loud"}, env_file=tmp_path)
    assert "is a folder" in problem


def test_a_name_in_the_environment_that_nobody_knows_is_a_warning() -> None:
    _, warnings = load(GOOD | {"BOT_SERVICE_HOST": "10.0.0.7", "ONEBOT_TOKEN": "x", "NAPCAT_UID": "0"})
    assert [warning.name for warning in warnings] == ["BOT_SERVICE_HOST", "ONEBOT_TOKEN"]
    assert warnings[1].fix == "Did you mean ONEBOT_ACCESS_TOKEN?"


def test_chat_needs_neither_model_nor_token() -> None:
    assert load({}, service=False) == (Settings(), ())


@pytest.mark.parametrize("name", ["LLM_MODEL", "ONEBOT_HOST", "UPSTREAM_ENDPOINT", "LLM_TYPO"])
def test_any_name_of_a_model_or_a_onebot_server_makes_it_the_service(tmp_path: Path, name: str) -> None:
    file = tmp_path / ".env"
    assert is_configured({name: "x"}, None)
    assert not is_configured({name: " "}, file)
    file.write_text(f"{name}=x")
    assert is_configured({}, file)


def test_nothing_of_a_model_or_a_onebot_server_makes_it_chat(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("#LLM_MODEL=x\nLLM_MODEL=\nBOT_NAME=fox")
    assert not is_configured({"BOT_NAME": "fox", "LOG_LEVEL": "DEBUG"}, file)


def test_a_file_that_cannot_be_read_is_no_reason_to_chat(tmp_path: Path) -> None:
    assert is_configured({}, tmp_path)


def test_a_misspelt_name_in_the_file_and_in_the_environment_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("LLM_MODLE=m\n")
    told = problems({"LLM_MODEL": "", "LLM_MODLE": "m"}, env_file=file)
    assert [problem for problem in told if problem.startswith("LLM_MODLE")] == [
        "LLM_MODLE: line 1 of .env sets it, but there is no such variable. Did you mean LLM_MODEL?"
    ]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("TOOL_DENY", "TOOLS_DENY"),
        ("BOTGROUPS", "BOT_GROUPS"),
        ("SYSTEM_PROMT", "SYSTEM_PROMPT"),
        ("WEBPORT", "WEB_PORT"),
    ],
)
def test_a_name_in_the_file_that_looks_like_one_of_ours_is_refused(tmp_path: Path, typed: str, meant: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"{typed}=1\nMY_OWN_THING=1\nTZ=Asia/Shanghai\nNAPCAT_WEBUI_PORT=6099\nEXTRAS=otel\n")
    assert problems({}, env_file=file) == [
        f"{typed}: line 1 of .env sets it, but there is no such variable. Did you mean {meant}?"
    ]


def test_a_prompt_may_begin_or_end_with_any_quote() -> None:
    settings, _ = load({**GOOD, "SYSTEM_PROMPT": "“霜降，你好"})
    assert settings.system_prompt == "“霜降，你好"


@each_case(
    ("environ", "file", "language"),
    [
        ({}, "", Language.ENGLISH),
        ({"LANG": "zh_CN.UTF-8"}, "", Language.CHINESE),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "", Language.ENGLISH),
        ({"LANG": "C.UTF-8", "LC_MESSAGES": "zh_TW.UTF-8"}, "", Language.CHINESE),
        ({"LANG": "zh_CN.UTF-8", "BOT_LANGUAGE": "en"}, "", Language.ENGLISH),
        ({"LANG": "en_GB.UTF-8", "BOT_LANGUAGE": "ZH"}, "", Language.CHINESE),
        ({"LANG": "en_GB.UTF-8"}, "BOT_LANGUAGE=zh\n", Language.CHINESE),
        ({"BOT_LANGUAGE": "en"}, "BOT_LANGUAGE=zh\n", Language.ENGLISH),
        ({"LANG": "zh_CN.UTF-8", "BOT_LANGUAGE": "fr"}, "", Language.CHINESE),
        ({"LANG": "de_DE.UTF-8", "BOT_LANGUAGE": "zh_CN"}, "", Language.ENGLISH),
    ],
)
def test_bot_language_decides_what_commands_speak_and_else_the_system(
    tmp_path: Path, environ: dict[str, str], file: str, language: Language
) -> None:
    env = tmp_path / ".env"
    env.write_text(file, "utf-8")
    assert terminal_language(environ=environ, env_file=env) is language


def test_a_language_that_there_is_not_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=GOOD | {"BOT_LANGUAGE": "fr"}, env_file=None)
    (problem,) = caught.value.problems
    assert problem.name == "BOT_LANGUAGE"
    assert text_in(Language.ENGLISH, problem.fix).endswith("zh, en")
    assert text_in(Language.CHINESE, problem.fix).endswith("zh, en")
