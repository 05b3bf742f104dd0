from __future__ import annotations

import pytest
from msgspec.structs import replace

from bot.domain.errors import InvalidArguments
from bot.domain.memories import Kind, Visibility
from bot.domain.notebook import Notebook
from bot.domain.tool import ToolContext
from tests.fakes import tool_context
from tools.memory import memory


class Pages:
    """A notebook that says what it was asked."""

    async def write(self, context: ToolContext, text: str, *, about: str, kind: Kind, told: Visibility) -> str:
        return f"write {text} {about} {kind} {told}"

    async def search(self, context: ToolContext, words: str) -> str:
        return f"search {words}"

    async def listed(self, context: ToolContext, *, about: str) -> str:
        return f"list {about}"

    async def forget(self, context: ToolContext, memory_id: str) -> str:
        return f"forget {memory_id}"


async def test_each_action_is_one_of_the_notebooks_and_goes_with_the_question_it_was_asked_by() -> None:
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
        assert (result.text, result.sources) == (said, ("7", "8"))


@pytest.mark.parametrize("action", ["write", "search", "forget"])
async def test_without_words_the_model_is_told_what_is_missing(action: str) -> None:
    with pytest.raises(InvalidArguments, match=f"text: {action} needs it"):
        await memory(tool_context({Notebook: Pages()}), action, " ")
