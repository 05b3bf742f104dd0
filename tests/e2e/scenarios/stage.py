"""The stage of a scenario: a simulated QQ, the whole service on a scripted clock, and its cast."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from adapters.openai.client import OpenAIModel
from adapters.simulator.call import SentMessage
from adapters.simulator.faults import parse_fault
from adapters.simulator.people import Group, Person
from adapters.simulator.server import Simulator
from adapters.simulator.world import World
from bot.app import Service, open_service
from config.loading import load_settings
from tests.e2e.scenarios.loop import ScriptedClock, ScriptedLoop
from tests.e2e.scenarios.model import StageModel
from tests.e2e.scenarios.parts import Written, quoted_in, segments_of, text_of
from tests.e2e.scenarios.script import Scenario

T = TypeVar("T")

GROUP, GROUP_NAME = 4242, "摸鱼群"
FIRST = 20001  # the number of the first of the cast
LATEST = "bot"  # the label of the bot's latest message
ROLES = {"owner": "member", "stranger": "member"}  # the bot's owner is an ordinary member
TOOLS = Path(__file__).parent / "props"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something to be seen in the chat: when (seconds since the beginning), by whom, what."""

    at: float
    who: str
    what: str


def make_world(people: Mapping[str, Any], clock: ScriptedClock) -> World:
    """The group with the cast in it; all but strangers are friends of the account."""
    world = World(nickname="FrostAgent", now=clock.now)
    world.add_group(GROUP, GROUP_NAME)
    for number, (name, told) in enumerate(people.items(), FIRST):
        more = dict(told) if isinstance(told, dict) else {"role": told}
        role = more.pop("role", "member")
        person = Person(more.pop("number", number), name, role=ROLES.get(role, role), **more)
        world.group(GROUP).members[person.user_id] = person
        if role != "stranger":
            world.add_friend(person)
    return world


class Stage:
    """Where one scenario is played. `seen` is all that happened, for whoever reads along."""

    def __init__(self, scenario: Scenario, *, loop: ScriptedLoop, folder: Path) -> None:
        self.scenario = scenario
        self.loop = loop
        self.folder = folder
        self.clock = ScriptedClock(loop)
        self.world = make_world(scenario.people, self.clock)
        self.model = StageModel(scenario.answers, self._see)
        self.labels: dict[str, int] = {}
        self.seen: list[Happening] = []
        self.simulator = Simulator(self.world, heartbeat=0.0, on_sent=self._came)
        self._began = 0.0
        self._url = ""
        self._life = AsyncExitStack()
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
        """The QQ number of one of the cast."""
        return self.world.people(GROUP)[name]

    # --- the service's lives ----------------------------------------------------------------------

    async def open(self) -> None:
        """Let the service live; from then on time stands still."""
        self._url = self._url or await self.simulator.serve()
        settings, _ = load_settings(environ=self._environ(), env_file=None)

        def wrap(port: T, /) -> T:
            scripted: Any = self.model
            return scripted if isinstance(port, OpenAIModel) else port

        self._service = await self._life.enter_async_context(open_service(settings, wrap=wrap, clock=self.clock))
        await self.simulator.wait_connected()
        self.loop.freeze()
        await self.loop.pass_time(0.1)  # histories are read, the journal has settled
        self._began = self._began or self.loop.time()

    async def close(self) -> None:
        """The service ends properly."""
        self.loop.release()
        life, self._life = self._life, AsyncExitStack()
        await life.aclose()
        await self.simulator.wait_until(lambda: self.simulator.connected == 0)

    def _environ(self) -> dict[str, str]:
        owners = [name for name, role in self.scenario.people.items() if role == "owner"]
        return {
            "LLM_BASE_URL": "http://127.0.0.1:9/v1",
            "LLM_API_KEY": "none",
            "LLM_MODEL": "scripted",
            "ONEBOT_MODE": "forward",
            "ONEBOT_URL": self._url,
            "ONEBOT_ACCESS_TOKEN": "a-scenario-has-no-secrets",
            "STORE_URL": f"sqlite:///{self.folder}/bot.db",
            "MEDIA_DIR": str(self.folder / "media"),
            "BOT_OWNERS": ",".join(str(self.number(name)) for name in owners),
            "TOOLS_DIR": str(TOOLS),
            "WEB_PORT": "0",
            **self.scenario.settings,
        }

    # --- what people do ---------------------------------------------------------------------------

    async def say(self, name: str, written: Written) -> None:
        """Somebody says something: words, parts, or a mapping with `say` and more."""
        told: Mapping[str, Any] = written if isinstance(written, dict) and "say" in written else {"say": written}
        segments = segments_of(told["say"], world=self.world, labels=self.labels, group=self.group)
        if label := told.get("quote"):
            reply = {"type": "reply", "data": {"id": str(self.labels[label])}}
            segments = [reply, *segments]
        user_id = self.number(name)
        self._see(name, str(told["say"]) + (f"  ↩ {label}" if label else ""))
        if told.get("private"):
            message_id = await self.simulator.say_private(segments, user_id=user_id)
        else:
            message_id = await self.simulator.say(segments, user_id=user_id)
        if "id" in told:
            self.labels[told["id"]] = message_id

    async def do(self, verb: str, value: Any) -> None:
        """Something that happens and is not said."""
        self._see("*", f"{verb} {value if value is not True else ''}".rstrip())
        await DOINGS[verb](self, value)

    async def recall(self, label: str) -> None:
        await self.simulator.incidents.recall(self.labels[label])

    async def mute(self, seconds: float) -> None:
        await self.simulator.incidents.mute(seconds)

    async def lift(self, _: Any) -> None:
        await self.simulator.incidents.lift()

    async def poke(self, who: str) -> None:
        await self.simulator.incidents.poke(user_id=self.number(who), group_id=GROUP)

    async def restart(self, _: Any) -> None:
        await self.close()
        await self.open()

    async def drop(self, _: Any) -> None:
        await self.simulator.sockets.drop()

    async def back(self, _: Any) -> None:
        self.simulator.sockets.come_back()

    async def fault(self, line: str) -> None:
        self.simulator.faults.put(parse_fault(line))

    async def rename(self, names: Mapping[str, str]) -> None:
        for old, new in names.items():
            person = self.group.members[self.number(old)]
            renamed = Person(person.user_id, person.nickname, card=new, role=person.role)
            self.group.members[person.user_id] = renamed

    # --- what is seen -----------------------------------------------------------------------------

    def _came(self, message: SentMessage) -> None:
        self.labels[LATEST] = message.message_id
        quoted = quoted_in(message)
        label = next((name for name, number in self.labels.items() if number == quoted), quoted)
        told = text_of(message) or str([part["type"] for part in message.segments])
        self._see("bot", told + (f"  ↩ {label}" if quoted else ""))

    def _see(self, who: str, what: str) -> None:
        self.seen.append(Happening(self.now, who, what))


DOINGS: Mapping[str, Callable[[Stage, Any], Awaitable[None]]] = {
    "recall": Stage.recall,
    "mute": Stage.mute,
    "lift": Stage.lift,
    "poke": Stage.poke,
    "restart": Stage.restart,
    "drop": Stage.drop,
    "back": Stage.back,
    "fault": Stage.fault,
    "rename": Stage.rename,
}
"""The verbs of a script, each with what it does."""
