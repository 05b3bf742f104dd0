"""What is known before anybody is asked, and what is wrong with it."""

from __future__ import annotations

import pytest

from bot.cli.setup.answers import ASKED, check_answers, known_answers, with_tokens
from config.sources import EnvLine
from frostagent.types.errors import ConfigError

GOOD = {
    "LLM_BASE_URL": "https://api.deepseek.com/v1",
    "LLM_API_KEY": "sk-abcdefgh",
    "LLM_MODEL": "deepseek-chat",
    "ONEBOT_ACCESS_TOKEN": "correct-horse",
}


def problems(**changes: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        check_answers({**GOOD, **changes})
    return {problem.name: str(problem) for problem in caught.value.problems}


def test_options_win_over_the_environment_and_it_over_the_file() -> None:
    lines = [
        EnvLine("LLM_MODEL", "file", 1),
        EnvLine("LLM_API_KEY", "file", 2),
        EnvLine("LLM_BASE_URL", "https://file/v1", 3),
    ]
    environ = {"LLM_MODEL": "environment", "LLM_API_KEY": "environment"}
    answers = known_answers({"LLM_MODEL": " option ", "LLM_API_KEY": ""}, environ, lines)
    assert answers == dict.fromkeys(ASKED, "") | {
        "LLM_MODEL": "option",
        "LLM_API_KEY": "environment",
        "LLM_BASE_URL": "https://file/v1",
    }


def test_quotes_around_an_option_are_no_part_of_it() -> None:
    assert known_answers({"LLM_MODEL": " “demo” "}, {}, [])["LLM_MODEL"] == "demo"


def test_the_text_of_an_example_is_no_answer() -> None:
    lines = [
        EnvLine("LLM_API_KEY", "sk-xxxx", 1),
        EnvLine("LLM_MODEL", "your-model", 2),
        EnvLine("BOT_OWNERS", "10001", 3),
    ]
    answers = known_answers({}, {"ONEBOT_ACCESS_TOKEN": "change-me"}, lines)
    assert (answers["LLM_API_KEY"], answers["LLM_MODEL"], answers["BOT_OWNERS"]) == ("", "", "10001")
    assert "ONEBOT_ACCESS_TOKEN" not in answers


def test_the_names_of_the_go_version_are_understood() -> None:
    assert known_answers({}, {}, [EnvLine("UPSTREAM_API_KEY", "old", 1)])["LLM_API_KEY"] == "old"


def test_the_base_url_may_be_the_name_of_a_vendor() -> None:
    assert known_answers({"LLM_BASE_URL": "moonshot"}, {}, [])["LLM_BASE_URL"] == "https://api.moonshot.cn/v1"


def test_a_token_is_made_only_where_there_is_none() -> None:
    made = with_tokens({"ONEBOT_ACCESS_TOKEN": "mine", "LLM_MODEL": "m"}, lambda: "made")
    missing = dict.fromkeys(("NAPCAT_WEBUI_TOKEN", "CONSOLE_TOKEN"), "made")
    assert made == {"ONEBOT_ACCESS_TOKEN": "mine", "LLM_MODEL": "m"} | missing


def test_good_answers_are_settings() -> None:
    settings = check_answers({**GOOD, "LLM_BASE_URL": GOOD["LLM_BASE_URL"] + "/chat/completions", "BOT_OWNERS": "1,2"})
    assert settings.llm_base_url == GOOD["LLM_BASE_URL"]
    assert settings.bot_owners == frozenset({1, 2})


def test_a_server_of_ones_own_needs_no_key() -> None:
    check_answers({**GOOD, "LLM_BASE_URL": "http://127.0.0.1:11434/v1", "LLM_API_KEY": ""})


def test_every_problem_is_told_at_once_with_the_option_that_mends_it() -> None:
    found = problems(LLM_API_KEY="", LLM_MODEL="", BOT_GROUPS="all", NAPCAT_ACCOUNT="10001 10002")
    assert set(found) == {
        "LLM_API_KEY (--api-key)",
        "LLM_MODEL (--model)",
        "BOT_GROUPS (--groups)",
        "NAPCAT_ACCOUNT (--account)",
    }
    assert "https://platform.deepseek.com/api_keys" in found["LLM_API_KEY (--api-key)"]


def test_an_account_is_a_number() -> None:
    assert "is not a QQ number" in problems(NAPCAT_ACCOUNT="me")["NAPCAT_ACCOUNT (--account)"]


def test_a_base_url_that_is_none_gets_the_names_that_are_understood() -> None:
    assert "or type one of deepseek, " in problems(LLM_BASE_URL="nonsense")["LLM_BASE_URL (--base-url)"]
