"""A trial beside a bot, both over real sockets: what it may do, what it may take, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from PIL import Image
from pydantic import SecretStr

from adapters.offline.server import OfflineModel
from bot.app import open_service
from bot.configured_tools import build_toolset, find_tools
from bot.core.console_views import TurnQuery
from bot.core.trial_group import TRIED, TrialLimits, TrialOptions
from bot.trial.isolated_settings import demo_model_settings, own_model_settings, trial_settings
from bot.trial.simulated_trial import SimulatedTrial
from bot.trial.trial import open_trial, select_harmless_tools
from config.settings import Settings
from config.values import Owners
from frostagent.text.masking import Mask
from frostagent.types.errors import MediaError
from frostagent.types.tools import tool
from tests.bot.budget.bank import Bank, bank
from tests.bot.test_app import settings
from tests.fakes import ManualClock, until

CEILING = TrialLimits("m", 0.25, 100_000, 40)


def png(size: tuple[int, int] = (40, 30)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "#1d6fb8").save(out, "PNG")
    return out.getvalue()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def inside(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()]


@asynccontextmanager
async def trial(
    given: Settings,
    *,
    ceiling: TrialLimits | None = None,
    texts: dict[str, str] | None = None,
    pays: Bank | None = None,
    **wanted: Any,
) -> AsyncIterator[SimulatedTrial]:
    async with AsyncExitStack() as stack:
        if ceiling is not None and pays is None:
            url = f"sqlite:///{stack.enter_context(TemporaryDirectory())}/bots.db"
            pays = await stack.enter_async_context(bank(url))
        opened = open_trial(
            given,
            TrialOptions(is_real=ceiling is not None, **wanted),
            open_service=open_service,
            tools=select_harmless_tools(build_toolset(given, find_tools(given).tools, clock=ManualClock()).list()),
            texts=texts or {},
            account=None if ceiling is None or pays is None else pays.account(ceiling),
            mask=Mask(["a-secret-key"]),
        )
        yield await stack.enter_async_context(opened)


async def test_what_is_said_is_answered_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    given = settings("http://127.0.0.1:9/v1", bot_owners=Owners({20001: False}), bot_groups=frozenset({7}))
    async with trial(given) as one:
        (folder,) = inside(tmp_path)
        assert folder.startswith("frostagent-try-")
        assert inside(tmp_path / folder)
        assert one.people == ("user1", "user2")
        await one.say("user1", "@bot 你好")
        await one.say("user2", "吃了吗")
        assert [(line.who, line.text) for line in one.lines[::2]] == [("user1", "@bot 你好"), ("user2", "吃了吗")]
        assert one.lines[1].is_ours
        assert "演示模型" in one.lines[1].text
        await one.settle()
        chat = await one.showing.chat(one.where, 0)
        assert chat is not None
        known = {line.message_id: line for line in chat.lines}
        asked, answer, overheard = (known[line.message_id] for line in one.lines)
        assert (asked.reason, asked.wakes, overheard.wakes) == ("mention", True, False)
        (trace,) = await one.showing.trace(answer.turn_id) or ()
        assert trace.row.outcome == "answered"
        assert (await one.taken()).requests == 1
        assert (await one.taken()).cost == 0
        assert one.lacks == ""
        assert not one.is_busy
        await until(lambda: one.feed.number == len(one.lines) + 2)  # what came of both is news
    assert not inside(tmp_path)


async def test_the_demo_searches_a_web_of_its_own_and_names_its_sources() -> None:
    pytest.importorskip("selectolax", reason="the extra web is not installed")
    searching = {"search_key": SecretStr("k"), "search_kind": "tavily", "search_price": 9.0}
    for given in ({}, searching):
        async with trial(settings("http://127.0.0.1:9/v1", **given)) as one:
            await one.say("user1", "@bot 搜一下霜降吃什么")
            told = one.lines[-1].text
            assert "霜降" in told
            assert told.count("https://") == 3
            assert "\n来源：\n" in told
            assert (await one.taken()).cost == 0


async def test_who_tries_the_bot_in_its_quiet_hours_is_answered() -> None:
    quiet = {"bot_quiet": ((0, 86_400),), "bot_quiet_mode": "all"}
    async with trial(settings("http://127.0.0.1:9/v1").model_copy(update=quiet)) as one:
        await one.say("user1", "@bot hello")
        assert [line.is_ours for line in one.lines] == [False, True]


async def test_pictures_of_members_and_of_the_bot_are_unpacked_elsewhere_and_shown() -> None:
    async with trial(settings("http://127.0.0.1:9/v1")) as one:
        await one.say("user1", "@bot look at this", png())
        (number,) = one.lines[0].pictures
        assert (await one.picture(number)).startswith(b"\xff\xd8\xff")
        for wrong in (b"MZ\x90", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"\x89PNG\r\n\x1a\nbroken"):
            with pytest.raises(MediaError):
                await one.say("user2", "@bot and this", wrong)
        assert len(one.lines) == 2
        await one.say("user1", "@bot send me a picture")
        sent = next(line for line in one.lines if line.is_ours and line.pictures)
        for _ in range(2):
            assert (await one.picture(sent.pictures[0])).startswith(b"\xff\xd8\xff")
        with pytest.raises(MediaError):
            await one.picture(99)


async def test_a_picture_is_in_the_request_of_a_model_that_sees_it() -> None:
    async with OfflineModel() as model:
        given = settings(model.base_url, llm_model="qwen-vl-max")
        async with trial(given, ceiling=CEILING) as one:
            await one.say("user1", "@bot 看", png())
        asked = str(model.requests[-1]["messages"])
        assert "data:image/jpeg;base64," in asked


async def test_the_demo_asks_no_model_of_the_bot_and_a_real_one_is_asked_within_its_limit(tmp_path: Path) -> None:
    async with OfflineModel() as model, bank(f"sqlite:///{tmp_path}/bots.db") as bot:
        given = settings(model.base_url, llm_api_key=SecretStr("a-secret-key"), bot_day_cost_user=0.0001)
        async with trial(given) as one:
            await one.say("user1", "@bot write a quicksort in python")
        assert not model.requests
        few = TrialLimits("m", 0.0, 100_000, 2)
        async with trial(given, ceiling=few, pays=bot) as one:
            for _ in range(4):
                await one.say("user1", "@bot hello")
            assert one.lacks == "used_up"
            assert (await one.taken()).requests == len(model.requests) == 2
        took = await one.taken()  # when it is over
        charged = await bot.rows()
        assert [(row.model[:5], row.turn_id, row.reserved) for row in charged] == [("demo@", TRIED, 0)] * 2
        assert sum(row.prompt for row in charged) == took.prompt
        assert took.requests == 2
        model.requests.clear()
        async with trial(given, ceiling=TrialLimits("m", 0.0, 5000, 40)) as one:
            for _ in range(9):
                await one.say("user1", "@bot hello")
            took = await one.taken()
            assert one.lacks == "used_up"
            assert 0 < len(model.requests) == took.requests < 9
            assert took.prompt + took.completion <= 5000


async def test_lines_that_are_said_at_the_same_time_have_no_more_requests_together() -> None:
    async with OfflineModel() as model:
        few = TrialLimits("m", 0.0, 1_000_000, 3)
        async with trial(settings(model.base_url), ceiling=few) as one:
            for number in range(6):
                one.propose(f"guest{number}", "hello")
            async with asyncio.TaskGroup() as lines:
                for who in one.people:
                    lines.create_task(one.say(who, "@bot hello"))
            took = await one.taken()
        assert (len(model.requests), took.requests, one.lacks) == (3, 3, "used_up")


async def test_the_bots_own_media_and_what_its_drafts_keep_there_are_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "media" / ".drafts" / "D7"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(png())
    async with OfflineModel() as model:
        given = settings(model.base_url, media_dir=tmp_path / "media", media_send="file")
        for ceiling in (None, CEILING):
            async with trial(given, ceiling=ceiling) as one:
                await one.say("user1", "@bot hello")
                assert len(one.lines) == 2
    assert [path.name for path in (tmp_path / "media").rglob("*")] == [".drafts", "D7"]
    assert kept.read_bytes() == png()


@pytest.fixture
def ended() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


async def test_what_a_killed_process_has_left_is_removed_and_nothing_of_a_live_one(tmp_path: Path, ended: int) -> None:
    left = {
        name: tmp_path / f"frostagent-try-{name}"
        for name in (f"{ended}-a", f"{os.getpid()}-b", f"{os.getppid()}-c", "1-d", "x-e", f"{2**80}-f")
    }
    for folder in left.values():
        (folder / "trial.db").mkdir(parents=True)
    async with trial(settings("http://127.0.0.1:9/v1")):
        assert len(inside(tmp_path)) == 4
    kept = {f"{os.getppid()}-c", "1-d", "x-e"}
    assert {name for name, folder in left.items() if folder.exists()} == kept


async def test_it_is_a_bot_of_one_process_also_beside_the_worker_of_a_cluster() -> None:
    cluster = {
        "bot_role": "worker",
        "broker_url": SecretStr("amqp://frost:secret@127.0.0.1:9/"),
        "store_url": SecretStr("postgresql+psycopg://frost:secret@127.0.0.1:9/frost"),
        "broker_partitions": 8,
        "web_port": 9,
        "console_port": 9,
    }
    async with trial(settings("http://127.0.0.1:9/v1").model_copy(update=cluster)) as one:
        await one.say("user1", "@bot hello")
        assert one.lines[1].is_ours


async def test_the_texts_that_count_are_taken_along_and_the_unsaved_one_before_them(tmp_path: Path) -> None:
    (folder := tmp_path / "personas").mkdir()
    (folder / "fox.md").write_text("filed fox", "utf-8")
    async with OfflineModel() as model:
        given = settings(model.base_url, system_prompt="filed usual", personas_dir=folder)
        cases: tuple[tuple[dict[str, Any], str], ...] = (
            ({}, "told usual"),
            ({"text": "unsaved usual"}, "unsaved usual"),
            ({"key": "fox"}, "told fox"),
            ({"key": "fox", "text": "unsaved fox"}, "unsaved fox"),
        )
        for wanted, prompt in cases:
            told = {"": "told usual", "fox": "told fox"}
            async with trial(given, ceiling=CEILING, texts=told, **wanted) as one:
                await one.say("user1", "@bot hello")
            assert prompt in str(model.requests[-1]["messages"][0])
        async with open_service(given) as service:
            assert service.app.personas.text("fox") == "filed fox"
    assert (folder / "fox.md").read_text("utf-8") == "filed fox"


async def test_a_persona_that_cannot_be_used_is_no_trial_of_another_one(tmp_path: Path) -> None:
    (tmp_path / "personas").mkdir()
    given = settings("http://127.0.0.1:9/v1", personas_dir=tmp_path / "personas")
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"key": "gone", "text": "x"}, "persona"),
        ({"key": "gone"}, "persona"),
        ({"text": "x"}, ""),
        ({}, ""),
    )
    for wanted, trouble in cases:
        async with trial(given, **wanted) as one:
            assert one.trouble == trouble, wanted


async def test_where_somebody_in_it_is_forgotten_nothing_of_what_was_said_stays_on_the_page() -> None:
    async with trial(settings("http://127.0.0.1:9/v1")) as one:
        await one.say("user1", "@bot 记住我的生日")
        await one.say("user1", "@bot /forget me")
        await until(lambda: [line.is_ours for line in one.lines] == [True])
        assert "Erased: " in one.lines[0].text


async def test_a_question_stands_ready_until_it_is_asked() -> None:
    async with trial(settings("http://127.0.0.1:9/v1"), asker="小明", question="今天要带伞吗") as one:
        assert one.draft is not None
        assert (one.draft.who, one.draft.text) == ("小明", "今天要带伞吗")
        assert "小明" in one.people
        await one.say("小明", f"@bot {one.draft.text}")
        assert one.draft is None
        assert one.lines[0].who == "小明"
        rows = await one.showing.rows(TurnQuery())
        assert rows is not None


@tool(side_effects="read")
async def reads() -> str:
    """Looks something up."""
    return "x"


@tool(side_effects="external")
async def acts() -> str:
    """Does something."""
    return "x"


@tool(side_effects="write", stays_here=True)
async def says_so() -> str:
    """Says of itself that its effects stay in the conversation."""
    return "x"


@tool
async def says_nothing() -> str:
    """Says nothing of itself."""
    return "x"


@tool(name="get_weather", side_effects="read", replace=True)
async def own_weather() -> str:
    """Weather from elsewhere."""
    return "x"


@tool(name="chat_log", side_effects="external", replace=True)
async def own_log() -> str:
    """Writes into a log of its own."""
    return "x"


def test_tools_with_effects_are_not_offered_and_an_operators_only_where_they_read() -> None:
    found = select_harmless_tools((reads, acts, says_so, says_nothing, own_weather, own_log))
    assert found.names == (
        "chat_log",
        "get_game_version",
        "get_weather",
        "look",
        "memory",
        "read_page",
        "reads",
        "remind",
        "search_web",
        "send_message",
        "stay_silent",
        "subscribe",
        "use_subagent",
    )
    by_name = {one.name: one for one in found.tools}
    assert by_name["get_weather"] is own_weather
    assert by_name["chat_log"] is not own_log
    assert not found.commands


def test_no_setting_of_the_bots_reaches_a_trial_that_would_let_it_out(tmp_path: Path) -> None:
    given = settings(
        "https://api.example/v1",
        tools_deny=("get_weather", "gone"),
        bot_day_cost_all=9.0,
        qweather_key=SecretStr("k"),
        amap_key=SecretStr("k"),
    )
    aside = trial_settings(given, "/tmp/x", frozenset({"get_weather"}))
    for changes in (
        aside,
        demo_model_settings("http://127.0.0.1:1/v1", search_url="http://127.0.0.1:2"),
        own_model_settings(given, CEILING),
    ):
        assert set(changes) <= set(Settings.model_fields)
    assert aside["tools_deny"] == ("get_weather",)
    given = given.model_copy(update={"qweather_jwt_private_key": SecretStr("k")})
    changed = given.model_copy(
        update=aside | demo_model_settings("http://127.0.0.1:1/v1", search_url="http://127.0.0.1:2")
    )
    ours = {name for name, field in Settings.model_fields.items() if "url" in name or "key" in name or "token" in name}
    held = {
        name for name in Settings.model_fields if isinstance(value := getattr(changed, name), SecretStr) and str(value)
    }
    assert held == {"store_url", "onebot_access_token"}  # a file of its own; put in by whoever opens it
    left = {name for name in ours if getattr(changed, name) not in ("", SecretStr(""), 0, None, {}, ())}
    # The line is put in by whoever opens it.
    assert left <= {
        "llm_base_url",
        "search_url",
        "store_url",
        "onebot_access_token",
        "bot_history_tokens",
        "llm_first_token",
        "media_urls",
    }
    assert (changed.bot_owners, changed.bot_day_cost_all) == (Owners(), 0)
    limited = given.model_copy(update=aside | own_model_settings(given, CEILING))
    assert (limited.bot_day_cost_all, limited.bot_day_tokens_all, limited.bot_run_requests) == (0.25, 100_000, 8)


async def test_where_there_is_no_room_for_its_journal_it_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", os.devnull)
    with pytest.raises(OSError, match="null"):
        async with trial(settings("http://127.0.0.1:9/v1")):
            pass
