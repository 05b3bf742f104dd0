"""HTML -> title, author, date and text with headings. Used only in the reader's process.

The main part is found as Readability does it: each paragraph adds its length to the score of the
blocks around it. Invisible text (`hidden`, `display:none`), in which pages hide instructions for
models, and elements that are not text (navigation, forms, scripts) are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from adapters.media.document_text import Paragraphs, as_text, one_line, seen
from bot.core.documents import Document
from frostagent.types.errors import Lack, MediaError

LEFT_OUT: Final = (
    "script, style, noscript, template, svg, math, iframe, object, embed, canvas, video, audio, "
    "nav, aside, footer, form, button, select, textarea, dialog, menu, "
    "[hidden], [aria-hidden='true'], [role='navigation'], [role='search'], [role='banner']"
)
UNSEEN: Final = re.compile(
    r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|"
    r"(?:font-size|opacity|(?:max-)?(?:height|width)|line-height):0*\.?0*(?![\d.])|"
    r"(?:left|top|right|text-indent|margin-left|margin-top):-\d{4,}|"
    r"clip(?:-path)?:(?:rect\(0|inset\((?:50|100)%)|"
    r"(?:-webkit-text-fill-)?color:transparent)"
)
"""Of a `style` in small letters without blanks and remarks: its words are not seen."""
REMARK: Final = re.compile(r"/\*.*?(?:\*/|$)|\s+", re.DOTALL)
HEADINGS: Final = {f"h{level}": f"{'#' * min(level, 4)} " for level in range(1, 7)}
BLOCKS: Final = frozenset(
    {
        *("address", "article", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt"),
        *("fieldset", "figcaption", "figure", "header", "hr", "li", "main", "ol", "p", "pre"),
        *("section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
        *HEADINGS,
    }
)
CELLS: Final = frozenset({"td", "th"})
MOST_NODES: Final = 400_000
DEEPEST: Final = 2_000
SHORTEST_PARAGRAPH: Final = 25  # characters of a paragraph that counts as prose
LINKED: Final = 0.6  # share of a paragraph's letters in links that makes it a list of links
ENOUGH: Final = 0.4  # share of a page's prose that the main part must hold
BARE: Final = 200  # characters; a page with fewer, and scripts, is written by its scripts
SHOWN_LATER: Final = 5  # times more hidden than visible text: a script shows it, as in WeChat
META_CHARSET: Final = re.compile(
    rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w-]{1,40})", re.IGNORECASE
)
NEEDS_SCRIPT: Final = re.compile(
    r"(?:enable|requires?|turn on|without)[^.]{0,40}javascript|"
    r"javascript[^.]{0,40}(?:disabled|enable|required)|"
    r"(?:启用|开启|打开|需要|禁用)[^。]{0,12}javascript|"
    r"javascript[^。]{0,12}(?:启用|开启|打开)",
    re.IGNORECASE,
)
DAY: Final = re.compile(r"\d{4}[-/年.]\d{1,2}[-/月.]\d{1,2}")
NAMES_OF_TITLE: Final = ("og:title", "twitter:title")
NAMES_OF_AUTHOR: Final = ("author", "article:author", "byl", "dc.creator")
NAMES_OF_DATE: Final = (
    *("article:published_time", "og:published_time", "datepublished", "publishdate", "pubdate"),
    *("publish-date", "date", "dc.date", "dcterms.created", "weibo:article:create_at"),
)


def read_html(data: bytes, charset: str = "") -> Document:
    """Parse a page. Raises MediaError if it has no text, or only by JavaScript."""
    if not charset and (found := META_CHARSET.search(data[:4096])):
        charset = found[1].decode("ascii", "replace")
    tree = _parsed(data, charset)
    meta = {
        one_line(tag.attributes.get("property") or tag.attributes.get("name")).lower(): one_line(
            tag.attributes.get("content")
        )
        for tag in tree.css("meta")[:200]
    }
    first_title = tree.css_first("title")
    title = _first(meta, NAMES_OF_TITLE) or one_line(first_title.text() if first_title else "")
    told = _structured(tree)
    needs_script = _needs_script(tree)
    author = _first(meta, NAMES_OF_AUTHOR) or told.get("author", "")
    date = _day(_first(meta, NAMES_OF_DATE) or told.get("date", "") or _time(tree))
    paragraphs = _paragraphs(tree, with_unseen=False)
    if (length := _length(paragraphs)) < BARE:
        del tree
        whole = _paragraphs(_parsed(data, charset), with_unseen=True)
        if _length(whole) > SHOWN_LATER * length:
            paragraphs = whole
    if needs_script and _length(paragraphs) < BARE:
        raise MediaError("it shows its text only by JavaScript, which is not run")
    if not paragraphs.kept:
        raise MediaError("it has no text", Lack.EMPTY)
    return Document(
        kind="page",
        title=title,
        author=author,
        date=date,
        paragraphs=tuple(paragraphs.kept),
        is_cut=paragraphs.is_full,
    )


def read_chapter(data: bytes, paragraphs: Paragraphs) -> None:
    """Add all the text of a book's chapter. Raises MediaError if it is nested too deeply."""
    tree = _parsed(data, "")
    _leave_out(tree, with_unseen=False)
    if tree.body is not None:
        for line in _lines(_outline(tree.body)):
            paragraphs.add(line)


def _parsed(data: bytes, charset: str) -> Any:
    return import_module("selectolax.lexbor").LexborHTMLParser(as_text(data, charset))


def _paragraphs(tree: Any, *, with_unseen: bool) -> Paragraphs:
    _leave_out(tree, with_unseen=with_unseen)
    paragraphs = Paragraphs()
    if tree.body is not None:
        for line in _lines(_main_part(_outline(tree.body))):
            paragraphs.add(line)
    return paragraphs


def _leave_out(tree: Any, *, with_unseen: bool) -> None:
    """Remove what is not text of the page, and what people do not see."""
    for node in tree.css(LEFT_OUT):
        node.decompose()
    for node in () if with_unseen else tree.css("[style]"):
        if UNSEEN.search(REMARK.sub("", node.attributes.get("style") or "").lower()):
            node.decompose()


def _length(paragraphs: Paragraphs) -> int:
    return sum(map(len, paragraphs.kept))


# --- metadata -------------------------------------------------------------------------------------


def _first(meta: dict[str, str], names: tuple[str, ...]) -> str:
    return next((meta[name] for name in names if meta.get(name)), "")


def _day(text: str) -> str:
    found = DAY.search(text)
    if found is None:
        return ""
    year, month, day = re.findall(r"\d+", found[0])
    return f"{year}-{int(month):02}-{int(day):02}"


def _time(tree: Any) -> str:
    node = tree.css_first("time[datetime]")
    return one_line(node.attributes.get("datetime")) if node else ""


def _structured(tree: Any) -> dict[str, str]:
    """Author and date from the page's JSON-LD."""
    found: dict[str, str] = {}
    for script in tree.css("script[type='application/ld+json']")[:5]:
        try:
            told = json.loads(script.text()[:100_000])
        except (ValueError, RecursionError):
            continue
        for item in told if isinstance(told, list) else [told]:
            if isinstance(item, dict):
                author = item.get("author")
                author = author[0] if isinstance(author, list) and author else author
                name = author.get("name") if isinstance(author, dict) else author
                found.setdefault("author", one_line(name))
                found.setdefault("date", one_line(item.get("datePublished")))
    return found


def _needs_script(tree: Any) -> bool:
    """Whether the page says, or its content shows, that it needs JavaScript."""
    said = " ".join(node.text()[:500] for node in tree.css("noscript")[:10])
    is_root = tree.css_first("#root, #app, #__next, #__nuxt, app-root") is not None
    return bool(NEEDS_SCRIPT.search(said)) or (is_root and bool(tree.css("script[src]")))


# --- text -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Line:
    """A block's own text, and the indexes of the blocks around it."""

    tag: str
    within: tuple[int, ...]
    text: list[str] = field(default_factory=list)
    linked: int = 0

    def words(self) -> str:
        joined = "".join(self.text)
        if self.tag == "pre":
            return "\n".join(map(seen, joined.strip("\n").splitlines()))
        lines = (" ".join(seen(line).split()) for line in joined.split("\n\0"))
        return "\n".join(filter(None, lines))


def _outline(body: Any) -> list[_Line]:
    """The blocks of a page that have text of their own, in order. Not recursive, because pages may
    nest to any depth. Raises MediaError if the page is too large or too deep.
    """
    lines: list[_Line] = []
    blocks: list[tuple[int, str]] = [(0, "body")]  # open blocks: index and tag
    line = _Line("body", (0,))
    links, number, depth, node = 0, 0, 0, body.child
    while node is not None:
        number += 1
        if number > MOST_NODES or depth > DEEPEST:
            raise MediaError("it is nested too deeply or has too many parts")
        tag = node.tag
        if tag == "-text":
            text = node.text_content or ""
            if links:
                line.linked += len(text.strip())
            line.text.append(text if line.tag == "pre" else re.sub(r"\s+", " ", text))
        elif tag == "br":
            line.text.append("\n" if line.tag == "pre" else "\n\0")
        elif tag in BLOCKS:
            lines.append(line)
            blocks.append((number, tag))
            line = _Line(tag, tuple(place for place, _ in blocks[-6:]))
        elif tag == "a":
            links += 1
        if node.child is not None and not tag.startswith("-"):
            node, depth = node.child, depth + 1
            continue
        while node is not None:
            if node.tag == "a":
                links -= 1
            elif node.tag in BLOCKS and len(blocks) > 1:
                lines.append(line)
                blocks.pop()
                line = _Line(blocks[-1][1], tuple(place for place, _ in blocks[-6:]))
            if node.next is not None:
                node = node.next
                break
            node, depth = node.parent, depth - 1
            if node is None or depth < 0 or node.tag == "body":
                node = None
    lines.append(line)
    return [one for one in lines if one.words()]


def _lines(lines: list[_Line]) -> Iterator[str]:
    """The paragraphs, with headings marked and each table row as one line."""
    row: list[str] = []
    row_place = 0
    for line in lines:
        words = line.words()
        is_cell = line.tag in CELLS and len(line.within) > 1
        if row and not (is_cell and line.within[-2] == row_place):
            yield " | ".join(row)
            row = []
        if is_cell:
            row.append(words.replace("\n", " "))
            row_place = line.within[-2]
            continue
        yield f"{HEADINGS.get(line.tag, '- ' if line.tag == 'li' else '')}{words}"
    if row:
        yield " | ".join(row)


def _main_part(outline: list[_Line]) -> list[_Line]:
    """The lines of the block that holds most prose, if that is enough of the page's; else all lines
    but lists of links.
    """
    scores: dict[int, float] = {}
    prose = 0
    for line in outline:
        length = len(line.words()) - line.linked
        if line.tag in HEADINGS or length < SHORTEST_PARAGRAPH:
            continue
        prose += length
        for distance, place in enumerate(reversed(line.within[:-1] or line.within)):
            scores[place] = scores.get(place, 0.0) + length / (1 + distance)
    kept = [line for line in outline if not _is_list_of_links(line)]
    if not scores:
        return kept
    best = max(scores, key=lambda place: scores[place])
    first = next(n for n, line in enumerate(outline) if best in line.within)
    last = next(n for n in reversed(range(len(outline))) if best in outline[n].within)
    part = [line for line in outline[first : last + 1] if not _is_list_of_links(line)]
    held = sum(len(line.words()) - line.linked for line in part)
    if held < ENOUGH * prose:
        return kept
    own = any(line.tag == "h1" for line in part)
    return part if own else [*[line for line in kept if line.tag == "h1"][:1], *part]


def _is_list_of_links(line: _Line) -> bool:
    words = len(line.words())
    return line.tag not in HEADINGS and line.linked > LINKED * words and words < 200
