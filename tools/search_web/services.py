"""The search services, one row each: how to ask, where the results are in an answer, and what an
error means.

Sources: docs.searxng.org/dev/search_api, docs.tavily.com/api-reference/endpoint/search,
open.bochaai.com (web-search), api-dashboard.search.brave.com/api-reference/web/search/get,
docs.bigmodel.cn/api-reference (web_search, api-code). DuckDuckGo has no API for searches: its page
for browsers without scripts is read as the engine of searx and the package ddgs read it, who know
its challenge, too (status 202, `anomaly-modal`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from bot.core.language import CATALOGUE, Phrase
from bot.core.ports import WebResponse

Recent: TypeAlias = Literal["", "day", "week", "month", "year"]

LONGEST_TITLE: Final = 120
LONGEST_TEXT: Final = 200
LONGEST_URL: Final = 500
LONGEST_REASON: Final = 120  # characters of a service's error message

KEY_REFUSED: Final = Phrase("{name} 不认这个 SEARCH_KEY", "{name} refuses SEARCH_KEY")
USED_UP: Final = Phrase("{name} 的额度或余额用完了", "the quota or balance at {name} is used up")
TOO_MANY: Final = Phrase(
    "{name} 说请求太频繁，过一会儿再试", "{name} takes no more searches for the moment"
)
NOT_ANSWERED: Final = Phrase("{name} 不回答这样的问题", "{name} does not answer such a query")
CHALLENGED: Final = Phrase(
    "{name} 暂时不让程序搜索；用有密钥的服务就不会这样",
    "{name} lets no program search for the moment; a service with a key does not do that",
)
NO_JSON: Final = Phrase(
    "{name} 不返回 JSON：在它的 settings.yml 的 search.formats 里加上 json",
    "{name} does not answer in JSON: add json to search.formats in its settings.yml",
)
CATALOGUE.register(__name__, globals())

FOR_NOW: Final = 60.0  # seconds without requests after TOO_MANY,
FOR_LONG: Final = 600.0  # and after an error that the operator must fix


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What to search for; `site` is a host, empty for the whole web."""

    words: str
    count: int
    recent: Recent = ""
    site: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """One result. Each field is a single line; `date` is as the service writes it, often empty."""

    title: str
    url: str
    text: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """The parameters of a GET; or the JSON of a POST, if that is set."""

    params: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The meaning of an error's status or code; for `rest` seconds the service is not asked."""

    meaning: Phrase
    rest: float


REFUSED: Final = Refusal(KEY_REFUSED, FOR_LONG)
SPENT: Final = Refusal(USED_UP, FOR_LONG)
BUSY: Final = Refusal(TOO_MANY, FOR_NOW)
UNWANTED: Final = Refusal(NOT_ANSWERED, 0.0)
USUAL: Final[Mapping[str, Refusal]] = {
    "401": REFUSED,
    "402": SPENT,
    "403": REFUSED,
    "429": BUSY,
}
"""Their meanings, unless a service's row differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchService:
    """A service. An account belongs to it if the URL's host ends with one of `hosts`, or if `key`
    matches the key. `base` and `path` form its address; `header` and `scheme` carry the key.

    `results` is the path to the list in an answer. `title`, `url`, `text` and `date` are field
    names of a result; the first present one is used. A service that omits an empty list repeats the
    query at `echo`. `code` and `reason` are the paths to an error's code and message; the code is
    looked up before the status. A 200 response whose code is not in `fine` is an error, too.
    `parse` makes the object that these paths lead into, and raises ValueError; `accept` is the
    media type it reads.
    """

    kind: str
    name: str
    base: str
    path: str
    ask: Callable[[SearchQuery], Asking]
    results: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    key: re.Pattern[str] | None = None
    needs_key: bool = True
    header: str = "Authorization"
    scheme: str = "Bearer "
    title: tuple[str, ...] = ("title",)
    url: tuple[str, ...] = ("url",)
    text: tuple[str, ...] = ("content",)
    date: tuple[str, ...] = ()
    echo: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    fine: frozenset[str] = frozenset({"", "200"})
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    parse: Callable[[WebResponse], Any] = WebResponse.json
    accept: str = "application/json"

    @property
    def is_open(self) -> bool:
        """Whether it searches for anybody: without a key, and without an address of one's own."""
        return bool(self.base) and not self.needs_key

    def refusal(self, response: WebResponse) -> tuple[Refusal | None, str] | None:
        """The meaning of an error response and the service's message; None for a response with
        results. The meaning is None if no row explains the error.
        """
        try:
            body = self.parse(response)
        except ValueError:
            body = None
        code = _line(_at(body, self.code), LONGEST_REASON) if self.code else ""
        if response.status == 200 and code in self.fine:
            return None
        known = {**USUAL, **self.refusals}
        meaning = known.get(code) or known.get(str(response.status))
        words = _line(_at(body, self.reason), LONGEST_REASON) if self.reason else ""
        return meaning, words

    def read(self, response: WebResponse) -> tuple[Found, ...]:
        """The results in a response, without duplicate URLs. Raises ValueError if it has another
        schema.
        """
        body = self.parse(response)
        rows = _at(body, self.results)
        if rows is None and self.echo and isinstance(_at(body, self.echo), dict):
            rows = []
        if not isinstance(rows, list):
            where = ".".join(self.results)
            raise ValueError(f"no list at {where}")  # noqa: TRY004  # as `json` raises
        found = {one.url: one for one in self._each(rows)}
        return tuple(found.values())

    def _each(self, rows: list[Any]) -> Iterator[Found]:
        for row in rows:
            url = _first(row, self.url)  # as it is: `&copy=1` in it is no sign
            if isinstance(url, str) and is_web_url(url := url.strip()):
                yield Found(
                    _line(_first(row, self.title), LONGEST_TITLE) or url,
                    url,
                    _line(_first(row, self.text), LONGEST_TEXT),
                    _day(_first(row, self.date)),
                )


def is_web_url(url: str) -> bool:
    """Whether the text is an HTTP URL of reasonable length, without blanks, invisible characters or
    a user name.
    """
    if len(url) > LONGEST_URL or not url.isprintable() or any(map(str.isspace, url)):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc


# --- the rows -------------------------------------------------------------------------------------


def _ask_searxng(query: SearchQuery) -> Asking:
    params = {"q": _with_site(query), "format": "json", "safesearch": "1"}
    return Asking(params | ({"time_range": query.recent} if query.recent else {}))


def _ask_tavily(query: SearchQuery) -> Asking:
    body: dict[str, Any] = {"query": query.words, "max_results": query.count}
    if query.recent:
        body["time_range"] = query.recent
    if query.site:
        body["include_domains"] = [query.site]
    return Asking(json=body)


CAMEL = {"": "noLimit", "day": "oneDay", "week": "oneWeek", "month": "oneMonth", "year": "oneYear"}


def _ask_bocha(query: SearchQuery) -> Asking:
    body: dict[str, Any] = {"query": query.words, "count": query.count, "summary": True}
    body["freshness"] = CAMEL[query.recent]
    if query.site:
        body["include"] = query.site
    return Asking(json=body)


def _ask_brave(query: SearchQuery) -> Asking:
    params = {
        "q": _with_site(query),
        "count": str(query.count),
        "result_filter": "web",
        "text_decorations": "false",
    }
    if _is_chinese(query):
        params["search_lang"] = "zh-hans"
    return Asking(params | ({"freshness": f"p{query.recent[0]}"} if query.recent else {}))


LONGEST_ZHIPU = 70  # characters of a query


def _ask_zhipu(query: SearchQuery) -> Asking:
    body: dict[str, Any] = {
        "search_query": query.words[:LONGEST_ZHIPU],
        "search_engine": "search_std",
        "search_intent": False,
        "count": query.count,
        "search_recency_filter": CAMEL[query.recent],
        "content_size": "medium",
    }
    if query.site:
        body["search_domain_filter"] = query.site
    return Asking(json=body)


def _ask_duckduckgo(query: SearchQuery) -> Asking:
    params = {"q": _with_site(query), "kp": "1"}  # safe search
    if _is_chinese(query):
        params["kl"] = "cn-zh"
    return Asking(params | ({"df": query.recent[0]} if query.recent else {}))


# Compiled by the first search, not at the start; their time grows with the page and no faster.
ELEMENT: Final = r"<(?:div|a)\s([^<>]*)>"
ATTRIBUTE: Final = r'(?<![\w-])(class|href)="([^"]*)"'
CHALLENGE: Final = ('<form id="challenge-form"', '<div class="anomaly-modal')
ADVERTISEMENT, NO_RESULT = "result--ad", "result--no-result"
LONGEST_LINK: Final = 5000  # characters between `<a>` and `</a>`


def _parse_duckduckgo(response: WebResponse) -> dict[str, Any]:
    """The page as other services would put it; `code` says that it wants to see a person."""
    page = response.body.decode("utf-8", "replace")
    if any(mark in page for mark in CHALLENGE):
        return {"code": "challenge"}
    blocks = list[tuple[set[str], dict[str, str]]]()  # the classes of a result, and what it says
    for element in re.finditer(ELEMENT, page):
        told = dict(re.findall(ATTRIBUTE, element[1]))
        classes = set(told.get("class", "").split())
        if "result" in classes:
            blocks.append((classes, {}))
        elif "result__a" in classes and blocks and "url" not in blocks[-1][1]:
            blocks[-1][1].update(url=_target(told.get("href", "")), title=_inside(page, element))
        elif "result__snippet" in classes and blocks:
            blocks[-1][1].setdefault("content", _inside(page, element))
    if not blocks:
        raise ValueError("no results in the page")
    if not any("url" in says or NO_RESULT in classes for classes, says in blocks):
        raise ValueError("no links in the results")
    return {"results": [says for classes, says in blocks if ADVERTISEMENT not in classes]}


def _inside(page: str, link: re.Match[str]) -> str:
    """What is in this link; empty if it does not end soon."""
    end = page.find("</a>", link.end(), link.end() + LONGEST_LINK)
    return page[link.end() : max(end, link.end())]


def _target(href: str) -> str:
    """The page that a result leads to, by way of DuckDuckGo or not; empty for an advertisement."""
    url = html.unescape(href)
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.hostname != "duckduckgo.com" or parts.path not in {"/l/", "/y.js"}:
        return url
    return parse_qs(parts.query).get("uddg", [""])[0]


def _is_chinese(query: SearchQuery) -> bool:
    return any("\u3400" <= char <= "\u9fff" for char in query.words)


def _with_site(query: SearchQuery) -> str:
    return f"site:{query.site} {query.words}" if query.site else query.words


SERVICES: Final = (
    SearchService(
        kind="tavily",
        name="Tavily",
        hosts=("tavily.com",),
        key=re.compile(r"tvly-\S+"),
        base="https://api.tavily.com",
        path="/search",
        ask=_ask_tavily,
        results=("results",),
        date=("published_date",),
        reason=("detail", "error"),
        # 432: the limit of the plan or the key; 433: that of pay-as-you-go
        refusals={"432": SPENT, "433": SPENT},
    ),
    SearchService(
        kind="bocha",
        name="博查 Bocha",
        hosts=("bochaai.com", "bocha.cn"),
        key=re.compile(r"sk-[0-9a-f]{32}"),
        base="https://api.bochaai.com/v1",
        path="/web-search",
        ask=_ask_bocha,
        results=("data", "webPages", "value"),
        echo=("data", "queryContext"),
        title=("name",),
        text=("summary", "snippet"),
        date=("datePublished",),
        code=("code",),
        reason=("message",),
        refusals={"403": SPENT},
    ),
    SearchService(
        kind="brave",
        name="Brave Search",
        hosts=("brave.com",),
        key=re.compile(r"BSA[\w-]{20,}"),
        base="https://api.search.brave.com/res/v1",
        path="/web/search",
        header="X-Subscription-Token",
        scheme="",
        ask=_ask_brave,
        results=("web", "results"),
        echo=("query",),
        text=("description",),
        date=("page_age",),
        code=("error", "code"),
        reason=("error", "detail"),
        refusals={
            "SUBSCRIPTION_TOKEN_INVALID": REFUSED,
            "SUBSCRIPTION_NOT_FOUND": REFUSED,
            "QUOTA_LIMITED": SPENT,
            "USAGE_LIMIT_EXCEEDED": SPENT,
            "RATE_LIMITED": BUSY,
        },
    ),
    SearchService(
        kind="zhipu",
        name="智谱 Zhipu",
        hosts=("bigmodel.cn", "z.ai"),
        key=re.compile(r"[0-9a-f]{32}\.[A-Za-z0-9]{16}"),
        base="https://open.bigmodel.cn/api/paas/v4",
        path="/web_search",
        ask=_ask_zhipu,
        results=("search_result",),
        url=("link",),
        date=("publish_date",),
        code=("error", "code"),
        reason=("error", "message"),
        refusals={
            **{str(code): REFUSED for code in (1000, 1001, 1002, 1003, 1004, 1110, 1111, 1112)},
            **{str(code): SPENT for code in (1113, 1304, 1308, 1309, 1310)},
            **{str(code): BUSY for code in (1302, 1303, 1305, 1312)},
            "1301": UNWANTED,
        },
    ),
    SearchService(
        kind="ddgs",
        name="DuckDuckGo",
        hosts=("duckduckgo.com",),
        base="https://html.duckduckgo.com",
        path="/html/",
        needs_key=False,
        accept="text/html",
        ask=_ask_duckduckgo,
        parse=_parse_duckduckgo,
        results=("results",),
        code=("code",),
        fine=frozenset({""}),
        refusals=dict.fromkeys(("challenge", "202", "403", "418"), Refusal(CHALLENGED, FOR_LONG)),
    ),
    SearchService(
        kind="searxng",
        name="SearXNG",
        base="",
        path="/search",
        needs_key=False,
        ask=_ask_searxng,
        results=("results",),
        date=("publishedDate",),
        refusals={"403": Refusal(NO_JSON, FOR_LONG)},
    ),
)
"""In the order of matching: the first one that fits wins."""


def service_of(*, kind: str, url: str, key: str) -> SearchService | None:
    """The service of an account: the one that `kind` names, else by the URL, else by the key's
    shape. Any other URL is a SearXNG. None if nothing fits.
    """
    host = (urlsplit(url).hostname or "") if url else ""
    for row in SERVICES:
        if kind:
            is_it = row.kind == kind
        elif url:
            is_it = not row.hosts or any(f".{host}".endswith(f".{own}") for own in row.hosts)
        else:
            is_it = row.key is not None and row.key.fullmatch(key) is not None
        if is_it:
            return row
    return None


# --- reading --------------------------------------------------------------------------------------

TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(body, dict):
            return None
        body = body.get(name)
    return body


def _first(row: Any, names: tuple[str, ...]) -> Any:
    values = (row.get(name) for name in names) if isinstance(row, dict) else ()
    return next((value for value in values if value), "")


def _line(value: Any, longest: int) -> str:
    """A value as one line of text, without tags and invisible characters."""
    if not isinstance(value, (str, int, float)):
        return ""
    text = html.unescape(TAG.sub("", str(value)[: 10 * longest + 200]))
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:longest]


def _day(value: Any) -> str:
    """The day of an ISO 8601 date; other text is cut at 30 characters."""
    text = _line(value, 30)
    found = DAY.match(text)
    return found[0] if found else text
