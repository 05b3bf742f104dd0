"""What is there in Chinese and in English says the same, with the same values in it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from string import Formatter

import adapters.broker
import adapters.console
import adapters.storage
import bot
import frostagent
from bot.core.language import CATALOGUE, Phrase
from tests.bot.test_old_names import OLD_NAMES
from tests.cases import each_case

CJK = re.compile(r"[\u3400-\u9fff]")
QUOTED = re.compile(r"「.*?」")  # what somebody is to type, or has said


def pairs(value: object) -> Iterator[tuple[str, str]]:
    """The pairs of lines in it: the first Chinese, so that it is no other pair of words."""
    match value:
        case Phrase(zh=zh, en=en):
            yield zh, en
        case (str() as zh, str() as en) if CJK.search(zh):
            yield zh, en
        case tuple() | list():
            for each in value:
                yield from pairs(each)
        case Mapping():
            for each in value.values():
                yield from pairs(each)
        case _:
            pass


def either() -> Iterator[tuple[str, str, str]]:
    """All of `bot`, and of what the library and adapters tell owners, by module and name."""
    for found in (
        *pkgutil.walk_packages(bot.__path__, "bot."),
        *pkgutil.walk_packages(frostagent.__path__, "frostagent."),
        *(
            found
            for package in (adapters.broker, adapters.console, adapters.storage)
            for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        ),
    ):
        # nothing to import; Chinese alone; deprecated
        if found.name.endswith((".__main__", "_zh")) or found.name in OLD_NAMES:
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if name.isupper() and value is not CATALOGUE:
                yield from ((f"{found.name}.{name}", zh, en) for zh, en in pairs(value))


ALL = sorted({(zh, en): (name, zh, en) for name, zh, en in either()}.values())


def values(line: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(line) if name}


@each_case(("name", "zh", "en"), ALL)
def test_a_line_in_two_languages_has_the_same_values_and_its_english_no_chinese(name: str, zh: str, en: str) -> None:
    assert values(zh) == values(en)
    assert not CJK.search(QUOTED.sub("", en))


def test_they_are_found() -> None:
    assert len(ALL) > 140
    assert {
        "bot.approvals.tool_call_wording.HOW",
        "bot.approvals.join_requests.HOW",
        "adapters.console.access.TOLD",
    } <= {name for name, _, _ in ALL}


def test_every_module_of_the_ways_to_owners_and_members_is_looked_at() -> None:
    told = {name.rpartition(".")[2] for name, _, _ in ALL}
    assert {"KEY_REFUSED", "NOT_FOUND", "PIECE", "STILL_WORKING", "POLITE", "CUT_SHORT", "CANNOT", "UNHANDLED"} <= told
