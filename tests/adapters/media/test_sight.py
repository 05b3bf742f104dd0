"""Pictures of people, over a real HTTP server and what a OneBot server may answer."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image as Pillow

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from adapters.media.attachments import MOST_FAILING, PictureSight
from adapters.media.decoder_process import DecoderProcess
from bot.core.errors import ActionRefused, NotConnected, TransportError
from bot.core.ports import KeptFile
from bot.core.segments import Picture
from frostagent.types.errors import MediaError
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.owners import read

ACCOUNT, OTHER = 10001, 10002
HOST = "multimedia.nt.qq.com.cn"
EXPIRED = {"retcode": -5503007, "retmsg": "download url has expired"}
LIMIT = 20_000
JPEG = "data:image/jpeg;base64,"


def png(colour: str = "red", side: int = 40) -> bytes:
    written = io.BytesIO()
    Pillow.new("RGB", (side, side), colour).save(written, "PNG")
    return written.getvalue()


class House:
    """A sight, the server of its pictures, and what the OneBot server answers to get_image."""

    def __init__(self, server: Replay, web: HttpxWeb) -> None:
        self.server = server
        self.kept: KeptFile | TransportError = ActionRefused("get_image", retcode=1200, wording="文件不存在")
        self.asked: list[tuple[int, str]] = []
        self.decoder = DecoderProcess(seconds=60, patience=60)
        self.told: list[str] = []
        self.sight = PictureSight(
            web=web,
            ask=self._get_image,
            decode=self.decoder.decode,
            max_bytes=LIMIT,
            tell=read(self.told),
            fetching=0.5,
        )

    async def _get_image(self, account: int, file: str) -> KeptFile:
        self.asked.append((account, file))
        if isinstance(self.kept, TransportError):
            raise self.kept
        return self.kept

    def tell(self, name: str, body: object, status: int = 200, *, gate: asyncio.Event | None = None) -> str:
        """There is such a file; its url."""
        self.server.tell(f"/{HOST}/{name}", body, status=status, gate=gate)
        return f"https://{HOST}/{name}"

    async def why(self, image: Picture) -> str:
        """Why it is not shown."""
        with pytest.raises(MediaError) as caught:
            await self.sight.see(ACCOUNT, image)
        return str(caught.value)


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with living() as house:
        yield house


@asynccontextmanager
async def living() -> AsyncIterator[House]:
    async with Replay() as server:
        limits = FetchLimits(body_bytes=2 * LIMIT)
        web = HttpxWeb(clock=StoppedClock(), user_agent="test", base_urls=server.standing_in_for(HOST), limits=limits)
        house = House(server, web)
        try:
            yield house
        finally:
            await house.decoder.aclose()
            await web.aclose()


async def test_a_picture_is_fetched_by_its_url_and_nobody_is_asked(house: House) -> None:
    url = house.tell("download", png())
    assert (await house.sight.see(ACCOUNT, Picture(file="A.png", url=f"{url}?rkey=abc"))).url.startswith(JPEG)
    assert house.asked == []


@pytest.mark.parametrize(
    "broken", ["expired", "gone", "a page", "too large", "far too large", "too slow", "unreachable"]
)
async def test_where_the_url_fails_the_server_of_that_account_is_asked(house: House, broken: str) -> None:
    urls = {
        "expired": house.tell("expired", EXPIRED, 400),
        "gone": f"https://{HOST}/gone",
        "a page": house.tell("page", "<html>please log in</html>"),
        "too large": house.tell("large", b"\xff\xd8\xff" + bytes(LIMIT)),
        "far too large": house.tell("larger", b"\xff\xd8\xff" + bytes(2 * LIMIT)),
        "too slow": house.tell("slow", png(), gate=asyncio.Event()),
        "unreachable": "http://pictures.invalid/",
    }
    house.kept = KeptFile(base64=base64.b64encode(png()).decode())
    assert (await house.sight.see(OTHER, Picture(file="A.png", url=urls[broken]))).url.startswith(JPEG)
    assert house.asked == [(OTHER, "A.png")]


async def test_a_path_is_read_where_both_see_the_folder(house: House, tmp_path: Path) -> None:
    file = tmp_path / "A.png"
    file.write_bytes(png())
    house.kept = KeptFile(path=str(file))
    assert (await house.sight.see(ACCOUNT, Picture(file="A.png"))).url.startswith(JPEG)


async def test_a_path_that_only_the_server_sees_leaves_its_fresh_url(house: House) -> None:
    house.kept = KeptFile(path="/app/.config/QQ/A.png", url=house.tell("fresh", png()))
    assert (await house.sight.see(ACCOUNT, Picture(file="A.png", url=f"https://{HOST}/old"))).url.startswith(JPEG)


async def test_a_path_of_another_container_is_no_picture(house: House, tmp_path: Path) -> None:
    large = tmp_path / "large.png"
    large.write_bytes(png() + bytes(LIMIT))
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    for path in ("/app/.config/QQ/A.png", "A.png", str(tmp_path), str(large), "/\0"):
        house.kept = KeptFile(path=path)
        assert "nothing that can be reached" in await house.why(Picture(file="A.png"))
    house.kept = KeptFile(path=str(secret))
    assert "it is no picture" in await house.why(Picture(file="A.png"))


async def test_private_addresses_are_not_asked(house: House) -> None:
    async with Replay() as neighbour:
        neighbour.tell("/A.png", png())
        for url in (neighbour.url("/A.png"), "http://localhost/A.png", "http://169.254.169.254/A.png", "file:///A.png"):
            assert "fetched" in await house.why(Picture(url=url))
            house.kept = KeptFile(url=url)
            assert "fetched" in await house.why(Picture(file="A.png"))
            house.server.tell(f"/{HOST}/moved", "", status=302, headers={"Location": url})
            assert "fetched" in await house.why(Picture(url=f"https://{HOST}/moved"))
        assert neighbour.asked == []


async def test_what_says_it_is_too_large_is_not_asked_for_at_all(house: House) -> None:
    url = house.tell("large", png())
    assert "bytes" in await house.why(Picture(file="A.png", url=url, size=LIMIT + 1))
    assert (house.asked, house.server.asked) == ([], [])


async def test_base64_of_too_many_bytes_or_of_none_is_refused(house: House) -> None:
    for text, why in (("A" * (LIMIT * 2), "more than"), ("A", "cannot be read"), ("é", "cannot be read")):
        house.kept = KeptFile(base64=text)
        assert why in await house.why(Picture(file="A.png"))


async def test_a_server_that_is_away_is_a_reason_like_any_other(house: House) -> None:
    house.kept = NotConnected("away")
    assert await house.why(Picture(file="A.png")) == "it has no address; and at the OneBot server: away"
    assert await house.why(Picture()) == "it has no address"


async def test_pictures_asked_for_side_by_side_are_all_shown(house: House) -> None:
    urls = [house.tell(colour, png(colour)) for colour in ("red", "green", "blue")]
    async with asyncio.TaskGroup() as group:
        seeing = [group.create_task(house.sight.see(ACCOUNT, Picture(url=url))) for url in urls]
    assert len({task.result() for task in seeing}) == 3


async def test_the_same_bytes_are_unpacked_once_whatever_they_are_called(house: House) -> None:
    urls = [house.tell(name, png()) for name in ("first", "again")]
    shown = [await house.sight.see(ACCOUNT, Picture(url=urls[0]))]
    await house.decoder.aclose()
    shown.append(await house.sight.see(ACCOUNT, Picture(url=urls[1])))
    assert shown[0] == shown[1]
    assert house.decoder.pid is None


async def test_the_owners_hear_once_of_pictures_that_cannot_be_fetched_again_and_again(house: House) -> None:
    expired, cat = house.tell("expired", EXPIRED, 400), house.tell("cat", png())

    async def fail(account: int, times: int) -> None:
        for number in range(times):
            with pytest.raises(MediaError):
                await house.sight.see(account, Picture(file=f"{number}.png", url=expired))

    await fail(ACCOUNT, MOST_FAILING - 1)
    await fail(OTHER, MOST_FAILING - 1)
    await house.sight.see(ACCOUNT, Picture(url=cat))
    await fail(ACCOUNT, MOST_FAILING - 1)
    assert house.told == []
    await fail(ACCOUNT, 20)
    [line] = house.told
    assert f"account {ACCOUNT}, {MOST_FAILING} in a row" in line
    await house.sight.see(ACCOUNT, Picture(url=cat))
    await fail(ACCOUNT, MOST_FAILING)
    assert len(house.told) == 2


async def test_a_picture_that_came_and_is_none_was_fetched_and_one_that_is_waited_for_no_longer_was_not(
    house: House,
) -> None:
    page, large = house.tell("page", "<html>"), house.tell("large", b"\xff\xd8\xff" + bytes(LIMIT))
    for _ in range(MOST_FAILING):
        for url in (page, large):
            await house.why(Picture(file="A.png", url=url))
    assert house.told == []
    slow = house.tell("slow", png(), gate=asyncio.Event())
    for number in range(MOST_FAILING):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await house.sight.see(ACCOUNT, Picture(url=f"{slow}?fileid={number}"))
    assert len(house.told) == 1


async def test_one_broken_picture_counts_once_however_often_it_is_seen(house: House) -> None:
    expired = house.tell("expired", EXPIRED, 400)
    for rkey in range(MOST_FAILING):
        await house.why(Picture(file="A.png", url=f"{expired}?rkey={rkey}"))
        await house.why(Picture(url=expired))
    assert house.told == []
    for number in range(MOST_FAILING - 2):
        await house.why(Picture(file=f"{number}.png", url=expired))
    assert len(house.told) == 1
