"""MEDIA_URL, alone and with what it needs."""

from __future__ import annotations

import socket

import pytest

from tests.cases import each_case
from tests.config.reading import GOOD, load, problems

CLUSTER = {"BROKER_URL": "amqp://queue/", "STORE_URL": "postgresql://bot:sesame@db/frost"}


@each_case(
    ("typed", "url"),
    [
        ("", ""),
        ("http://bot:8080/media", "http://bot:8080/media"),
        ("https://bot.example.com/one/media/", "https://bot.example.com/one/media"),
        ("http://[fd00::7]:8080/media", "http://[fd00::7]:8080/media"),
    ],
)
def test_an_address_that_ends_in_the_page_is_taken(typed: str, url: str) -> None:
    assert load(GOOD | {"MEDIA_URL": typed, "WEB_HOST": "0.0.0.0"})[0].media_url == url


def test_each_machine_can_have_the_same_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "3f1c9b7d2e4a")
    given = GOOD | {"MEDIA_URL": "http://{hostname}:8080/media", "WEB_HOST": "0.0.0.0"}
    assert load(given)[0].media_url == "http://3f1c9b7d2e4a:8080/media"


@each_case(
    ("typed", "said"),
    [
        ("bot:8080/media", "does not begin with https:// or http://"),
        ("ftp://bot/media", "does not begin with https:// or http://"),
        ("file:///media", "does not begin with https:// or http://"),
        ("http:///media", "has no host"),
        ("http://bot:8080", "does not end in /media"),
        ("http://bot:8080/files", "does not end in /media"),
        ("http://bot:8080/xmedia", "does not end in /media"),
        ("http://bot:8080/media?x=1", "has a ?, a # or an @ in it"),
        ("http://bot:8080/media#x", "has a ?, a # or an @ in it"),
        ("http://me:secret@bot:8080/media", "has a name or password before the host"),
        ("http://bot:99999/media", "has an impossible address or port"),
        ("http://bot:8080/a%2Fb/media", "has a path that cannot begin our addresses"),
        ("http://{host}:8080/media", "has an impossible host name"),
        ("fetch", "does not begin with"),
    ],
)
def test_any_other_is_one_problem_that_says_how_to_write_it(typed: str, said: str) -> None:
    [problem] = problems({"MEDIA_URL": typed})
    assert problem.startswith(f"MEDIA_URL: {said}")
    assert problem.endswith(
        "Write it as http://bot:8080/media: the address at which OneBot servers reach /media of WEB_PORT"
    )
    assert "secret" not in problem


def test_it_needs_somebody_who_listens_and_says_so_with_all_other_problems() -> None:
    given = {"MEDIA_URL": "http://bot:8080/media", "WEB_PORT": "0"}
    told = problems({**given, "MEDIA_SEND": "url"})
    assert [line.partition(":")[0] for line in told] == ["MEDIA_SEND", "MEDIA_URL"]
    assert "is set, but nothing listens there with WEB_PORT=0. Set WEB_PORT=8080" in told[1]
    [alone] = problems({**CLUSTER, **given, "BOT_ROLE": "worker"})
    assert alone.startswith("MEDIA_URL: ")
    # One .env is for all parts of a cluster, and a gateway gives no files.
    assert load(GOOD | CLUSTER | given | {"BOT_ROLE": "gateway"})[0].web_port == 0


@each_case(
    ("url", "host", "role", "doubted"),
    [
        ("http://bot:8080/media", "127.0.0.1", "all", True),
        ("http://bot:8080/media", "localhost", "worker", True),
        ("http://bot:8080/media", "127.0.0.1", "gateway", False),
        ("http://127.0.0.1:8080/media", "127.0.0.1", "all", False),
        ("", "127.0.0.1", "all", False),
    ],
)
def test_a_listener_that_only_this_machine_reaches_is_doubted(url: str, host: str, role: str, doubted: bool) -> None:
    given = GOOD | CLUSTER | {"MEDIA_URL": url, "WEB_HOST": host, "BOT_ROLE": role}
    warned = [str(problem) for problem in load(given)[1] if problem.name == "WEB_HOST"]
    assert bool(warned) == doubted
    assert all("only this machine can fetch what MEDIA_URL leads to" in line for line in warned)
