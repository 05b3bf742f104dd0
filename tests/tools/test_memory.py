from __future__ import annotations

from typing import Literal

import pytest
from msgspec.structs import replace

from bot.core.memories import Kind, Notebook, Noted, Visibility
from frostagent.types.errors import InvalidArguments
from frostagent.types.tools import ToolContext
from tests.cases import each_case
from tests.fakes import tool_context
from tools.memory import memory


class Pages:
    """A notebook that says what it was asked."""

    async def write(self, context: ToolContext, text: str, *, about: str, kind: Kind, told: Visibility) -> Noted:
        return Noted(f"write {text} {about} {kind} {told}", ("8", "9"))

    async def search(self, context: ToolContext, words: str) -> Noted:
        return Noted(f"search {words}", ("8", "9"), "[m1]")

    async def listed(self, context: ToolContext, *, about: str) -> Noted:
        return Noted(f"list {about}", ("8", "9"))

    async def forget(self, context: ToolContext, memory_id: str) -> Noted:
        return Noted(f"forget {memory_id}", ("8", "9"))


async def test_each_action_is_one_of_the_notebooks_and_names_the_question_and_the_lines_it_tells() -> None:
    context = replace(tool_context({Notebook: Pages()}), asked=("7", "8"))
    for said, result in (
        ("write 对花生过敏 me other here", await memory(context, "write", "对花生过敏")),
        (
            "write 群规 here plan person",
            await memory(context, "write", "群规", "here", "plan", "person"),
        ),
        ("search 花生", await memory(context, "search", "花生")),
        ("list #2", await memory(context, "list", about="#2")),
        ("forget t1", await memory(context, "forget", "t1")),
    ):
        assert (result.text, result.sources) == (said, ("7", "8", "9"))
        assert result.kept == ("[m1]" if said.startswith("search") else "")


@each_case("action", ["write", "search", "forget"])
async def test_without_words_the_model_is_told_what_is_missing(action: Literal["write", "search", "forget"]) -> None:
    with pytest.raises(InvalidArguments, match=f"text: {action} needs it"):
        await memory(tool_context({Notebook: Pages()}), action, " ")
