"""The stage of a scenario: a simulated QQ, the whole service on a scripted clock, and its cast."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, cast
from unittest.mock import patch

from adapters.offline.web import DemoPage, OfflineWeb
from adapters.simulator import shared_media
from adapters.simulator.call import Gesture, SentMessage
from adapters.simulator.server import Simulator
from adapters.simulator.world import Group, Person, World
from bot.app import Service, open_service
from bot.core.conversation import Conversation
from bot.memory.modes import Mode
from bot.runtime.reloading import ReloadResult
from bot.runtime.watchdog import Watchdog
from config.loading import load_settings
from frostagent.models.openai.client import OpenAIModel
from frostagent.types.ports import ChatModel
from tests.e2e.scenarios.loop import ScriptedClock, ScriptedLoop
from tests.e2e.scenarios.model import Named, StageModel
from tests.e2e.scenarios.parts import quoted_in, text_of
from tests.e2e.scenarios.script import Scenario
from tests.e2e.scenarios.servers import servers_in_memory
from tests.e2e.scenarios.shelf import Shelf

T = TypeVar("T")

GROUP, GROUP_NAME = 4242, "摸鱼群"
SECOND, SECOND_NAME = 5252, "二群"
FIRST = 20001  # the number of the first of the cast
LATEST = "bot"  # the label of the bot's latest message
ROLES = {"owner": "member", "quiet": "member", "stranger": "member"}  # the bot's owner is an ordinary member
TOOLS = Path(__file__).parent / "props"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something to be seen in the chat: when (seconds since the beginning), by whom, what."""

    at: float
    who: str
    what: str


def make_world(people: Mapping[str, Any], clock: ScriptedClock) -> World:
    """Two groups with the cast in them; all but strangers are friends of the account."""
    world = World(nickname="FrostAgent", now=clock.now)
    world.add_group(GROUP, GROUP_NAME)
    world.add_group(SECOND, SECOND_NAME)
    for number, (name, told) in enumerate(people.items(), FIRST):
        more = dict(told) if isinstance(told, dict) else {"role": told}
        role = more.pop("role", "member")
        more["is_robot"] = more.pop("robot", False)
        person = Person(more.pop("number", number), name, role=ROLES.get(role, role), **more)
        for group in world.groups.values():
            group.members[person.user_id] = person
        if role != "stranger":
            world.add_friend(person)
    return world


def page_of(told: Mapping[str, Any]) -> DemoPage:
    """A page of a script: its title and text, or what its server sends."""
    fields = dict(told)
    html = fields.pop("html", "")
    return DemoPage(**fields, **({"body": html.encode()} if html else {}))


async def unwatched(_: Watchdog) -> None:
    """Four looks a second at a clock that is never late were half of what a scenario of a day costs."""
    await asyncio.get_running_loop().create_future()


class Stage:
    """Where one scenario is played. `seen` is all that happened, for whoever reads along.

    Another `model` than the scenario's may answer.
    """

    def __init__(self, scenario: Scenario, *, loop: ScriptedLoop, folder: Path, model: ChatModel | None = None) -> None:
        self.scenario = scenario
        self.loop = loop
        self.folder = folder
        self.clock = ScriptedClock(loop, begins=scenario.begins, day=scenario.day)
        self.world = make_world(scenario.people, self.clock)
        self._numbers = self.world.people(GROUP)
        self._people = dict(self.group.members)
        self.model = StageModel(scenario.answers, self.see)
        self._speaks = model or self.model
        self.asked: list[str] = []  # of each request the name of the model
        self.labels: dict[str, int] = {}
        self.seen: list[Happening] = []
        self.came_at: list[float] = []
        self.gestures: list[Gesture] = []
        self.simulator = Simulator(self.world, heartbeat=0.0, on_sent=self._came, on_gesture=self._moved)
        self.shelf = Shelf(self.world)
        self.web = OfflineWeb({url: page_of(told) for url, told in scenario.pages.items()})
        self._began = 0.0
        self._url = ""
        self._life, self._stack = AsyncExitStack(), AsyncExitStack()
        self._service: Service | None = None

    @property
    def group(self) -> Group:
        """The group that all is said in unless it is said elsewhere."""
        return self.world.group(GROUP)

    @property
    def now(self) -> float:
        """Seconds since the script began."""
        return self.loop.time() - self._began

    def number(self, name: str) -> int:
        """The QQ number of one of the cast, by the name in the script whatever they call themselves."""
        return self._numbers[name]

    def person(self, name: str) -> Person:
        """One of the cast, whether or not they are in the group."""
        return self._people[self.number(name)]

    # --- the service's lives ----------------------------------------------------------------------

    async def open(self) -> None:
        """Let the service live; from then on time stands still."""
        for name, text in self.scenario.files.items():
            (self.files / name).parent.mkdir(parents=True, exist_ok=True)
            if not (self.files / name).exists():
                words, times = (text, 1) if isinstance(text, str) else text
                (self.files / name).write_text(words * times, "utf-8")
        settings, _ = load_settings(environ=self._environ(), env_file=None)

        def wrap(port: T, /) -> T:
            scripted: Any = port
            if isinstance(port, OpenAIModel):
                scripted = Named(port.name.partition("@")[0], self._speaks, self.asked)
            return cast("T", scripted)

        self._service = await self._life.enter_async_context(open_service(settings, wrap=wrap, clock=self.clock))
        await self.simulator.wait_connected()
        self.loop.freeze()
        await self.loop.pass_time(0.1)  # histories are read, the journal has settled
        self._began = self._began or self.loop.time()
        if "BOT_NEW_GROUP" not in self.scenario.settings:  # nobody is to hear of the groups of all scripts
            for group in self.world.groups:
                where = Conversation(self.world.self_id, "group", group)
                self._service.app.modes.put(where, Mode.LIVE)

    @property
    def files(self) -> Path:
        """The folder that a script writes files into: `$FILES` in a setting."""
        return self.folder / "files"

    async def reload(self) -> ReloadResult:
        """The service reads its files again."""
        assert self._service is not None
        return await self._service.reload()

    async def close(self) -> None:
        """The service ends properly."""
        self.loop.release()
        life, self._life = self._life, AsyncExitStack()
        await life.aclose()
        await self.simulator.wait_until(lambda: self.simulator.connected == 0)

    async def __aenter__(self) -> Self:
        if not any("stand_still" in line for line in self.scenario.lines):
            self._stack.enter_context(patch.object(Watchdog, "run", unwatched))
        if "MCP_FILE" in self.scenario.settings:
            self._stack.enter_context(servers_in_memory())
        await self._stack.enter_async_context(self.simulator)
        await self._stack.enter_async_context(self.shelf)
        if self.scenario.pages or "$WEB" in self.scenario.settings.values():
            await self._stack.enter_async_context(self.web)
        self._url = await self.simulator.serve()
        await self.open()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
        await self._stack.aclose()

    def _environ(self) -> dict[str, str]:
        alarms = {"owner": "", "quiet": ":quiet"}
        people = [(name, role) for name, role in self.scenario.people.items() if isinstance(role, str)]
        owners = [f"{self.number(name)}{alarms[role]}" for name, role in people if role in alarms]
        return {
            "LLM_BASE_URL": "http://127.0.0.1:9/v1",
            "LLM_API_KEY": "none",
            "LLM_MODEL": "scripted",
            "ONEBOT_MODE": "forward",
            "ONEBOT_URL": self._url,
            "ONEBOT_ACCESS_TOKEN": "a-scenario-has-no-secrets",
            "STORE_URL": f"sqlite:///{self.folder}/bot.db",
            "MEDIA_DIR": str(self.folder / "media"),
            "BOT_OWNERS": ",".join(owners),
            "BOT_NEW_GROUP": "live",
            "TOOLS_DIR": str(TOOLS),
            "WEB_PORT": "0",
            **({"TZ": self.scenario.zone} if self.scenario.zone else {}),
            "BOT_MEMORY": "0",  # what asks its model for facts, says so
            "TOOLS_MIRRORS": json.dumps({shared_media.HOST: self.shelf.url(), **self.web.mirrors}),
            **{name: self._filled(value) for name, value in self.scenario.settings.items()},
        }

    def _filled(self, value: str) -> str:
        value = value.replace("$WEB", self.web.url)
        return value.replace("$SHELF", self.shelf.url()).replace("$FILES", str(self.files))

    # --- what is seen -----------------------------------------------------------------------------

    def _came(self, message: SentMessage) -> None:
        self.labels[LATEST] = message.message_id
        self.came_at.append(self.now)
        quoted = quoted_in(message)
        label = self.label_of(quoted) or quoted
        told = text_of(message) or str([part["type"] for part in message.segments])
        self.see("bot", told + (f"  ↩ {label}" if quoted else ""))

    def _moved(self, gesture: Gesture) -> None:
        self.gestures.append(gesture)
        self.see("bot", f"({gesture.kind} {gesture.emoji_id} {self.label_of(gesture.message_id)})")

    def label_of(self, message_id: int) -> str:
        """What the script calls a message; empty where it has no name for it."""
        return next((name for name, number in self.labels.items() if number == message_id), "")

    def see(self, who: str, what: str) -> None:
        """Keep it for whoever reads along."""
        self.seen.append(Happening(self.now, who, what))
