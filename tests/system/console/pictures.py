"""The pictures of docs/console.md: an evening in two groups, as the console of a real service shows it.

`python -m tests.system.console.pictures docs/pictures` plays the evening and writes them. It needs
Chromium.
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from PIL import Image
from playwright.async_api import async_playwright

from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World
from bot.app import Service, open_service
from config.loading import load_settings
from frostagent.models.openai.client import OpenAIModel
from frostagent.testing.scripted_model import call
from frostagent.types.errors import ModelAuth
from frostagent.types.messages import AssistantMessage, Completion, FinishReason, ModelRequest, ToolCall, Usage
from tests.ports import free_port
from tests.tiers import CHROMIUM

T = TypeVar("T")

STUDY, GAMES = 42420, 42500
OWNER, MING, HONG, ANN, QIANG = 20001, 20002, 20003, 20004, 20005
TOOLS = '''
import asyncio

from frostagent import tool


@tool
async def timetable(day: str) -> str:
    """Looks the courses of a day up."""
    await asyncio.sleep(0.3)
    return "08:00 高等数学 A301\\n10:00 大学物理 B112"


@tool(permission="require_approval", side_effects="external")
async def book_room(room: str, hour: int) -> str:
    """Books a room."""
    return "booked"
'''


@dataclass(frozen=True, slots=True)
class Turn:
    """Somebody's line, and the answers the model gives to it, each with the seconds it takes."""

    group: int
    asker: int
    line: str
    answers: tuple[tuple[float, str | ToolCall | Exception], ...] = ()


EVENING = (
    Turn(STUDY, MING, "有人知道明天第一节是什么课吗"),
    Turn(
        STUDY,
        HONG,
        "@bot 明天第一节在哪上？",
        (
            (0.6, call("timetable", day="周二")),
            (0.5, "第一节是高等数学，8 点在 A301；10 点还有大学物理，在 B112。"),
        ),
    ),
    Turn(
        GAMES, ANN, "@bot is the server up again?", ((0.7, "I cannot see that from here: ask in the status channel."),)
    ),
    Turn(STUDY, MING, "谢谢，那我七点半出门"),
    Turn(GAMES, QIANG, "@bot 今晚几点开黑？", ((0.4, ModelAuth("the key was refused")),)),
    Turn(
        STUDY,
        HONG,
        "@bot 帮我们订周三下午三点的自习室",
        ((0.5, call("book_room", room="自习室 204", hour=15)),),
    ),
)


class Scripted:
    """A model that answers each turn of the evening as it says, and takes that many times its time."""

    name = "deepseek-chat"

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self.left: list[tuple[float, str | ToolCall | Exception]] = []
        self._asked = 0

    async def complete(self, request: ModelRequest) -> Completion:
        seconds, answer = self.left.pop(0)
        self._asked += 1
        await asyncio.sleep(seconds * self._pace)
        usage = Usage(2300 + 140 * self._asked, 60, cached=1900, cost=0.0004)
        match answer:
            case Exception():
                raise answer
            case ToolCall():
                made = AssistantMessage(tool_calls=(ToolCall(f"c{self._asked}", answer.name, answer.arguments),))
                return Completion(made, FinishReason.TOOL_CALLS, usage)
            case str():
                return Completion(AssistantMessage(answer), FinishReason.STOP, usage)


def town() -> World:
    """Two groups, and the owner as a friend."""
    world = World()
    ming, hong, ann, qiang = Person(MING, "小明"), Person(HONG, "小红"), Person(ANN, "Ann"), Person(QIANG, "阿强")
    owner = Person(OWNER, "群主", role="owner")
    world.add_group(STUDY, "学习群", (owner, ming, hong))
    world.add_group(GAMES, "游戏群", (owner, ann, qiang))
    world.add_friend(Person(OWNER, "群主"))
    return world


@asynccontextmanager
async def serving(folder: Path, simulator: Simulator, model: Scripted) -> AsyncIterator[Service]:
    """A service with a console, whose model is that one."""
    (folder / "tools").mkdir()
    (folder / "tools" / "school.py").write_text(TOOLS, "utf-8")
    settings, _ = load_settings(
        environ={
            "LLM_BASE_URL": "http://127.0.0.1:9/v1",
            "LLM_API_KEY": "none",
            "LLM_MODEL": model.name,
            "ONEBOT_MODE": "forward",
            "ONEBOT_URL": await simulator.serve(),
            "ONEBOT_ACCESS_TOKEN": "a-picture-has-no-secrets",
            "STORE_URL": f"sqlite:///{folder}/bot.db",
            "MEDIA_DIR": str(folder / "media"),
            "TOOLS_DIR": str(folder / "tools"),
            "BOT_OWNERS": str(OWNER),
            "BOT_NEW_GROUP": "live",
            "BOT_MEMORY": "0",
            "BOT_PACE": "0",
            "BOT_DEBOUNCE": "0",
            "WEB_PORT": "0",
            "CONSOLE_PORT": str(free_port()),
            "CONSOLE_TOKEN": "0123456789abcdef0123456789abcdef",
        },
        env_file=None,
    )

    def wrap(port: T, /) -> T:
        scripted: Any = model
        return scripted if isinstance(port, OpenAIModel) else port

    async with open_service(settings, wrap=wrap) as service:
        await simulator.wait_connected()
        yield service


async def play(service: Service, simulator: Simulator, model: Scripted, evening: Sequence[Turn] = EVENING) -> None:
    """Let the evening pass: each line is answered, or waits for a word, before the next is said."""
    own = simulator.world.self_id
    for turn in evening:
        model.left += turn.answers
        said = await simulator.say(turn.line, group_id=turn.group, user_id=turn.asker)
        if turn is evening[-1]:  # whose call waits for the owner
            await simulator.wait_until(lambda: any(sent.user_id == OWNER for sent in simulator.delivered))
        else:
            await service.wait_settled((own, "group", turn.group, str(said)))
            await service.wait_idle()


Shot: TypeAlias = tuple[str, str, tuple[int, int], str]
"""The name of a picture, its page, how large that is, and its theme."""

SHOTS: tuple[Shot, ...] = (
    ("today", "/", (390, 844), "light"),
    ("turn-phone", "/turns?outcome=answered", (390, 844), "light"),
    ("approvals", "/approvals", (390, 844), "dark"),
    ("turn", "/turns?outcome=answered", (1280, 900), "dark"),
    ("try", "/try?new=1", (390, 844), "light"),
    ("sources", "/try?new=1", (390, 760), "light"),
)
TALKS = {
    ("try", "en"): (
        ("user1", "send me a picture", True),
        ("user2", "is that thing alive?", False),
        ("user1", "be quiet", True),
    ),
    ("try", "zh"): (("user1", "发张图", True), ("user2", "这机器人是活的吗", False), ("user1", "别说话", True)),
    ("sources", "en"): (("user1", "search for why cats purr", True),),
    ("sources", "zh"): (("user1", "搜一下霜降吃什么", True),),
}
"""What is said in the simulated group: by whom, what, and whether to the bot."""
SHOWN = {
    "try": "document.images[0].naturalWidth > 0",
    "sources": "document.querySelector('main').textContent.includes('https://')",
}
"""What is true once the answer is there."""
COLOURS = 64  # of which a page has few, and a picture then a third of the bytes
LANGUAGES = {"en": "en", "zh": "zh-CN"}


async def wait_true(page: Any, condition: str) -> None:
    """Wait until this is true in the page. Playwright's `wait_for_function` evaluates its words again
    at every frame, which our policy refuses: it works only if they are true at once.
    """
    look = (
        f"new Promise(done => {{ (function look() {{ ({condition}) ? done() : requestAnimationFrame(look); }})(); }})"
    )
    async with asyncio.timeout(30):
        await page.evaluate(look)


async def talk(page: Any, name: str, language: str) -> None:
    """Open the simulated group, and say what is said there."""
    await page.locator("main button.main").click()
    for who, line, is_called in TALKS[name, language]:
        await page.locator("#as").select_option(who)
        await page.locator("#text").fill(line)
        await page.locator("[name=call]").set_checked(is_called)
        async with page.expect_navigation():
            await page.locator(".say button.main").click()
    await page.evaluate("scrollTo(0, 0)")
    await wait_true(page, SHOWN[name])


async def shoot(browser: Any, link: str, shots: Sequence[Shot], into: Path) -> None:
    """Write every picture in both languages: `NAME.png` and `NAME.zh.png`."""
    address = link.partition("/login")[0]
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(link)
    await page.wait_for_url(f"{address}/")
    cookies = await context.cookies()
    for short, locale in LANGUAGES.items():
        for name, path, (width, height), theme in shots:
            context = await browser.new_context(
                locale=locale, color_scheme=theme, viewport={"width": width, "height": height}, device_scale_factor=1
            )
            await context.add_cookies(cookies)
            page = await context.new_page()
            await page.goto(address + path)
            if name in {"turn", "turn-phone"}:
                first = page.locator("main a[href*='/turns/']").last
                await page.goto(address + str(await first.get_attribute("href")))
            if (name, short) in TALKS:
                await talk(page, name, short)
            with Image.open(io.BytesIO(await page.screenshot())) as picture:
                small = picture.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
                small.save(into / f"{name}{'' if short == 'en' else '.zh'}.png", optimize=True)
            await context.close()


async def main(into: Path, shots: Sequence[Shot] = SHOTS, *, pace: float = 1.0) -> None:
    """Play the evening, and write these pictures of it into this folder."""
    model = Scripted(pace)
    with tempfile.TemporaryDirectory() as folder:
        async with Simulator(town()) as simulator, serving(Path(folder), simulator, model) as service:
            await play(service, simulator, model)
            assert service.console_link is not None
            link = service.console_link()
            async with async_playwright() as driver:
                browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                await shoot(browser, link, shots, into)
                await browser.close()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(folder))
