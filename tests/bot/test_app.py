"""The whole service over real sockets: a simulated OneBot server on one side, a real HTTP model on the other."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from msgspec import structs

from adapters.offline.server import MEDIA_FOLDER, OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.world import World, demo_world
from adapters.storage.store import SqlStore
from adapters.traces.spans import TurnSpans
from bot.app import Service, open_service
from bot.core.conversation import Conversation
from bot.core.journal import MessageObserved, TurnOpened
from bot.core.language import Language
from bot.runtime import background
from config.settings import Settings
from frostagent.models.failover import Failover
from frostagent.types.errors import ConfigError
from frostagent.types.messages import UserMessage
from frostagent.types.runs import RunEvent
from tests.adapters.storage.conftest import opened
from tests.fakes import BOT, said
from tests.ports import free_port

TOKEN = "correct-horse"
T = TypeVar("T")


def settings(model: str, **more: Any) -> Settings:
    defaults: dict[str, Any] = {
        "llm_base_url": model,
        "llm_model": "demo",
        "media_dir": MEDIA_FOLDER,
        "onebot_host": "127.0.0.1",
        "onebot_port": 0,
        "onebot_access_token": TOKEN,
        "bot_loop": 0,
        "bot_user_rate": None,
        "bot_group_rate": None,
        "bot_pace": False,
        "bot_memory": False,
        "bot_send_rate": 0.0,
        "bot_debounce": 0.0,
        "web_port": 0,
    }
    return Settings(**{**defaults, **more})


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a journal of its own, where an operator's would be: data/ in the folder it is started in."""
    monkeypatch.chdir(tmp_path)


@asynccontextmanager
async def reverse(world: World | None = None, **more: Any) -> AsyncIterator[tuple[Service, Simulator, OfflineModel]]:
    """A service that listens, and one OneBot server that dials it."""
    async with (
        OfflineModel() as model,
        open_service(settings(model.base_url, **more)) as service,
        Simulator(world or demo_world(), reconnect=0.05) as simulator,
    ):
        simulator.dial(f"ws://127.0.0.1:{service.port}/any/path", token=TOKEN)
        await simulator.wait_connected()
        yield service, simulator, model


async def test_a_question_in_a_group_is_answered_with_a_quote() -> None:
    async with reverse() as (_, simulator, model):
        asked = await simulator.say("@bot hello")
        (answer,) = await simulator.wait_sent(1)
        assert answer.group_id == 4242
        assert answer.segments[0] == {"type": "reply", "data": {"id": str(asked)}}
        assert answer.text
        (request,) = model.requests
        assert request["stream"] is True
        names = [tool["function"]["name"] for tool in request["tools"]]
        assert names == [
            "chat_log",
            "get_game_version",
            "get_weather",
            "look",
            "send_message",
            "stay_silent",
            "use_subagent",
        ]


async def test_a_private_message_is_answered_in_private() -> None:
    async with reverse() as (_, simulator, _model):
        await simulator.say_private("hello", user_id=20001)
        (answer,) = await simulator.wait_sent(1)
        assert (answer.group_id, answer.user_id) == (None, 20001)
        assert answer.segments[0]["type"] == "text"


async def test_a_picture_is_sent_by_the_tool_in_the_middle_of_the_run() -> None:
    async with reverse() as (_, simulator, model):
        await simulator.say("@bot send me a message with a picture")
        picture, closing = await simulator.wait_sent(2)
        assert [segment["type"] for segment in picture.segments] == ["text", "image"]
        assert picture.segments[1]["data"]["file"].startswith("base64://")
        assert closing.text
        result = model.requests[-1]["messages"][-1]
        assert result["role"] == "tool"
        assert result["content"] == f"消息已发送 (message_id: {picture.message_id})"


async def test_coder_is_asked_and_its_answer_passed_on() -> None:
    async with reverse() as (_, simulator, _model):
        await simulator.say("@bot write a quicksort in python")
        notice, answer = await simulator.wait_sent(2)
        assert "Coder" in notice.text
        assert "def " in answer.text


async def test_nothing_is_said_to_those_who_did_not_ask() -> None:
    async with reverse() as (service, simulator, model):
        asked = await simulator.say("nice weather today")
        await service.wait_settled((10001, "group", 4242, str(asked)))
        assert simulator.sent == []
        assert not model.requests


async def test_two_accounts_at_once_each_answer_in_their_own_name() -> None:
    other = World(self_id=20002, nickname="bot")
    other.add_group(4242, "same group number", [])
    async with reverse() as (service, first, _model), Simulator(other, reconnect=0.05) as second:
        second.dial(f"ws://127.0.0.1:{service.port}/", token=TOKEN)
        await second.wait_connected()
        await first.say("@bot hello")
        await second.say("@bot hello", user_id=555)
        assert (await first.wait_sent(1))[0].text
        assert (await second.wait_sent(1))[0].text
        assert (len(first.sent), len(second.sent)) == (1, 1)


async def test_a_wrong_token_is_refused_before_the_upgrade() -> None:
    async with reverse() as (service, _, _model), Simulator(demo_world(), reconnect=0.05) as stranger:
        stranger.dial(f"ws://127.0.0.1:{service.port}/", token="wrong")
        await stranger.wait_until(lambda: bool(stranger.sockets.refused))
        assert "403" in stranger.sockets.refused[0]
        assert stranger.connected == 0


async def test_a_model_that_cannot_be_reached_gives_one_polite_line(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = cast("dict[str, float]", Failover.__init__.__kwdefaults__)
    monkeypatch.setitem(defaults, "patience", 0.0)  # asked once, and not waited for
    async with open_service(settings("http://127.0.0.1:9/v1")) as service, Simulator(demo_world()) as simulator:
        simulator.dial(f"ws://127.0.0.1:{service.port}/", token=TOKEN)
        await simulator.wait_connected()
        await simulator.say("@bot hello")
        (answer,) = await simulator.wait_sent(1, timeout=30)
        assert answer.text.startswith("Sorry, I could not answer that")


async def test_a_port_that_is_taken_is_a_problem_for_the_operator() -> None:
    async with reverse() as (service, _, model):
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match="ONEBOT_PORT"), flatten_subgroups=True):
            async with open_service(settings(model.base_url, onebot_port=service.port, store_url="sqlite:///other.db")):
                pass


# --- a journal in trouble -------------------------------------------------------------------------


async def test_a_journal_that_cannot_be_written_is_told_once_to_the_log_and_the_owner_and_so_is_its_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "data/frost.db"
    async with reverse(store_url=f"sqlite:///{file}", bot_owners="20001") as (service, simulator, _):

        def told() -> list[str]:
            return [message.text for message in simulator.delivered if not message.group_id]

        async def answered(number: int) -> None:
            await simulator.say("@bot hello")
            await simulator.wait_until(lambda: len(simulator.delivered) - len(told()) == number)

        await answered(1)
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE").close()
            await answered(2)
            await answered(3)
            await simulator.wait_until(lambda: bool(told()))
        await simulator.wait_until(lambda: len(told()) == 2)
        await answered(4)
        await service.wait_idle()
        begin, end = told()
    assert begin.startswith(f"数据库写不进去 ({file}: database is locked)")
    assert end.startswith(f"数据库恢复写入 ({file})")
    assert end.endswith("，丢了 0 条。")
    assert caplog.text.count(begin) == caplog.text.count(end) == 1
    with closing(sqlite3.connect(file)) as journal:
        assert journal.execute("SELECT count(*) FROM turns WHERE round IS NOT NULL").fetchone() == (4,)


async def test_what_an_earlier_life_left_is_settled_when_its_journal_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "RETRY", 0.05)
    data, away = tmp_path / "data", tmp_path / "away"
    url = f"sqlite:///{data}/frost.db"
    left = structs.replace(said("hello", user=20002, where=Conversation(BOT, "private", 20002)), time=time.time())
    async with opened(url) as before:
        assert await before.store.commit(MessageObserved(left, overheard=False))
    data.rename(away)
    data.write_text("a file where the folder should be")
    async with reverse(store_url=url) as (_, simulator, _model):
        await simulator.say("@bot hello")
        assert [message.group_id for message in await simulator.wait_sent(1)] == [4242]
        (tmp_path / "link").symlink_to(away)
        (tmp_path / "link").replace(data)  # at once: in between the bot could make a folder of its own
        late = (await simulator.wait_sent(2))[1]
        assert (late.group_id, late.user_id) == (None, 20002)


# --- the order of a start -------------------------------------------------------------------------


class SlowStore:
    """A store whose recovery waits until the test lets it go on."""

    def __init__(self, store: Any, *, began: asyncio.Event, go_on: asyncio.Event) -> None:
        self._store, self._began, self._go_on = store, began, go_on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def recover(self) -> Any:
        self._began.set()
        await self._go_on.wait()
        return await self._store.recover()


async def test_what_comes_before_everything_is_settled_waits_and_is_answered(tmp_path: Path) -> None:
    began, go_on, port = asyncio.Event(), asyncio.Event(), free_port()

    def wrap(there: T) -> T:
        slow: Any = SlowStore(there, began=began, go_on=go_on) if isinstance(there, SqlStore) else there
        return cast("T", slow)

    ready, enough = asyncio.Event(), asyncio.Event()

    async def live(model: str) -> None:
        async with open_service(settings(model, onebot_port=port), wrap=wrap):
            ready.set()
            await enough.wait()

    async with (
        OfflineModel() as model,
        Simulator(demo_world(), reconnect=0.05) as simulator,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(live(model.base_url))
        await began.wait()
        simulator.dial(f"ws://127.0.0.1:{port}/", token=TOKEN)  # the port is there
        await simulator.wait_connected()
        await simulator.say("@bot hello")
        assert not ready.is_set()
        assert not model.requests
        go_on.set()
        (answer,) = await simulator.wait_sent(1)
        assert answer.text
        assert ready.is_set()
        enough.set()


async def test_where_a_port_is_taken_nothing_of_an_earlier_life_is_settled(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/data/frost.db"
    left = structs.replace(said("hello", user=20002, where=Conversation(BOT, "private", 20002)), time=time.time())
    async with opened(url) as before:
        opening = TurnOpened(turn_id="t1", question=left, user=UserMessage("hello"), at=time.time())
        assert await before.store.commit(MessageObserved(left, overheard=False), opening)
    recovered: list[str] = []

    class Told:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            if name == "recover":
                recovered.append(name)
            return getattr(self._store, name)

    def wrap(there: T) -> T:
        told: Any = Told(there) if isinstance(there, SqlStore) else there
        return cast("T", told)

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match="ONEBOT_PORT"), flatten_subgroups=True):
            async with open_service(
                settings("http://127.0.0.1:9/v1", store_url=url, onebot_port=held.getsockname()[1]), wrap=wrap
            ):
                pass
    assert recovered == []
    async with reverse(store_url=url) as (_, simulator, _model):
        assert [message.user_id for message in await simulator.wait_sent(1)] == [20002]


async def test_what_is_lost_at_the_very_end_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    async with reverse(store_url=f"sqlite:///{tmp_path}/data/frost.db") as (_, simulator, _model):
        await simulator.say("@bot hello")
        await simulator.wait_sent(1)
    assert "The journal could not be written before the end" in caplog.text


async def test_facts_and_summaries_wait_as_long_for_a_slow_model_as_questions_do() -> None:
    async with OfflineModel() as model:
        slow = settings(model.base_url, bot_memory=True, llm_first_token=900.0)
        async with open_service(slow) as service:
            app = service.app
            assert app.extraction is not None
            assert (app.extraction._patience, app.summaries._patience) == (960.0, 990.0)


async def test_spans_are_made_of_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def notice(_: TurnSpans, event: RunEvent) -> None:
        told.append(type(event).__name__)

    monkeypatch.setattr(TurnSpans, "notice", notice)
    async with reverse() as (_, simulator, _model):
        await simulator.say("@bot hello")
        await simulator.wait_sent(1)
    assert told == ["RunStarted", "StepFinished", "RunFinished"]


async def test_whoever_asks_or_alarms_the_owners_does_so_in_the_language_that_is_set() -> None:
    async with OfflineModel() as model:
        for chosen, language in (("en", Language.ENGLISH), ("zh", Language.CHINESE), ("", Language.CHINESE)):
            given = settings(model.base_url, bot_memory=True, bot_language=chosen, tools_group=True)
            async with open_service(given) as service:
                app = service.app
                languages = {
                    app.owner.language,
                    app.decisions._language,
                    app.decisions.calls._language,
                    app.decisions.drafts._language,
                    app.decisions.join_requests._language,
                    app.context_builder._delivery.language,
                }
                assert languages == {language}, chosen
