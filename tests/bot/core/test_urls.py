"""Urls in texts, and which a run may read."""

from __future__ import annotations

from bot.core.urls import KnownUrls, trim_url, url_key, urls_in
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
