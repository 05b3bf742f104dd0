"""What somebody does on the pages: with keys, on a phone, while new turns come, without script."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from adapters.console import live
from bot.core.console_views import ROWS
from bot.memory.newest import KEPT
from tests.adapters.console.visiting import TOKEN, Place, visiting
from tests.bot.memory.test_newest import kept_silent
from tests.fakes import until
from tests.system.console.sights import SILENT, WORDS, logged_in, pages

HIDE = """is => {
  Object.defineProperty(document, "hidden", { get: () => is, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
MOVING = "document.getAnimations().length"

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_new_turns_wait_behind_a_button_and_a_lost_connection_is_said(browser: Any, place: Place) -> None:
    async with await logged_in(browser, place, locale="en") as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/turns")
        await page.locator(".live:not(.off)").wait_for()
        for name in "aabc":
            place.newest.see(kept_silent(name))
        await page.evaluate("window.stays = true")
        async with page.expect_event("requestfailed"):
            await context.route("**/rows?*", lambda one: one.abort())
            await page.get_by_role("button", name="3 new").click()
        await context.unroute("**/rows?*")
        await page.get_by_role("button", name="3 new").click()
        await page.locator(".turns .fresh").first.wait_for()
        assert await page.locator(".turns .fresh .said").first.text_content() == WORDS
        assert await page.evaluate("window.stays && document.querySelectorAll('.turns li').length") == 2
        place.console.logins.end_all()
        await page.locator(".live.off").wait_for()
    await place.log_in()


async def test_a_turn_that_is_news_again_while_rows_are_asked_for_still_is(browser: Any, place: Place) -> None:
    async with await logged_in(browser, place, locale="en") as context:
        page, may_come = await context.new_page(), asyncio.Event()

        async def late(route: Any) -> None:
            answer = await route.fetch()
            await may_come.wait()
            await route.fulfill(response=answer)

        await page.goto(f"http://{place.host}/turns")
        await page.locator(".live:not(.off)").wait_for()
        await page.route("**/rows?*", late)
        for name in "ab":
            place.newest.see(kept_silent(name))
        async with page.expect_request("**/rows?*"):
            await page.get_by_role("button", name="2 new").click()
        place.newest.see(kept_silent("a"))
        await page.get_by_role("button", name="1 new").wait_for()
        may_come.set()
        await page.locator(".turns .fresh").first.wait_for()
        assert await page.get_by_role("button", name="1 new").is_visible()


async def test_a_cut_is_said_and_what_came_meanwhile_is_there_when_it_is_over(
    browser: Any, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RETRY", 300)
    async with await logged_in(browser, place, locale="en") as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/turns")
        await page.locator(".live:not(.off)").wait_for()
        await page.evaluate(
            "said = []; new MutationObserver(() => said.push(sign.textContent))"
            ".observe(sign = document.querySelector('.live'), {childList: true})"
        )
        runner: Any = place.console._runner
        for one in runner.server.connections:
            if one.transport is not None:  # else it has ended already
                one.transport.abort()
        place.newest.see(kept_silent("cut"))
        await page.get_by_role("button", name="1 new").wait_for()
        first, last = await page.evaluate("said")
    assert re.fullmatch(r"stopped \d\d:\d\d, retrying", first)
    assert last == "Live"


async def test_a_hidden_page_has_no_stream_and_hears_what_came_meanwhile_when_it_is_shown_again(
    browser: Any, place: Place
) -> None:
    async with await logged_in(browser, place, locale="en") as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/turns")
        await page.locator(".live:not(.off)").wait_for()
        await until(lambda: place.streams() == 1)
        await page.evaluate(HIDE, True)
        await until(lambda: place.streams() == 0)
        place.newest.see(kept_silent("hidden"))
        asked = list[str]()
        page.on("request", lambda one: asked.append(one.url))
        await page.evaluate("fetch('/static/icon.svg')")  # what a page asked for before that is known by now
        assert [url for url in asked if "/live" in url] == []
        assert await page.locator(".fresh-rows").is_hidden()
        await page.evaluate(HIDE, False)
        await page.get_by_role("button", name="1 new").wait_for()
        assert place.streams() == 1
    await until(lambda: place.streams() == 0)


@pytest.mark.parametrize(("wish", "moves"), [("reduce", "none"), ("no-preference", "fresh")])
async def test_nothing_moves_for_whoever_wants_that(browser: Any, place: Place, wish: str, moves: str) -> None:
    async with await logged_in(browser, place, locale="en", reduced_motion=wish) as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/turns")
        await page.locator(".live:not(.off)").wait_for()
        place.newest.see(kept_silent(f"moves {wish}"))
        await page.get_by_role("button", name="1 new").click()
        row = page.locator(".turns .fresh").first
        assert await row.evaluate("one => getComputedStyle(one).animationName") == moves
        for path in pages(place):
            await page.goto(f"http://{place.host}{path}")
            running = await page.evaluate(MOVING)
            assert running == 0, path


async def test_a_thousand_events_are_counted_at_once_and_a_page_keeps_fifty_rows_at_most(
    browser: Any, place: Place
) -> None:
    async with await logged_in(browser, place, locale="en") as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/turns")
        await page.locator(".live:not(.off)").wait_for()
        for number in range(1000):
            place.newest.see(kept_silent(f"burst{number}"))
        await page.get_by_role("button", name=f"{KEPT} new").click()
        await page.locator(".turns .fresh").first.wait_for()
        assert await page.locator(".turns li").count() <= ROWS


async def test_whoever_goes_quickly_from_page_to_page_is_not_refused_for_those_left(browser: Any, place: Place) -> None:
    async with await logged_in(browser, place, locale="en") as context:
        page = await context.new_page()
        for _ in range(6):
            await page.goto(f"http://{place.host}/turns")
            await page.locator(".live:not(.off)").wait_for()
            await until(lambda: place.streams() == 1)
    await until(lambda: place.streams() == 0)


async def test_eight_windows_are_shown_though_a_browser_keeps_six_connections(browser: Any, place: Place) -> None:
    async with await logged_in(browser, place) as context:
        for _ in range(8):
            page = await context.new_page()
            await page.goto(f"http://{place.host}/turns", timeout=10_000)


async def test_keys_go_through_the_rows_open_one_and_go_to_the_filter(browser: Any, place: Place) -> None:
    async with await logged_in(browser, place) as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/turns")
        for key in "jjk":
            await page.keyboard.press(key)
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/turns/t1")
        await page.go_back()
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.id") == "where"
        await page.goto(f"http://{place.host}/health")
        await page.keyboard.press("?")
        await page.get_by_role("checkbox").check()
        await page.keyboard.press("Escape")
        await page.goto(f"http://{place.host}/turns")
        await page.keyboard.press("j")
        assert await page.evaluate("document.activeElement.tagName") == "BODY"


async def test_the_link_of_a_row_is_copied_that_of_a_new_one_too(browser: Any, place: Place) -> None:
    async with await logged_in(
        browser, place, locale="en", permissions=["clipboard-read", "clipboard-write"]
    ) as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/turns")
        copy = page.get_by_role("button", name="Copy the link of this turn")
        await page.locator(".live:not(.off)").wait_for()
        await copy.first.click()
        await page.locator(".turns .copied").wait_for()
        assert page.url.endswith("/turns")
        assert await page.evaluate("navigator.clipboard.readText()") == f"http://{place.host}/turns/t1"
        place.newest.see(kept_silent("copied"))
        await page.get_by_role("button", name="1 new").click()
        await page.locator(".turns .fresh").first.wait_for()
        await page.evaluate("navigator.clipboard.writeText('')")
        await copy.last.click()
        await page.locator(".turns .copied").wait_for()
        assert await page.evaluate("navigator.clipboard.readText()") == f"http://{place.host}{SILENT}"


async def test_without_script_somebody_logs_in_by_the_token_as_the_page_says(browser: Any) -> None:
    async with visiting() as console, await browser.new_context(locale="en", java_script_enabled=False) as context:
        page = await context.new_page()
        await page.goto(f"http://{console.host}/login#code")
        said = await page.locator("noscript p").inner_text()
        assert said == "The code of a link is read by script. Without it, type the token."
        assert not await page.locator("#by-code").is_visible()
        await page.locator("#token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        assert page.url == f"http://{console.host}/"


async def test_on_a_phone_no_tab_is_broken_inside_a_word_and_no_label_is_under_a_badge(
    browser: Any, place: Place
) -> None:
    for language in ("en", "zh-CN"):
        context = await logged_in(browser, place, locale=language, viewport={"width": 360, "height": 740})
        page = await context.new_page()
        await page.goto(f"http://{place.host}/cost")
        lines = await page.locator(".tabs a").evaluate_all(
            """tabs => tabs.map(tab => {
                const range = document.createRange();
                range.selectNodeContents(tab);
                return new Set([...range.getClientRects()].map(one => Math.round(one.top))).size;
            })"""
        )
        assert lines == [1] * 5, language
        badge = await page.locator("nav .badge").bounding_box()
        label = await page.evaluate(
            """() => {
                const range = document.createRange();
                range.selectNode(document.querySelector("nav .badge").previousSibling);
                const {x, y, width, height} = range.getBoundingClientRect();
                return {x, y, width, height};
            }"""
        )
        over = label["y"] + label["height"] * 0.2  # letters do not fill their line
        assert badge["y"] + badge["height"] <= over or badge["x"] >= label["x"] + label["width"], language
        bottoms = await page.evaluate(
            """() => [...document.querySelectorAll("nav.pages > a")].map(link => {
                const range = document.createRange();
                range.selectNode(link.firstChild);
                return Math.round(range.getBoundingClientRect().bottom);
            })"""
        )
        assert len(set(bottoms)) == 1, (language, bottoms)  # they stand on one line
        await context.close()


async def test_every_page_is_reached_on_a_phone_without_script(browser: Any, place: Place) -> None:
    async with await logged_in(
        browser, place, locale="en", java_script_enabled=False, viewport={"width": 390, "height": 844}
    ) as context:
        page = await context.new_page()
        for path in pages(place):
            answer = await page.goto(f"http://{place.host}{path}")
            assert answer.status == 200, path
        assert not await page.get_by_role("link", name="Health").is_visible()
        await page.get_by_role("link", name="More", exact=True).click()
        await page.get_by_role("link", name="Health").click()
        await page.get_by_role("heading", name="Health").wait_for()
