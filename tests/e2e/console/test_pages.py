"""Every page in a real Chromium: both languages and themes, a phone and a desk."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from adapters.console import statics
from tests.adapters.console.visiting import Place
from tests.e2e.console.sights import logged_in, pages

pytestmark = pytest.mark.asyncio(loop_scope="session")

STATIC = Path(statics.__file__).parent / "static"
WIDE = "document.documentElement.scrollWidth > innerWidth"
RUNS = "document.querySelectorAll('script:not([type=module]), [onerror], script[src*=evil]').length"
AXE = (
    "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then("
    "all => all.violations.map(one => [one.id, one.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary)]))"
)

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
        ("zh-CN", "light", (390, 844)),
        ("en", "dark", (390, 844)),
        ("en", "light", (1280, 800)),
        ("zh-CN", "dark", (1280, 800)),
    ],
)
async def test_every_page_fits_runs_nothing_foreign_and_is_for_everybody(
    browser: Any, place: Place, language: str, theme: str, size: tuple[int, int]
) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
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
        await page.evaluate(axe)
        wrong += [(path, *one) for one in await page.evaluate(AXE)]
    await context.clear_cookies()
    for path in ("/login", "/none"):
        await page.goto(f"http://{place.host}{path}")
        await page.evaluate(axe)
        wrong += [(path, *one) for one in await page.evaluate(AXE)]
    await context.close()
    assert not wrong, "\n".join(map(str, wrong))
