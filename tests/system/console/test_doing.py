"""What a person does on each page with clicks and keys, and what became of it: on the page, and behind it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from adapters.console.health import RESTS
from adapters.console.language import day
from adapters.console.logins import CODE_SECONDS
from bot.core.calendar_days import midnight
from bot.core.console_views import (
    Chat,
    ChatLine,
    ChatRows,
    CostSum,
    Finding,
    PersonaState,
    State,
    WaitingCall,
    WaitingDraft,
)
from bot.core.conversation import Conversation
from bot.core.memories import MemoryKept, StoredFact
from bot.core.query_results import UsageSum
from tests.adapters.console.samples import ELSEWHERE, NOW, job
from tests.adapters.console.test_totp import SECRET, code
from tests.adapters.console.visiting import TOKEN, Place, visiting
from tests.e2e.town import GROUP as TOWN_GROUP
from tests.e2e.town import MEMBER, WIPE
from tests.fakes import GROUP, words
from tests.system.console.desks import Opening, told
from tests.system.console.sights import logged_in

pytestmark = pytest.mark.asyncio(loop_scope="session")

PERSONAS = PersonaState(key="", name="Frost", text="be kind"), PersonaState(key="cat", name="Cat", text="miau")
TABS = (
    ("Person", "777"),
    ("Tool", "weather"),
    ("Day", day(NOW)),
    ("Chat", f"group {GROUP.session_id}"),
    ("Model", "fine"),
)


@pytest_asyncio.fixture(loop_scope="session")
async def own() -> AsyncIterator[Place]:
    """A console that no other test sees."""
    async with visiting() as place:
        await place.log_in()
        yield place


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Any, own: Place) -> AsyncIterator[Any]:
    """A tab that is logged in there."""
    async with await logged_in(browser, own, locale="en") as context:
        yield await context.new_page()


def done(place: Place) -> list[tuple[str, str, str]]:
    """What was done, as it is written down: action, object, outcome."""
    return [(one.action, one.object, one.outcome) for one in place.journal.lines or ()]


async def click(page: Any, name: str, *, role: str = "button") -> None:
    """Click what leads to another page, and wait for that."""
    async with page.expect_navigation():
        await page.get_by_role(role, name=name, exact=True).click()


async def press(page: Any, key: str) -> None:
    """Press the key that leads to another page, and wait for that."""
    async with page.expect_navigation():
        await page.keyboard.press(key)


async def taken(page: Any, name: str) -> tuple[str, str]:
    """The name of the file that a link gives, and what is in it."""
    async with page.expect_download() as download:
        await page.get_by_role("link", name=name, exact=True).click()
    file = await download.value
    data = await asyncio.to_thread(Path(await file.path()).read_bytes)
    return file.suggested_filename, data.decode()


async def test_a_token_is_typed_wrong_then_right_and_whoever_logs_out_is_out_also_for_the_back_button(
    browser: Any,
) -> None:
    async with visiting() as place, await browser.new_context(locale="en") as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/cost")
        assert page.url.endswith("/login")
        await page.get_by_label("Token").press_sequentially("wrong")
        await press(page, "Enter")
        assert await page.get_by_role("alert").text_content() == "That is not the token."
        await page.get_by_label("Token").press_sequentially(f" {TOKEN} ")  # as phones paste
        await click(page, "Log in")
        assert page.url == f"http://{place.host}/"
        await click(page, "Access", role="link")
        assert await page.get_by_text("with the token").count() == 1
        await click(page, "Log out")
        assert page.url.endswith("/login")
        await page.go_back()
        assert await page.get_by_label("Token").is_visible()
        assert await page.get_by_text("with the token").count() == 0
        assert done(place) == [("login", "", "refused"), ("login", "", "ok"), ("logout", "", "ok")]
        assert len(place.told) == 1
        assert place.console.logins.open == ()


async def test_with_a_code_of_the_app_nobody_logs_in_or_allows_anything_without_a_new_one(browser: Any) -> None:
    async with visiting(totp=SECRET) as place, await browser.new_context(locale="en") as context:
        page = await context.new_page()
        await page.goto(f"http://{place.host}/login")
        for typed in ("000000", code(place)):
            await page.get_by_label("Token").press_sequentially(TOKEN)
            await page.keyboard.press("Tab")
            await page.keyboard.type(typed)
            await press(page, "Enter")
        assert page.url == f"http://{place.host}/"
        place.state = State(calls=(WaitingCall(3, GROUP, "wipe it", place.clock.now() + 492),))
        await click(page, "Approvals", role="link")
        await page.get_by_role("button", name="Allow").click()  # the browser asks for the code
        await page.get_by_label("Code of the app").press_sequentially(code(place))
        await press(page, "Enter")
        assert "it was used already" in await page.get_by_role("alert").text_content()
        place.clock.time += CODE_SECONDS
        await page.get_by_label("Code of the app").press_sequentially(code(place))
        await click(page, "Allow")
        assert await told(page) == "A3: allowed."
        for name in ("Deny", "Leave"):
            place.drafts = (WaitingDraft(7, GROUP, "x", "y", "z", place.clock.now() + 60),)
            await click(page, name)  # what is not to be done needs none
        assert [(one.kind, one.allows) for one in place.words] == [("A", True), ("A", False), ("D", False)]
        assert [outcome for _, _, outcome in done(place)] == ["refused", "ok", "no code", "ok", "ok", "ok"]


async def test_a_personas_text_is_changed_tried_used_and_taken_back_and_what_is_wrong_with_it_is_said(
    page: Any, own: Place
) -> None:
    own.personas = [*PERSONAS]
    own.journal.talks.append(Chat(where=GROUP, group="Study", lines=()))
    await page.goto(f"http://{own.host}/persona?where=nowhere")
    assert "There is no such chat" in await page.get_by_role("alert").text_content()
    await page.get_by_label("Chat", exact=True).select_option(f"Study (group {GROUP.session_id})")
    await click(page, "Show")
    assert await page.get_by_text(f"rendered for {GROUP}").is_visible()
    await page.locator("summary", has_text="Cat").click()
    await page.locator("details", has_text="miau").get_by_role("link", name="Change its text").click()
    text = page.get_by_label("What the persona is told")
    await text.fill("  ")
    await click(page, "See what changes")
    assert await told(page) == "A persona needs some words."
    await text.fill("miau\npurr")
    await click(page, "See what changes")
    assert await page.locator(".diff .new").all_text_contents() == ["added:purr"]
    await page.reload()
    assert await text.input_value() == "miau\npurr"  # nothing that was typed is lost
    await click(page, "Try it without saving")
    assert await page.locator("details pre").text_content() == "miau\npurr"
    await click(page, "Open the group")
    assert (own.trying.wanted[-1].key, own.trying.wanted[-1].text) == ("cat", "miau\npurr")
    assert own.personas[1].text == "miau"
    await page.goto(f"http://{own.host}/persona/text?key=cat")
    await text.fill("miau\npurr")
    await click(page, "See what changes")
    await click(page, "Use it from the next answer on")
    assert (await told(page)).startswith("In use from the next answer on")
    assert [one.text for one in own.personas] == ["be kind", "miau\npurr"]
    await click(page, "Back to the text before")
    assert await text.input_value() == "miau" == own.personas[1].text
    assert done(own)[-2:] == [("persona apply", "cat", "ok"), ("persona back", "cat", "ok")]


async def test_the_language_is_changed_on_the_page_where_somebody_is_also_once_something_was_done_there(
    page: Any, own: Place
) -> None:
    own.personas = [*PERSONAS]
    await page.goto(f"http://{own.host}/persona/text?key=cat")
    await click(page, "See what changes")
    await click(page, "中文")
    assert await page.locator("#text").input_value() == "miau"
    await page.goto(f"http://{own.host}/chats/{GROUP}")
    await page.locator("summary").click()
    await page.locator("#name").fill("1")
    await press(page, "Enter")
    assert await page.get_by_role("status").text_content() == "这不是这个会话的号码，什么都没有删。"
    await click(page, "English")
    assert page.url == f"http://{own.host}/chats/{quote(str(GROUP), safe='')}"
    assert await page.get_by_text("No messages of this chat are kept").is_visible()
    other = await page.context.new_page()
    await other.goto(f"http://{own.host}/health")
    assert await other.locator("html").get_attribute("lang") == "en"


async def test_costs_are_looked_at_by_everything_and_taken_away_as_a_table_without_a_formula(
    page: Any, own: Place
) -> None:
    today = midnight(own.clock.now())
    for by, names in (
        ("conversation", (str(GROUP),)),
        ("asker", ("777",)),
        ("model", ('=HYPERLINK("https://evil.example")', "+1", "-1", "@SUM(A1)", "\tx", "fine, really")),
        ("tool", ("weather",)),
        ("day", (str(today),)),
    ):
        own.journal.sums[by] = tuple(CostSum(name, UsageSum(2, 2400, 1800, 100, 1.5)) for name in names)
    await page.goto(f"http://{own.host}/cost")
    assert await page.locator(".figures b").all_text_contents() == ["$1.50", "$45.00", "75%", "2", "0%"]
    for tab, cell in TABS:
        await click(page, tab, role="link")
        assert await page.locator(".tabs [aria-current]").text_content() == tab
        assert await page.locator("td", has_text=cell).count() == 1
    name, text = await taken(page, "CSV")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (name, [row["model"] for row in rows]) == (
        "cost-model.csv",
        ['\'=HYPERLINK("https://evil.example")', "'+1", "'-1", "'@SUM(A1)", "'\tx", "fine, really"],
    )
    assert {(row["requests"], row["prompt"], row["cost"]) for row in rows} == {("2", "2400", "1.5")}
    name, text = await taken(page, "CSV by day")
    assert (name, text.count("\n")) == ("cost-day.csv", 2)


async def test_all_are_logged_out_by_one_and_a_link_lets_in_once(browser: Any, page: Any, own: Place) -> None:
    async with await browser.new_context(locale="en") as elsewhere:
        other, link = await elsewhere.new_page(), own.console.link()
        await other.goto(link)
        await other.wait_for_url(f"http://{own.host}/")
        assert await other.evaluate("location.hash") == ""
        await page.goto(f"http://{own.host}/access")
        assert await page.locator("section:first-of-type .rows li").count() == 2
        assert await page.get_by_text("with a link").count() == 1
        await click(page, "Log everybody out")
        assert page.url.endswith("/login")
        await click(other, "Turns", role="link")
        assert other.url.endswith("/login")
        await other.goto("about:blank")
        await other.goto(link)
        assert "This link was used" in await other.get_by_role("alert").text_content()
        assert own.console.logins.open == ()
        await other.goto("about:blank")
        await other.goto(own.console.link())
        await other.wait_for_url(f"http://{own.host}/")
        await click(other, "Access", role="link")
        rows = await other.locator("table tbody tr").all_text_contents()
        assert ["all logins ended: 2" in row for row in rows] == [False, False, True, False, False]
    assert [(action, outcome) for action, _, outcome in done(own)] == [
        ("login", "ok"),
        ("login", "ok"),
        ("end all logins", "ok"),
        ("login", "refused"),
        ("login", "ok"),
    ]


async def test_the_doctor_looks_when_he_is_asked_and_not_again_at_once(page: Any, own: Place) -> None:
    own.found = [Finding("model", "problem", "it does not answer", "Look at LLM_BASE_URL")]
    await page.goto(f"http://{own.host}/health")
    await page.get_by_text("No check has been run yet.").wait_for()
    for seconds, looks in ((0.0, 1), (RESTS - 1, 1), (1.0, 2)):
        own.clock.time += seconds
        await click(page, "Look again")
        assert (page.url.endswith("#doctor"), own.looks) == (True, looks)
    assert await page.locator(".findings .found").text_content() == "it does not answer→ Look at LLM_BASE_URL"
    assert done(own)[1:] == [("doctor", "", "1 of 1 to mend")] * 2


async def test_keys_go_through_chats_and_what_is_typed_into_a_field_stays_there(page: Any, own: Place) -> None:
    line = ChatLine(message_id="5", at=NOW, sender=7, name="x", text="y")
    for number in (4242, 4343, 4444):
        own.journal.talks.append(Chat(where=Conversation(1000, "group", number), group="", lines=(line,)))
    await page.goto(f"http://{own.host}/chats")
    await page.keyboard.press("/")  # there is nothing to filter
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await press(page, "Enter")
    assert page.url.endswith("/chats/1000%3Agroup%3A4343")
    await page.go_back()
    await page.keyboard.press("?")
    assert await page.get_by_role("dialog").get_by_text("through the rows").is_visible()
    await page.keyboard.press("j")
    await page.keyboard.press("Escape")
    assert await page.get_by_role("dialog").count() == 0
    await page.goto(f"http://{own.host}/turns")
    await page.keyboard.press("/")
    await page.get_by_label("Asked by").press_sequentially("jk/?")
    assert await page.get_by_label("Asked by").input_value() == "jk/?"


async def test_a_chat_is_read_taken_away_and_forgotten_once_its_number_is_typed(desk: Opening) -> None:
    at = await desk(words("with an umbrella"))
    where = Conversation(10001, "group", TOWN_GROUP)
    await at.stage.say("what a day", user=MEMBER)
    await at.stage.say("@bot what shall I take", user=MEMBER)
    fact = StoredFact(memory_id="m", scope=where, subject=MEMBER, author=MEMBER, text="lives in Wuhan")
    await at.stage.service.app.store.commit(MemoryKept(fact, ()))
    page = await at.open("/")
    await click(page, "Chats", role="link")
    async with page.expect_navigation():
        await page.locator(".chats a", has_text="FrostAgent").click()
    talk = await page.locator(".message .words").all_text_contents()
    assert [" ".join(one.split()) for one in talk] == ["what a day", "what shall I take", "with an umbrella"]
    assert await page.locator(".message .woke").count() == 1
    assert await page.get_by_text("lives in Wuhan").is_visible()
    name, text = await taken(page, "Messages as a file (JSON lines)")
    lines = [json.loads(line) for line in text.splitlines()]
    assert (name, [(one["sender"], one["own"]) for one in lines]) == (
        f"chat-10001-group-{TOWN_GROUP}.jsonl",
        [(MEMBER, False), (MEMBER, False), (10001, True)],
    )
    assert lines[2]["text"] == "with an umbrella"
    forget = page.get_by_role("button", name="Forget this chat")
    assert not await forget.is_visible()
    await page.locator("summary", has_text="Forget this chat").click()
    await forget.click()  # without a number nothing is sent
    await page.locator("#name").press_sequentially("4343")
    await press(page, "Enter")
    assert await told(page) == "That is not the number of this chat. Nothing was erased."
    kept = await at.stage.service.app.journal.shown.chat(where, 0)
    assert kept is not None
    assert len(kept.lines) == 3
    await page.locator("summary", has_text="Forget this chat").click()
    await page.locator("#name").press_sequentially(str(TOWN_GROUP))
    await click(page, "Forget this chat")
    assert (await told(page)).startswith("Erased: ")
    assert await page.get_by_text("No messages of this chat are kept").is_visible()
    assert await page.get_by_text("lives in Wuhan").count() == 0
    assert await at.stage.service.app.journal.shown.chats(0) == ChatRows((), None)
    assert [(action, outcome) for action, _, outcome in await at.done()] == [
        ("export", "ok"),
        ("forget", "name"),
        ("forget", "ok"),
    ]


async def test_without_script_one_logs_in_allows_a_call_and_has_a_chat_forgotten(browser: Any, desk: Opening) -> None:
    at = await desk(WIPE, words("wiped!"))
    await at.stage.ask()
    async with await browser.new_context(locale="en", java_script_enabled=False) as context:
        page = await context.new_page()
        await page.goto(f"{at.root}/approvals")
        await page.get_by_label("Token").press_sequentially(TOKEN)
        await press(page, "Enter")
        await click(page, "Approvals 1", role="link")
        await click(page, "Allow")
        assert await told(page) == "A1: allowed."
        await at.stage.until(lambda: at.stage.group()[-1] == "wiped!")
        await page.goto(f"{at.root}/chats")
        async with page.expect_navigation():
            await page.locator(".chats a", has_text="FrostAgent").click()
        await page.locator("summary", has_text="Forget this chat").click()
        await page.locator("#name").press_sequentially(str(TOWN_GROUP))
        await click(page, "Forget this chat")
        assert (await told(page)).startswith("Erased: ")
    assert at.stage.done == ["sda is wiped"]
    assert await at.stage.service.app.journal.shown.chats(0) == ChatRows((), None)


async def test_a_job_is_cancelled_and_a_greeting_changed_with_clicks_and_the_enter_key(page: Any, own: Place) -> None:
    own.jobs = [job(7, "drink water"), job(8, "tidy up", where=ELSEWHERE)]
    await page.goto(f"http://{own.host}/")
    await click(page, "Scheduled", role="link")
    await click(page, "Cancel J8")
    assert await told(page) == "Cancelled."
    assert [one.number for one in own.jobs] == [7]
    await click(page, f"group {GROUP.session_id}", role="link")
    joined, left = (page.locator(f"#words-{change}") for change in ("joined", "left"))
    await joined.fill("Hi {name}")
    await press(page, "Enter")
    assert await told(page) == "Changed."
    assert await page.locator("#greetings blockquote").all_text_contents() == ["Hi {name}"]
    assert await joined.input_value() == "Hi {name}"
    async with page.expect_navigation():
        await page.get_by_role("button", name="Say nothing", exact=True).nth(1).click()
    assert (own.greetings["joined"].words, own.greetings["left"].words) == ("Hi {name}", "off")
    await left.fill(" ")
    async with page.expect_navigation():
        await page.get_by_role("button", name="Use this message", exact=True).nth(1).click()
    assert "Write a message" in await told(page)
    assert done(own)[-3:] == [
        ("cancel", str(ELSEWHERE), "J8"),
        ("welcome", str(GROUP), "ok"),
        ("farewell", str(GROUP), "ok"),
    ]
