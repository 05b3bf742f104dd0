"""The example of a `.env`: the settings that matter first, with real defaults; it loads once three lines are edited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from config.loading import load_settings
from config.settings import DEFAULT_PERSONA, Settings
from config.sources import read_example
from frostagent.types.errors import ConfigError
from tests.documents import ROOT, page
from tests.reference import NAMES, about

EXAMPLE = ROOT / ".env.example"
TOKEN = "sesame-open-sesame"


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


def names(text: str) -> list[str]:
    return re.findall(r"^#?([A-Z_]+)=", text, re.MULTILINE)


def test_the_example_has_the_eight_settings_of_the_readmes() -> None:
    assert len(names(page(".env.example"))) == 8
    for readme in ("README.md", "README.zh-CN.md"):
        rows = re.findall(r"^\| `([A-Z_]+)` \|", page(readme), re.MULTILINE)
        assert rows == names(page(".env.example"))


def test_the_example_leads_to_the_pages_of_all_settings() -> None:
    assert all(
        file in page(".env.example") and (ROOT / file).is_file() for file in ("docs/settings.md", "docs/zh/settings.md")
    )


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


SHOWN = [
    *re.findall(r"^#([A-Z_]+=.+)$", page(".env.example"), re.MULTILINE),
    *(f"{name}='{about(name).example}'" for name in NAMES if about(name).example),
]
"""What the example has commented out, and what the page of settings shows."""


@pytest.mark.parametrize("line", SHOWN)
def test_each_line_that_is_shown_loads(tmp_path: Path, line: str) -> None:
    others = {"STORE_URL": "postgresql://user:password@127.0.0.1/frostagent"} if line.startswith("BROKER_URL") else {}
    load_settings(environ=others, env_file=edited(tmp_path, f"{line}\n"))


def test_the_defaults_the_example_shows_are_the_real_ones() -> None:
    shown = dict(re.findall(r"^#([A-Z_]+)=(.+)$", page(".env.example"), re.MULTILINE))
    settings = Settings()
    assert shown.pop("BOT_OWNERS")
    assert ROOT / shown.pop("BOT_PERSONA") == DEFAULT_PERSONA
    assert shown == {"BOT_NAME": settings.bot_name, "BOT_DAY_COST_ALL": f"{settings.bot_day_cost_all:g}"}
