from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace
from pydantic import SecretStr
from yarl import URL

from adapters.offline.server import OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.sockets import ConnectedBot
from adapters.simulator.world import demo_world
from bot.app import Service, open_service
from bot.budget.limits import ALL, LimitOverride, OwnLimits
from bot.cli.process import check_running_bot
from bot.console.limits_page import LIMIT_SETTINGS, list_limits
from bot.core.console_views import ChatRows
from bot.core.conversation import Conversation
from bot.core.jobs import JobState
from bot.core.journal import PlaceSet, TurnClosed, TurnOpened, UsageAdded
from bot.core.trial_group import TRIED
from config.settings import Settings
from frostagent.types.messages import Usage, UserMessage
from frostagent.types.runs import Stop
from tests.adapters.console.samples import ELSEWHERE
from tests.adapters.storage.entries import job
from tests.bot.cli.doctor.surroundings import answering, healthy
from tests.bot.trial.test_trial import inside
from tests.e2e.test_watching import TOKEN as ONEBOT_TOKEN
from tests.e2e.test_watching import settings
from tests.fakes import GROUP, ManualClock, RecordingStore, said, until
from tests.ports import free_port
from tests.settings import kept_settings

TOKEN = "0123456789abcdef0123456789abcdef"
ROLL = """from frostagent import tool


@tool(rate="5/60")
def roll() -> str:
    \"\"\"Roll a die.\"\"\"
    return "4"
"""


async def test_without_a_token_nobody_listens_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = settings("http://127.0.0.1:9/v1", tmp_path, console_port=(port := free_port()))
    async with open_service(given) as running, aiohttp.ClientSession() as session:
        assert running.console_link is None
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"http://127.0.0.1:{port}/")
    assert "CONSOLE_TOKEN" in caplog.text


async def test_with_one_a_link_lets_into_what_is_loaded_when_somebody_asks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "adapters.console.site", raising=False)
    (tools := tmp_path / "tools").mkdir()
    (tools / "roll.py").write_text(ROLL)
    given = settings(
        "http://127.0.0.1:9/v1",
        tmp_path,
        console_port=free_port(),
        console_token=SecretStr(TOKEN),
        log_level="DEBUG",
        tools_dir=tools,
    )
    async with (
        open_service(given) as running,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        assert running.console_link is not None
        page, _, code = running.console_link().partition("#")
        assert "adapters.console.site" not in sys.modules
        same = {"Sec-Fetch-Site": "same-origin"}
        answer = await session.post(page, data={"code": code}, headers=same, allow_redirects=False)
        assert answer.status == 303
        root = page.removesuffix("/login")
        session.cookie_jar.update_cookies({name: one.value for name, one in answer.cookies.items()}, URL(root))
        for path, words in (
            ("persona", "Frost"),
            ("tools", "get_weather"),
            ("tools", "at most 5 calls in 60 s"),
            ("chats", "<h1>"),
            ("approvals", "<h1>"),
        ):
            async with session.get(f"{root}/{path}", headers={"Accept-Language": "en"}) as shown:
                assert words in await shown.text(), path
        async with session.get(f"{root}/chats/10001:group:4242") as shown:
            form = (await shown.text()).partition('name="form" value="')[2].partition('"')[0]
        data, here = {"form": form, "name": "4242"}, f"{root}/chats/10001:group:4242/forget"
        async with session.post(here, data=data, headers=same | {"Accept-Language": "en"}) as shown:
            assert "Erased: " in await shown.text()
        lines = await running.app.journal.books.audit(latest=5)
        assert lines is not None
        assert [(line.action, line.outcome) for line in lines] == [("forget", "ok"), ("login", "ok")]
    async with open_service(given), aiohttp.ClientSession() as session:
        cookies = {name: one.value for name, one in answer.cookies.items()}
        async with session.get(f"{root}/access", cookies=cookies, allow_redirects=False) as shown:
            assert shown.status == 200  # logged in still
    assert "adapters.console.site" in sys.modules
    assert TOKEN not in caplog.text
    assert code not in caplog.text


async def test_the_doctor_of_a_running_bot_tells_no_secret_and_what_he_took_is_counted(tmp_path: Path) -> None:
    async with healthy(tmp_path) as around:
        key = around.environ["LLM_API_KEY"]
        refusal = {"error": {"message": f"no such key: {key}"}}
        async with answering(lambda _: web.json_response(refusal, status=401)) as root:
            given = around.settings(
                CONSOLE_PORT=str(free_port()), CONSOLE_TOKEN=TOKEN, CODER_BASE_URL=f"{root}/v1", CODER_API_KEY=key
            )
            page = await examined(given)
        assert re.search(r"a problem:.*does not answer: .*no such key: .*Copy the key", page, re.DOTALL)
        assert key not in page
        assert "answers in" in page
    with closing(sqlite3.connect(tmp_path / "data/frostagent.db")) as journal:
        rows = journal.execute("SELECT turn_id, conversation, asker, model, prompt > 0 FROM usage").fetchall()
    assert rows == [("", "", 0, around.model.name, 1)] * 2


async def examined(given: Settings) -> str:
    """The page on which the doctor of a running bot has looked."""
    doctor = partial(check_running_bot, given)
    async with (
        open_service(given, doctor=doctor) as running,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        assert running.console_link is not None
        page, _, code = running.console_link().partition("#")
        same = {"Sec-Fetch-Site": "same-origin", "Accept-Language": "en"}
        await session.post(page, data={"code": code}, headers=same)
        root = page.removesuffix("/login")
        async with session.get(f"{root}/access") as shown:
            form = (await shown.text()).partition('name="form" value="')[2].partition('"')[0]
        async with session.post(f"{root}/health/doctor", data={"form": form}, headers=same) as shown:
            return await shown.text()


async def test_something_is_tried_out_beside_the_bot_and_what_a_real_model_took_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "bot.trial.trial", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with (
        OfflineModel() as model,
        operated(model.base_url, tmp_path, system_prompt="filed") as (running, ask),
    ):
        assert await running.app.personas.change("", "told on a page")
        await ask("/try")
        assert "bot.trial.trial" not in sys.modules
        await ask("/try/open", model="demo", persona="an unsaved text")
        text = await ask("/try", **{"as": "user1", "text": "hello", "call": "1"})
        assert "I am the built-in demo model" in text
        assert not model.requests
        trace = text.partition('href="/try/turns/')[2].partition('"')[0]
        assert "This turn was only tried" in await ask(f"/try/turns/{trace}")
        await ask("/try/open", model="real")
        await ask("/try", **{"as": "user2", "text": "hello", "call": "1"})
        assert "told on a page" in str(model.requests[-1]["messages"][0])
        assert "Its model took 1 request" in await ask("/try/end", end="1")
        # Nothing of it is in the bot's own journal but that it was done, and money that is the bot's.
        assert await running.app.journal.shown.chats(0) == ChatRows((), None)
        assert running.app.personas.text("") == "told on a page"
        await running.app.journal.commit()
        (cost,) = await running.app.journal.shown.costs(since=0.0, by="model") or ()
        assert (cost.name.partition("@")[0], cost.usage.requests) == ("demo", 1)
        lines = await running.app.journal.books.audit(latest=9)
        tried = [(line.action, line.object.partition(",")[0], line.outcome[:5]) for line in lines or ()]
        assert tried == [
            ("tried", "1 request", "$0.00"),
            ("try out", "real model", "ok"),
            ("try out", "demo model", "ok"),
            ("login", "", "ok"),
        ]
        assert not [name for name in inside(tmp_path) if name.startswith("frostagent-try-")]


async def test_a_request_that_is_tried_is_in_the_bots_journal_while_it_is_under_way_and_once_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.console.trying.ANSWER_WITHIN", 0.05)
    gate = asyncio.Event()

    def rows() -> list[tuple[str, bool, int]]:
        """What is left of it where the process is killed now."""
        with closing(sqlite3.connect(tmp_path / "journal.db")) as journal:
            return journal.execute("SELECT turn_id, reserved > 0, prompt > 0 FROM usage").fetchall()

    class Held(OfflineModel):
        async def _complete(self, request: web.Request) -> web.StreamResponse:
            await gate.wait()
            return await super()._complete(request)

    async with Held() as model, operated(model.base_url, tmp_path) as (running, ask):
        await ask("/try/open", model="real")
        await ask("/try", **{"as": "user1", "text": "hello", "call": "1"})
        await until(lambda: [row[1] for row in rows()] == [True])
        assert running.app.spending.reserved.tokens > 0
        gate.set()
        await until(lambda: [row[1] for row in rows()] == [False])
        assert rows() == [(TRIED, False, 1)]
        assert running.app.spending.reserved.tokens == 0
        assert "So far 1 request" in await ask("/try")


class ListeningQQ(Simulator):
    """An OneBot server that keeps the frames of the bot."""

    def __init__(self) -> None:
        super().__init__(demo_world(), reconnect=0.05)
        self.frames: list[str] = []

    async def _take(self, peer: ConnectedBot, frame: str | bytes) -> None:
        self.frames.append(str(frame))
        await super()._take(peer, frame)


class CountingModel(OfflineModel):
    """A vendor with a ledger: the requests it has served."""

    served = 0

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.served += 1
        return await super()._complete(request)


async def test_a_trial_takes_what_the_vendors_ledger_says_and_nothing_else_of_it_reaches_the_bot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.trial.trial_manager.REQUESTS", 5)
    secret = "暗号4711"

    def counts() -> dict[str, int]:
        """The rows of each table of the bot's journal; none has a word of the trial."""
        with closing(sqlite3.connect(tmp_path / "journal.db")) as journal:
            assert secret not in "".join(journal.iterdump())
            tables = journal.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return {name: journal.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for (name,) in tables}

    async with (
        CountingModel() as model,
        operated(model.base_url, tmp_path, bot_memory=True, bot_send_rate=0.0) as (running, ask),
        ListeningQQ() as qq,
    ):
        qq.dial(f"ws://127.0.0.1:{running.port}/", token=ONEBOT_TOKEN)
        await qq.wait_connected()
        await ask("/try/open", model="real")
        await running.app.journal.commit()
        before, alerts = counts(), await qq.wait_sent(1)
        for number in range(4):
            lines = ({"as": who, "text": f"{secret} {number}", "call": "1"} for who in ("user1", "user2"))
            await asyncio.gather(*(ask("/try", status=0, **line) for line in lines))
        page = await ask("/try")
        assert "Used up" in page
        assert "So far 5 requests" in page
        assert "took 5 requests" in await ask("/try/end", end="1")
        await running.app.journal.commit()
        after = counts()
        assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {
            "usage": 5,
            "audit": 1,
        }
        with closing(sqlite3.connect(tmp_path / "journal.db")) as journal:
            rows = journal.execute("SELECT turn_id, reserved, prompt + completion, asker, conversation FROM usage")
            told = rows.fetchall()
        assert [(row[0], row[1], row[3], row[4]) for row in told] == [(TRIED, 0, 0, "")] * model.served
        assert model.served == 5
        assert running.app.spending.taken(ALL).tokens == sum(row[2] for row in told)
        assert running.app.spending.reserved.tokens == 0
        assert qq.sent == alerts  # that somebody has logged in
        assert secret not in "".join(qq.frames)


async def test_what_trials_took_today_is_known_after_a_restart_and_no_other_request_is_among_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.trial.trial_manager.REQUESTS", 1)
    monkeypatch.setattr("bot.budget.trial_account.TRIALS_A_DAY", 2)

    async def try_once(ask: Asking) -> None:
        await ask("/try/open", model="real")
        await ask("/try", **{"as": "user1", "text": "hello", "call": "1"})

    async with OfflineModel() as model:
        async with operated(model.base_url, tmp_path) as (running, ask):
            doctors = [UsageAdded(turn_id="", model="m", usage=Usage(9, 1), at=time.time())] * 2
            assert await running.app.store.commit(*doctors)
            await try_once(ask)
        async with operated(model.base_url, tmp_path) as (_, ask):
            await try_once(ask)
        async with operated(model.base_url, tmp_path) as (_, ask):
            assert "groups have taken together" in await ask("/try/open", status=503, model="real")
        assert len(model.requests) == 2


async def test_a_trial_with_words_of_somebody_ends_when_he_is_forgotten_on_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with OfflineModel() as model, operated(model.base_url, tmp_path) as (running, ask):
        question = said("@bot 我的手机号是多少", message_id="9")
        running.app.store.put(
            TurnOpened(turn_id="t1", question=question, user=UserMessage("x"), at=1.0),
            TurnClosed(turn_id="t1", stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=2.0),
        )
        await running.app.journal.commit()
        begin = await ask("/try/turn", turn="t1")
        assert "我的手机号是多少" in begin
        await ask("/try/open", model="demo", turn="t1")
        assert "我的手机号是多少" in await ask("/try")
        group = question.conversation
        assert "Erased: " in await ask(f"/chats/{group}/forget", name=str(group.session_id))
        gone = await ask("/try")
        assert ('action="/try/open"' in gone, "我的手机号" in gone) == (True, False)
        # A form that was open before does not bring it back.
        await ask("/try/open", model="demo", turn="t1", asker="小明", question="我的手机号是多少")
        assert "我的手机号" not in await ask("/try")


async def test_what_is_scheduled_in_any_chat_is_on_one_page_and_cancelled_there_for_good(tmp_path: Path) -> None:
    now = time.time()
    daily = job(7, "drink", rule="cron 0 8 * * *", zone="Asia/Shanghai", due=now + 3 * 86_400, wake=now + 3 * 86_400)
    elsewhere = Conversation(10002, "group", 9)  # an account that no bot of the service has now
    late = job(1, "stretch", where=elsewhere, due=now - 90_000, wake=now + 60, state=JobState.MISSED, missed=1)
    async with operated("http://127.0.0.1:9/v1", tmp_path) as (running, ask):
        assert "Nothing is scheduled." in await ask("/jobs")
        assert await running.app.store.commit(daily, late)
        page = await ask("/jobs")
        for words in ("J7 drink", "in 3 days", "every day at 08:00", "group 9, account 10002", "missed; its maker"):
            assert words in page, words
        assert page.index("J1 stretch") < page.index("J7 drink")
        assert "at once" not in page  # what was missed comes no more
        page = await ask("/jobs", where=str(elsewhere), number="1")
        assert ("Cancelled." in page, "stretch" in page, "drink" in page) == (True, False, True)
        assert "There is no such job" in await ask("/jobs", 400, where=str(elsewhere), number="7")
        assert "J7 drink" in await ask(f"/chats/{GROUP}")
        assert "Nothing is scheduled." in await ask(f"/chats/{GROUP}/jobs", number="7")
        assert await running.app.journal.jobs.listed(10002) == ()


JOIN = """[[group]]
number = 4242
farewell = "Goodbye {name}"

[[group.join]]
match = "/spam|ad/"
then = "refuse"
reason = "no ads"
"""


async def test_what_a_group_says_of_who_joins_is_changed_by_page_or_command_and_shows_by_whom(tmp_path: Path) -> None:
    (groups := tmp_path / "groups.toml").write_text(JOIN)
    at, here = f"/chats/{GROUP}", f"/chats/{GROUP}/greeting"
    async with (
        operated("http://127.0.0.1:9/v1", tmp_path, groups_file=groups, bot_applicants="ask") as (running, ask),
        Simulator(demo_world()) as qq,
    ):
        qq.dial(f"ws://127.0.0.1:{running.port}/", token=ONEBOT_TOKEN)
        await qq.wait_connected()
        page, app = await ask(at), running.app
        for words in ("Goodbye {name}</blockquote>", "from GROUPS_FILE", "/spam|ad/", "no ads", "owners are asked"):
            assert words in page, words
        assert "changed by" not in page
        page = await ask(here, change="joined", do="words", words="Hi {name}")
        assert "Hi {name}</blockquote>" in page
        (done,) = await app.journal.books.audit(latest=1) or ()
        assert (done.action, done.object, bool(done.login)) == ("welcome", str(GROUP), True)
        assert f"changed by {done.login}, " in page
        assert await app.store.commit(replace(done, login="failed", outcome="not now"))
        assert f"changed by {done.login}, " in await ask(at)
        assert app.greetings.words(GROUP, "joined") == "Hi {name}"
        page = await ask(here, change="left", do="off")
        assert (app.greetings.words(GROUP, "left"), page.count("Nothing is said.")) == ("", 1)
        assert page.count("set by command or here") == 2
        page = await ask(here, change="left", do="usual")
        assert (app.greetings.words(GROUP, "left"), "Goodbye {name}</blockquote>" in page) == ("Goodbye {name}", True)
        before = len(qq.sent)
        await qq.say("@bot /welcome run", user_id=20001)
        await qq.wait_sent(before + 1)
        page = await ask(at)
        assert ("Written by the cheap model" in page, "changed by 20001, " in page) == (True, True)
        # A bot of a cluster has the settings of its own accounts in memory; the page shows any.
        assert await app.store.commit(PlaceSet(ELSEWHERE, "farewell", "set by another worker"))
        assert "set by another worker" in await ask(f"/chats/{ELSEWHERE}")


Asking = Callable[..., Awaitable[str]]


@asynccontextmanager
async def operated(model: str, folder: Path, **more: Any) -> AsyncIterator[tuple[Service, Asking]]:
    """A bot with a console, and somebody logged in there: he gets a page, or what comes of a form. A status of 0 is
    any.
    """
    console = {"console_port": free_port(), "console_token": SecretStr(TOKEN)}
    jar = aiohttp.CookieJar(unsafe=True)
    english = {"Sec-Fetch-Site": "same-origin", "Accept-Language": "en"}
    async with (
        open_service(settings(model, folder, **console, **more)) as running,
        aiohttp.ClientSession(cookie_jar=jar, headers=english) as session,
    ):
        assert running.console_link is not None
        page, _, code = running.console_link().partition("#")
        root, form = page.removesuffix("/login"), ""

        async def ask(path: str, status: int = 200, **fields: str) -> str:
            method, data = ("POST", {"form": form} | fields) if fields else ("GET", None)
            async with session.request(method, f"{root}{path}", data=data) as shown:
                assert status in (shown.status, 0), path
                return await shown.text()

        answer = await session.post(page, data={"code": code}, allow_redirects=False)
        jar.update_cookies({name: one.value for name, one in answer.cookies.items()}, URL(root))
        form = (await ask("/access")).partition('name="form" value="')[2].partition('"')[0]
        yield running, ask


WORDS = Path("adapters/console/words")


async def test_each_limit_is_told_with_the_setting_and_what_owners_set_with_the_command() -> None:
    store, clock = RecordingStore(), ManualClock()
    own = OwnLimits(settings=kept_settings(store, clock=clock), clock=clock)
    await own.load()
    await own.keep(GROUP, LimitOverride(cost=2.5))
    own.set_filed(
        {
            5252: LimitOverride(cost=0.5, tokens=0),
            5353: LimitOverride(cost=0.0),
            5454: LimitOverride(cost=0.0, tokens=0),
        }
    )
    await own.keep(777, LimitOverride(tokens=200_000))
    settings = Settings(bot_day_cost_all=3.5, bot_day_tokens_user=1_500_000, bot_group_rate=None)
    told = {(one.setting, one.whose): one.value for one in list_limits(settings, own)}
    assert told["BOT_USER_RATE", ""] == "6 / 60 s"
    assert told["BOT_GROUP_RATE", ""] == ""
    assert told["BOT_DAY_COST_ALL", ""] == "$3.5"
    assert told["BOT_DAY_TOKENS_USER", ""] == "1.5M"
    assert told["/limit", str(GROUP)] == "$2.5"
    assert told["GROUPS_FILE", "5252"] == "$0.5, ∞ token"
    assert told["GROUPS_FILE", "5353"] == "$∞"  # its tokens are as usual
    assert told["GROUPS_FILE", "5454"] == ""  # which the page calls no limit
    assert told["/limit", "777"] == "200.0k token"


def test_the_console_has_words_for_each_in_both_languages() -> None:
    for language in ("en", "zh"):
        words = json.loads((WORDS / f"{language}.json").read_text("utf-8"))
        assert not [name for name in LIMIT_SETTINGS if f"health.limit.{name.upper()}" not in words], language
