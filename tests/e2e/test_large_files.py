"""Files too large for a frame, from a model's call to the OneBot server that fetches them: over a real websocket, real
HTTP, and in a cluster a real RabbitMQ; a ledger says which addresses were asked, and what they gave.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest

from adapters.offline.brain import DemoCall, Thought
from adapters.simulator.faults import Fault
from adapters.simulator.server import Simulator
from adapters.simulator.sockets import ConnectedBot
from adapters.simulator.world import demo_world
from bot.app import open_service
from frostagent.models.openai.client import OpenAIModel
from tests.e2e.test_watching import TOKEN, settings
from tests.fakes import ScriptedModel, calls, words
from tests.ports import free_port
from tests.system.cluster.cluster import Cluster
from tests.system.processes.test_signals import PATIENCE
from tests.torture.model import Asked

T = TypeVar("T")

FILM = os.urandom(9 * 2**20)
ADDRESS = re.compile(rb'"file":"(http://[^"]+)"')
SENDING = json.dumps({"messages": [{"type": "file", "path": "film.mp4"}]})


@dataclass
class Fetcher:
    """Fetches what a call names before the server carries it out, as NapCat does; every address, and what it gave."""

    ledger: list[tuple[str, int, bytes]] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)

    async def fetch(self, url: str) -> tuple[int, bytes]:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            status, body = response.status, await response.read()
        self.ledger.append((url, status, body))
        return status, body

    def watch(self, simulator: Simulator) -> None:
        sockets = simulator.sockets
        take = sockets._take

        async def fetch_first(peer: ConnectedBot, frame: str | bytes) -> None:
            raw = frame.encode() if isinstance(frame, str) else frame
            self.frames.append(len(raw))
            for address in ADDRESS.findall(raw):
                await self.fetch(address.decode())
            await take(peer, frame)

        sockets._take = fetch_first

    async def assert_over(self) -> None:
        """Nobody gets anything there any more."""
        for url, *_ in [*self.ledger]:
            assert await self.fetch(url) == (404, b"nothing is offered here\n")


@asynccontextmanager
async def talking(folder: Path, fetcher: Fetcher, **given: Any) -> AsyncIterator[tuple[Simulator, ScriptedModel]]:
    """A bot alone, whose model sends the film and then says that it did."""
    (folder / "film.mp4").write_bytes(FILM)
    with ScriptedModel(calls(("send_message", SENDING)), words("done")) as model:

        def wrap(port: T, /) -> T:
            scripted: Any = model
            return scripted if isinstance(port, OpenAIModel) else port

        chosen = settings("http://127.0.0.1:9/v1", folder, media_dir=folder, **given)
        async with open_service(chosen, wrap=wrap) as service, Simulator(demo_world(), reconnect=0.05) as simulator:
            fetcher.watch(simulator)
            simulator.dial(f"ws://127.0.0.1:{service.port}/", token=TOKEN)
            await simulator.wait_connected()
            yield simulator, model


async def test_a_server_fetches_what_is_too_large_for_a_frame_and_nobody_does_after_it(tmp_path: Path) -> None:
    fetcher, port = Fetcher(), free_port()
    url = f"http://127.0.0.1:{port}/media"
    async with talking(tmp_path, fetcher, web_port=port, media_url=url) as (simulator, _):
        await simulator.say("@bot the film")
        sent, answer = await simulator.wait_delivered(2)
        [(address, status, body)] = fetcher.ledger
        assert (address.startswith(f"{url}/"), status, body == FILM) == (True, 200, True)
        assert sent.segments == ({"type": "file", "data": {"file": address, "name": "film.mp4"}},)
        assert answer.text == "done"
        assert max(fetcher.frames) < 2000
        await fetcher.assert_over()
    with pytest.raises(aiohttp.ClientConnectionError):
        await fetcher.fetch(address)


async def test_without_an_address_the_file_goes_in_the_frame(tmp_path: Path) -> None:
    fetcher = Fetcher()
    async with talking(tmp_path, fetcher) as (simulator, _):
        await simulator.say("@bot the film")
        sent, _ = await simulator.wait_delivered(2)
        assert sent.segments[0]["data"]["file"] == "base64://" + base64.b64encode(FILM).decode()
        assert max(fetcher.frames) > 12 * 2**20
    assert fetcher.ledger == []


async def test_a_send_that_is_refused_ends_its_address_too(tmp_path: Path) -> None:
    fetcher, port = Fetcher(), free_port()
    url = f"http://127.0.0.1:{port}/media"
    async with talking(tmp_path, fetcher, web_port=port, media_url=url) as (simulator, model):
        simulator.faults.arm(Fault.MUTED)
        await simulator.say("@bot the film")
        await simulator.wait_sent(1)
        assert [status for _, status, _ in fetcher.ledger] == [200]
        await simulator.wait_until(lambda: len(model.requests) == 2)
        await fetcher.assert_over()


def send_film(asked: Asked) -> Thought:
    return Thought("F:done") if asked.step else Thought(calls=(DemoCall("send_message", json.loads(SENDING)),))


def told(cluster: Cluster) -> str:
    """What the model read last of its call."""
    results = [message["content"] for message in cluster.model.asked[-1].messages if message["role"] == "tool"]
    return str(results[-1])


async def test_in_a_cluster_the_worker_that_has_the_file_gives_it(cluster: Cluster) -> None:
    fetcher, port = Fetcher(), free_port()
    fetcher.watch(cluster.simulator)
    cluster.gate.opened.set()
    cluster.model._answer = send_film
    (cluster.folder / "film.mp4").write_bytes(FILM)
    url = f"http://127.0.0.1:{port}/media"
    given = {"MEDIA_DIR": str(cluster.folder), "WEB_PORT": str(port), "MEDIA_URL": url}
    async with cluster.gateway(MEDIA_URL=url) as gateway, cluster.part("worker", **given) as worker:
        await worker.until("ready: over the broker")
        await cluster.simulator.say("@bot plain#q1")
        sent, answer = await cluster.simulator.wait_delivered(2, timeout=PATIENCE)
        [(address, status, body)] = fetcher.ledger
        assert (address.startswith(f"{url}/"), status, body == FILM) == (True, 200, True)
        assert sent.segments == ({"type": "file", "data": {"file": address, "name": "film.mp4"}},)
        assert answer.text == "F:done"
        await fetcher.assert_over()
        # No other part gives it, or has such a page.
        assert (await gateway.get("/media/" + address.rpartition("/")[2]))[0] == 404
    assert max(fetcher.frames) < 2000


async def test_in_a_cluster_without_an_address_it_is_refused_and_the_model_hears_how_large_it_may_be(
    cluster: Cluster,
) -> None:
    fetcher = Fetcher()
    fetcher.watch(cluster.simulator)
    cluster.gate.opened.set()
    cluster.model._answer = send_film
    (cluster.folder / "film.mp4").write_bytes(FILM)
    async with cluster.gateway(), cluster.worker(MEDIA_DIR=str(cluster.folder)):
        await cluster.simulator.say("@bot plain#q1")
        await cluster.simulator.wait_delivered(1, timeout=PATIENCE)
    assert [message.text for message in cluster.simulator.sent] == ["F:done"]
    assert "film.mp4 is larger than 5 MiB, too large to send; send a smaller file" in told(cluster)
    assert fetcher.ledger == []
