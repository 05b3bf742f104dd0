"""The example of a `.env`: it names every variable, shows the real defaults, and loads once three lines are edited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from config.loading import load_settings
from config.settings import KNOWN, Settings
from config.sources import ALIASES, read_example
from frostagent.types.errors import ConfigError

EXAMPLE = Path(__file__).parents[1] / ".env.example"
TOKEN = "sesame-open-sesame"
COMPOSE_ONLY = {
    *re.findall(r"\$\{(\w+)", (EXAMPLE.parent / "docker-compose.yml").read_text("utf-8")),
    *("NAPCAT_ACCOUNT", "NAPCAT_WEBUI_TOKEN", "LLBOT_ACCOUNT", "LLBOT_WEBUI_TOKEN", "LLBOT_AUTH_TOKEN"),  # by `init`
    "COMPOSE_PROFILES",  # read by docker compose itself
}


def example() -> dict[str, str]:
    """Every variable the example names, commented out or not."""
    return dict(re.findall(r"^#?([A-Z_]+)=(.*)$", EXAMPLE.read_text("utf-8"), re.MULTILINE))


def edited(tmp_path: Path, extra: str = "") -> Path:
    """The example as a person would edit it."""
    text = EXAMPLE.read_text("utf-8")
    for line, mine in {
        "LLM_API_KEY=sk-xxxx": "LLM_API_KEY=sk-abcdefgh",
        "LLM_MODEL=your-model": "LLM_MODEL=deepseek-chat",
        "ONEBOT_ACCESS_TOKEN=change-me": f"ONEBOT_ACCESS_TOKEN={TOKEN}",
    }.items():
        assert text.count(f"\n{line}\n") == 1
        text = text.replace(line, mine)
    file = tmp_path / ".env"
    file.write_text(text + extra, "utf-8")
    return file


def test_the_example_names_every_variable_and_no_other() -> None:
    assert sorted(example()) == sorted({*KNOWN, *COMPOSE_ONLY})
    assert all(name in EXAMPLE.read_text("utf-8") for name in ALIASES)


def test_setup_begins_with_the_example_of_the_checkout_it_is_in() -> None:
    assert read_example() == EXAMPLE.read_text("utf-8")


def test_the_example_as_it_is_says_which_three_lines_to_edit() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={}, env_file=EXAMPLE)
    assert [problem.name for problem in caught.value.problems] == ["LLM_API_KEY", "LLM_MODEL", "ONEBOT_ACCESS_TOKEN"]


def test_the_example_with_its_three_lines_edited_loads(tmp_path: Path) -> None:
    settings, warnings = load_settings(environ={}, env_file=edited(tmp_path))
    assert warnings == ()
    assert settings == Settings(
        llm_base_url="https://api.deepseek.com/v1",
        llm_api_key=SecretStr("sk-abcdefgh"),
        llm_model="deepseek-chat",
        onebot_access_token=SecretStr(TOKEN),
    )


@pytest.mark.parametrize("line", re.findall(r"^#([A-Z_]+=.+)$", EXAMPLE.read_text("utf-8"), re.MULTILINE))
def test_each_line_of_the_example_loads_when_it_is_uncommented(tmp_path: Path, line: str) -> None:
    load_settings(environ={}, env_file=edited(tmp_path, line))


def test_the_defaults_the_example_shows_are_the_real_ones() -> None:
    shown = (
        "ONEBOT_MODE",
        "ONEBOT_HOST",
        "ONEBOT_PORT",
        "BOT_NAME",
        "BOT_MAX_STEPS",
        "BOT_HISTORY_TOKENS",
        "STORE_KEEP_DAYS",
        "STORE_KEEP_MESSAGES",
        "MEDIA_DIR",
        "MEDIA_SEND",
        "MEDIA_URLS",
        "WEB_HOST",
        "WEB_PORT",
        "LOG_LEVEL",
        "LOG_FORMAT",
    )
    assert {name: example()[name] for name in shown} == {name: str(getattr(Settings(), name.lower())) for name in shown}
    manners = (
        *("BOT_AT_ALL", "BOT_CHANCE", "BOT_STALE", "BOT_LOOP", "BOT_DEBOUNCE", "BOT_STEER", "BOT_SCOPE", "BOT_LANE"),
        *("BOT_PACE", "BOT_SEND_RATE", "BOT_SEND_BURST", "BOT_MAX_SENDS", "BOT_USER_RATE", "BOT_GROUP_RATE"),
    )
    assert Settings.model_validate({name.lower(): example()[name] for name in manners}) == Settings()
    assert example()["STORE_URL"] == Settings().store_url.get_secret_value()
