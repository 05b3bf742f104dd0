"""Urls in texts, and which a run may read."""

from __future__ import annotations

from bot.core.urls import KnownUrls, trim_url, url_key
from tests.cases import each_case


@each_case(
    ("one", "other"),
    [
        ("https://a.example/b", "http://www.A.example/b/"),
        ("https://a.example/b", "a.example/b#c"),
        ("https://a.example/霜降", "https://a.example/%E9%9C%9C%E9%99%8D"),
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
    ],
)
def test_another_url_is_another_one(one: str, other: str) -> None:
    assert url_key(one) != url_key(other)


def test_what_people_named_and_a_search_found_is_known() -> None:
    known = KnownUrls(["小明#1: 看看https://a.example/霜降，还有（http://b.example/c）。", "www.d.example"])
    known.add(["https://e.example/f"])
    for url in ("https://a.example/霜降", "https://b.example/c", "https://d.example/", "https://e.example/f"):
        assert url in known
    for url in ("https://a.example/x", "https://b.example/c?x=1", "https://evil.example/"):
        assert url not in known


def test_a_bracket_belongs_to_a_url_that_opened_it() -> None:
    assert trim_url("https://a.example/b_(c)).") == "https://a.example/b_(c)"
    assert trim_url("https://a.example/b),see") == "https://a.example/b"
