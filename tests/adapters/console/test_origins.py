from __future__ import annotations

from adapters.console.http import Origins, PageOrigin, read_origin
from tests.cases import each_case


@each_case(
    ("configured", "host", "found"),
    [
        ("", "127.0.0.1:8090", PageOrigin("http", "127.0.0.1:8090")),
        ("", "LOCALHOST:8090", PageOrigin("http", "localhost:8090")),
        ("", "[::1]:8090", PageOrigin("http", "[::1]:8090")),
        ("", "127.0.0.1:8091", None),
        ("", "127.0.0.1", None),
        ("", "127.0.0.1.evil.example:8090", None),
        ("", "evil.example", None),
        ("", "", None),
        ("https://bot.example.com/x", "bot.example.com", PageOrigin("https", "bot.example.com", "/x")),
        ("https://bot.example.com/x", "127.0.0.1:8090", PageOrigin("http", "127.0.0.1:8090")),
        ("https://bot.example.com", "evil.bot.example.com", None),
        ("https://bot.example.com:8443", "bot.example.com", None),
    ],
)
def test_a_request_is_for_us_by_its_host_alone(configured: str, host: str, found: PageOrigin | None) -> None:
    assert Origins(configured, port=8090).find(host) == found


def test_an_address_is_read_as_browsers_say_it() -> None:
    assert read_origin("https://Bot.Example.com:443/a/").url("/login") == "https://bot.example.com/a/login"
    assert read_origin("http://[::1]:8090").text == "http://[::1]:8090"


def test_the_path_of_a_page_stands_behind_the_prefix_and_nothing_else_is_cut() -> None:
    origin = PageOrigin("https", "h", "/bot")
    assert [origin.path(asked) for asked in ("/bot", "/bot/", "/bot/turns", "/turns", "/bother")] == [
        "/",
        "/",
        "/turns",
        "/turns",
        "/bother",
    ]
