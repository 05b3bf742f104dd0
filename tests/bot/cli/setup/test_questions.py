"""What is asked, and what is done about wrong answers."""

from __future__ import annotations

import pytest
import typer
from pydantic import SecretStr

from bot.cli.setup.answers import VENDORS, ListModels, ask_character, ask_console, ask_docker, ask_model, ask_people
from config.endpoints import Endpoint
from tests.bot.cli.setup.fakes import LEAVE, ScriptedTerminal
from tests.cases import each_case

DEEPSEEK = "https://api.deepseek.com/v1"


def none_listed(_endpoint: Endpoint) -> tuple[str, ...]:
    return ()


def listed(*models: str) -> tuple[ListModels, list[Endpoint]]:
    """A service that lists these models, and who asked it."""
    asked: list[Endpoint] = []

    def list_models(endpoint: Endpoint) -> tuple[str, ...]:
        asked.append(endpoint)
        return models

    return list_models, asked


def test_every_vendor_is_offered_and_taken_by_its_number() -> None:
    person = ScriptedTerminal("1", "sk-abc", "deepseek-chat")
    answers = ask_model(person, {}, none_listed)
    assert answers == {"LLM_BASE_URL": DEEPSEEK, "LLM_API_KEY": "sk-abc", "LLM_MODEL": "deepseek-chat"}
    assert all(person.said(vendor.base_url) for vendor in VENDORS)
    assert person.said("https://platform.deepseek.com/api_keys")


def test_a_base_url_of_ones_own_may_be_typed_and_needs_no_key() -> None:
    person = ScriptedTerminal("http://192.168.1.5:8000/v1/", "", "qwen3")
    assert ask_model(person, {}, none_listed)["LLM_BASE_URL"] == "http://192.168.1.5:8000/v1"
    assert "Enter for none" in person.questions[1]


def test_a_wrong_answer_is_explained_and_asked_for_again() -> None:
    person = ScriptedTerminal("api.deepseek.com", "deepseek", "", "Bearer sk", "sk-abc", "", "deepseek-chat")
    assert ask_model(person, {}, none_listed)["LLM_API_KEY"] == "sk-abc"
    assert person.said("does not begin with https:// or http://")
    assert person.said("has a space")
    assert all(person.said(words) for words in ("开头不是 https://", "里面有空格", "这一项不能留空"))
    assert not person.left


def test_old_answers_are_offered_again_and_the_key_is_never_shown() -> None:
    old = {"LLM_BASE_URL": DEEPSEEK, "LLM_API_KEY": "sk-old-secret", "LLM_MODEL": "m", "BOT_OWNERS": "10001"}
    person = ScriptedTerminal("", "", "")
    assert ask_model(person, old, none_listed) == old
    assert not any("sk-old-secret" in text for text in (*person.questions, *person.told))


def test_the_key_of_one_service_is_not_offered_to_another() -> None:
    old = {"LLM_BASE_URL": DEEPSEEK, "LLM_API_KEY": "sk-old", "LLM_MODEL": "deepseek-chat"}
    person = ScriptedTerminal("ollama", "", "", "qwen3")
    assert ask_model(person, old, none_listed) == {
        "LLM_BASE_URL": "http://127.0.0.1:11434/v1",
        "LLM_API_KEY": "",
        "LLM_MODEL": "qwen3",
    }


def test_a_model_is_chosen_from_the_list_of_its_service_by_number() -> None:
    list_models, asked = listed("deepseek-chat", "deepseek-reasoner")
    person = ScriptedTerminal("deepseek", "sk-abc", "２")
    assert ask_model(person, {}, list_models)["LLM_MODEL"] == "deepseek-reasoner"
    assert asked == [Endpoint(DEEPSEEK, SecretStr("sk-abc"), "")]
    assert person.said("1  deepseek-chat")
    assert "Number or model" in person.questions[-1]


@each_case("typed", ["0", "3", "9" * 5000])
def test_a_number_that_is_not_in_the_list_is_no_model(typed: str) -> None:
    list_models, _ = listed("a", "b")
    person = ScriptedTerminal("deepseek", "sk-abc", typed, "b")
    assert ask_model(person, {}, list_models)["LLM_MODEL"] == "b"
    assert person.said("is not in the list. Type a number from 1 to 2")


def test_without_a_list_a_number_is_no_name_of_a_model() -> None:
    person = ScriptedTerminal("deepseek", "sk-abc", "1", "deepseek-chat")
    assert ask_model(person, {}, none_listed)["LLM_MODEL"] == "deepseek-chat"
    assert person.said("is a number, not a name")
    assert "Number" not in person.questions[-1]


def test_a_model_that_is_not_listed_may_be_named_all_the_same() -> None:
    list_models, _ = listed("deepseek-chat")
    assert ask_model(ScriptedTerminal("1", "sk-abc", "kimi"), {}, list_models)["LLM_MODEL"] == "kimi"
    person = ScriptedTerminal("1", "sk-abc", "deepseek", "deepseek")
    assert ask_model(person, {}, list_models)["LLM_MODEL"] == "deepseek"
    assert person.said("type it again")


def test_the_only_model_of_a_service_is_offered() -> None:
    list_models, _ = listed("qwen3:8b")
    assert ask_model(ScriptedTerminal("ollama", "", ""), {}, list_models)["LLM_MODEL"] == "qwen3:8b"


def test_of_a_long_list_a_part_of_the_name_shows_the_rest() -> None:
    list_models, _ = listed(*(f"model-{number}" for number in range(100)))
    person = ScriptedTerminal("1", "sk-abc", "MODEL-9", "3")
    assert ask_model(person, {}, list_models)["LLM_MODEL"] == "model-91"
    assert person.said("70 more")
    assert not person.said("model-30")


def test_the_port_of_the_console_is_a_number_or_nothing() -> None:
    person = ScriptedTerminal("no", "0", "８０９０")
    assert ask_console(person, {}) == {"CONSOLE_PORT": "8090"}
    assert person.said("写 1 到 65535 的整数")
    assert ask_console(ScriptedTerminal(""), {}) == {"CONSOLE_PORT": ""}
    assert ask_console(ScriptedTerminal(""), {"CONSOLE_PORT": "8090"}) == {"CONSOLE_PORT": "8090"}


def test_docker_is_a_choice_of_two() -> None:
    person = ScriptedTerminal("yes", "１")
    assert ask_docker(person, likely=False)
    assert person.said("Type 1 or 2")
    assert not ask_docker(ScriptedTerminal(""), likely=False)
    assert ask_docker(ScriptedTerminal(""), likely=True)


def test_people_and_groups_are_numbers() -> None:
    person = ScriptedTerminal("me", "10002，10001", "", "")
    answers = ask_people(person, {"BOT_GROUPS": "4242", "LLM_MODEL": "m"})
    assert answers == {"BOT_OWNERS": "10001,10002", "BOT_GROUPS": "4242", "NAPCAT_ACCOUNT": "", "LLM_MODEL": "m"}
    assert person.said("is not a QQ number")
    assert person.said("只写号码，比如 10001,10002")


def test_quotes_around_an_answer_are_no_part_of_it() -> None:
    person = ScriptedTerminal("“deepseek”", '"sk-abc"', "「deepseek-chat」")
    answers = ask_model(person, {}, none_listed)
    assert answers == {"LLM_BASE_URL": DEEPSEEK, "LLM_API_KEY": "sk-abc", "LLM_MODEL": "deepseek-chat"}
    person = ScriptedTerminal("“霜降", "“霜降狐”", "")
    assert ask_character(person, {})["BOT_NAME"] == "霜降狐"
    assert person.said("has a “ at one end only")
    assert ask_people(ScriptedTerminal("“１０００１”，10002", "", ""), {})["BOT_OWNERS"] == "10001,10002"


def test_somebody_may_leave_at_any_question() -> None:
    with pytest.raises(typer.Abort):
        ask_model(ScriptedTerminal("1", LEAVE), {}, none_listed)
