"""Every page in a real Chromium: both languages and themes, a phone and a desk."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from adapters.console import statics
from tests.adapters.console.visiting import Place
from tests.e2e.console.sights import WORDS, logged_in, pages

pytestmark = pytest.mark.asyncio(loop_scope="session")

STATIC = Path(statics.__file__).parent / "static"
DESK = 704
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
    """Whether a page complained, but for that it is none."""
    return said.type in {"error", "warning"} and "404 (Not Found)" not in said.text


async def test_hostile_words_run_on_no_page_not_even_where_a_script_of_ours_would_let_them(
    browser: Any, place: Place
) -> None:
    keys = (STATIC / "keys.js").read_text("utf-8")
    context = await logged_in(browser, place)
    await context.route("**/keys.js", lambda one: one.fulfill(body=keys + PROBE, content_type="text/javascript"))
    page, wrong = await context.new_page(), list[Any]()
    for path in pages(place):
        answer = await page.goto(f"http://{place.host}{path}")
        ran = await page.locator("body[data-ran]").get_attribute("data-ran")
        if ran or answer.status != 200 or await page.evaluate(RUNS):
            wrong.append((path, answer.status, ran))
    await context.close()
    assert not wrong


@pytest.mark.parametrize(
    ("language", "theme", "size"),
    [  # every pair of them once
        ("zh-CN", "light", (360, 780)),
        ("en", "dark", (390, 844)),
        ("en", "light", (1280, 800)),
        ("zh-CN", "dark", (1280, 800)),
    ],
)
async def test_every_page_fits_runs_nothing_foreign_and_is_for_everybody(
    browser: Any, place: Place, language: str, theme: str, size: tuple[int, int]
) -> None:
    axe = axe_of()
    context = await logged_in(
        browser, place, locale=language, color_scheme=theme, viewport={"width": size[0], "height": size[1]}
    )
    page, wrong = await context.new_page(), list[Any]()
    page.on("console", lambda one: wrong.append(one.text) if _is_wrong(one) else None)
    page.on("pageerror", lambda one: wrong.append(str(one)))
    for path in [*pages(place), "/none"]:
        await page.goto(f"http://{place.host}{path}", wait_until="domcontentloaded")
        if await page.evaluate(WIDE):
            wrong.append((path, "too wide"))
        if await page.evaluate(RUNS):
            wrong.append((path, "broke out"))
        if size[0] < DESK:
            wrong += [(path, "small", one) for one in await page.evaluate(SMALL)]
        await page.evaluate(axe)
        wrong += [(path, *one) for one in await page.evaluate(AXE)]
    await context.clear_cookies()
    for path in ("/login", "/none"):
        await page.goto(f"http://{place.host}{path}")
        await page.evaluate(axe)
        wrong += [(path, *one) for one in await page.evaluate(AXE)]
    await context.close()
    assert not wrong, "\n".join(map(str, wrong))


async def test_a_page_is_of_less_than_sixty_kilobytes_and_twelve_requests(browser: Any, place: Place) -> None:
    async with await logged_in(browser, place) as context:
        page, taken = await context.new_page(), dict[str, list[int]]()
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
