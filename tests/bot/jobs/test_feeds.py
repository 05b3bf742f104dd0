"""What a feed has, what is new in it, and how that is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bot.core import codec
from bot.core.language import Language
from bot.core.ports import WebResponse
from bot.jobs.feed_summaries import summary_lines
from bot.jobs.feeds import (
    MAX_ENTRIES,
    MAX_PENDING,
    MAX_SEEN,
    MAX_TEXT,
    MAX_TITLE,
    Entry,
    Feed,
    FeedNotes,
    parse_feed,
    read_news,
    read_notes,
    rest_of,
    tell_news,
)
from frostagent.types.errors import ToolFailed
from tests.cases import each_case

URL = "https://a.test/feed"
RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>T &amp;amp; T</title>
<item><title>B &lt;b&gt;bold&lt;/b&gt;</title><guid>2</guid><link>https://a.test/2</link></item>
<item><title>A</title><guid>1</guid><link>javascript:alert(1)</link></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title>
<entry><id>x</id><title>A</title><link href="https://a.test/1"/></entry></feed>"""
JSON_FEED = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "T",
        "items": [{"id": "1", "title": "A", "url": "https://a.test/1"}, {"title": "no id"}],
    }
)
ENTITIES = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise("abcdefghz"))
BOMB = (
    f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{ENTITIES}]><rss version="2.0"><channel><title>&z;</title></channel></rss>'
)


def titles(feed: Feed) -> list[tuple[str, str]]:
    return [(one.title, one.url) for one in feed.entries]


def test_rss_atom_and_json_are_read_the_oldest_entry_first() -> None:
    rss = parse_feed(RSS.encode())
    assert (rss.title, titles(rss)) == ("T & T", [("A", ""), ("B bold", "https://a.test/2")])
    assert titles(parse_feed(ATOM.encode())) == [("A", "https://a.test/1")]
    assert titles(parse_feed(JSON_FEED.encode())) == [("A", "https://a.test/1")]
    assert parse_feed(ATOM.encode()).entries[0].key == parse_feed(ATOM.encode()).entries[0].key


@each_case("body", [b"", b"<html>x</html>", b"{", b"[]", b'{"version": 1}', b'{"version": "x", "items": 3}', b"\0\xff"])
def test_what_is_no_feed_is_refused(body: bytes) -> None:
    with pytest.raises(ToolFailed, match="there is no feed"):
        parse_feed(body)


def test_a_body_that_names_a_file_or_an_address_is_no_feed(tmp_path: Path) -> None:
    file = tmp_path / "feed.xml"
    file.write_text(RSS, "utf-8")
    for body in (str(file), f"file://{file}", "http://127.0.0.1:9/feed"):
        with pytest.raises(ToolFailed, match="there is no feed"):
            parse_feed(body.encode())


def test_a_hostile_feed_is_bounded() -> None:
    many = "".join(f"<item><title>{'x' * 9999}</title><guid>{n}</guid></item>" for n in range(1000))
    feed = parse_feed(f'<rss version="2.0"><channel><title>t</title>{many}</channel></rss>'.encode())
    assert len(feed.entries) == MAX_ENTRIES
    assert all(len(one.title) <= MAX_TITLE + 1 for one in feed.entries)
    assert len(parse_feed(BOMB.encode()).title) <= MAX_TITLE + 1


class Server:
    """Answers as a server of feeds; `asked` are the headers of each request."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, str]] = []
        self.answer = WebResponse(200, b"", URL)

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None, **_: Any) -> WebResponse:
        assert url == URL
        self.asked.append(headers or {})
        return self.answer

    async def post(self, url: str, **_: Any) -> WebResponse:
        raise AssertionError(f"a feed is read, never posted to: {url}")

    def has(self, *keys: str) -> None:
        items = "".join(f"<item><title>{key}</title><guid>{key}</guid></item>" for key in keys)
        body = f'<rss version="2.0"><channel><title>t</title>{items}</channel></rss>'
        self.answer = WebResponse(200, body.encode(), URL, {"etag": "e", "last-modified": "m"})


async def test_news_are_entries_that_were_never_there_and_the_first_read_has_none() -> None:
    server = Server()
    server.has("b", "a")
    title, notes = await read_news(server, FeedNotes(URL), is_first=True)
    assert (title, notes.pending, len(notes.seen)) == ("t", (), 2)
    server.has("d", "c", "b")
    _, notes = await read_news(server, notes)
    assert [one.title for one in notes.pending] == ["c", "d"]
    _, notes = await read_news(server, notes)  # before they were said
    assert [one.title for one in notes.pending] == ["c", "d"]
    server.has("a")  # it comes again
    assert (await read_news(server, FeedNotes(URL, seen=notes.seen)))[1].pending == ()
    assert server.asked == [{}, *[{"If-None-Match": "e", "If-Modified-Since": "m"}] * 2, {}]
    assert read_notes(codec.write(notes)) == notes


async def test_what_has_not_changed_is_not_read_and_what_fails_is_told() -> None:
    server, notes = Server(), FeedNotes(URL, etag="e", seen=("x",), failures=3)
    server.answer = WebResponse(304, b"", URL)
    assert await read_news(server, notes) == ("", FeedNotes(URL, etag="e", seen=("x",)))
    for status in (404, 500):
        server.answer = WebResponse(status, b"", URL)
        with pytest.raises(ToolFailed, match=str(status)):
            await read_news(server, notes)


async def test_what_is_known_of_a_feed_is_bounded() -> None:
    server, notes = Server(), FeedNotes(URL)
    for first in range(0, 1000, 90):
        server.has(*map(str, range(first, first + 90)))
        _, notes = await read_news(server, notes)
    assert (len(notes.seen), len(notes.pending)) == (MAX_SEEN, MAX_PENDING)


def test_of_many_entries_the_latest_are_told_with_their_links() -> None:
    entries = [Entry(str(n), f"t{n}", f"https://a.test/{n}" if n % 2 else "") for n in range(6)]
    told = tell_news("T", entries, Language.ENGLISH)
    assert told == "📰 T\n· t3\nhttps://a.test/3\n· t4\n· t5\nhttps://a.test/5\n· and 3 more: t0；t1；t2"
    assert "还有 3 条" in tell_news("T", entries, Language.CHINESE)


@each_case(("failures", "seconds"), [(1, 1200), (3, 4800), (9, 86_400), (999, 86_400)])
def test_a_feed_that_fails_rests_the_longer_the_more_often(failures: int, seconds: float) -> None:
    assert rest_of(600, failures) == seconds


def test_the_beginning_of_an_entry_is_kept_as_plain_text_only_for_a_summary() -> None:
    item = f"<item><title>A</title><guid>1</guid><description>&lt;p&gt;B&lt;/p&gt;{'x' * 9999}</description></item>"
    [entry] = parse_feed(f'<rss version="2.0"><channel><title>t</title>{item}</channel></rss>'.encode()).entries
    assert entry.text.startswith("B x")
    assert len(entry.text) <= MAX_TEXT + 1
    atom = ATOM.replace("<link", "<content>C</content><link")
    assert parse_feed(atom.encode()).entries[0].text == "C"
    body = {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [{"id": "1", "title": "A", "content_html": "<b>D</b>"}],
    }
    assert parse_feed(json.dumps(body).encode()).entries[0].text == "D"


@each_case(("summary", "texts"), [(True, ["C"]), (False, [""])])
async def test_entries_wait_with_their_text_only_if_it_is_to_be_summed_up(*, summary: bool, texts: list[str]) -> None:
    atom = ATOM.replace("<link", "<content>C</content><link")
    server = Server()
    server.answer = WebResponse(200, atom.encode(), URL, {})
    _, notes = await read_news(server, FeedNotes(URL, summary=summary))
    assert [one.text for one in notes.pending] == texts


def test_of_entries_with_summaries_five_are_told_with_their_links() -> None:
    entries = [Entry(str(n), f"t{n}", f"https://a.test/{n}", line="" if n % 2 else f"l{n}") for n in range(6)]
    told = tell_news("T", entries, Language.ENGLISH)
    assert "· t1\nhttps://a.test/1\n· t2\nl2\nhttps://a.test/2\n" in told
    assert told.endswith("· t5\nhttps://a.test/5\n· and 1 more: t0")


@each_case(
    ("answer", "lines"),
    [
        ("1. 一\n2：二\n(3) 三\n4）四", {1: "一", 2: "二", 3: "三", 4: "四"}),
        ("1. 一\n1. 又一\n这是别的\n2. NONE\n3. 无", {1: "一"}),
        ("1.5 亿人\n1. 有 1.5 亿人", {1: "有 1.5 亿人"}),
        ("1. 看 https://e.test/a 和 evil.test/b?c 和 www.e.test 和 evil.com。", {1: "看 和 和 和 。"}),
        ("1. 看 `https:/`/e.test/a 和 `evil`.`com/x` 和 evil\u200b.com", {1: "看 和 和"}),
        ("1. Node.js 发布 v22.1，见 README.md", {1: "Node.js 发布 v22.1，见 README.md"}),
        ("1. **粗** [CQ:at,qq=all] 体", {1: "粗 体"}),
        (f"1. {'长' * 999}", {1: f"{'长' * 99}…"}),
        ("", {}),
    ],
)  # fmt: skip
def test_a_line_about_an_entry_is_one_line_without_links(answer: str, lines: dict[int, str]) -> None:
    assert summary_lines(answer) == lines
