"""Whatever happens, what was for the bot ends: in words, in silence that was chosen, in a reason, or with a recall."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import suppress
from random import Random

import pytest
from msgspec.structs import replace

from bot.chat.lanes import Lane
from bot.chat.tasks import Resume
from bot.core.events import MessageReceived
from bot.core.journal import Judged, MessageErased, MessageObserved, MessageTakenUp, TurnClosed, TurnOpened, TurnSteered
from bot.policy.wake import Rules, Silence
from frostagent.types.errors import ModelBilling
from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.runs import Stop
from frostagent.types.speech import Quote, Text
from frostagent.types.suspension import Allow, Deny, Suspend
from frostagent.types.tools import ToolContext, tool
from frostagent.types.traits import Rate
from tests.bot.hall import Hall, hall, muted, recalled
from tests.cases import each_case
from tests.fakes import BOT, GROUP, calls, said, words
from tools.stay_silent import stay_silent

STEPS, MANY = 100, 400
KNOWN = {
    "own": said("mine", user=BOT, at=False, message_id="own"),
    "other": said("his", user=9, at=False, message_id="other"),
}
RULES = Rules(names=("小霜",), chance=0.6, stale=120, loop=3)


def line(random: Random, number: int) -> MessageReceived:
    """Something that is said: to the bot, about it, or to nobody."""
    name, user = f"m{number}", random.choice((5, 6, 7))
    quote = random.choice(("own", "other", "unknown"))
    match random.choice(("mention", "name", "quote", "talk")):
        case "mention":
            return said(f"question {number}", user=user, message_id=name)
        case "name":
            return said(f"小霜真可爱 {number}", at=False, user=user, message_id=name)
        case "quote":
            return said((Quote(quote), Text(f"why {number}?")), at=False, user=user, message_id=name)
        case _:
            return said(f"talk {number}", at=False, user=user, message_id=name)


async def hear(house: Hall, message: MessageReceived) -> None:
    """It comes as it is said."""
    await house.dispatcher.handle(replace(message, time=house.clock.now()))


async def happen(house: Hall, random: Random, number: int) -> None:
    """One more thing happens, and perhaps everybody comes to rest."""
    house.clock.time += random.choice((0, 1, 5, 130))
    match random.randrange(8):
        case 0:
            await house.dispatcher.handle(muted(random.choice((0, 60))))
        case 1 if number:
            await house.dispatcher.handle(recalled(f"m{random.randrange(number)}"))
        case _:
            await hear(house, line(random, number))
    if random.random() < 0.5:
        await house.lanes.wait_idle()


def unfinished(house: Hall) -> dict[str, Judged]:
    """The wakes of which nothing has become."""
    waking: dict[str, Judged] = {}
    turns: dict[str, str] = {}
    for entry in house.store.entries:
        match entry:
            case MessageObserved(judged=Judged(wakes=True) as judged) | (Judged(wakes=True) as judged):
                waking[judged.message_id] = judged
            case Judged(message_id=message_id) | MessageErased(message_id=message_id):
                waking.pop(message_id, None)
            case MessageTakenUp(message=message, gone=True) | TurnSteered(message=message):
                waking.pop(message.message_id, None)  # it leaves with its question, or ends with that
            case TurnOpened():
                turns[entry.turn_id] = entry.question.message_id
                for one in entry.lines:
                    waking.pop(one.message_id, None)  # part of another's question
            case TurnClosed(stop=stop):
                ended = waking.pop(turns[entry.turn_id], None)
                chosen = "stay_silent" in str(entry.round)
                assert ended is None or ended.weak or stop is not Stop.SILENT or chosen
            case _:
                pass
    return waking


@each_case("seed", range(12))
async def test_every_wake_comes_to_an_end_that_the_journal_tells(seed: int) -> None:
    random = Random(seed)  # a script, not a secret

    async def answer(_: ModelRequest) -> Completion:
        match random.randrange(4):
            case 0:
                return words("")
            case 1:
                raise ModelBilling("no money")
            case 2:
                return calls(("stay_silent", ""))
            case _:
                return words("an answer")

    async with hall(*[answer] * STEPS, rules=RULES) as house:
        house.toolset.register(stay_silent)
        house.transport.known |= KNOWN
        for number in range(25):
            await happen(house, random, number)
        await house.lanes.wait_idle()
        await house.outbox.wait_idle()
        assert unfinished(house) == {}
        assert house.verdicts
        while len(house.model.requests) < STEPS:  # the script is to be used up
            with suppress(ModelBilling):
                await house.model.complete(ModelRequest(()))


# --- while runs are under way ---------------------------------------------------------------------

BLOCKED, ADMIN = 8, 9
BUSY = Rules(names=("小霜",), chance=0.6, blocked=frozenset({BLOCKED}), stale=120, user_rate=Rate(2, 60.0))
SPOKEN = re.compile(r"question \d+")


@tool(side_effects="read")
async def ask_first(context: ToolContext) -> str:
    """Waits for somebody's word."""
    if not context.allowed:
        raise Suspend("may I?", seconds=60)
    return "it was allowed"


class Town:
    """People who ask, go on, stop and take back while the model thinks; what is `against` a request: the words that
    no later one may have.
    """

    def __init__(self, house: Hall, random: Random) -> None:
        self.house, self.random = house, random
        self.thoughts: list[asyncio.Event] = []
        self.against: set[str] = set()
        self.muted_until = 0.0
        self.wrong: list[str] = []
        self.over = False

    async def think(self, request: ModelRequest) -> Completion:
        """Look at the request; then answer, in time or much later."""
        if self.over:
            return words("")
        told = [text for message in request.messages for text in SPOKEN.findall(str(message))]
        self.wrong += [f"{words} is in a request" for words in told if words in self.against]
        if self.house.clock.time < self.muted_until:
            self.wrong.append(f"{told} is asked while muted")
        answers: tuple[Completion | ModelBilling, ...] = (
            words(""),
            words("an answer"),
            *[calls(("ask_first", ""))] * 2,
            calls(("stay_silent", "")),
            ModelBilling("no money"),
        )
        answer = self.random.choice(answers)
        if self.random.random() < 0.7:
            self.thoughts.append(thought := asyncio.Event())
            await thought.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def happen(self, number: int) -> None:
        """One more thing happens."""
        house, random = self.house, self.random
        house.clock.time += random.choice((0, 0, 0, 1, 5, 50, 130))
        match random.randrange(10):
            case 0:
                seconds = random.choice((0, 60))
                self.muted_until = house.clock.time + seconds
                await house.dispatcher.handle(muted(seconds))
                self.decide()
                for _ in range(30):
                    await asyncio.sleep(0)
            case 1 if number:
                gone = random.randrange(number)
                await house.dispatcher.handle(recalled(f"m{gone}"))
                self.against.add(f"question {gone}")
            case 2:
                await hear(house, said("停", user=random.choice((5, 6, ADMIN)), message_id=f"m{number}"))
            case 3:
                stop = said("/stop all", user=ADMIN, role="admin", message_id=f"m{number}")
                await self.stop_all(stop)
            case 4 | 5 if self.thoughts:
                self.thoughts.pop(random.randrange(len(self.thoughts))).set()
            case 6:
                await hear(house, said(f"question {number}", user=BLOCKED, message_id=f"m{number}"))
                self.against.add(f"question {number}")
            case 7:
                for user in range(10, 14):
                    await hear(house, said(f"question {number}{user}", user=user))
            case _:
                quote = random.choice(((), (Quote("own"),), (Quote("other"),), (Quote("unknown"),)))
                words = Text(f"{random.choice(('', '', '小霜，'))}question {number}")
                line = said(
                    (*quote, words),
                    at=random.random() < 0.6,
                    user=random.choice((5, 6, 7)),
                    message_id=f"m{number}",
                )
                await hear(house, line)
        for _ in range(random.choice((0, 3, 30))):
            await asyncio.sleep(0)

    async def stop_all(self, stop: MessageReceived) -> None:
        """Nothing is asked behind it."""
        goes_on = bool(self.house.active_work.askers(GROUP))
        await hear(self.house, stop)
        if goes_on:
            before = len(self.house.model.requests)
            await self.house.lanes.wait_idle()
            if len(self.house.model.requests) > before:
                self.wrong.append("somebody was asked behind a stop")

    async def rest(self) -> None:
        """Let everything come to its end, once nothing is muted."""
        await self.house.dispatcher.handle(muted(0))
        self.muted_until = 0.0
        while self.house.lanes.places or self.house.suspensions.waiting():
            while self.thoughts:
                self.thoughts.pop().set()
            self.decide()
            await asyncio.sleep(0)

    def decide(self) -> None:
        """An owner says what becomes of all that wait for his word, muted or not."""
        for turn_id, run in self.house.suspensions.waiting().items():
            decisions = {pending.call.id: self.random.choice((Allow(), Deny("no"))) for pending in run.pending}
            question = self.house.suspensions.question(turn_id)
            latest = self.house.clock.monotonic() + run.expires - self.house.clock.now()
            self.house.lanes.put(GROUP, Resume(turn_id, decisions, question, latest))


def told_twice(house: Hall) -> list[str]:
    """The lines that more than one round tells as somebody's question, as part of it, or as overheard."""
    user = {one.turn_id: one.user.sources for one in house.store.entries if isinstance(one, TurnOpened)}
    steered = [(one.turn_id, one.message.message_id) for one in house.store.entries if isinstance(one, TurnSteered)]
    closed = [one for one in house.store.entries if isinstance(one, TurnClosed) and one.round]
    lines = Counter(
        line
        for turn in closed
        for line in {*user[turn.turn_id], *(line for turn_id, line in steered if turn_id == turn.turn_id)}
    )
    return [line for line, times in lines.items() if times > 1]


async def walk(seed: int) -> set[str]:
    """Live through sixty things that happen; the reasons for what became of the wakes among them."""
    towns: list[Town] = []

    async def think(request: ModelRequest) -> Completion:
        return await towns[0].think(request)

    async with hall(*[think] * MANY, rules=BUSY, steers=True) as house:
        towns.append(town := Town(house, Random(seed)))  # a script, not a secret
        house.toolset.register(stay_silent)
        house.toolset.register(ask_first)
        house.transport.known |= KNOWN
        for number in range(60):
            await town.happen(number)
        await town.rest()
        await house.outbox.wait_idle()
        assert (seed, town.wrong, unfinished(house), told_twice(house)) == (seed, [], {}, [])
        town.over = True
        while len(house.model.requests) < MANY:  # the script is to be used up
            await house.model.complete(ModelRequest(()))
        stops = {one.stop for one in house.store.entries if isinstance(one, TurnClosed)}
        return {*stops, *(one.reason for one in house.verdicts)}


async def test_so_it_does_while_people_stop_it_go_on_take_back_and_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lane, "is_full", lambda lane, _: len(lane.waiting) > 1)
    ends = set[str]().union(*[await walk(seed) for seed in range(20)])
    stops = {Stop.ANSWERED, Stop.SILENT, Stop.FAILED, Stop.STOPPED}
    whys = {Silence.MUTED, Silence.STALE, Silence.FULL, Silence.USER, Silence.NOT_HIS, Silence.STOPPED, Silence.UNREAD}
    assert ends == stops | whys | {"mention", "quote", "name", "chance"}
