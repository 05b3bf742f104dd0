"""Try it in a real Chromium, beside a real bot: several members, pictures, faults, two windows, without script."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace
from PIL import Image
from playwright.async_api import Error
from pydantic import SecretStr

from adapters.offline.server import OfflineModel
from bot.app import Service, open_service
from bot.core.journal import TurnClosed, TurnOpened
from frostagent.clock import SystemClock
from frostagent.types.messages import Usage, UserMessage
from frostagent.types.runs import Stop
from tests.e2e.test_watching import settings
from tests.fakes import said, until
from tests.ports import free_port
from tests.system.console.pictures import wait_true
from tests.system.console.test_pages import AXE, PROBE, RUNS, SMALL, STATIC, WIDE, axe_of
from tests.system.console.test_using import HIDE
from tests.system.processes.test_signals import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONE = {"width": 360, "height": 780}
NAME = "</select><script src=/static/live.js?evil></script><img src=x onerror=evil()>\"'{{7*7}}"
QUESTION = "</textarea><script>evil()</script>\n@bot 带伞吗"
LONG = "长" * 90 + "W" * 90
BOTH_TOLD = """new Promise((done) => {
  let told = 0;
  const source = new EventSource(`${document.querySelector("[data-stream]").dataset.stream}?after=0`);
  source.addEventListener("news", () => ++told < 2 || (source.close(), done()));
})"""
SHOWN = "document.querySelector('.bubble img').naturalWidth"


@dataclass
class Bot:
    """A bot with a console, and the cookies of whoever is logged in there."""

    service: Service
    model: OfflineModel
    browser: Any
    root: str
    cookies: list[Any]

    @asynccontextmanager
    async def visited(self, **more: Any) -> AsyncIterator[Any]:
        """A window that is logged in."""
        context = await self.browser.new_context(**{"locale": "en"} | more)
        await context.add_cookies(self.cookies)
        yield context
        await context.close()

    @asynccontextmanager
    async def trying(self, *, model: str = "demo", **more: Any) -> AsyncIterator[Any]:
        """A window with a group that was just opened."""
        async with self.visited(**more) as context:
            page = await context.new_page()
            await self.open(page, model=model)
            yield page

    async def open(self, page: Any, *, model: str = "demo") -> None:
        await page.goto(f"{self.root}/try?new=1")
        await page.locator(f"input[value={model}]").check()
        await page.locator("main button.main").click()
        await page.locator("#text").wait_for()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bot(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bot]:
    folder = tmp_path_factory.mktemp("trying")
    console = {"console_port": free_port(), "console_token": SecretStr("0123456789abcdef0123456789abcdef")}
    patience = pytest.MonkeyPatch()
    patience.setattr(
        "adapters.storage.reading.CONSOLE_TIMEOUT", 30.0
    )  # a machine that is busy is none of what is shown here
    async with OfflineModel() as model, open_service(settings(model.base_url, folder, **console)) as service:
        assert service.console_link is not None
        root = (link := service.console_link()).partition("/login")[0]
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(link)
        await page.wait_for_url(f"{root}/")
        cookies = await context.cookies()
        await context.close()
        yield Bot(service, model, browser, root, cookies)
    patience.undo()


async def say(page: Any, who: str, text: str, *, call: bool = True, fault: str = "", picture: bytes = b"") -> None:
    """Fill the form in and send it, as a person does; the page that comes of it is there then."""
    await page.locator("#as").select_option(who)
    await page.locator("#text").fill(text)
    await page.locator("[name=call]").set_checked(call)
    if fault:
        await page.get_by_text("Picture, faults").click()
        await page.locator("#fault").select_option(fault)
    if picture:
        file = {"name": "sky.png", "mimeType": "image/png", "buffer": picture}
        await page.locator("#picture").set_input_files([file])
    async with page.expect_navigation():
        await page.get_by_role("button", name="Send", exact=True).click()


async def told(page: Any) -> list[str]:
    """The bubbles on the page, and what stands below them; it may be loaded again meanwhile, as news come."""
    while True:
        with suppress(Error):
            found = await page.locator(".bubble, .because-of, .happened").all_text_contents()
            return [" ".join(one.split()) for one in found]


def png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (320, 200), "#1d6fb8").save(out, "PNG")
    return out.getvalue()


async def looked_at(page: Any, *, is_phone: bool) -> list[Any]:
    """What is wrong with a page."""
    wrong = [name for name, test in (("too wide", WIDE), ("broke out", RUNS)) if await page.evaluate(test)]
    if is_phone:
        wrong += await page.evaluate(SMALL)
    await page.evaluate(axe_of())
    return [*wrong, *await page.evaluate(AXE)]


@pytest.mark.parametrize("script", [True, False])
async def test_several_members_talk_and_each_line_says_why(bot: Bot, script: bool) -> None:
    async with bot.trying(java_script_enabled=script, viewport=PHONE) as page:
        await say(page, "user1", "hello")
        await say(page, "user2", "have you eaten?", call=False)
        await say(page, "user2", "hello again")
        lines = await told(page)
        assert (lines[0], lines[3]) == ("user1@bot hello", "user2have you eaten?")
        assert lines[1].startswith("botHello! I am the built-in demo model")
        assert lines[2].startswith("why: mentioned")
        assert lines[4].startswith("why: overheard: it was not for the bot")
        assert lines[5:6] == ["user2@bot hello again"]
        assert await page.locator("#as").input_value() == "user2"  # whoever spoke last goes on
        await page.get_by_role("link", name="What it did").first.click()
        await page.get_by_text("This turn was only tried").wait_for()
        await page.go_back()
        await page.locator(".because-of").get_by_role("link", name="Why", exact=True).click()
        await page.get_by_text("This turn was only tried").wait_for()


@pytest.mark.parametrize("script", [True, False])
async def test_a_picture_is_sent_and_shown_and_what_is_none_is_said_beside_the_words(bot: Bot, script: bool) -> None:
    async with bot.trying(java_script_enabled=script) as page:
        await say(page, "user2", "look at this", picture=png())
        line, answer = (await told(page))[:2]
        assert line == "user2@bot look at this"
        assert answer.startswith("botI have got your picture (320 × 200 pixels)")
        picture = page.locator(".bubble img").first
        assert await picture.get_attribute("alt") == "A picture of user2"
        answer = await page.request.get(f"{bot.root}{await picture.get_attribute('src')}")
        with Image.open(io.BytesIO(await answer.body())) as opened:
            assert (opened.format, opened.size) == ("JPEG", (320, 200))
        before = len(await told(page))
        await say(page, "user2", "and this", picture=b"MZ\x90 a program")
        assert "no picture that can be read" in await page.locator("[role=alert]").inner_text()
        assert await page.locator("#text").input_value() == "and this"
        assert len(await told(page)) == before
        await say(page, "user1", "send me a picture")
        assert await page.locator(".bubble.ours img").count() == 1
    async with bot.trying() as page:
        await say(page, "user1", "look", picture=png())
        await wait_true(page, f"{SHOWN} === 320")  # the page's policy lets it be shown


@pytest.mark.parametrize("script", [True, False])
async def test_things_go_wrong_on_purpose_and_the_page_says_what_came_of_it(bot: Bot, script: bool) -> None:
    async with bot.trying(java_script_enabled=script) as page:
        await say(page, "user1", "", fault="mute")
        assert any(line.startswith("(mute: ") for line in await told(page))
        await say(page, "user1", "hello")
        lines = await told(page)
        assert not any(line.startswith("bot") for line in lines)
        await say(page, "user1", "", fault="lift")
        await say(page, "user1", "hello?")
        await page.locator(".bubble.ours").first.wait_for()
        assert await page.locator(".bubble.ours").count() == 1
        await say(page, "user1", "once more", fault="timeout")
        lines = await told(page)
        assert any(line.startswith("(timeout: ") for line in lines)
        assert sum(line.startswith("bot") for line in lines) == 2  # not said twice, though nobody confirmed it


async def test_what_is_new_is_there_by_itself_in_another_window_and_no_letter_that_is_typed_there_goes(
    bot: Bot,
) -> None:
    async with bot.trying() as page:
        other = await page.context.new_page()
        await other.set_viewport_size({"width": 390, "height": 500})
        await other.goto(f"{bot.root}/try")
        await other.locator(".live:not(.off)").wait_for()
        await other.evaluate("window.stays = true")
        text = other.locator("#text")
        await text.press_sequentially("half a sent")
        await text.press("ArrowLeft")
        await other.locator("#as").select_option("user2")
        await other.locator("[name=call]").uncheck()
        await other.locator("#picture").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": b"x"})
        await text.focus()
        await say(page, "user1", "hello")
        await other.locator(".bubble.ours").wait_for()  # nobody has loaded it again
        await other.evaluate("document.querySelector('.bubble').stays = true")
        await say(page, "user1", "send me a picture")
        await other.locator(".bubble.ours img").wait_for()
        async with asyncio.timeout(PATIENCE):  # what became of it is news of its own
            while await told(other) != await told(page):
                pass
            while await other.locator(".summary").inner_text() != await page.locator(".summary").inner_text():
                pass
        assert await other.evaluate("window.stays && document.querySelector('.bubble').stays")
        await other.keyboard.type("EN")
        assert await text.input_value() == "half a senENt"
        assert await other.evaluate(
            "[as.value, document.querySelector('[name=call]').checked, picture.files.length]"
        ) == [
            "user2",
            False,
            1,
        ]
        assert await other.locator(".fresh-rows").is_hidden()
        await wait_true(other, "document.querySelector('.bubble img').naturalWidth > 0")
        await wait_true(other, "text.getBoundingClientRect().bottom <= innerHeight")


async def test_what_comes_while_a_page_is_asked_for_is_there_after_it(bot: Bot) -> None:
    async with bot.trying() as page:
        other = await page.context.new_page()
        await other.goto(f"{bot.root}/try")
        await other.locator(".live:not(.off)").wait_for()
        asked, may_come = [], asyncio.Event()

        async def late(route: Any) -> None:
            answer = await route.fetch()  # the page as it is now
            asked.append(route)
            await may_come.wait()
            await route.fulfill(response=answer)

        await other.route("**/try*", late)
        for fault in ("slow 3", "off"):  # news of one name, as they are of no message
            await say(page, "user1", "", fault=fault)
            await until(lambda: asked)
        await other.evaluate(BOTH_TOLD)
        may_come.set()
        await other.locator(".happened").nth(1).wait_for()
        assert await told(other) == await told(page)
        assert await other.locator(".fresh-rows").is_hidden()


async def test_letters_stay_where_another_group_takes_the_place_of_the_one_they_are_for(bot: Bot) -> None:
    async with bot.trying() as page:
        await page.locator(".live:not(.off)").wait_for()
        await page.locator("#text").press_sequentially("half a sent")
        other = await page.context.new_page()
        await bot.open(other)
        await page.evaluate("window.stays = true")
        await say(other, "user1", "hello")
        await page.evaluate(HIDE, True)
        await page.evaluate(HIDE, False)  # hears of the other group
        await page.locator(".fresh-rows").wait_for()
        assert await told(page) == []
        assert await page.locator("#text").input_value() == "half a sent"
        assert await page.evaluate("window.stays")


async def test_enter_sends_and_with_shift_begins_a_line_and_an_input_methods_own_is_left_to_it(bot: Bot) -> None:
    async with bot.trying() as page:
        await page.locator("#text").fill("hello")
        await page.locator("#text").press("Shift+Enter")
        await page.keyboard.type("again")
        composed = 'new KeyboardEvent("keydown", {key: "Enter", isComposing: true, cancelable: true})'
        assert await page.evaluate(f'document.getElementById("text").dispatchEvent({composed})')  # left to it
        assert await page.locator("#text").input_value() == "hello\nagain"
        async with page.expect_navigation():
            await page.keyboard.press("Enter")
        assert await page.locator(".bubble span").first.text_content() == "@bot hello\nagain"
        assert await page.locator("#text").input_value() == ""


async def test_words_for_a_group_that_another_window_ended_are_kept_and_said_in_none(bot: Bot) -> None:
    async with bot.trying() as page:
        other = await page.context.new_page()
        await bot.open(other)  # takes the place of the first
        await say(page, "user2", "meant for the first group")
        assert "Another group was opened meanwhile" in await page.locator("[role=alert]").inner_text()
        assert await page.locator("#text").input_value() == "meant for the first group"
        assert await page.locator("#as").input_value() == "user2"
        await other.get_by_role("button", name="End it").click()
        await other.get_by_role("button", name="Open the group").wait_for()
        await say(page, "user2", "is anybody there?")
        assert "has ended meanwhile" in await page.locator("[role=alert]").inner_text()
        assert await looked_at(page, is_phone=False) == []
        await page.locator("main button.main").click()
        await page.locator("#text").wait_for()
        assert await page.locator("#text").input_value() == "is anybody there?"
        assert await told(page) == []
        await say(page, "user2", "is anybody there?")
        assert (await told(page))[0] == "user2@bot is anybody there?"


@pytest.mark.parametrize(("language", "theme", "phone"), [("zh-CN", "light", True), ("en", "dark", False)])
async def test_hostile_names_and_words_are_words_in_the_group_and_every_state_is_for_everybody(
    bot: Bot, language: str, theme: str, phone: bool
) -> None:
    now = SystemClock().now()  # what is old is deleted a minute after the start
    hostile = replace(said(QUESTION, user=6, name=NAME), time=now)
    bot.service.app.store.put(
        TurnOpened(turn_id=f"hostile-{theme}", question=hostile, user=UserMessage("x"), at=now),
        TurnClosed(turn_id=f"hostile-{theme}", stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=now),
    )
    await bot.service.app.journal.commit()
    own = (STATIC / "page.js").read_text("utf-8")
    size = PHONE if phone else {"width": 1280, "height": 800}
    async with bot.visited(locale=language, color_scheme=theme, viewport=size) as context:
        await context.route("**/page.js", lambda one: one.fulfill(body=own + PROBE, content_type="text/javascript"))
        page, wrong = await context.new_page(), list[Any]()

        async def look(state: str) -> None:
            ran = await page.locator("body[data-ran]").get_attribute("data-ran")
            wrong.extend((state, one) for one in [*([ran] if ran else []), *await looked_at(page, is_phone=phone)])

        await page.goto(f"{bot.root}/try")
        if await page.locator("button.danger").count():
            async with page.expect_navigation():
                await page.locator("button.danger").click()
        await page.goto(f"{bot.root}/turns/hostile-{theme}")
        await page.locator("[action='/try/turn'] button").click()
        await page.locator("blockquote").wait_for()
        await look("how it is opened, with a question")
        await page.locator("input[value=real]").check()
        await page.locator("main button.main").click()
        await page.locator("#text").wait_for()
        await look("with a question that stands ready")
        assert await page.locator("#text").input_value() == QUESTION
        name = await page.locator("#as").input_value()
        assert name == NAME[:40]
        await page.locator("main .say button.main").click()
        await page.locator(".bubble >> nth=1").wait_for()
        await page.locator(".live:not(.off)").wait_for()
        await page.locator("#text").fill(LONG)
        await page.locator("main .say button.main").click()
        await page.locator(".bubble >> nth=2").wait_for()
        assert await page.locator(".bubble b").first.text_content() == name
        await look("after somebody spoke")
        await page.locator(".because-of a").first.click()
        await page.locator("h1").wait_for()
        await look("the trace")
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize(("width", "height", "least"), [(360, 640, 200), (1280, 800, 900)])
async def test_what_is_typed_stays_at_the_bottom_as_wide_as_the_page(
    bot: Bot, width: int, height: int, least: int
) -> None:
    async with bot.trying(viewport={"width": width, "height": height}) as page:
        for word in ("one", "two", "three", "four"):
            await say(page, "user1", word)
        last = page.locator(".because-of").last
        await wait_true(page, "scrollY > 0")  # the newest is in sight, above what is typed
        composer = await page.locator(".composer").bounding_box()
        assert (await last.bounding_box())["y"] < composer["y"]
        await page.evaluate("scrollTo(0, 0)")
        composer, card = [await page.locator(one).bounding_box() for one in (".composer", "section.talk")]
        assert composer["y"] + composer["height"] <= height
        assert composer["width"] >= card["width"] - 4
        for field in ("#text", "#as", "[name=call]"):
            assert await page.locator(field).is_visible(), field
        box = await page.locator("#text").bounding_box()
        assert box["width"] >= least
        top = await page.evaluate("document.querySelector('nav.pages').getBoundingClientRect().top")
        assert top < 200 or box["y"] + box["height"] <= top  # the bar of a phone is below it
