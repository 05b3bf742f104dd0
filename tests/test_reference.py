"""The pages that `make docs` makes, beside what they are made of."""

from __future__ import annotations

import re

import pytest

from bot.cli.cli import COMMANDS
from bot.core.language import Language
from config.described import About
from config.settings import KNOWN, SUBJECTS, Settings
from config.sources import ALIASES
from tests.documents import ROOT, page
from tests.reference import COMPOSE, FOLDERS, NAMES, PAGES, about, commands, made

CHINESE = re.compile(r"[\u4e00-\u9fff]")
BY_INIT = {"NAPCAT_ACCOUNT", "NAPCAT_WEBUI_TOKEN", "LLBOT_ACCOUNT", "LLBOT_WEBUI_TOKEN", "LLBOT_AUTH_TOKEN"}
BY_DOCKER = {"COMPOSE_PROFILES"}  # read by docker compose itself


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("language", Language)
def test_a_page_is_what_make_docs_writes(name: str, language: Language) -> None:
    assert page(f"{FOLDERS[language]}/{name}") == made(name, language)


def test_every_field_that_a_person_may_set_says_what_it_does_in_both_languages() -> None:
    for name, field in Settings.model_fields.items():
        found = [one for one in field.metadata if isinstance(one, About)]
        assert len(found) == (0 if field.exclude else 1), name
    for name in NAMES:
        told = about(name)
        assert told.en.endswith("."), name
        assert not CHINESE.search(told.en.replace("Web服务", "")), name
        assert told.zh.endswith("。"), name
        assert len(told.en.split()) <= 20, name
        assert not told.see or all((ROOT / folder / told.see).is_file() for folder in FOLDERS.values()), name


def test_what_docker_compose_and_init_alone_read_is_on_the_page() -> None:
    taken = set(re.findall(r"\$\{(\w+)", page("docker-compose.yml"))) | BY_INIT | BY_DOCKER
    assert set(COMPOSE) == taken - set(KNOWN)


def test_both_pages_of_settings_name_each_setting_once_in_order() -> None:
    for folder in FOLDERS.values():
        assert re.findall(r"^\| `([A-Z_]+)` \|", page(f"{folder}/settings.md"), re.MULTILINE) == list(NAMES)
        assert all(name in page(f"{folder}/settings.md") for name in ALIASES)


def test_a_subject_begins_at_a_field() -> None:
    assert [name for name in Settings.model_fields if name in SUBJECTS] == list(SUBJECTS)
    assert next(iter(Settings.model_fields)) in SUBJECTS


def test_every_command_and_option_says_what_it_does_in_both_languages() -> None:
    told = list(commands())
    assert {command.name.partition(" ")[0] for command in told} == {"", *COMMANDS}
    for text in (one for command in told for one in (command.help, *(option.help for option in command.options))):
        assert text.en.endswith("."), text
        assert text.zh.endswith("。"), text
        assert CHINESE.search(text.zh), text
    assert all(len(option.help.split()) <= 20 for command in told for option in command.options)
