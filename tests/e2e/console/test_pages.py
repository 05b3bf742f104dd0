"""Every page in a real Chromium: both languages and themes, a phone and a desk."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from tests.adapters.console.visiting import Place
from tests.e2e.console.sights import PAGES, logged_in

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDE = "document.documentElement.scrollWidth > innerWidth"
RUNS = "document.querySelectorAll('script:not([type=module]), [onerror], script[src*=evil]').length"
AXE = (
    "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then("
    "all => all.violations.map(one => [one.id, one.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary)]))"
)


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
    page.on("console", lambda one: wrong.append(one.text) if one.type in {"error", "warning"} else None)
    page.on("pageerror", lambda one: wrong.append(str(one)))
    for path in PAGES:
        await page.goto(f"http://{place.host}{path}", wait_until="domcontentloaded")
        if await page.evaluate(WIDE):
            wrong.append((path, "too wide"))
        if await page.evaluate(RUNS):
            wrong.append((path, "broke out"))
        await page.evaluate(axe)
        wrong += [(path, *one) for one in await page.evaluate(AXE)]
    await context.close()
    assert not wrong, "\n".join(map(str, wrong))
