"""Whatever happens, what was for the bot ends: in words, in silence that was chosen, in a reason, or with a recall."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from bot.domain.chat import Completion, ModelRequest
from bot.domain.errors import ModelBilling
from bot.domain.events import MessageReceived
from bot.domain.journal import Judged, MessageErased, MessageObserved, TurnClosed, TurnOpened
from bot.domain.run import Stop
from bot.domain.segments import Quote, Text
from bot.policy.wake import Rules
from tests.bot.hall import Hall, hall, muted, recalled
from tests.fakes import BOT, calls, said, words
from tools.stay_silent import stay_silent

STEPS = 100
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


async def happen(house: Hall, random: Random, number: int) -> None:
    """One more thing happens, and perhaps everybody comes to rest."""
    house.clock.time += random.choice((0, 1, 5, 130))
    match random.randrange(8):
        case 0:
            await house.dispatcher.handle(muted(random.choice((0, 60))))
        case 1 if number:
            await house.dispatcher.handle(recalled(f"m{random.randrange(number)}"))
        case _:
            await house.dispatcher.handle(line(random, number))
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


@pytest.mark.parametrize("seed", range(12))
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
        house.transport.known |= {
            "own": said("mine", user=BOT, at=False, message_id="own"),
            "other": said("his", user=9, at=False, message_id="other"),
        }
        for number in range(25):
            await happen(house, random, number)
        await house.lanes.wait_idle()
        await house.outbox.wait_idle()
        assert unfinished(house) == {}
        assert house.verdicts
        while len(house.model.requests) < STEPS:  # the script is to be used up
            with suppress(ModelBilling):
                await house.model.complete(ModelRequest(()))
