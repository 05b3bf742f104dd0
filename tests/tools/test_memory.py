from __future__ import annotations

import pytest

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


async def test_each_action_is_one_of_the_notebooks() -> None:
    context = tool_context({Notebook: Pages()})
    assert await memory(context, "write", "对花生过敏") == "write 对花生过敏 me other here"
    assert (
        await memory(context, "write", "群规", about="here", kind="plan", told="person")
        == "write 群规 here plan person"
    )
    assert await memory(context, "search", "花生") == "search 花生"
    assert await memory(context, "list", about="#2") == "list #2"
    assert await memory(context, "forget", "t1") == "forget t1"


@pytest.mark.parametrize("action", ["write", "search", "forget"])
async def test_without_words_the_model_is_told_what_is_missing(action: str) -> None:
    with pytest.raises(InvalidArguments, match=f"text: {action} needs it"):
        await memory(tool_context({Notebook: Pages()}), action, " ")
