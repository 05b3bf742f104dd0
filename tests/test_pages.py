"""What the pages say beside commands: where links lead, the same in both languages, what a day costs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.cases import each_case
from tests.documents import PAGES, ROOT, anchors, blocks, commands_of, levels, page, settings_of
from tests.reference import NAMES


@each_case("name", PAGES)
def test_every_link_to_another_page_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page(name))
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


@each_case("name", PAGES)
def test_every_link_to_a_heading_finds_it(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page(name))
    assert [
        (target, anchor)
        for target, anchor in links
        if anchor not in anchors((ROOT / name).parent.joinpath(target or Path(name).name))
    ] == []


@each_case("name", sorted(file.name for file in ROOT.glob("docs/zh/*.md")))
def test_a_chinese_page_leads_to_chinese_pages_where_there_are_any(name: str) -> None:
    links = re.findall(r"\]\(\.\./([A-Za-z-]+\.md)", page(f"docs/zh/{name}"))
    assert [link for link in links if (ROOT / "docs/zh" / link).exists()] == [name]


@each_case("name", [name for name in PAGES if not name.endswith("coming-from.md")])
def test_the_settings_in_a_table_are_settings(name: str) -> None:
    assert [one for row in settings_of(page(name)) for one in row if "_" in one and one not in NAMES] == []


def test_what_another_bot_has_is_called_here_as_it_is() -> None:
    for name in ("docs/coming-from.md", "docs/zh/coming-from.md"):
        ours = " ".join(re.findall(r"\|([^|]*)\|$", page(name), re.MULTILINE))
        assert set(re.findall(r"`([A-Z]+_[A-Z_]+)", ours)) <= set(NAMES)


# --- what a day costs -----------------------------------------------------------------------------------


@each_case(("name", "sign"), [("docs/large-group.md", "$"), ("docs/zh/large-group.md", "¥")])
def test_what_a_day_costs_is_worked_out_from_the_prices_and_the_assumptions_of_the_page(name: str, sign: str) -> None:
    table = tomllib.loads(page("frostagent/models/models.toml"))
    rates = {"$": 1.0, "USD": 1.0, "¥": table["rates"]["CNY"], **table["rates"]}
    figures = re.findall(r"^\| [^|`]+ \| ([\d.,]+)( %)? \|$", page(name), re.MULTILINE)
    answers, requests, prompt, share, written = (float(figure.replace(",", "")) for figure, _ in figures)
    rows = re.findall(rf"^\| `(.+)` \| `(.+)` \| (\S+) \| \{sign}(.+) \| \{sign}(.+) \|$", page(name), re.MULTILINE)
    assert len(rows) >= 12
    days = []
    for model, host, sees, day, uncached in rows:
        (known,) = [row for row in table["model"] if row["name"] == model]
        assert host in known["hosts"]
        assert (sees != "-") == known.get("pictures", False)
        in_this = rates[sign] / rates[known["currency"]] * answers * requests / 1e6
        cached = known.get("cached", known["input"])
        for told, part in ((day, share / 100), (uncached, 0.0)):
            cost = prompt * (part * cached + (1 - part) * known["input"]) + written * known["output"]
            places = len(told.partition(".")[2])
            assert told == f"{in_this * cost:.{places}f}", (model, told)
        days.append(float(day))
    assert days == sorted(days)


def test_the_two_languages_of_the_readme_are_in_step() -> None:
    english, chinese = page("README.md"), page("README.zh-CN.md")
    assert levels(english) == levels(chinese)
    assert re.findall(r"\((docs/[^)#]+)", english) == [
        link.replace("docs/zh/", "docs/") for link in re.findall(r"\((docs/[^)#]+)", chinese)
    ]
    assert settings_of(english) == settings_of(chinese)
    assert [(block.info, commands_of(block)) for block in blocks("README.md")] == [
        (block.info, commands_of(block)) for block in blocks("README.zh-CN.md")
    ]


BOTH = {
    *("approvals", "coming-from", "deploy", "large-group", "models", "personas", "tools", "troubleshooting", "upgrade"),
    *("forward-mode", "llbot", "local-models", "several-accounts"),
}
"""The pages that are there in both languages, at least."""


def test_the_pages_that_matter_most_are_there_in_both_languages() -> None:
    chinese = {file.stem for file in ROOT.glob("docs/zh/*.md")}
    assert chinese >= BOTH
    assert {file.stem for file in ROOT.glob("docs/*.md")} >= chinese


@each_case("name", sorted(file.name for file in ROOT.glob("docs/zh/*.md")))
def test_a_page_says_the_same_in_both_languages(name: str) -> None:
    english, chinese = page(f"docs/{name}"), page(f"docs/zh/{name}")
    assert levels(english) == levels(chinese)
    assert settings_of(english) == settings_of(chinese)
    assert [(block.info, commands_of(block)) for block in blocks(f"docs/{name}")] == [
        (block.info, commands_of(block)) for block in blocks(f"docs/zh/{name}")
    ]
    assert re.match(rf"# .*\n\n中文：\[[^]]+\]\(zh/{name}\)\n", english), "the English page leads to the Chinese one"
    assert re.match(rf"# .*\n\nEnglish: \[[^]]+\]\(\.\./{name}\)\n", chinese), "the Chinese page leads to the English"


# --- docs/protocol: in English alone, as the code is that cites it; users never have to read it -------

CITED = re.compile(r"\b(onebot|vendors|sources)\.md`?,?\s+(?:\"\"\"|#)?\s*(?:sections?\s+)?(\d[\d., and]*)")
ABSENT = re.compile(r"shared/(onebot|providers|sources)|quirks\.md|facts\.md")


def cited() -> set[tuple[str, str]]:
    """Page and number of everything that is cited anywhere in the code."""
    found = set()
    for folder in ("frostagent", "adapters", "bot", "tools", "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            words = re.sub(r"\n\s*#?\s*", " ", file.read_text("utf-8"))
            for name, numbers in CITED.findall(words):
                found |= {(name, number) for number in re.findall(r"\d+(?:\.\d+)?", numbers)}
    return found


def test_every_cited_place_is_there() -> None:
    """A heading, a row of a table or an item of a list begins with its number."""
    there = {
        (name, number)
        for name in ("onebot", "vendors", "sources")
        for number in re.findall(
            r"^(?:#+ |\| |- \*\*)(\d+(?:\.\d+)?)\b", page(f"docs/protocol/{name}.md"), re.MULTILINE
        )
    }
    assert len(cited()) > 35
    assert sorted(cited() - there) == []


def test_the_rules_of_the_model_client_are_in_the_page_of_vendors() -> None:
    """Inside its folder, and in the names of its tests, a number stands alone."""
    names = "".join(file.read_text("utf-8") for file in (ROOT / "tests/frostagent/openai").glob("test_*.py"))
    told = {".".join(pair) for pair in re.findall(r"def test_(\d)_(\d+)_", names)}
    rows = set(re.findall(r"^\| (\d\.\d+) \|", page("docs/protocol/vendors.md"), re.MULTILINE))
    assert len(told) > 40
    assert sorted(told - rows) == []


def test_nothing_cites_what_a_clone_has_not() -> None:
    for folder in ("frostagent", "adapters", "bot", "tools", "docs"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in {".py", ".md"}:
                assert not ABSENT.search(file.read_text("utf-8")), file
