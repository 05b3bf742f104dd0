"""What NapCat and LLBot read at their start."""

from __future__ import annotations

import json

import pytest

from bot.setup.servers import BOT_URL, tokens_for, write_llbot, write_onebot, write_onebot_listening, write_webui


def test_napcat_dials_the_bot_and_reports_its_own_messages() -> None:
    network = json.loads(write_onebot(url=BOT_URL, token="t"))["network"]
    (client,) = network["websocketClients"]
    assert (client["enable"], client["url"], client["token"]) == (True, "ws://bot:6199/", "t")
    assert (client["reportSelfMessage"], client["messagePostFormat"]) == (True, "array")
    assert all(network[kind] == [] for kind in network if kind != "websocketClients")


def test_napcat_listens_for_a_bot_that_dials_and_only_with_the_token() -> None:
    network = json.loads(write_onebot_listening(token="t"))["network"]
    (server,) = network["websocketServers"]
    assert (server["enable"], server["host"], server["port"], server["token"]) == (True, "0.0.0.0", 3001, "t")
    assert network["websocketClients"] == []


def test_the_webui_has_its_token() -> None:
    webui = json.loads(write_webui(token="t"))
    assert (webui["token"], webui["port"]) == ("t", 6099)


def test_llbot_dials_the_bot_and_reports_its_own_messages() -> None:
    (client,) = json.loads(write_llbot(url=BOT_URL, token="t"))["ob11"]["connect"]
    assert (client["type"], client["url"], client["token"]) == ("ws-reverse", BOT_URL, "t")
    assert client["reportSelfMessage"] is True


@pytest.mark.parametrize("text", [write_onebot(url=BOT_URL, token="t"), write_llbot(url=BOT_URL, token="t")])
def test_the_token_for_the_bot_is_found_whatever_the_path(text: str) -> None:
    assert tokens_for(text, url="ws://bot:6199/any/path") == {"t"}
    assert tokens_for(text, url="ws://bot:6200/") == set()


def test_a_connection_that_is_switched_off_counts_for_nothing() -> None:
    switched_off = write_onebot(url=BOT_URL, token="t").replace('"enable": true', '"enable": false')
    assert tokens_for(switched_off, url=BOT_URL) == set()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"network": {"websocketClients": 1}}',
        '{"network": {"websocketClients": [7, {"enable": true, "url": null}, {"enable": true, "url": "ws://[b"}]}}',
    ],
)
def test_a_file_that_is_something_else_holds_no_token(text: str) -> None:
    assert tokens_for(text, url=BOT_URL) == set()
