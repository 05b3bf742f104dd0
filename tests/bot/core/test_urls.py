"""Urls in texts, and which a run may read."""

from __future__ import annotations

from bot.core.segments import Card, Link, Markdown, Mention, Picture
from bot.core.urls import KnownUrls, host_of, is_on_sites, links_in, trim_url, url_key, urls_in
from frostagent.types.speech import Text
from tests.cases import each_case


@each_case(
    ("one", "other"),
    [
        ("https://a.example/b", "http://www.A.example/b/"),
        ("https://a.example/b", "a.example/b#c"),
        ("https://a.example/霜降", "https://a.example/%E9%9C%9C%e9%99%8d"),
    ],
)
def test_two_spellings_of_a_url_are_one(one: str, other: str) -> None:
    assert url_key(one) == url_key(other)


@each_case(
    ("one", "other"),
    [
        ("https://a.example/b", "https://a.example/b?said=x"),
        ("https://a.example/b", "https://a.example/c"),
        ("https://a.example/", "https://a.example.evil.example/"),
        ("https://a.example/", "https://a.example@evil.example/"),
        ("https://a.example/", "https://a.example:8080/"),
        ("https://a.example/", "https://a.example%23@evil.example/"),
        ("https://a.example/", "https://a.example%2F@evil.example/"),
        ("https://a.example/b", "https://a.example/b%23said"),
        ("https://a.example/b", "https://a.example/b%3Fsaid"),
        ("https://a.example/b", "https://a.example/b%0A%09%0D"),
        ("https://a.example/b", "https://a.example/%62"),
        ("https://a.example/?q=%CB%AA", "https://a.example/?q=%BD%B5"),
    ],
)
def test_another_url_is_another_one(one: str, other: str) -> None:
    assert url_key(one) != url_key(other)


def test_what_people_named_and_a_search_found_is_known() -> None:
    known = KnownUrls(["小明#1: 看看https://a.example/霜降，还有（http://b.example/c）。", "www.d.example"])
    known.add(["https://e.example/f"])
    for url in ("https://a.example/霜降", "https://b.example/c", "https://d.example/", "https://e.example/f"):
        assert known.named(url)
    for url in ("https://a.example/x", "https://b.example/c?x=1", "https://evil.example/"):
        assert known.named(url) is None


def test_a_known_url_is_given_as_it_was_named() -> None:
    known = KnownUrls(["看 https://a.example/b"])
    assert known.named("http://www.a.example/b////#said") == "https://a.example/b"


def test_a_bracket_belongs_to_a_url_that_opened_it() -> None:
    assert trim_url("https://a.example/b_(c)).") == "https://a.example/b_(c)"
    assert trim_url("https://a.example/b),see") == "https://a.example/b"


@each_case(
    ("text", "urls"),
    [
        ("官网https://a.example是好网站，", ["https://a.example", "https://a.example是好网站"]),
        ("https://a.example/霜降。", ["https://a.example/", "https://a.example/霜降"]),
        ("https://例子.中国/x", ["https://例子.中国/x"]),
        ("https://a.exampleа.evil.example/x", ["https://a.exampleа.evil.example/x"]),
        ("https://a.example．evil", ["https://a.example．evil"]),
        ("https://a.example是@evil.example", ["https://a.example是@evil.example"]),
        ("https://\u200bevil.example", ["https://\u200bevil.example"]),
        ("网址都以https://开头的", []),
    ],
)
def test_a_url_reaches_as_far_as_its_host_does(text: str, urls: list[str]) -> None:
    assert list(urls_in(text)) == urls


def test_a_message_posts_the_urls_of_its_text_and_its_cards() -> None:
    segments = (
        Text("看https://a.example/1看看，https://a.example/霜降 https://a.example/?q=霜降"),
        Mention(5, "https://no.example/"),
        Picture(url="https://no.example/x.png"),
        Card("json", '{"x": "https://no.example/"}', title="https://no.example/", url="https://a.example/2"),
        Card("json", url="javascript:alert(1)"),
        Link("share", title="x", url="http://a.example/3"),
        Markdown("[x](https://a.example/4)"),
    )
    assert list(links_in(segments)) == [
        "https://a.example/1",
        "https://a.example/霜降",
        "https://a.example/?q=霜降",
        "https://a.example/2",
        "http://a.example/3",
        "https://a.example/4",
    ]


@each_case(
    ("url", "host"),
    [
        ("https://A.Example/x", "a.example"),
        ("www.a.example/x", "www.a.example"),
        ("https://a.example.:443/x", "a.example"),
        ("https://a.example@evil.example/", ""),
        ("https://a.example%23@evil.example/", ""),
        ("https://@a.example/", ""),
        ("https://evil.example%2ea.example/", ""),
        ("https://\uff41.example/", ""),
        ("https://а.example/", ""),
        ("https://[::1/", ""),
        ("https://a.example\uff0f.evil.example/", ""),
        ("ftp://a.example/", ""),
        ("https:///x", ""),
    ],
)
def test_a_host_is_plain_and_the_one_that_is_fetched(url: str, host: str) -> None:
    assert host_of(url) == host


@each_case(
    ("host", "is_on"),
    [
        ("a.example", True), ("m.a.example", True), ("x.m.a.example", True), ("b.example", True),
        ("a.example.evil.example", False), ("nota.example", False), ("example", False), ("", False),
    ],
)  # fmt: skip
def test_a_site_is_its_host_and_what_is_below(host: str, is_on: bool) -> None:
    assert is_on_sites(host, ("a.example", "b.example")) is is_on


@each_case("piece", ["www.中", "www.a中", "https://a.b/中", "https://a.b/中()", "https://a.b=中.", "www.中)"])
def test_the_urls_of_a_text_made_to_slow_it_down_are_short_together(piece: str) -> None:
    text = piece * 2_000
    assert sum(map(len, urls_in(text))) < 100 * len(text)
    assert sum(map(len, links_in((Text(text),)))) < 100 * len(text)


def test_a_long_url_and_what_follows_it_are_whole() -> None:
    near = "https://a.example/" + "x" * 3_000
    assert list(urls_in(f"{near}看看")) == [near, f"{near}看看"]
    assert list(urls_in(f"https://a.example{'中' * 200}.evil.example/x")) == [
        f"https://a.example{'中' * 200}.evil.example/x"
    ]
    assert list(urls_in("https://a.example。evil.example/x www.b.example")) == [
        "https://a.example", "www.b.example"
    ]  # fmt: skip
