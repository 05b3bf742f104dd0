"""What others' urls and pictures go through, as the settings want it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr

from adapters.media.folder import MAX_BASE64, MediaFolder
from bot.app import open_service
from bot.build import CARRIED, App
from bot.core.ports import PictureReader
from bot.core.segments import Picture
from config.settings import Settings
from frostagent.types.errors import MediaError
from frostagent.types.ports import Media
from tests.adapters.fetching.replay import Replay
from tests.adapters.media import hostile

HOST = "pictures.example"
PNG = hostile.encoded("PNG")


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def settings(folder: Path, server: Replay, **more: str) -> Settings:
    server.tell(f"/{HOST}/cat.png", PNG)
    given = {
        "media_dir": folder,
        "tools_mirrors": server.standing_in_for(HOST),
        "store_url": f"sqlite:///{folder}/frost.db",
        "onebot_port": 0,
        "web_port": 0,
        "llm_base_url": "http://127.0.0.1:1/v1",
        "llm_model": "gpt-4o",
    }
    return Settings.model_validate(given | more)


@asynccontextmanager
async def media_of(given: Settings) -> AsyncIterator[tuple[Media, PictureReader, App]]:
    """Who finds what the bot sends, and who sees what others send."""
    async with open_service(given) as service:
        media, sight = service.app.ports[Media], service.app.senses.sight
        assert isinstance(media, MediaFolder)
        assert sight is not None
        yield media, sight, service.app


async def test_urls_are_fetched_unless_the_operator_wants_them_passed_on(tmp_path: Path) -> None:
    url = f"https://{HOST}/cat.png"
    inline = "base64://" + base64.b64encode(PNG).decode()
    async with Replay() as server:
        for mode, source, times in (("fetch", inline, 1), ("pass", url, 1)):
            chosen = settings(tmp_path, server, media_urls=mode)
            async with media_of(chosen) as (media, _, _):
                assert (await media.attach("image", url=url)).source == source
            assert server.count(f"/{HOST}/cat.png") == times


async def test_urls_that_others_name_lead_to_the_ports_of_the_web_only(tmp_path: Path) -> None:
    async with Replay() as server, Replay() as other:
        server.tell(f"/{HOST}/moved", b"", status=302, headers={"Location": "http://other.example:8080/"})
        server.tell(f"/{HOST}/inside", b"", status=302, headers={"Location": other.url("/cat.png")})
        chosen = settings(tmp_path, server)
        async with media_of(chosen) as (media, sight, _):
            for name, why in (("moved", "it names port 8080"), ("inside", "is not a public address")):
                with pytest.raises(MediaError, match=why):
                    await media.attach("image", url=f"https://{HOST}/{name}")
                with pytest.raises(MediaError, match=why):
                    await sight.see(1, Picture(file="A.png", url=f"https://{HOST}/{name}"))
        assert other.asked == []


async def test_what_is_sent_may_be_larger_than_what_is_looked_at(tmp_path: Path) -> None:
    async with Replay() as server:
        server.tell(f"/{HOST}/large", PNG + bytes(9 * 2**20))
        chosen = settings(tmp_path, server)
        async with media_of(chosen) as (media, sight, _):
            assert len((await media.attach("image", url=f"https://{HOST}/large")).source) > 12 * 2**20
            with pytest.raises(MediaError, match="sent more than 8,388,608 bytes"):
                await sight.see(1, Picture(url=f"https://{HOST}/large"))


async def test_what_unpacks_pictures_ends_with_the_service(tmp_path: Path) -> None:
    async with Replay() as server:
        chosen = settings(tmp_path, server)
        async with media_of(chosen) as (_, sight, app):
            assert app.decoder.pid is None
            shown = await sight.see(1, Picture(url=f"https://{HOST}/cat.png"))
            assert shown.url.startswith("data:image/jpeg;base64,/9j/")
            pid = app.decoder.pid
            assert pid is not None
        assert not psutil.pid_exists(pid)


async def test_of_a_file_as_much_may_be_sent_as_there_is_a_way_for_and_the_model_hears_how_much(tmp_path: Path) -> None:
    broker = SecretStr("amqp://queue/")
    async with Replay() as server:
        for name, size in (
            ("carried", CARRIED),
            ("more", CARRIED + 1),
            ("most", MAX_BASE64),
            ("beyond", MAX_BASE64 + 1),
        ):
            (tmp_path / name).write_bytes(bytes(size))
        server.tell(f"/{HOST}/more", PNG + bytes(CARRIED))
        base = settings(tmp_path, server)
        url = "http://bot:8080/media"
        for changes, largest, told in (
            ({}, "most", "37 MiB"),
            ({"broker_url": broker}, "carried", "5 MiB"),
            ({"broker_url": broker, "media_url": url}, "most", "37 MiB"),
        ):
            chosen = base.model_copy(update=changes)
            refused = {"most": "beyond", "carried": "more"}[largest]
            async with media_of(chosen) as (media, _, _):
                assert (await media.attach("file", path=largest)).name == largest
                with pytest.raises(MediaError, match=f"{refused} is larger than {told}, too large to send"):
                    await media.attach("file", path=refused)
                if largest == "carried":  # no more of it is fetched than can be sent
                    with pytest.raises(MediaError, match=f"sent more than {CARRIED:,} bytes"):
                        await media.attach("file", url=f"https://{HOST}/more")
