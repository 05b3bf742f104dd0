"""The model over real HTTP, with a plain client."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import ClientSession

from adapters.offline.server import KEPT, MEDIA_FOLDER, OfflineModel
from tests.cases import each_case

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "", "parameters": {"type": "object"}}}


def request(question: str, **more: Any) -> dict[str, Any]:
    return {"model": "any", "messages": [{"role": "user", "content": question}], **more}


async def post(model: OfflineModel, body: Any) -> tuple[int, str, bytes]:
    """The status, the content type and the body of the answer; text is sent as it is."""
    data = body if isinstance(body, str) else json.dumps(body)
    async with ClientSession() as client, client.post(f"{model.base_url}/chat/completions", data=data) as response:
        return response.status, response.content_type, await response.read()


async def test_a_stream_is_server_sent_events_up_to_done() -> None:
    body = request("北京天气", stream=True, stream_options={"include_usage": True}, tools=[TOOL])
    async with OfflineModel() as model:
        status, content_type, raw = await post(model, body)
    assert (status, content_type) == (200, "text/event-stream")
    *events, done, end = raw.split(b"\n\n")
    assert (done, end) == (b"data: [DONE]", b"")
    chunks = [json.loads(event.removeprefix(b"data: ")) for event in events]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    fragments = [delta["tool_calls"][0]["function"] for delta in deltas if "tool_calls" in delta]
    assert fragments[0]["name"] == "get_weather"
    assert json.loads("".join(fragment["arguments"] for fragment in fragments)) == {"city": "北京"}
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]][-1] == "tool_calls"
    assert chunks[-1]["usage"]["prompt_tokens"] > 0


async def test_without_a_stream_the_answer_comes_whole() -> None:
    async with OfflineModel() as model:
        _, _, raw = await post(model, request("hello"))
    whole = json.loads(raw)
    assert whole["object"] == "chat.completion"
    assert "demo model" in whole["choices"][0]["message"]["content"]


async def test_the_models_are_listed() -> None:
    async with OfflineModel() as model, ClientSession() as client, client.get(f"{model.base_url}/models") as response:
        assert [entry["id"] for entry in (await response.json())["data"]] == [model.name]


@each_case("body", ["", "nonsense", "[]", "{}", '{"messages": []}', '{"messages": ["hi"]}', '{"messages": 7}'])
async def test_a_request_that_cannot_be_read_is_refused(body: str) -> None:
    async with OfflineModel() as model:
        status, _, raw = await post(model, body)
        assert (status, json.loads(raw)["error"]["type"]) == (400, "invalid_request_error")
        assert not model.requests


@each_case("more", [{"tools": [7, {}, {"function": {}}]}, {"tools": None}, {"stream_options": 7, "stream": True}])
async def test_odd_extras_do_no_harm(more: dict[str, Any]) -> None:
    async with OfflineModel() as model:
        status, _, raw = await post(model, request("北京天气", **more))
    assert status == 200
    assert raw


async def test_the_last_requests_are_kept_for_tests() -> None:
    async with OfflineModel() as model:
        for number in range(KEPT + 1):
            await post(model, request(str(number)))
    assert len(model.requests) == KEPT
    assert model.requests[-1]["messages"][0]["content"] == str(KEPT)


async def test_whoever_hangs_up_early_does_no_harm() -> None:
    body = request("help", stream=True)
    async with OfflineModel() as model, ClientSession() as client:
        async with client.post(f"{model.base_url}/chat/completions", json=body) as response:
            await response.content.readline()
            response.close()
        async with client.get(f"{model.base_url}/models") as response:
            assert response.status == 200


def test_the_demo_picture_is_small_and_a_picture() -> None:
    content = (MEDIA_FOLDER / "demo.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(content) <= 20_000
