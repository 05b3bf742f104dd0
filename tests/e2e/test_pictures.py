"""Pictures on their way to a model that sees, through the whole service, with real servers on all sides."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image
from pydantic import SecretStr

from adapters.media.attachments import MAX_PICTURE_BYTES
from adapters.offline.server import OfflineModel
from adapters.simulator.server import Simulator
from adapters.simulator.wire import Json, mention, text
from adapters.simulator.world import demo_world
from bot.app import Service, open_service
from bot.core import segments
from bot.core.journal import OpenTurn, TurnClosed, TurnOpened
from bot.core.ports import Seen
from config.settings import Settings
from frostagent.types.messages import UserMessage
from frostagent.types.speech import Text
from tests.adapters.fetching.replay import Replay
from tests.adapters.media import hostile
from tests.bot.chat.test_turn import living, speak
from tests.fakes import calls, lasting, said, words

GROUP = 4242
HOST = "multimedia.nt.qq.com.cn"


def png(colour: str, side: int = 40) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(written, "PNG")
    return written.getvalue()


@dataclass(frozen=True, slots=True)
class House:
    """What there is besides the service."""

    folder: Path
    model: OfflineModel
    simulator: Simulator
    pictures: Replay
    url: str

    @asynccontextmanager
    async def life(self, **settings: str) -> AsyncIterator[Service]:
        """One life of the service; a model that sees is there unless the settings say otherwise."""
        chosen = Settings.model_validate(
            {
                "llm_base_url": self.model.base_url,
                "llm_model": "demo",
                "llm_vision_model": "demo",
                "onebot_mode": "forward",
                "onebot_url": self.url,
                "store_url": SecretStr(f"sqlite:///{self.folder}/bot.db"),
                "media_dir": self.folder,
                "bot_send_rate": 0.0,
                "bot_pace": False,
                "bot_memory": False,
                "bot_loop": 0,
                "bot_user_rate": None,
                "bot_debounce": 0.0,
                "web_port": 0,
                "tools_mirrors": self.pictures.standing_in_for(HOST),
                **settings,
            }
        )
        async with open_service(chosen) as service:
            await self.simulator.wait_connected()
            yield service
        await self.simulator.wait_until(lambda: self.simulator.connected == 0)

    def picture(self, name: str, body: bytes | str, status: int = 200) -> Json:
        """A picture that lies on the server, as the segment of a message."""
        self.pictures.tell(f"/{HOST}/{name}", body, status=status)
        return picture(f"https://{HOST}/{name}")

    async def ask(self, service: Service, *segments: Json) -> int:
        world = self.simulator.world
        message_id = await self.simulator.say([*segments], user_id=20001)
        await service.wait_settled((world.self_id, "group", GROUP, str(message_id)))
        await service.wait_idle()
        return message_id

    @property
    def last(self) -> Any:
        """The latest request to the model."""
        return self.model.requests[-1]


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with OfflineModel() as model, Simulator(demo_world()) as simulator, Replay() as pictures:
        yield House(tmp_path, model, simulator, pictures, await simulator.serve())


def picture(url: str, file: str = "A.png") -> Json:
    return {"type": "image", "data": {"file": file, "url": url, "summary": "", "sub_type": 0, "file_size": "0"}}


def bot() -> Json:
    return mention(demo_world().self_id)


def shown(request: Any) -> list[Image.Image]:
    """The pictures in a request."""
    parts = (
        part for message in request["messages"] if isinstance(message["content"], list) for part in message["content"]
    )
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])), formats=("JPEG",)) for url in urls]


async def test_the_model_sees_the_picture_of_the_question_and_the_one_it_quotes(house: House) -> None:
    async with house.life() as service:
        red = await house.simulator.say([house.picture("red", png("red", 4000))], user_id=20002)
        quote = {"type": "reply", "data": {"id": str(red)}}
        await house.ask(service, quote, bot(), text(" which is nicer? "), house.picture("blue", png("blue")))
    red_one, blue_one = shown(house.last)
    assert (max(red_one.size) < 1100, blue_one.size) == (True, (40, 40))
    assert [one.convert("RGB").getpixel((5, 5)) for one in (red_one, blue_one)] == [(254, 0, 0), (0, 0, 254)]
    words = lasting(house.last["messages"][-1]["content"][0]["text"])
    assert words.endswith("which is nicer? [picture i2]\n[Pictures shown] quotation i1, question i2")


async def conversation(house: House, *, restart: bool) -> list[Any]:
    """A picture is asked about, then something else, with a restart in between or not; the requests."""
    async with house.life() as service:
        await house.ask(service, bot(), text(" hello "), house.picture("red", png("red")))
        if not restart:
            await house.ask(service, bot(), text(" thanks"))
    if restart:
        async with house.life() as service:
            await house.ask(service, bot(), text(" thanks"))
    return [*house.model.requests]


@pytest.mark.parametrize("restart", [False, True])
async def test_a_picture_is_in_the_requests_of_its_run_and_nowhere_else(house: House, restart: bool) -> None:
    seeing, blind = await conversation(house, restart=restart)
    assert (len(shown(seeing)), len(shown(blind))) == (1, 0)
    words = lasting(seeing["messages"][-1]["content"][0]["text"]).removesuffix("\n[附图] 提问 i1")
    assert blind["messages"][1] == {"role": "user", "content": words}
    for file in house.folder.iterdir():
        assert b"base64" not in file.read_bytes()


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("expired", "已过期"),
        ("a page", "打不开"),
        ("too large", "取不到"),
        ("cut off", "打不开"),
        ("too many dots", "打不开"),
        ("scans", "打不开"),
        ("private", "取不到"),
        ("no url", "取不到"),
    ],
)
async def test_of_what_cannot_be_shown_it_is_told_why_in_a_word(house: House, broken: str, why: str) -> None:
    segments = {
        "expired": house.picture("expired", '{"retcode":-5503007}', 400),
        "a page": house.picture("page", "<html>"),
        "too large": house.picture("large", png("red") + bytes(MAX_PICTURE_BYTES)),
        "cut off": house.picture("cut", png("red", 400)[:60]),
        "too many dots": house.picture("bomb", png("red")[:16] + b"\xff\xff\0\0\xff\xff\0\0" + png("red")[24:]),
        "scans": house.picture("scans", hostile.scans(3000)),
        "private": picture(house.pictures.url("/private").replace("127.0.0.1", "localhost")),
        "no url": picture(""),
    }
    async with house.life() as service:
        await house.ask(service, bot(), text(" look "), segments[broken])
    assert house.last["model"] == "demo"
    told = f"look [图片 i1]\n[图片内容]\n  提问 i1: [图片 {why}]"
    assert lasting(house.last["messages"][-1]["content"]).endswith(told)
    assert house.pictures.count("/private") == 0


async def test_a_model_that_is_not_known_to_see_is_shown_nothing_and_nothing_is_fetched(house: House) -> None:
    async with house.life(llm_vision_model="") as service:
        await house.ask(service, bot(), text(" look "), house.picture("red", png("red")))
    assert shown(house.last) == []
    assert house.pictures.asked == []


async def test_a_blind_model_reads_what_another_says_of_a_picture_which_is_looked_at_once(house: House) -> None:
    async with house.life(llm_vision_model="eyes") as service:
        for _ in range(3):
            await house.ask(service, bot(), text(" look "), house.picture("red", png("red")))
    async with house.life(llm_vision_model="eyes") as service:
        await house.ask(service, bot(), text(" look "), house.picture("red", png("red")))
    seen = [request for request in house.model.requests if request["model"] == "eyes"]
    assert [len(shown(request)) for request in seen] == [1]
    assert shown(house.last) == []
    told = house.last["messages"][-1]["content"]
    assert "look [图片 i4]\n[图片内容]\n  提问 i4: " in told


async def test_a_model_that_is_known_to_see_needs_no_other(house: House) -> None:
    async with house.life(llm_vision_model="", llm_model="gpt-4o") as service:
        await house.ask(service, bot(), text(" look "), house.picture("red", png("red")))
    assert house.last["model"] == "gpt-4o"
    assert len(shown(house.last)) == 1


# --- turns by themselves ----------------------------------------------------------------------------


class Eyes:
    """See every picture."""

    async def see(self, account: int, image: segments.Picture) -> Seen:
        return Seen(f"data:{image.url}")


async def test_pictures_are_seen_in_each_step_of_a_run_and_never_written_down() -> None:
    async with living(calls(speak("let me look")), words("a cat"), words("welcome"), sight=Eyes()) as house:
        await house.turns.answer(said((Text("这是什么？"), segments.Picture(url="cat")), message_id="7"))
        await house.turns.answer(said("thanks"))
    first, second, later = [request.messages for request in house.model.requests]
    plain = later[1]
    assert isinstance(plain, UserMessage)
    assert plain.text.endswith("小明#1: 这是什么？[图片 i1]")
    assert first[-1] == second[1] == replace(plain, text=first[-1].text, images=("data:cat",))
    assert lasting(first[-1].text) == f"{plain.text}\n[附图] 提问 i1"
    (opened, _), (closed, _) = house.store.of("turn_opened"), house.store.of("turn_closed")
    assert isinstance(opened, TurnOpened)
    assert isinstance(closed, TurnClosed)
    assert opened.user == closed.round[0] == plain


async def test_a_question_that_is_tried_again_is_looked_at_again() -> None:
    question = said((Text("what is it?"), segments.Picture(url="cat")))
    user = UserMessage("as it was rendered then")
    before = OpenTurn(
        turn_id="t0",
        question=question,
        user=user,
        at=0.0,
        retry_of="",
        messages=(),
        started=(),
        sends=(),
        recalled=False,
    )
    async with living(words("a cat"), sight=Eyes()) as house:
        await house.turns.answer(question, retry=before)
    shown = house.model.requests[0].messages[-1]
    assert isinstance(shown, UserMessage)
    assert (lasting(shown.text), shown.images) == (f"{user.text}\n[Pictures shown] question i1", ("data:cat",))
