"""Every page of a real service in Chinese: no English is left on it but names."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from jinja2 import Template
from yarl import URL

from adapters.console import rendering
from adapters.simulator.server import Simulator
from bot.core.journal import Audited, RequestMade
from frostagent.clock import SystemClock
from frostagent.testing.scripted_model import call
from frostagent.types.errors import ModelAuth
from tests.system.console.pictures import GAMES, HONG, MING, QIANG, STUDY, Scripted, Turn, play, serving, town

EVENING = (
    Turn(STUDY, MING, "有人知道明天第一节是什么课吗"),
    Turn(STUDY, HONG, "@bot 明天第一节在哪上？", ((0.6, call("timetable", day="周二")), (0.5, "在 301。"))),
    Turn(STUDY, HONG, "@bot 后天呢？", ((0.6, call("timetable", day=["错"])), (0.5, "后天没有课。"))),
    Turn(STUDY, MING, "@bot 不说了", ((0.1, call("stay_silent")),)),
    Turn(GAMES, QIANG, "@bot 今晚几点开黑？", ((0.4, ModelAuth("密钥不对")),)),
    Turn(STUDY, HONG, "@bot 帮我们订自习室", ((0.5, call("book_room", room="自习室", hour=15)),)),
)
DONE = [
    ("doctor", "", "3 of 10 to mend"),
    ("doctor", "", "not finished"),
    ("try out", "real model", "often"),
    ("tried", "2 requests, 1031 tokens", "$0.0000 + ?"),
    ("call tool", "timetable", "TOOL_TIMEOUT"),
    ("call tool", "timetable", "refused: effects"),
    ("persona apply", "usual", "ok"),
    ("end all logins", "3", "ok"),
    ("allow", "10001:A3", "no code"),
    ("forget", "10001:group:42420", "failed"),
]
OUR_OWN = {"base", "job", "rows", "waiting"}  # parts of the others
NAMES = re.compile(
    r"""\{".*\}|\{(?:name|group)\}|auth:                # arguments of a call; of a template; a failure, as it was said
    |FrostAgent|English|QQ|OneBot|Onebot|NapCat|Coder|WebP|Lines|Enter|MiB|Frost|Ember|Tutor|user\d|@?bot\b
    |[Tt]oken|worker|BOT_ACCEPT=ask|[A-Z][A-Z_0-9]+\b                     # what whoever runs a bot calls it; settings
    |\d+:(?:group|private):\d+|/me\b|\.env\b|(?:/[\w.-]+){2,}\S*|deepseek-chat|offline-demo@\S+|\bHost\b|编号\ \w{8}
    |default|[a-z]+\.(?:zh|en)\b|[a-z]+(?:_[a-z]+)+              # keys of personas; tools
    |\b(?:look|memory|remind|subscribe|timetable)\b
    |http://127\.0\.0\.1:\d+|\b(?:metric|imperial|true|false)\b
    |(?:timeout|lost|muted|slow\ \d|offline|online|mute|lift|off)(?=：)          # what a simulator's terminal takes
    """,
    re.VERBOSE,
)
ENGLISH = re.compile(r"[A-Za-z]{2,}|\d [a-z]\b")
LINK = re.compile(r'href="(/[^"#]*)"')
NOT_PAGES = re.compile(r"^/static/|/(?:json|file|csv)(?:\?|$)")


RAW = {"code", "pre", "script", "template", "textarea"}  # what is typed, said by a model, or no text
EMPTY = {"br", "img", "input", "link", "meta", "path", "rect"}


class Words(HTMLParser):
    """What a page says: its texts and what is read aloud; not what is code, or a model's or a tool's own words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.told: list[str] = []
        self._skipped: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if self._skipped or tag in RAW or "about" in (given.get("class") or "").split():
            self._skipped += [tag] if tag not in EMPTY else []
        self.told += [value for name in ("aria-label", "title", "alt", "placeholder") if (value := given.get(name))]

    def handle_endtag(self, tag: str) -> None:
        if self._skipped and self._skipped[-1] == tag:
            self._skipped.pop()

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.told.append(data)


async def test_every_page_in_chinese_says_nothing_in_english_but_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, left, render = set[str](), set[tuple[str, str]](), Template.render

    def noting(self: Template, **more: Any) -> str:
        shown.add((self.name or "").removesuffix(".html"))
        return render(self, **more)

    monkeypatch.setattr(Template, "render", noting)
    model = Scripted(0.0)
    async with Simulator(town()) as simulator, serving(tmp_path, simulator, model) as service:
        await play(service, simulator, model, EVENING)
        journal = service.app.journal
        now = SystemClock().now()  # what is old is deleted a minute after the start
        done = [
            Audited(at=now + n, login="", address="", action=a, object=o, outcome=e) for n, (a, o, e) in enumerate(DONE)
        ]
        service.app.store.put(*done, RequestMade(turn_id="t", model="m", outcome="timeout", seconds=400.0, at=now))
        await journal.commit()
        assert service.console_link is not None
        page, _, code = service.console_link().partition("#")
        root, jar = page.removesuffix("/login"), aiohttp.CookieJar(unsafe=True)
        headers = {"Sec-Fetch-Site": "same-origin", "Accept-Language": "zh-CN", "Accept": "text/html"}
        async with aiohttp.ClientSession(cookie_jar=jar, headers=headers) as session:

            async def look(path: str, method: str = "GET", **more: Any) -> str:
                url = URL(root + path, encoded=True)
                async with session.request(method, url, **more) as answer:
                    text = await answer.text()
                words = [NAMES.sub("", one) for one in Words(text).told]
                left.update((path, one.strip()) for one in words if ENGLISH.search(one))
                return text

            await look("/login")
            await look("/login", headers={"Host": "elsewhere.example"})
            answer = await session.post(page, data={"code": code}, allow_redirects=False)
            jar.update_cookies({name: one.value for name, one in answer.cookies.items()}, URL(root))
            form = (await look("/access")).partition('name="form" value="')[2].partition('"')[0]
            await look("/pause", "POST", data={"form": form, "where": "nowhere"})
            await look("/try?new=1")
            await look("/try/open", "POST", data={"form": form, "model": "demo"})
            for line in ("你好", "发张图", "别说话"):
                await look("/try", "POST", data={"form": form, "as": "user1", "text": line, "call": "1"})
            await look("/try", "POST", data={"form": form, "as": "user2", "text": "吃了吗"})
            seen, to_see = set[str](), ["/", "/none", "/turns/none"]
            while to_see:
                if (path := to_see.pop()) in seen or NOT_PAGES.search(path):
                    continue
                seen.add(path)
                to_see += LINK.findall((await look(path)).replace("&amp;", "&"))
    templates = {one.stem for one in (Path(rendering.__file__).parent / "templates").glob("*.html")}
    assert shown == templates - OUR_OWN
    assert not left, "\n".join(map(str, sorted(left)))
