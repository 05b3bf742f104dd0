"""What is not limited is told with the settings that would: by groups, prices and people."""

from __future__ import annotations

import json
from pathlib import Path

from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from adapters.storage.tables import speakers
from bot.cli.doctor.configuration import check_groups, check_limits
from tests.bot.cli.doctor.surroundings import settings_of
from tests.bot.cli.doctor.test_storage import settings
from tests.cases import each_case

SERVED = {"LLM_API_KEY": "sk-0123456789", "ONEBOT_HOST": "127.0.0.1"}
PAID = {"LLM_BASE_URL": "https://api.deepseek.com/v1", "LLM_MODEL": "deepseek-chat"}
UNKNOWN = {"LLM_BASE_URL": "https://llm.mystery.net/v1", "LLM_MODEL": "mystery"}
DAY = {"BOT_DAY_COST_ALL": "5", "BOT_DAY_COST_USER": "1"}
TOKENS = {"BOT_DAY_TOKENS_GROUP": "9000", "BOT_DAY_TOKENS_USER": "900"}


@each_case(
    ("model", "limits", "lacking"),
    [
        (PAID, {}, "Set BOT_DAY_COST_ALL, BOT_DAY_COST_USER (docs/limits.md)"),
        (PAID, DAY | {"BOT_USER_RATE": "0"}, "Set BOT_USER_RATE (docs/limits.md)"),
        (PAID, DAY, ""),
        (PAID, TOKENS, ""),
        (UNKNOWN, DAY, "Set BOT_DAY_TOKENS_ALL, BOT_DAY_TOKENS_USER (docs/limits.md)"),
        (UNKNOWN, TOKENS, ""),
    ],
)
def test_where_many_ask_a_model_that_is_paid_for_what_is_not_limited_is_named(
    model: dict[str, str], limits: dict[str, str], lacking: str
) -> None:
    made = settings_of(SERVED | model | limits)
    told = check_groups(made, [(1, 9), (4242, 201)])
    assert [check.fix for check in told] == [lacking][: bool(lacking)]
    assert check_groups(made, [(4242, 200)]) == check_groups(made, []) == []


def test_a_model_that_costs_nothing_needs_no_limit(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[[model]]\nname = "mystery"\ninput = 0\noutput = 0\n', "utf-8")
    assert check_groups(settings_of(SERVED | UNKNOWN | {"LLM_PRICES": str(prices)}), [(4242, 2000)]) == []


def test_limits_in_money_are_told_of_where_nobody_knows_a_price(tmp_path: Path) -> None:
    (told,) = check_limits(settings(tmp_path, **UNKNOWN, **DAY, BOT_DAY_TOKENS_ALL="1"))
    assert told.said == "the price of mystery is unknown, so BOT_DAY_COST_USER, BOT_DAY_COST_ALL cannot count it"
    assert told.fix.endswith("or set BOT_DAY_TOKENS_USER beside it")
    assert check_limits(settings(tmp_path, **UNKNOWN)) == check_limits(settings(tmp_path, **PAID, **DAY)) == []


def test_a_model_without_a_price_is_told_of_also_where_it_has_one_at_another_address(tmp_path: Path) -> None:
    there = {"base_url": PAID["LLM_BASE_URL"], "api_key": "k", "model": PAID["LLM_MODEL"]}
    here = UNKNOWN | {"LLM_MODEL": PAID["LLM_MODEL"], "LLM_FALLBACKS": json.dumps([there])}
    (told,) = check_limits(settings(tmp_path, **here, **DAY))
    assert told.said.startswith("the price of deepseek-chat is unknown,")


def test_personas_subagents_and_who_hears_voices_have_prices_too(tmp_path: Path) -> None:
    (personas := tmp_path / "personas").mkdir()
    (personas / "owl.md").write_text('+++\nmodel = "night"\n+++\nYou are an owl.', "utf-8")
    agents = tmp_path / "agents.toml"
    agents.write_text('[[subagent]]\nname = "Poet"\nmodel = "verse"\ndescription = "d"\nprompt = "p"\n', "utf-8")
    theirs = {"PERSONAS_DIR": str(personas), "SUBAGENTS_FILE": str(agents), "STT_BASE_URL": "http://127.0.0.1:9/v1"}
    (told,) = check_limits(settings(tmp_path, **PAID, **DAY, **theirs))
    assert told.said.startswith("the price of verse, night, whisper-1 is unknown, so ")
    openai = {"STT_BASE_URL": "https://api.openai.com/v1", "STT_API_KEY": "k"}
    assert check_limits(settings(tmp_path, **PAID, **DAY, **openai)) == []


def test_in_reverse_mode_the_journal_knows_how_many_people_there_are(tmp_path: Path) -> None:
    made = settings(tmp_path, **PAID)
    database = Database(made.store_url.get_secret_value(), migrate=migrate)
    with database.connect() as connection, connection.begin():
        people = [
            {"conversation": place, "number": number, "user_id": number, "name": ""}
            for place, count in (("10001:group:4242", 201), ("10001:private:7", 300))
            for number in range(count)
        ]
        connection.execute(speakers.insert(), people)
    database.close()
    (told,) = check_limits(made)
    assert told.said.startswith("group 4242 has 201 members")
