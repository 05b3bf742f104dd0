"""Every page in a real Chromium: both languages and themes, a phone and a desk."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest

from adapters.console import rendering
from tests.adapters.console.visiting import Place, visiting
from tests.system.console.sights import SILENT, WORDS, bare, logged_in, pages

pytestmark = pytest.mark.asyncio(loop_scope="session")

LANGUAGES = "zh-CN", "en"
THEMES: tuple[Literal["light", "dark"], ...] = "light", "dark"
PHONE, NARROW, DESK = 390, 360, 1280
STATIC = Path(rendering.__file__).parent / "static"
TOUCHED = "a[href], button, summary, select, textarea, input:not([type=hidden], [type=checkbox], [type=radio])"
SMALL = f"""
[...document.querySelectorAll("{TOUCHED}, label:has([type=checkbox], [type=radio])")]
  .filter(one => one.checkVisibility() && !(one.matches("a") && getComputedStyle(one).display === "inline"))
  .map(one => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
  .filter(([, box]) => box.right > 0 && (box.width < 43.9 || box.height < 43.9))
  .map(([html, box]) => `${{html}} ${{box.width}} x ${{box.height}}`)
"""
"""What a finger misses: boxes under 44 px. A link within a line of text is as high as its line."""
WIDE = "document.documentElement.scrollWidth > innerWidth"
RUNS = "document.querySelectorAll('script:not([type=module]), [onerror], script[src*=evil]').length"
AXE = (
    "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then("
    "all => all.violations.map(one => [one.id, one.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary)]))"
)

TAKEN = """
(all => [all.length, all.reduce((sum, one) => sum + one.transferSize, 0)])(
  [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .filter(one => !one.name.includes("/try/pictures/")))
"""
"""Requests of a page, and the bytes it took; what people sent in a simulated group is not of ours."""

PROBE = """
const ran = [];
globalThis.evil = () => ran.push("hostile words");
const attempts = {
  html: () => document.body.insertAdjacentHTML("beforeend", "<img src=x>"),
  eval: () => eval("1"),
  script: () => { const one = document.createElement("script"); one.text = "evil()"; document.body.append(one); },
  click: () => { const one = document.createElement("b"); one.setAttribute("onclick", "evil()"); one.click(); },
};
for (const [name, attempt] of Object.entries(attempts)) {
  try { attempt(); if (["html", "eval"].includes(name)) ran.push(name); } catch { /* as it should be */ }
}
addEventListener("load", () => { document.body.dataset.ran = ran.join(); });
"""
"""Within the page's own rules: what a driver evaluates is bound by none."""


def axe_of() -> str:
    """axe-core, as a script."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def _is_wrong(said: Any) -> bool:
    """Whether a page complained, but for that it is none, or cannot be shown now."""
    return said.type in {"error", "warning"} and not said.text.endswith(
        ("404 (Not Found)", "503 (Service Unavailable)")
    )


async def test_hostile_words_run_on_no_page_not_even_where_a_script_of_ours_would_let_them(
    browser: Any, place: Place
) -> None:
    own = (STATIC / "page.js").read_text("utf-8")
    context = await logged_in(browser, place)
    await context.route("**/page.js", lambda one: one.fulfill(body=own + PROBE, content_type="text/javascript"))
    page, wrong = await context.new_page(), list[Any]()
    for path in pages(place):
        answer = await page.goto(f"http://{place.host}{path}")
        ran = await page.locator("body[data-ran]").get_attribute("data-ran")
        if ran or answer.status != 200 or await page.evaluate(RUNS):
            wrong.append((path, answer.status, ran))
    await context.close()
    assert not wrong


async def test_nor_do_they_run_where_somebody_logs_in(browser: Any, place: Place) -> None:
    script = (STATIC / "login.js").read_text("utf-8")
    async with await browser.new_context() as context:
        await context.route("**/login.js", lambda one: one.fulfill(body=script + PROBE, content_type="text/javascript"))
        page = await context.new_page()
        for path in (f"/login?next={quote(WORDS)}", f"/{quote(WORDS)}"):
            await page.goto(f"http://{place.host}{path}")
            assert not await page.locator("body[data-ran]").get_attribute("data-ran")
            assert not await page.evaluate(RUNS)


class Eye:
    """Looks at pages of one language and width, each in the light and in the dark, and keeps what is wrong there."""

    def __init__(self, context: Any, host: str, width: int) -> None:
        self.context = context
        self.host = host
        self.width = width
        self.axe = axe_of()
        self.wrong: list[Any] = []

    async def look(self, *paths: str) -> None:
        page = await self.context.new_page()
        page.on("console", lambda one: self.wrong.append(one.text) if _is_wrong(one) else None)
        page.on("pageerror", lambda one: self.wrong.append(str(one)))
        for path in paths:
            await page.emulate_media(color_scheme="light")
            await page.goto(f"http://{self.host}{path}", wait_until="domcontentloaded")
            await self.see(page, path)
        await page.close()

    async def see(self, page: Any, name: str) -> None:
        """A page as it stands there."""
        if await page.evaluate(RUNS):
            self.wrong.append((name, "broke out"))
        await page.evaluate(self.axe)
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme)
            self.wrong += [(name, theme, *one) for one in await page.evaluate(AXE)]
            await self.fits(page, name)
        if self.width == PHONE:
            await page.set_viewport_size({"width": NARROW, "height": 780})
            await self.fits(page, name)
            await page.set_viewport_size({"width": PHONE, "height": 844})

    async def fits(self, page: Any, name: str) -> None:
        """Nothing is beside the window, nor smaller than a finger on a phone."""
        if await page.evaluate(WIDE):
            self.wrong.append((name, "too wide"))
        if self.width == PHONE:
            self.wrong += [(name, "small", one) for one in await page.evaluate(SMALL)]


@asynccontextmanager
async def eye(browser: Any, place: Place, language: str, width: int) -> AsyncIterator[Eye]:
    """An eye whose browser is logged in, and which has seen nothing wrong."""
    size = {"width": width, "height": 844 if width == PHONE else 800}
    async with await logged_in(browser, place, locale=language, viewport=size) as context:
        one = Eye(context, place.host, width)
        yield one
    assert not one.wrong, "\n".join(map(str, one.wrong))


PAIRS = (
    list(product(LANGUAGES, (PHONE, DESK)))
    if os.environ.get("CI")
    else list(zip(LANGUAGES, (PHONE, DESK), strict=True))
)
everywhere = pytest.mark.parametrize(("language", "width"), PAIRS)
"""Each language and each width, with both themes; CI tries all there are."""


@everywhere
async def test_every_page_fits_runs_nothing_foreign_and_is_for_everybody(
    browser: Any, place: Place, language: str, width: int
) -> None:
    async with eye(browser, place, language, width) as one:
        await one.look(*pages(place), "/none")


@everywhere
async def test_so_does_every_page_with_nothing_on_it_and_while_the_journal_is_away(
    browser: Any, language: str, width: int
) -> None:
    async with visiting() as place:
        await place.log_in()
        async with eye(browser, place, language, width) as one:
            place.journal.lines = None
            await one.look(*bare(place), SILENT, "/turns/t1")
            place.journal.lines = []
            await one.look(*bare(place))


@everywhere
async def test_so_does_the_page_where_one_logs_in_also_after_a_wrong_token_and_too_many(
    browser: Any, language: str, width: int
) -> None:
    async with visiting(totp="JBSWY3DPEHPK3PXP" * 2) as place:
        await place.ask("GET", "/login")  # the routes are loaded
        async with eye(browser, place, language, width) as one:
            await one.look("/login", f"/login?next={quote(WORDS)}", f"/{quote(WORDS)}")
            page = await one.context.new_page()
            for status in (403, 429):
                await page.goto(f"http://{place.host}/login")
                await page.locator("#token").fill(WORDS)
                await page.locator("#totp").fill("000000")
                async with page.expect_response("**/login") as answer:
                    await page.locator("#by-token button").click()
                assert (await answer.value).status == status
                await page.wait_for_load_state()  # the styles, too
                await page.locator("p.trouble").wait_for()
                await one.see(page, f"/login {status}")
                while await place.log_in("wrong") != 429:
                    pass  # nobody may try again


async def test_the_bars_and_the_page_begin_at_one_line_however_wide_the_window_is(browser: Any, place: Place) -> None:
    begins = """[...document.querySelectorAll(".brand, nav.pages a, h1, section.card")].map(one => {
      const box = one.getBoundingClientRect();
      const inner = one.tagName === "A" ? parseFloat(getComputedStyle(one).paddingLeft) : 0;
      return [one.tagName, Math.round(box.left + inner)];
    })"""
    async with await logged_in(browser, place, locale="en") as context:
        page = await context.new_page()
        for width in (720, DESK, 1900):
            await page.set_viewport_size({"width": width, "height": 800})
            await page.goto(f"http://{place.host}/approvals")
            found = await page.evaluate(begins)
            first = [at for tag, at in found[:2]] + [at for tag, at in found if tag != "A"]
            assert len(first) > 4
            assert max(first) - min(first) <= 1, (width, found)


async def test_a_page_is_of_less_than_sixty_kilobytes_and_twelve_requests(browser: Any, place: Place) -> None:
    async with await logged_in(browser, place) as context:
        page, taken = await context.new_page(), dict[str, list[int]]()
        chromium = await context.new_cdp_session(page)
        await chromium.send("Network.enable")
        await chromium.send("Network.setCacheDisabled", {"cacheDisabled": True})  # as somebody's first
        for path in pages(place):
            await page.goto(f"http://{place.host}{path}")
            taken[path] = await page.evaluate(TAKEN)
    assert min(size for _, size in taken.values()) > 20_000  # the styles are in it
    assert {path: one for path, one in taken.items() if one[0] >= 12 or one[1] >= 60_000} == {}


@pytest.mark.parametrize(("language", "theme", "size"), [("zh-CN", "light", (360, 780)), ("en", "dark", (1280, 800))])
async def test_what_a_tool_gave_and_the_doctor_said_are_words_and_nothing_else(
    browser: Any, place: Place, language: str, theme: str, size: tuple[int, int]
) -> None:
    axe = axe_of()
    async with await logged_in(
        browser, place, locale=language, color_scheme=theme, viewport={"width": size[0], "height": size[1]}
    ) as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/tools")
        await page.locator("main a.button").click()
        await page.locator("#a0").fill(WORDS)
        await page.locator("#a1").select_option(index=1)
        await page.locator("main button.main").click()
        assert await page.locator("pre.asked").text_content() == WORDS
        assert json.loads(place.called[-1][1]) == {WORDS: WORDS, "unit": WORDS}
        await page.wait_for_load_state()  # the styles, too
        assert not await page.evaluate(WIDE)
        assert not await page.evaluate(RUNS)
        await page.evaluate(axe)
        assert await page.evaluate(AXE) == []
        await page.goto(f"http://{place.host}/health")
        assert await page.locator("#doctor .findings li").count() == 3
