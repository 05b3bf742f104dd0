"""Links that log in, in the tabs of a real Chromium: the code of one is never left in the address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.adapters.console.test_totp import SECRET, code
from tests.adapters.console.visiting import visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Any) -> AsyncIterator[Any]:
    """A tab of a browser that is logged in nowhere."""
    async with await browser.new_context(locale="en") as context:
        yield await context.new_page()


async def test_a_link_logs_in_also_if_the_tab_shows_the_login_page_already(tab: Any) -> None:
    async with visiting() as place:
        root, wrong = f"http://{place.host}", "x" * 43
        await tab.goto(f"{root}/login")
        for used in (wrong, wrong):  # the second one in the answer to the first
            await tab.goto(f"{root}/login#{used}")
            await tab.get_by_text("This link was used, or is too old").wait_for()
            assert tab.url == f"{root}/login"
            assert used not in await tab.content()
        await tab.goto(place.console.link())
        await tab.wait_for_url(f"{root}/")


async def test_with_a_code_of_the_app_the_link_is_out_of_the_address_while_it_is_typed(tab: Any) -> None:
    async with visiting(totp=SECRET) as place:
        root = f"http://{place.host}"
        await tab.goto(f"{root}/login")
        await tab.goto(place.console.link())
        await tab.locator("#totp-link").fill("000000")
        assert tab.url == f"{root}/login"
        await tab.get_by_role("button", name="Log in with the link").click()
        await tab.get_by_role("alert").wait_for()
        assert tab.url == f"{root}/login"
        await tab.goto(place.console.link())
        await tab.locator("#totp-link").fill(code(place))
        await tab.get_by_role("button", name="Log in with the link").click()
        await tab.wait_for_url(f"{root}/")


async def test_a_tab_that_is_logged_in_goes_on_without_the_code_of_a_link(tab: Any) -> None:
    async with visiting() as place:
        await tab.goto(place.console.link())
        await tab.wait_for_url(f"http://{place.host}/")
        await tab.goto(unused := place.console.link())
        await tab.wait_for_url(f"http://{place.host}/")
        assert unused.partition("#")[2] not in await tab.evaluate("location.href")


async def test_a_place_on_a_page_is_not_taken_for_the_code_of_a_link(tab: Any) -> None:
    async with visiting() as place:
        await tab.goto(f"http://{place.host}/try#say")
        await tab.get_by_role("heading", name="Log in to the console").wait_for()
        await tab.goto(f"http://{place.host}/login#main")
        assert await tab.get_by_role("alert").count() == 0
        assert await tab.locator("#by-token").is_visible()


async def test_the_link_of_a_chat_opens_its_simulated_group(tab: Any) -> None:
    async with visiting(first="/try#say") as place:
        for _ in range(2):  # logged in by the first one, the second one leads there as well
            await tab.goto(link := place.console.link())
            await tab.wait_for_url(f"http://{place.host}/try#say")
            assert link.partition("#")[2] not in tab.url
        await tab.get_by_role("heading", name="Try it").wait_for()
