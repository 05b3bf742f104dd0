from __future__ import annotations

import asyncio
import re

from msgspec.structs import replace

from bot.core.console_views import ServerState, ToolAnswer, ToolState, ToolUse, WebState
from bot.core.day_tally import Tally
from bot.core.language import Bilingual
from tests.adapters.console.samples import HOSTILE
from tests.adapters.console.visiting import SAME, SECRET, visiting
from tests.fakes import until

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
            "5 recent calls: 3 ok, 2 failed",
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


async def test_servers_say_whether_they_are_there_and_what_they_take() -> None:
    good = ServerState(
        name="files",
        trust="read",
        audience="owner",
        groups=(77,),
        reason="",
        error=HOSTILE,
        tools=12,
        tokens=900,
        skipped=(HOSTILE,),
        calls=5,
        failures=2,
    )
    async with visiting() as place:
        await place.log_in()
        assert "MCP" not in (await place.ask("GET", "/tools", headers=ENGLISH))[1]
        away = replace(good, name="gone", trust="ask", reason=f"cannot be reached: {SECRET}", groups=(), skipped=())
        place.servers = (away, good)
        _, text, _ = await place.ask("GET", "/tools", headers=ENGLISH)
        for words in (
            "away: it cannot be reached: ***",
            "owners are asked about each call",
            "connected: 12 tools, about 900 tokens in a request",
            "in group 77",
            "5 calls since the start, 2 failed",
        ):
            assert words in text, words
        assert text.count("alert(1)") == 2
        assert SECRET not in text
        assert not re.search(r"<script>|<img", text)
        assert "连不上" in (await place.ask("GET", "/tools", headers={"Accept-Language": "zh"}))[1]


async def test_the_web_says_which_service_answers_what_it_costs_and_what_failed() -> None:
    refused = Bilingual(f"Tavily refuses {SECRET}", "Tavily 不认这个 SEARCH_KEY")
    web = WebState(
        service="Tavily",
        unsearched="",
        unread="",
        price=8.0,
        rests=120.0,
        searches=Tally(1, 3, refused, 1_700_000_000.0),
        pages=Tally(5, 0, HOSTILE, 1_700_000_000.0),
    )
    async with visiting() as place:
        await place.log_in()
        assert "The web" not in (await place.ask("GET", "/tools", headers=ENGLISH))[1]
        place.web = web
        _, text, _ = await place.ask("GET", "/tools", headers=ENGLISH)
        for words in (
            *("Tavily</span>", "not asked for another 2 min", "$8 for 1,000 searches", "1 search today"),
            *("3 more from the last ten minutes", "Tavily refuses ***", "5 pages read today", "could not be read"),
        ):
            assert words in text, words
        assert text.count("alert(1)") == 1
        assert not re.search(r"<script>|<img", text)
        chinese = (await place.ask("GET", "/tools", headers={"Accept-Language": "zh"}))[1]
        for words in ("今天搜索 1 次", "每千次 8 美元", "Tavily 不认这个 SEARCH_KEY", "今天读了 5 个网页"):
            assert words in chinese, words
        off = Bilingual("needs SEARCH_URL", "需要 SEARCH_URL")
        place.web = replace(web, unsearched=off, unread="needs libraries", price=0.0)
        _, text, _ = await place.ask("GET", "/tools", headers=ENGLISH)
        assert "no search: search_web needs SEARCH_URL" in text
        assert "Pages cannot be read" in text
        for words in ("needs libraries", "Pages cannot be read"):
            assert words in text
        for words in ("Tavily", "search today", "read today", "SEARCH_PRICE", "alert(1)"):
            assert words not in text, words
        place.web = replace(web, price=0.0, rests=0.0, searches=Tally(), pages=Tally())
        _, text, _ = await place.ask("GET", "/tools", headers=ENGLISH)
        assert "no price is set (SEARCH_PRICE)" in text
        for words in ("not asked for", "Last failed", "could not be read"):
            assert words not in text, words


async def test_a_tool_that_fails_each_time_is_red_and_tells_its_last_error() -> None:
    cases = {
        "all of twelve": (ToolUse("a", 12, 12, "TOOL_TIMEOUT", 0.5, lately=(10, 10), error="x" * 292 + SECRET), "bad"),
        "better since": (ToolUse("a", 12, 2, "TOOL_TIMEOUT", 0.5, lately=(0, 10)), "good"),
        "worse since": (ToolUse("a", 900, 10, "TOOL_TIMEOUT", 0.5, lately=(10, 10)), "bad"),
        "half of them": (ToolUse("a", 12, 6, "TOOL_TIMEOUT", 0.5, lately=(5, 10)), "warn"),
        "one in three": (ToolUse("a", 12, 4, "TOOL_TIMEOUT", 0.5, lately=(3, 10)), "good"),
        "two, which says little": (ToolUse("a", 2, 2, "TOOL_TIMEOUT", 0.5, lately=(2, 2)), "good"),
        "denied each time": (ToolUse("a", 12, 12, "TOOL_DENIED", 0.5, lately=(0, 0), error="denied by 小明"), "good"),
    }
    async with visiting() as place:
        await place.log_in()
        state = ToolState(name="a", about="", reason="", permission="allow", audience="everyone")
        for case, (used, tone) in cases.items():
            place.tools, place.journal.uses = [state], [used]
            _, text, _ = await place.ask("GET", "/tools", headers=ENGLISH)
            assert re.findall(r'class="dot (\w+)"', text) == [tone], case
            assert f"{used.calls} recent calls: {used.calls - used.failed} ok, {used.failed} failed" in text, case
            assert ("Last error: " + ("took too long" if used.code == "TOOL_TIMEOUT" else "denied")) in text, case
            assert SECRET[:6] not in text
            assert ("Its last calls all failed: 10 of 10." in text) == (tone == "bad"), case
            assert ("denied: <code>denied by 小明" in text) == (case == "denied each time")
        failing = ToolUse("z", 3, 3, "TOOL_TIMEOUT", 0.5, lately=(3, 3))
        place.tools, place.journal.uses = [state, replace(state, name="z")], [failing]
        text = (await place.ask("GET", "/tools", headers=ENGLISH))[1]
        assert text.index("<b>z</b>") < text.index("<b>a</b>")
        place.tools, place.journal.uses = [state], [ToolUse("a", 1, 0, "", 0.0, going_on=1)]
        text = (await place.ask("GET", "/tools", headers=ENGLISH))[1]
        assert "1 recent call: 0 ok, 0 failed, 1 not ended</p>" in text  # and it is no fast one


TOOL = ToolState(
    name="get_weather",
    about=HOSTILE,
    reason="",
    permission="allow",
    audience="everyone",
    unfit="",
    parameters={"properties": {"city": {"type": "string", "description": HOSTILE}, "days": {"type": "integer"}}},
)


async def test_a_tool_that_changes_nothing_is_called_with_what_was_typed_and_what_it_gave_is_only_shown() -> None:
    async with visiting() as place:
        await place.log_in()
        place.tools = [TOOL, replace(TOOL, name="wipe", unfit="effects")]
        place.answer = ToolAnswer(f"{HOSTILE} {SECRET}", "ok", 0.25, pictures=2)
        _, text, _ = await place.ask("GET", "/tools", headers=ENGLISH)
        assert re.findall(r'href="(/tools/\w+)"', text) == ["/tools/get_weather"]
        assert "it changes something" in text
        status, text, _ = await place.ask("GET", "/tools/get_weather", headers=ENGLISH)
        assert (status, place.called) == (200, [])
        data = {"form": await place.form(), "a0": "北京", "a1": "2"}
        status, text, _ = await place.ask("POST", "/tools/get_weather", data=data, headers=SAME | ENGLISH)
        assert (status, place.called) == (200, [("get_weather", '{"city": "北京", "days": 2}')])
        assert "Result, after 0.25 s" in text
        assert "pictures: 2" in text
        assert 'value="北京"' in text
        assert SECRET not in text
        assert "alert(1)" in text
        assert not re.search(r"<script>|<img|x{9}", text)
        place.answer = ToolAnswer("error: no such city [TOOL_EXECUTION_FAILED]", "TOOL_EXECUTION_FAILED", 0.25)
        _, text, _ = await place.ask("POST", "/tools/get_weather", data=data, headers=SAME | ENGLISH)
        assert "Error, after 0.25 s, as the model would read it <code>TOOL_EXECUTION_FAILED</code>" in text
        assert "error: no such city" in text
        lines = await place.journal.audit(latest=2)
        assert lines is not None
        assert [(line.action, line.object, line.outcome) for line in lines] == [
            ("call tool", "get_weather", "TOOL_EXECUTION_FAILED"),
            ("call tool", "get_weather", "ok"),
        ]


async def test_one_that_may_not_be_called_from_a_page_is_not_whatever_is_sent() -> None:
    async with visiting() as place:
        await place.log_in()
        data = {"form": await place.form(), "a0": "x"}
        for why in ("away", "denied", "effects", "undeclared", "approval", "audience", "models", "chat"):
            place.tools = [replace(TOOL, unfit=why)]
            for method in ("GET", "POST"):
                more = {"data": data, "headers": SAME | ENGLISH} if method == "POST" else {"headers": ENGLISH}
                status, text, _ = await place.ask(method, "/tools/get_weather", **more)
                assert (status, 'name="a0"' in text) == (200 if method == "GET" else 403, False), why
                assert "It is not called from here" in text
            lines = await place.journal.audit(latest=1)
            assert lines is not None
            assert lines[0].outcome == f"refused: {why}"
        assert (await place.ask("GET", "/tools/none"))[0] == 404
        assert (await place.ask("POST", "/tools/none", data=data, headers=SAME))[0] == 404
        assert place.called == []


async def test_one_call_goes_on_at_a_time() -> None:
    async with visiting() as place:
        await place.log_in()
        place.tools, place.is_stuck = [TOOL], True
        data = {"form": await place.form(), "a0": "first"}
        async with asyncio.TaskGroup() as group:
            first = group.create_task(place.ask("POST", "/tools/get_weather", data=data, headers=SAME))
            await until(lambda: bool(place.called))
            data["a0"] = "second"
            status, text, _ = await place.ask("POST", "/tools/get_weather", data=data, headers=SAME | ENGLISH)
            assert status == 409
            assert "Another call goes on" in text
            assert 'value="second"' in text
            place.gate.set()
        assert first.result()[0] == 200
        assert (await place.ask("POST", "/tools/get_weather", data=data, headers=SAME))[0] == 200
        assert [arguments for _, arguments in place.called] == ['{"city": "first"}', '{"city": "second"}']
