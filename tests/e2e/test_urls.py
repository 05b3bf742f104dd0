"""Urls that a model sends, from its call to the frame that leaves, through the whole service."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frostagent.types.messages import Completion
from tests.adapters.fetching.replay import Replay
from tests.adapters.media import hostile
from tests.e2e.town import MEMBER, Stage, Town, open_town
from tests.fakes import calls, words

HOST = "pictures.example"
PNG = hostile.encoded("PNG")
INLINE = "base64://" + base64.b64encode(PNG).decode()

MEDIA = {"image", "record", "video", "file"}

HANDING_ON = '''
from frostagent.types.speech import Attachment
from frostagent.types.ports import Speaker
from frostagent import ToolContext, tool


@tool(needs=(Speaker,))
async def show_page(context: ToolContext, url: str) -> str:
    """Shows a page."""
    return repr(await context.port(Speaker).say((Attachment("image", url),)))
'''


@pytest.fixture
async def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Town]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with open_town(tmp_path) as opened:
        yield opened


def sending(kind: str, url: str) -> Completion:
    return calls(("send_message", json.dumps({"messages": [{"type": kind, "url": url}]})))


def media(stage: Stage) -> list[dict[str, Any]]:
    """What left as a medium."""
    sent = (segment for message in stage.simulator.sent for segment in message.segments)
    return [segment["data"] for segment in sent if segment["type"] in MEDIA]


@pytest.mark.parametrize("kind", ["image", "file"])
async def test_what_a_url_leads_to_leaves_as_bytes_under_a_harmless_name(town: Town, kind: str) -> None:
    async with Replay() as server:
        server.tell(f"/{HOST}/\u202egnp.exe", PNG)
        url = f"https://{HOST}/%E2%80%AEgnp.exe"
        mirrors = server.standing_in_for(HOST)
        async with town.live(sending(kind, url), words("done"), tools_mirrors=mirrors) as stage:
            await stage.say("@bot show me", user=MEMBER)
            assert "消息已发送" in stage.told
            [data] = media(stage)
    assert data["file"] == INLINE
    assert data.get("name", "gnp.exe.png") == "gnp.exe.png"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1.nip.io/a.png", "http://bot.frostagent_default:8080/metrics", "http://localhost:8080/metrics",
        "http://metadata.tencentyun.com/latest/meta-data/", "http://me@pictures.example/", "http://pictures.example:81/",
    ],
)  # fmt: skip
async def test_a_url_that_may_not_be_fetched_is_told_to_the_model_and_nothing_leaves(town: Town, url: str) -> None:
    for setting in ("fetch", "pass"):
        async with town.live(sending("image", url), words("no"), media_urls=setting) as stage:
            sent = len(stage.simulator.sent)
            await stage.say("@bot show me", user=MEMBER)
            assert "cannot be sent (" in stage.told
            assert "give an http or https url of a public host" in stage.told
            assert media(stage) == []
            assert [message.text for message in stage.simulator.sent[sent:]] == ["no"]


async def test_with_the_setting_a_url_leaves_as_it_is(town: Town) -> None:
    url = f"https://{HOST}/cat.png"
    async with Replay() as server:
        mirrors = server.standing_in_for(HOST)
        async with town.live(sending("image", url), words("done"), tools_mirrors=mirrors, media_urls="pass") as stage:
            await stage.say("@bot show me", user=MEMBER)
            assert [data["file"] for data in media(stage)] == [url]
    assert server.asked == []


async def test_a_tool_that_hands_a_url_on_by_itself_gets_no_further(town: Town) -> None:
    (town.folder / "tools" / "pages.py").write_text(HANDING_ON, "utf-8")
    show = calls(("show_page", '{"url": "http://127.0.0.1:8080/metrics"}'))
    async with town.live(show, words("no")) as stage:
        await stage.say("@bot show me", user=MEMBER)
        assert "a url is not passed on to be fetched unchecked" in stage.told
        assert media(stage) == []
