from __future__ import annotations

import re

from msgspec.structs import replace

from bot.domain.shown import ToolState, ToolUse
from tests.adapters.console.samples import HOSTILE
from tests.adapters.console.visiting import visiting

ENGLISH = {"Accept-Language": "en"}


async def test_tools_say_whether_they_can_be_used_for_whom_and_what_failed() -> None:
    async with visiting() as place:
        await place.log_in()
        assert "There are no tools" in (await place.ask("GET", "/tools", headers=ENGLISH))[1]
        state = ToolState(
            name="a", about=HOSTILE, reason="", permission="require_approval", audience="everyone", elsewhere=()
        )
        lame = ToolState(
            name="z", about="", reason=HOSTILE, permission="allow", audience="owner", elsewhere=((77, "everyone"),)
        )
        lame = replace(lame, quota=(5, 60.0))
        place.tools = [state, lame]
        place.journal.uses = [ToolUse("a", 5, 2, HOSTILE, 0.5)]
        _, text, _ = await place.ask("GET", "/tools", headers=ENGLISH)
        said = (
            "asks the owners first",
            "for owners",
            "in group 77: for everybody",
            "5 of the latest calls, 2 failed",
            "at most 5 calls in 60 s",
        )
        for words in said:
            assert words in text, words
        assert text.count("at most") == 1
        assert text.index("<b>z</b>") < text.index("<b>a</b>")
        assert text.count("alert(1)") == 3
        assert not re.search(r"<script>|<img|x{9}", text)
        place.journal.lines = None
        assert "cannot be read" in (await place.ask("GET", "/tools", headers=ENGLISH))[1]
