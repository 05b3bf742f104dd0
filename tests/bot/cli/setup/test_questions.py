"""What is asked, and what is done about wrong answers."""

from __future__ import annotations

import pytest
import typer

from bot.cli.setup.questions import ask_character, ask_model, ask_people
from bot.cli.setup.vendors import VENDORS
from tests.bot.cli.setup.fakes import LEAVE, ScriptedTerminal

DEEPSEEK = "https://api.deepseek.com/v1"


def test_every_vendor_is_offered_and_taken_by_its_number() -> None:
    person = ScriptedTerminal("1", "sk-abc", "deepseek-chat")
    answers = ask_model(person, {})
    assert answers == {"LLM_BASE_URL": DEEPSEEK, "LLM_API_KEY": "sk-abc", "LLM_MODEL": "deepseek-chat"}
    assert all(person.said(vendor.base_url) for vendor in VENDORS)
    assert person.said("https://platform.deepseek.com/api_keys")


def test_a_base_url_of_ones_own_may_be_typed_and_needs_no_key() -> None:
    person = ScriptedTerminal("http://192.168.1.5:8000/v1/", "", "qwen3")
    assert ask_model(person, {})["LLM_BASE_URL"] == "http://192.168.1.5:8000/v1"
    assert "没有 Enter for none" in person.questions[1]


def test_a_wrong_answer_is_explained_and_asked_for_again() -> None:
    person = ScriptedTerminal("api.deepseek.com", "deepseek", "", "Bearer sk", "sk-abc", "", "deepseek-chat")
    assert ask_model(person, {})["LLM_API_KEY"] == "sk-abc"
    assert person.said("does not begin with https:// or http://")
    assert person.said("has a space")
    assert all(person.said(words) for words in ("请填写以 http", "请重新复制密钥", "这一项不能留空"))
    assert not person.left


def test_old_answers_are_offered_again_and_the_key_is_never_shown() -> None:
    old = {"LLM_BASE_URL": DEEPSEEK, "LLM_API_KEY": "sk-old-secret", "LLM_MODEL": "m", "BOT_OWNERS": "10001"}
    person = ScriptedTerminal("", "", "")
    assert ask_model(person, old) == old
    assert not any("sk-old-secret" in text for text in (*person.questions, *person.told))


def test_the_key_of_one_service_is_not_offered_to_another() -> None:
    old = {"LLM_BASE_URL": DEEPSEEK, "LLM_API_KEY": "sk-old", "LLM_MODEL": "deepseek-chat"}
    person = ScriptedTerminal("ollama", "", "", "qwen3")
    assert ask_model(person, old) == {
        "LLM_BASE_URL": "http://127.0.0.1:11434/v1",
        "LLM_API_KEY": "",
        "LLM_MODEL": "qwen3",
    }


def test_people_and_groups_are_numbers() -> None:
    person = ScriptedTerminal("me", "10002，10001", "", "")
    answers = ask_people(person, {"BOT_GROUPS": "4242", "LLM_MODEL": "m"})
    assert answers == {"BOT_OWNERS": "10001,10002", "BOT_GROUPS": "4242", "NAPCAT_ACCOUNT": "", "LLM_MODEL": "m"}
    assert person.said("is not a QQ number")
    assert person.said("QQ 号和群号只有数字")


def test_quotes_around_an_answer_are_no_part_of_it() -> None:
    person = ScriptedTerminal("“deepseek”", '"sk-abc"', "「deepseek-chat」")
    answers = ask_model(person, {})
    assert answers == {"LLM_BASE_URL": DEEPSEEK, "LLM_API_KEY": "sk-abc", "LLM_MODEL": "deepseek-chat"}
    person = ScriptedTerminal("“霜降", "“霜降狐”", "")
    assert ask_character(person, {})["BOT_NAME"] == "霜降狐"
    assert person.said("has a “ at one end only")
    assert ask_people(ScriptedTerminal("“１０００１”，10002", "", ""), {})["BOT_OWNERS"] == "10001,10002"


def test_somebody_may_leave_at_any_question() -> None:
    with pytest.raises(typer.Abort):
        ask_model(ScriptedTerminal("1", LEAVE), {})
