"""What NapCat and LLBot read at their start."""

from __future__ import annotations

import json
from collections.abc import Callable

from bot.cli.setup.files import (
    BOT_URL,
    ServerLink,
    account_in,
    link_of,
    tokens_for,
    webui_token,
    write_llbot,
    write_onebot,
    write_webui,
)
from config.settings import Settings
from tests.cases import each_case

DIALS = ServerLink("reverse", BOT_URL, "t")
LISTENS = ServerLink("forward", "ws://napcat:3001", "t")


def test_napcat_dials_the_bot_and_reports_its_own_messages() -> None:
    network = json.loads(write_onebot(DIALS))["network"]
    (client,) = network["websocketClients"]
    assert (client["enable"], client["url"], client["token"]) == (True, "ws://bot:6199/", "t")
    assert (client["reportSelfMessage"], client["messagePostFormat"]) == (True, "array")
    assert all(network[kind] == [] for kind in network if kind != "websocketClients")


def test_napcat_listens_for_a_bot_that_dials_and_only_with_the_token() -> None:
    network = json.loads(write_onebot(LISTENS))["network"]
    (server,) = network["websocketServers"]
    assert (server["enable"], server["host"], server["port"], server["token"]) == (True, "0.0.0.0", 3001, "t")
    assert network["websocketClients"] == []


def test_the_webui_has_its_token_and_it_is_found_again() -> None:
    webui = json.loads(write_webui(token="t"))
    assert (webui["token"], webui["port"]) == ("t", 6099)
    assert webui_token(write_webui(token="t")) == webui_token("t\n") == "t"
    assert webui_token('{"token": null}') == ""
    assert webui_token("12345678\n") == "12345678"


def test_the_link_is_that_of_the_settings() -> None:
    given = {"onebot_access_token": "t", "onebot_url": "ws://napcat:3001"}
    assert link_of(Settings.model_validate(given)) == DIALS
    assert link_of(Settings.model_validate({**given, "onebot_mode": "forward"})) == LISTENS


def test_a_server_gets_the_token_of_its_account_and_one_that_has_another_of_them_comes_in() -> None:
    settings = Settings.model_validate({"onebot_access_token": "10001:a,10002:b,c"})
    assert link_of(settings, account=10002) == ServerLink("reverse", BOT_URL, "b", frozenset({"a", "c"}))
    assert link_of(settings).token == "c"
    assert link_of(settings).accepted == {"a", "b", "c"}
    assert DIALS.accepted == {"t"}


@each_case(("text", "account"), [("10001", 10001), ("", 0), ("10001,10002", 0), ("me", 0)])
def test_an_account_is_known_where_one_is_named(text: str, account: int) -> None:
    assert account_in(text) == account


def test_llbot_dials_the_bot_and_reports_its_own_messages() -> None:
    (client,) = json.loads(write_llbot(DIALS))["ob11"]["connect"]
    assert (client["type"], client["url"], client["token"]) == ("ws-reverse", BOT_URL, "t")
    assert client["reportSelfMessage"] is True


def test_llbot_listens_for_a_bot_that_dials() -> None:
    (server,) = json.loads(write_llbot(LISTENS))["ob11"]["connect"]
    assert (server["type"], server["host"], server["port"], server["token"]) == ("ws", "", 3001, "t")
    assert "url" not in server


@each_case("write", [write_onebot, write_llbot])
def test_the_token_is_found_whatever_the_path(write: Callable[[ServerLink], str]) -> None:
    assert tokens_for(write(DIALS), ServerLink("reverse", "ws://bot:6199/any/path", "other")) == {"t"}
    assert tokens_for(write(DIALS), ServerLink("reverse", "ws://bot:6200/", "t")) == set()
    assert tokens_for(write(LISTENS), ServerLink("forward", "ws://elsewhere:3001/any/path", "other")) == {"t"}
    assert tokens_for(write(LISTENS), ServerLink("forward", "ws://napcat:3002", "t")) == set()


@each_case("write", [write_onebot, write_llbot])
def test_a_server_that_dials_does_not_listen_and_the_other_way_round(write: Callable[[ServerLink], str]) -> None:
    assert tokens_for(write(DIALS), LISTENS) == tokens_for(write(LISTENS), DIALS) == set()


@each_case("link", [DIALS, LISTENS])
def test_a_connection_that_is_switched_off_counts_for_nothing(link: ServerLink) -> None:
    assert tokens_for(write_onebot(link).replace('"enable": true', '"enable": false'), link) == set()


@each_case(
    "text",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"network": {"websocketClients": 1, "websocketServers": [7, {"enable": true, "port": "x"}]}}',
        '{"ob11": {"connect": {}}}',
        '{"network": {"websocketClients": [7, {"enable": true, "url": null}, {"enable": true, "url": "ws://[b"}]}}',
    ],
)
def test_a_file_that_is_something_else_holds_no_token(text: str) -> None:
    assert tokens_for(text, DIALS) == tokens_for(text, LISTENS) == set()
