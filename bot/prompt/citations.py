"""Checks the URLs of an answer: one that no person named and no tool found is cut, and at most
three sources with titles follow the answer. Pure.

Results of the web tools are read line by line: `url: …` after `title: …` or `1. …` is a page that
was found or read. URLs in the text of a page do not count (`tools/search_web/tool.py`,
`tools/read_page/tool.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.urls import URL, KnownUrls, spellings, url_key, urls_in
from bot.prompt.answer_cleanup import tidy_parts
from frostagent.text.lazy_regex import lazy_regex
from frostagent.text.similarity import letters_only
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage
from frostagent.types.speech import SEND

SEARCH, READ, ASK = "search_web", "read_page", "use_subagent"
MOST_SOURCES: Final = 3
LONGEST_TITLE: Final = 60
SHORTEST_TITLE: Final = 4  # letters; a shorter title is not recognised in a line

SOURCES: Final = Phrase("来源：", "Sources:")
CATALOGUE.register(__name__, globals())

HEAD: Final = lazy_regex(r"(?:title: |\d+\. )(?P<title>.+)")
FIELD: Final = lazy_regex(r"(?:url|also): (?P<url>\S+)")
OPENED: Final = lazy_regex(r"!?\[(?P<words>[^\[\]\n]{0,200})\]\(\s*<?$")  # before a link's URL
CLOSED: Final = lazy_regex(r">?(?:\s+(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'))?\s*\)")
WRAPS: Final = lazy_regex(r"\s*[（(【<\[]\s*$")
UNWRAPS: Final = lazy_regex(r"\s*[）)】>\]]")
LABELS: Final = (
    r"(?:信息|内容|数据|参考|相关)?(?:来源|出处|资料|链接|网址|网站|文献|引用)|参考|原文|详见|见|"
    r"sources?|references?|refs?|links?|urls?|see(?: also)?|via|from"
)
LABEL: Final = lazy_regex(rf"[\W\d_]*(?:(?:{LABELS})[\W\d_]*)*", re.IGNORECASE)
CJK: Final = lazy_regex(r"[\u3400-\u9fff]")


@dataclass(slots=True)
class _Known:
    """`titles` are the pages that tools found or read, `read` those read in this run, and `named`
    the URLs from anywhere else; all by their `url_key`.
    """

    titles: dict[str, tuple[str, str]] = field(default_factory=dict)  # url and title
    read: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    def has(self, key: str) -> bool:
        return key in self.titles or key in self.named


def cite(
    message: AssistantMessage,
    said: Sequence[Message],
    *,
    transcript: Sequence[Message],
    urls: KnownUrls,
    heard: Callable[[], bool],
    shown: Callable[[str], str],
) -> AssistantMessage:
    """The message without unknown URLs and, if it is an answer, with its sources at the end; the
    same object if nothing changes. `said` are the messages of this run so far, `urls` those that it
    may read. If the asker has already `heard` part of the run, only sources that the message names
    are listed. `shown` is how the chat shows a text: without Markdown, pieces may make a URL.
    """
    message = _as_shown(message, shown)
    is_answer = bool(message.text.strip()) and not message.tool_calls
    texts = (message.text, *(call.arguments for call in message.tool_calls))
    has_urls = any(map(URL.search, texts))
    if not (has_urls or (is_answer and any(_is_read(one) for one in said))):
        return message
    known = _known(transcript, said, urls)
    citing = _Citing(known)
    text = citing.cut(message.text)
    calls = tuple(_cut_call(known, call) for call in message.tool_calls)
    if is_answer:
        sources = citing.sources(with_read=not heard())
        text = "\n".join(filter(None, (text, source_lines(sources, text))))
    if text == message.text and calls == message.tool_calls:
        return message
    return replace(message, text=text, tool_calls=calls)


def _as_shown(message: AssistantMessage, shown: Callable[[str], str]) -> AssistantMessage:
    """The message, with texts as the chat shows them if those have URLs that the texts lack."""

    def joined(text: str) -> str:
        return _with_joined_urls(text, shown)

    text = joined(message.text)
    calls = tuple(_in_call(call, joined) for call in message.tool_calls)
    if text is message.text and calls == message.tool_calls:
        return message
    return replace(message, text=text, tool_calls=calls)


def _with_joined_urls(text: str, shown: Callable[[str], str]) -> str:
    while (seen := shown(text)) != text and not set(urls_in(seen)) <= set(urls_in(text)):
        text = seen
    return text


def cut_urls(text: str) -> str:
    """The text without any URL, and without lines that only named sources."""
    return _Citing(_Known()).cut(text)


def source_lines(sources: Sequence[tuple[str, str]], text: str) -> str:
    """The lines that name these pages (URL and title) below a text, in its language; empty without
    a page.
    """
    if not sources:
        return ""
    is_chinese = not text or CJK.search(text)
    label = SOURCES.format(Language.CHINESE if is_chinese else Language.ENGLISH)
    return "\n".join([label, *(f"{_plain(title)} {url}".strip() for url, title in sources)])


def _plain(title: str) -> str:
    """A title without the urls that its page put into it."""
    return " ".join(_without(title, _spots(_Known(), title)).split())[:LONGEST_TITLE]


# --- what is known --------------------------------------------------------------------------------


def _is_read(message: Message) -> bool:
    return isinstance(message, ToolMessage) and message.name == READ and not message.is_error


def _known(transcript: Sequence[Message], said: Sequence[Message], urls: KnownUrls) -> _Known:
    known = _Known()
    for one in (*transcript, *(one for one in said if not isinstance(one, AssistantMessage))):
        if not isinstance(one, ToolMessage) or one.name not in {SEARCH, READ}:
            # What a subagent read may have told it to name a url: only those it searched for count.
            is_passed_on = isinstance(one, ToolMessage) and one.name == ASK and one.tainted
            named = (url for url in urls_in(one.text) if not is_passed_on or urls.named(url))
            known.named.update(map(url_key, named))
        elif not one.is_error:
            found = {url_key(url): (url, title) for url, title in sources_in(one.content)}
            known.titles.update(found)
    for one in filter(_is_read, said):
        known.read += [url_key(url) for url, _ in sources_in(one.text)][:1]
    return known


def sources_in(content: str) -> Iterator[tuple[str, str]]:
    """The URL and title of each page in a web tool's result."""
    title = ""
    for line in content.splitlines():
        if found := HEAD.match(line):
            title = found["title"].strip()
        elif found := FIELD.match(line):
            yield found["url"], title


# --- cutting --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Spot:
    """A URL in a line. `start` and `end` enclose everything that belongs to it, such as a Markdown
    link, and `words` is the link's text. `is_aside`: it is in brackets or is a link.
    """

    start: int
    end: int
    url: str
    key: str
    words: str = ""
    is_aside: bool = False


def _spots(known: _Known, line: str) -> list[_Spot]:
    spots, done = list[_Spot](), 0
    for found in URL.finditer(line):
        if found.start() < done:
            continue
        reach = spellings(line, found)
        url = next((one for one in reversed(reach) if known.has(url_key(one))), reach[0])
        start, end = found.start(), found.start() + len(url)
        before, key = line[done:start], url_key(url)
        opened, wraps = OPENED.search(before), WRAPS.search(before)
        closed, unwraps = CLOSED.match(line, end), UNWRAPS.match(line, end)
        if opened and closed:
            words = "" if URL.match(opened["words"]) else opened["words"]
            spots.append(_Spot(done + opened.start(), closed.end(), url, key, words, is_aside=True))
        elif wraps and unwraps:
            spots.append(_Spot(done + wraps.start(), unwraps.end(), url, key, is_aside=True))
        else:
            spots.append(_Spot(start, end, url, key))
        done = spots[-1].end
    return spots


class _Citing:
    """Cuts a text, and remembers the pages it names."""

    def __init__(self, known: _Known) -> None:
        self._known = known
        self._cited: list[str] = []  # to list at the end
        self._inline: list[str] = []

    def cut(self, text: str) -> str:
        """The text without unknown URLs and without lines that only name sources."""
        if not URL.search(text):
            return text
        lines = [(line, self._line(line)) for line in text.splitlines()]
        if all(line == kept for line, kept in lines):
            return text
        kept = [now for line, now in lines if now.strip() or not line.strip()]
        while kept and _is_label(kept[-1]):
            kept.pop()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()

    def sources(self, *, with_read: bool) -> list[tuple[str, str]]:
        """URL and title of each source to list."""
        cited = self._cited
        if with_read and not (self._cited or self._inline):
            cited = self._known.read
        keys = [key for key in dict.fromkeys(cited) if key not in self._inline]
        room = max(0, MOST_SOURCES - len(set(self._inline)))
        return [self._known.titles[key] for key in keys[:room]]

    def _line(self, line: str) -> str:
        """The line without URLs that must go; blank if nothing else is left."""
        spots = _spots(self._known, line)
        titles = [self._known.titles[one.key][1] for one in spots if one.key in self._known.titles]
        rest = _without(line, spots)
        if titles and (_is_label(rest) or any(_is_title(rest, title) for title in titles)):
            self._cited += [one.key for one in spots if one.key in self._known.titles]
            return " ".join(one.url for one in spots if self._is_named(one.key))
        gone = [one for one in spots if not self._may_stay(one)]
        left = _without(line, gone).rstrip()
        return "" if gone and _is_label(left) else left

    def _may_stay(self, spot: _Spot) -> bool:
        if self._is_named(spot.key):
            return True
        if spot.key not in self._known.titles:
            return False
        if spot.is_aside or len({*self._inline, spot.key}) > MOST_SOURCES:
            self._cited.append(spot.key)
            return False
        self._inline.append(spot.key)
        return True

    def _is_named(self, key: str) -> bool:
        """Whether a person or another tool named the URL, and it is not a page of the web tools."""
        return key in self._known.named and key not in self._known.titles


def _without(line: str, spots: Sequence[_Spot]) -> str:
    """The line with these URLs cut or, if they are links, replaced by their text."""
    for one in reversed(spots):
        before, after = line[: one.start] + one.words, line[one.end :]
        line = before + (after[1:] if before.endswith(" ") and after.startswith(" ") else after)
    return line


def _is_label(text: str) -> bool:
    """Whether the text consists of numbers, punctuation and words like "source"."""
    return LABEL.fullmatch(text) is not None


def _is_title(text: str, title: str) -> bool:
    """Whether the text is a page's title or most of it, perhaps after a number."""
    said, known = letters_only(text), letters_only(title)
    if min(len(said), len(known)) < SHORTEST_TITLE:
        return False
    return said in known or (known in said and len(said) < 2 * len(known))


def _cut_call(known: _Known, call: ToolCall) -> ToolCall:
    """The call without unknown URLs in text for the chat. URLs of files are checked elsewhere."""
    if not URL.search(call.arguments):
        return call

    def cut(text: str) -> str:
        lines = text.splitlines()
        return "\n".join(_without(line, _unknown(known, line)) for line in lines)

    return _in_call(call, cut)


def _in_call(call: ToolCall, change: Callable[[str], str]) -> ToolCall:
    """The call with each text for the chat changed; itself if nothing changes."""
    if call.name != SEND:
        return call
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    if not isinstance(given, dict) or "messages" not in given:
        return call

    tidied = given | {"messages": tidy_parts(given["messages"], change)}
    if tidied == given:
        return call
    return replace(call, arguments=json.dumps(tidied, ensure_ascii=False))


def _unknown(known: _Known, line: str) -> list[_Spot]:
    spots = _spots(known, line)
    return [one for one in spots if not known.has(one.key)]
