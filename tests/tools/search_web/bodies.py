"""What each service answers, of our own making: found, nothing, refused, and another schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

Json = dict[str, Any]

TITLE, URL, TEXT = "霜降是第几个节气", "https://almanac.example/shuangjiang", "霜降是二十四节气中的第十八个。"
SECOND = "https://almanac.example/solar-terms"
KEYS: Mapping[str, str] = {
    "tavily": "tvly-dev-0000000000000000",
    "bocha": "sk-" + "0123456789abcdef" * 2,
    "brave": "BSAaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "zhipu": "0123456789abcdef" * 2 + ".AbCdEfGhIjKlMnOp",
    "searxng": "",
    "ddgs": "",
}
HOSTS: Mapping[str, str] = {
    "tavily": "api.tavily.com",
    "bocha": "api.bochaai.com",
    "brave": "api.search.brave.com",
    "zhipu": "open.bigmodel.cn",
    "searxng": "searx.example",
    "ddgs": "html.duckduckgo.com",
}
PATHS: Mapping[str, str] = {
    "tavily": "/search",
    "bocha": "/v1/web-search",
    "brave": "/res/v1/web/search",
    "zhipu": "/api/paas/v4/web_search",
    "searxng": "/search",
    "ddgs": "/html/",
}


def path_of(kind: str) -> str:
    return f"/{HOSTS[kind]}{PATHS[kind]}"


def found(kind: str, *rows: tuple[str, str, str, str]) -> Any:
    """An answer with these results: title, url, text, date. DuckDuckGo tells no dates."""
    rows = rows or ((TITLE, URL, TEXT, "2026-10-23T08:00:00+08:00"), ("节气", SECOND, "", ""))
    match kind:
        case "tavily":
            results = [{"title": t, "url": u, "content": c, "score": 0.9, "published_date": d} for t, u, c, d in rows]
            return {"query": "霜降", "answer": None, "images": [], "results": results, "response_time": "0.8"}
        case "bocha":
            value = [{"id": u, "name": t, "url": u, "snippet": c, "datePublished": d} for t, u, c, d in rows]
            data = {"_type": "SearchResponse", "queryContext": {"originalQuery": "霜降"}, "webPages": {"value": value}}
            return {"code": 200, "log_id": "a1", "msg": None, "data": data}
        case "brave":
            results = [{"type": "search_result", "title": t, "url": u, "description": c, "page_age": d, "age": "x"}
                       for t, u, c, d in rows]  # fmt: skip
            return {"type": "search", "query": {"original": "霜降"}, "web": {"type": "search", "results": results}}
        case "zhipu":
            results = [{"title": t, "link": u, "content": c, "publish_date": d, "media": "历书", "refer": "ref_1"}
                       for t, u, c, d in rows]  # fmt: skip
            return {"id": "1", "created": 1, "search_intent": [], "search_result": results}
        case "ddgs":
            return duckduckgo(*(duckduckgo_result(t, u, c) for t, u, c, _ in rows))
        case _:
            results = [{"title": t, "url": u, "content": c, "publishedDate": d or None, "engine": "x", "score": 1.0}
                       for t, u, c, d in rows]  # fmt: skip
            return {"query": "霜降", "number_of_results": 0, "results": results, "unresponsive_engines": []}


def duckduckgo(*blocks: str) -> str:
    """Its page for browsers without scripts."""
    head = '<html><head><title>x at DuckDuckGo</title></head><body><div class="serp__results">'
    return f'{head}<div id="links" class="results">{"".join(blocks)}</div></div></body></html>'


def duckduckgo_result(title: str, url: str, text: str, *, more: str = "results_links_deep web-result") -> str:
    """A result that leads there by way of DuckDuckGo, as most do."""
    href = f"//duckduckgo.com/l/?uddg={quote(url, safe='')}&amp;rut=a1b2c3"
    snippet = f'<a class="result__snippet" href="{href}">{text}</a>' if text else ""
    return (
        f'<div class="result results_links {more} "><div class="links_main links_deep result__body">'
        f'<h2 class="result__title"><a rel="nofollow" class="result__a" href="{href}">{title}</a></h2>'
        f'<div class="result__extras"><a class="result__url" href="{href}"> somewhere </a></div>{snippet}</div></div>'
    )


NO_RESULT = (
    '<div class="result results_links results_links_deep result--no-result"><div class="no-results">No results.</div>'
)
CHALLENGE = (
    '<html><body><form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html" method="POST">'
    '<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></form></body></html>'
)

NOTHING: Mapping[str, Any] = {
    "tavily": {"query": "x", "results": [], "response_time": "0.2"},
    "bocha": {"code": 200, "log_id": "a", "msg": None, "data": {"_type": "SearchResponse", "queryContext": {}}},
    "brave": {"type": "search", "query": {"original": "x"}, "mixed": {"main": []}},
    "zhipu": {"id": "1", "created": 1, "search_result": []},
    "searxng": {"query": "x", "results": [], "unresponsive_engines": [["google", "timeout"]]},
    "ddgs": duckduckgo(NO_RESULT),
}

REFUSALS: tuple[tuple[str, int, Any, str], ...] = (
    ("tavily", 401, {"detail": {"error": "Unauthorized: missing or invalid API key."}}, "Tavily refuses SEARCH_KEY"),
    ("tavily", 429, {"detail": {"error": "Request blocked."}}, "Tavily takes no more searches"),
    ("tavily", 432, {"detail": {"error": "exceeds your plan"}}, "the quota or balance at Tavily is used up"),
    ("tavily", 433, {"detail": {"error": "pay limit"}}, "the quota or balance at Tavily is used up"),
    ("bocha", 401, {"code": "401", "message": "Invalid API KEY"}, "博查 Bocha refuses SEARCH_KEY"),
    ("bocha", 403, {"code": "403", "message": "You do not have enough money"}, "balance at 博查 Bocha is used up"),
    ("bocha", 200, {"code": 403, "message": "余额不足"}, "balance at 博查 Bocha is used up: 余额不足"),
    ("bocha", 429, {"code": "429", "message": "the request limit"}, "Bocha takes no more searches"),
    ("brave", 422, {"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "no"}},
     "Brave Search refuses SEARCH_KEY"),
    ("brave", 429, {"type": "ErrorResponse", "error": {"code": "RATE_LIMITED", "detail": "slow"}},
     "Brave Search takes no more searches"),
    ("brave", 402, {"error": {"code": "USAGE_LIMIT_EXCEEDED", "detail": "limit"}}, "Brave Search is used up"),
    ("brave", 422, {"error": {"code": "VALIDATION", "detail": "Unable to validate"}},
     "Brave Search answered 422: Unable to validate"),
    ("zhipu", 401, {"error": {"code": "1002", "message": "Token 非法"}}, "智谱 Zhipu refuses SEARCH_KEY"),
    ("zhipu", 429, {"error": {"code": "1113", "message": "账户已欠费"}}, "智谱 Zhipu is used up: 账户已欠费"),
    ("zhipu", 429, {"error": {"code": "1302", "message": "并发数过高"}}, "智谱 Zhipu takes no more searches"),
    ("zhipu", 400, {"error": {"code": "1301", "message": "敏感内容"}}, "智谱 Zhipu does not answer such a query"),
    ("searxng", 403, "<h1>Forbidden</h1>", "add json to search.formats in its settings.yml"),
    ("searxng", 429, "Too Many Requests", "SearXNG takes no more searches"),
    ("searxng", 500, "Internal Server Error", "SearXNG answered 500"),
    ("ddgs", 202, CHALLENGE, "DuckDuckGo lets no program search for the moment"),
    ("ddgs", 200, CHALLENGE, "DuckDuckGo lets no program search for the moment"),
    ("ddgs", 202, "", "DuckDuckGo lets no program search for the moment"),
    ("ddgs", 403, "error", "DuckDuckGo lets no program search for the moment"),
    ("ddgs", 500, "oops", "DuckDuckGo answered 500"),
)  # fmt: skip

MALFORMED: tuple[Any, ...] = ("<html>not JSON</html>", [], {"other": "schema"}, {"results": "none"}, "[" * 3000)
