"""The library's own words, and those a user gives instead."""

from __future__ import annotations

from typing import Any

import pytest

from frostagent import Agent, Image, ScriptedModel, ToolMessage, Toolset, Words, call, tool, use_words
from frostagent.words import ENGLISH, changed
from tests.cases import each_case


@tool(side_effects="none")
def draw() -> Image:
    """Draws."""
    return Image.of(b"x")


@tool(permission="deny")
def wipe() -> str:
    """Wipes."""
    return "wiped"


async def test_what_models_and_people_read_is_of_the_table_in_force() -> None:
    use_words(
        Words(
            picture="[Bild {number}]",
            denied="{name} geht nicht.",
            last_step="Antworte jetzt.",
            no_conclusion="Ich komme zu keinem Schluss.",
        )
    )
    with ScriptedModel(call("draw"), call("draw")) as model:
        reply = await Agent(model=model, tools=[draw], max_turns=1).run("Draw.")
    assert reply.text == "Ich komme zu keinem Schluss."
    assert next(each.content for each in reply.messages if isinstance(each, ToolMessage)) == "[Bild 1]"
    assert model.requests[1].messages[-1].text == "Antworte jetzt."
    assert "wipe geht nicht." in (await Toolset([wipe]).execute("wipe")).text


async def test_without_another_table_they_are_english() -> None:
    assert "wipe may not be run. Do without it." in (await Toolset([wipe]).execute("wipe")).text


@each_case("words", [{"denied": "Nein."}, {"denied": "{name} {why}"}, {"empty": "{name}"}, {"picture": "{}"}])
def test_a_text_with_other_values_is_refused_at_once(words: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(words))):
        Words(**words)


class Both(str):
    """A text that brings another language."""

    __slots__ = ("other",)
    other: str

    def each(self, change: Any) -> Both:
        made = Both(change(str(self)))
        made.other = change(self.other)
        return made


def test_a_text_in_more_languages_is_changed_in_each() -> None:
    both = Both("key abc")
    both.other = "Schlüssel abc"
    told = changed(both, lambda text: text.replace("abc", "***"))
    assert (told, getattr(told, "other", "")) == ("key ***", "Schlüssel ***")
    assert changed("abc", str.upper) == "ABC"
    assert changed(ENGLISH.hung_up, str) == ENGLISH.hung_up
