"""What an owner decides with clicks and keys, beside a real bot: calls, people, drafts, pauses. Each is looked for
twice: on the page, and in what was done for it.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.simulator.actions import befriend
from adapters.simulator.world import Person
from tests.e2e.town import GROUP, MEMBER, TWO_WIPES, WIPE, MovableClock
from tests.fakes import until, words
from tests.system.console.desks import Opening, told

pytestmark = pytest.mark.asyncio(loop_scope="session")


def item(page: Any, name: str) -> Any:
    """What waits by this name."""
    return page.locator("article.wait").filter(has=page.locator(f"b:text-is('{name}')"))


async def click(page: Any, name: str, button: str) -> str:
    """What the page says once this button of what waits was clicked."""
    async with page.expect_navigation():
        await item(page, name).get_by_role("button", name=button, exact=True).click()
    return await told(page)


async def waiting(page: Any) -> list[str]:
    """The names of what waits, on the page as it is."""
    names: list[str] = await page.locator("article.wait .line b").all_text_contents()
    return names


async def test_a_call_that_is_allowed_by_two_quick_clicks_is_made_once_and_the_page_says_that_it_is_allowed(
    desk: Opening,
) -> None:
    at = await desk(WIPE, words("wiped!"))
    await at.stage.ask()
    page, clicked, asked = await at.open("/approvals"), asyncio.Event(), list[str]()

    async def slow(route: Any) -> None:
        asked.append(route.request.method)
        answer = await route.fetch()
        await clicked.wait()
        await route.fulfill(response=answer)

    assert await page.locator("nav .badge").text_content() == "1"
    await page.route("**/approvals", slow)
    box = await item(page, "A1").get_by_role("button", name="Allow").bounding_box()
    await page.mouse.click(box["x"] + 9, box["y"] + 9)
    await until(lambda: bool(at.stage.done))
    await page.mouse.click(box["x"] + 9, box["y"] + 9)
    clicked.set()
    await page.get_by_role("status").wait_for()
    assert (await told(page), asked) == ("A1: allowed.", ["POST"])
    assert (await waiting(page), await page.locator("nav .badge").count()) == ([], 0)
    await at.stage.until(lambda: at.stage.group()[-1] == "wiped!")
    assert (at.stage.done, await at.done()) == (["sda is wiped"], [("allow", "10001:A1", "ok")])


async def test_a_call_is_allowed_on_the_page_of_today_where_its_arguments_are_told_in_words(desk: Opening) -> None:
    at = await desk(WIPE, words("wiped!"))
    await at.stage.ask()
    page = await at.open("/")
    asked = item(page, "A1")
    assert await asked.locator("dt").all_text_contents() == ["disk"]
    assert await asked.locator("dd").all_text_contents() == ["sda"]
    tiles = await page.locator(".figures.many .card").all_text_contents()
    assert any("1" in tile and "waits for an owner" in tile for tile in tiles)
    assert await asked.get_by_role("button", name="Deny").is_visible()
    await asked.get_by_role("button", name="Allow").click()
    assert await told(page) == "A1: allowed."
    await at.stage.until(lambda: at.stage.group()[-1] == "wiped!")
    assert at.stage.done == ["sda is wiped"]


async def test_a_form_whose_answer_is_lost_shows_that_it_was_sent_until_it_is_sent_again(desk: Opening) -> None:
    at = await desk(WIPE)
    await at.stage.ask()
    page, asked = await at.open("/approvals"), list[str]()

    async def lost(route: Any) -> None:
        asked.append(route.request.method)
        await route.fulfill(status=204)  # a browser stays where it is

    await page.route("**/approvals", lost)
    await page.clock.install()
    await page.clock.pause_at(datetime(2100, 1, 1, tzinfo=UTC))
    form = page.locator(".word form").first
    click, enter = "form => form.querySelector('button').click()", "form => form.requestSubmit()"
    cursor = "form => getComputedStyle(form.querySelector('button')).cursor"
    back = "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"
    for milliseconds, event, how, count in (
        (0, "", click, 1),
        (9000, "", click, 1),
        (0, back, click, 2),
        (9000, "", enter, 2),
        (999, "", click, 2),
        (1, "", enter, 3),
    ):
        await page.clock.run_for(milliseconds)
        await page.evaluate(event)
        is_sent = count > len(asked)
        assert await form.evaluate(cursor) == ("pointer" if is_sent else "progress")
        await form.evaluate(how)
        await page.evaluate("fetch('/static/icon.svg')")  # what a page asked for before that is known by now
        assert asked == ["POST"] * count
        assert await form.evaluate(cursor) == "progress"


async def test_a_call_is_denied_with_a_typed_reason_that_the_model_reads(desk: Opening) -> None:
    at = await desk(WIPE, words("he would not"))
    await at.stage.ask()
    page = await at.open("/")
    await page.get_by_role("heading", name="Waiting for your approval").wait_for()
    await page.get_by_role("link", name="Approvals").click()
    assert await item(page, "A1").locator("dd").all_text_contents() == ["sda"]
    await item(page, "A1").get_by_label("Reason").press_sequentially("it is mine")
    async with page.expect_navigation():
        await page.keyboard.press("Enter")
    assert await told(page) == "A1: denied."
    await at.stage.until(lambda: at.stage.group()[-1] == "he would not")
    assert at.stage.told == "error: the tool call was denied: the owner said no: it is mine [TOOL_DENIED]"
    assert (at.stage.done, await at.done()) == ([], [("deny", "10001:A1", "ok")])


async def test_what_was_answered_in_another_tab_in_qq_or_too_late_is_said_and_done_no_second_time(
    desk: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovableClock()
    monkeypatch.setattr("bot.app.SystemClock", lambda: clock)
    at = await desk(TWO_WIPES, words("both"), WIPE, words("too late"))
    await at.stage.ask()
    await at.stage.until(lambda: len(at.stage.private()) == 3)  # the login, too
    one, other = await at.open("/approvals"), await at.open("/approvals")
    assert await click(one, "A1", "Allow") == "A1: allowed."
    assert await waiting(other) == ["A1", "A2"]
    said = await click(other, "A1", "Deny")
    assert said.startswith("A1 was decided already; this answer changed nothing.")
    assert "allowed by the console" in said
    assert await waiting(other) == ["A2"]
    await at.stage.answer("deny A2")
    assert (await click(other, "A2", "Allow")).startswith("A2 was decided already")
    await one.reload()
    assert (await waiting(one), await one.get_by_role("status").count()) == ([], 0)  # it is sent no second time
    assert at.stage.done == ["sda is wiped"]
    await at.stage.ask()
    await one.goto(f"{at.root}/approvals")
    clock.advance(601)
    assert "expired" in await click(one, "A3", "Allow")
    await at.stage.until(lambda: at.stage.group()[-1] == "too late")
    assert (await waiting(one), at.stage.done) == ([], ["sda is wiped"])
    assert [(name[-2:], outcome) for _, name, outcome in await at.done()] == [
        ("A1", "ok"),
        ("A1", "over"),
        ("A2", "over"),
        ("A3", "over"),
    ]


async def test_drafts_are_published_said_in_other_words_and_left_each_with_a_click(desk: Opening) -> None:
    at = await desk(words("first"), words("second"), words("third"))
    await at.stage.answer(f"/shadow {GROUP}")
    for number in range(3):
        await at.stage.say(f"@bot question {number}", user=MEMBER)
    page = await at.open("/approvals")
    assert await waiting(page) == ["D3", "D2", "D1"]
    assert await item(page, "D1").locator("pre").text_content() == "first"
    assert await click(page, "D1", "Publish") == "D1 is published."
    await item(page, "D2").get_by_role("button", name="Change").click()  # without words nothing is sent
    assert at.stage.group() == ["first"]
    await item(page, "D2").get_by_label("Other words").press_sequentially("in my words")
    assert await click(page, "D2", "Change") == "D2 is published."
    stale = await at.open("/approvals")
    assert await click(page, "D3", "Leave") == "D3 is left."
    assert await waiting(page) == []
    assert (await click(stale, "D3", "Publish")).startswith("D3 was decided already")
    assert at.stage.group() == ["first", "in my words"]
    assert [(action, outcome) for action, _, outcome in await at.done()] == [
        ("allow", "ok"),
        ("allow", "ok"),
        ("deny", "ok"),
        ("allow", "over"),
    ]


async def test_people_who_want_to_be_friends_are_let_in_and_sent_away_with_a_click(desk: Opening) -> None:
    at = await desk()
    world = at.stage.simulator.world
    for user, name in ((30001, "Ann"), (30002, "Bob")):
        await at.stage.simulator.push(befriend(world, Person(user, name), f"I am {name}"))
    page = await at.open("/approvals")
    await item(page, "R2").wait_for()
    assert await item(page, "R1").locator("blockquote").text_content() == "I am Ann"
    assert await click(page, "R2", "Deny") == "R2: denied."
    assert await click(page, "R1", "Allow") == "R1: allowed."
    assert (await waiting(page), 30001 in world.friends, 30002 in world.friends) == ([], True, False)


async def test_a_chat_is_paused_where_it_is_chosen_and_goes_on_when_somebody_says_so(desk: Opening) -> None:
    at = await desk(words("hello"), words("again"))
    await at.stage.say("@bot hi", user=MEMBER)
    page = await at.open("/")
    await page.get_by_label("Pause a chat").select_option(f"10001:group:{GROUP}")
    async with page.expect_navigation():
        await page.get_by_role("button", name="Pause", exact=True).click()
    await page.get_by_text(f"(group {GROUP}) is paused").wait_for()
    assert await page.get_by_label("Pause a chat").count() == 0  # there is no other one
    await at.stage.say("@bot are you there", user=MEMBER)
    await at.written("are you there")
    await page.get_by_role("button", name="1 new").click()
    await page.locator(".turns .fresh", has_text="are you there").wait_for()
    assert await page.locator(".turns li").first.locator(".ended").text_content() == "not answered"
    async with page.expect_navigation():
        await page.get_by_role("button", name="Go on").click()
    assert await page.get_by_text("is paused").count() == 0
    await at.stage.say("@bot and now", user=MEMBER)
    assert at.stage.group() == ["hello", "again"]
    where = f"10001:group:{GROUP}"
    assert await at.done() == [("pause", where, "ok"), ("go on", where, "ok")]
