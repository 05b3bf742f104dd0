"""What an operator types as base URL, and what the environment says about proxies."""

from __future__ import annotations

import pytest
from yarl import URL

from frostagent.models.openai.endpoint import find_proxy, is_local, join_url
from tests.cases import each_case


@each_case(
    ("base", "url"),
    [
        ("https://a.example/v1", "https://a.example/v1/chat/completions"),
        (" https://a.example/v1/ ", "https://a.example/v1/chat/completions"),
        ("https://a.example", "https://a.example/chat/completions"),
        ("http://a.example:8080/v1/chat/completions", "http://a.example:8080/v1/chat/completions"),
        ("https://a.example/v1/chat/completions/", "https://a.example/v1/chat/completions"),
        ("https://a.example/openai?api-version=1", "https://a.example/openai/chat/completions?api-version=1"),
    ],
)
def test_the_path_is_added_where_it_is_missing(base: str, url: str) -> None:
    assert str(join_url(base)) == url


@each_case("base", ["", "a.example/v1", "ftp://a.example", "https://"])
def test_what_is_no_url_is_refused_at_once(base: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        join_url(base)


@pytest.mark.parametrize(
    ("proxy", "host", "found"),
    [
        ("http://127.0.0.1:7890", "api.example.com", "http://127.0.0.1:7890"),
        ("127.0.0.1:7890", "api.example.com", "http://127.0.0.1:7890"),
        ("socks5://127.0.0.1:7890", "api.example.com", None),
        ("http://127.0.0.1:7890", "direct.example.com", None),
        ("http://127.0.0.1:7890", "localhost", None),
        ("http://127.0.0.1:7890", "192.168.1.2", None),
        ("", "api.example.com", None),
    ],
)
def test_6_19_the_environments_proxy_is_for_hosts_that_are_not_near(
    monkeypatch: pytest.MonkeyPatch, proxy: str, host: str, found: str | None
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.setenv("no_proxy", "direct.example.com")
    assert find_proxy(URL(f"https://{host}/v1")) == found


@each_case(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("192.168.1.7", True),
        ("[::1]", True),
        ("ollama", True),
        ("host.docker.internal", True),
        ("nas.local", True),
        ("8.8.8.8", False),
        ("api.deepseek.com", False),
    ],
)
def test_hosts_near_us_are_known(host: str, local: bool) -> None:
    assert is_local(host) is local
