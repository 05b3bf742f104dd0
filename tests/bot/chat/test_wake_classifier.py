from __future__ import annotations

import asyncio

from msgspec import structs

from bot.core.command import Asked, Command
from bot.core.segments import Mention
from bot.policy.wake import Rules, Silence, Why
from frostagent.types.errors import ModelBilling
from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.speech import Quote, Text
from tests.bot.hall import hall, muted
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said, words


async def test_a_quote_of_the_bot_wakes_without_a_mention_and_a_quote_of_others_does_not() -> None:
    async with hall(words("first"), words("because")) as house:
        await house.take(said("hi"))
        await house.take(said((Quote("9001"), Text("why?")), at=False))
        await house.take(said("talk", user=5, message_id="77", at=False))
        await house.take(said((Quote("77"), Text("really?")), at=False))
        assert house.transport.texts == ["first", "because"]
        overheard = house.history.take_overheard(GROUP)
        assert [message.segments[-1] for message in overheard] == [Text("talk"), Text("really?")]


async def test_a_muted_bot_does_not_ask_the_model_until_the_mute_ends() -> None:
    async with hall(words("a"), words("b"), words("c")) as house:
        await house.take(muted(60), said("hi"))
        assert house.transport.sent == []
        house.clock.time += 61
        await house.take(said("hi"))
        await house.take(muted(-1, user_id=0), said("hi"), muted(0, user_id=0), said("hi"))
        await house.take(muted(60, user_id=5), said("hi"))
        assert house.transport.texts == ["a", "b", "c"]


async def test_that_a_quote_was_of_the_bots_words_is_written_down_though_it_is_muted() -> None:
    async with hall() as house:
        house.transport.known |= {"own": said("mine", user=BOT, at=False, message_id="own")}
        house.transport.known |= {"his": said("his", user=9, at=False, message_id="his")}
        await house.take(
            muted(60), *(said((Quote(q), Text("why?")), at=False, message_id=q + "?") for q in ("own", "his"))
        )
        judged = [(entry.message_id, entry.wakes, entry.reason) for entry in house.verdicts]
        assert judged == [("own?", True, "quote"), ("own?", False, "the bot is muted there")]
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["own?", "his?"]


async def test_a_quote_of_a_message_in_memory_takes_no_place_in_the_lane() -> None:
    gate = asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        await gate.wait()
        return words("slow")

    async with hall(think, words("fast")) as house:
        await house.dispatcher.handle(said("talk", user=5, message_id="77", at=False))
        await house.dispatcher.handle(said("first"))
        for _ in range(60):
            await house.dispatcher.handle(said((Quote("77"), Text("really?")), at=False))
        await house.dispatcher.handle(said("second", user=6))
        gate.set()
        await house.lanes.wait_idle()
        assert house.transport.texts == ["slow", "fast"]


async def test_rules_decide_who_is_answered() -> None:
    rules = Rules(groups=frozenset({4242}), blocked=frozenset({666}))
    elsewhere = type(GROUP)(BOT, "group", 4343)
    async with hall(words("ok"), rules=rules) as house:
        await house.take(said("hi", where=elsewhere), said("hi", user=666), said("hi"))
        assert house.transport.texts == ["ok"]
        assert house.history.take_overheard(elsewhere) == ()


async def test_now_and_then_the_bot_joins_in_and_nobody_hears_of_its_failures() -> None:
    async with hall(words("me too"), ModelBilling("no money"), rules=Rules(chance=1.0)) as house:
        await house.take(said("I like tea", at=False), said("so do I", at=False))
        assert house.transport.texts == ["me too"]
        house.clock.time += 120
        await house.take(said((Mention(5), Text("and you?")), at=False), muted(60), said("bread", at=False))
        await house.take(muted(0), said("and coffee", at=False))
        assert house.transport.texts == ["me too"]
        assert [entry.reason for entry in house.verdicts] == ["chance"] * 2


async def test_who_wakes_the_bot_is_asked_about_and_robots_wake_it_no_more() -> None:
    async with hall(words("hello"), words("because")) as house:
        house.transport.known["q"] = said("x", user=BOT, at=False, message_id="q")
        await house.take(said("talk", user=6, at=False), said("hi", user=5))
        await house.take(said((Quote("q"), Text("why?")), user=7, at=False))
        assert [await house.robots.next(), await house.robots.next()] == [(GROUP, 5), (GROUP, 7)]
        house.robots.known[5] = None
        await house.take(said("hi again", user=5))
        assert house.transport.texts == ["hello", "because"]


async def test_what_was_said_long_ago_is_no_chance_to_join_in() -> None:
    async with hall(rules=Rules(chance=1.0)) as house:
        house.late.preload([], [])
        house.late.take_missed(structs.replace(said("I like tea", at=False), time=house.clock.time - 1000))
        await house.lanes.wait_idle()
        assert house.transport.sent == []


@each_case(("stale", "heard"), [(120.0, [True, True, True, False]), (0.0, [True] * 4)])
async def test_a_command_that_is_told_too_late_is_not_heard_unless_it_lasts(stale: float, heard: list[bool]) -> None:
    async def answer(_: Asked) -> str:
        return ""

    lasting, other = (Command(names=("x",), about=("", ""), answer=answer, lasts=lasts) for lasts in (True, False))
    async with hall(rules=Rules(stale=stale)) as house:
        house.late.preload((), ())
        await house.take(said("hi", at=False))
        new, hears = said("/x"), house.wake_classifier.admits_command
        late = structs.replace(new, time=new.time - 122)
        assert [hears(one, command) for one in (new, late) for command in (lasting, other)] == heard


@each_case(
    ("rules", "why"),
    [
        (Rules(users=frozenset({6})), Silence.NOT_LISTED),
        (Rules(robots=frozenset({5})), Silence.ROBOT),
        (Rules(), ""),
    ],
)
async def test_who_is_not_answered_is_heard_no_more_for_quoting_the_bot(rules: Rules, why: Why) -> None:
    """Neither a question nor a command; and it is written down what stood against the question."""

    async def answer(_: Asked) -> str:
        return ""

    command = Command(names=("x",), about=("", ""), answer=answer)
    answers = [words("first"), *([] if why else [words("because")])]
    async with hall(*answers, rules=rules) as house:
        await house.take(said("hi", user=6))
        quoting = said((Quote("9001"), Text("/x")), user=5, at=False)
        assert house.wake_classifier.admits_command(quoting, command) is not bool(why)
        house.transport.known["q"] = said("x", user=BOT, at=False, message_id="q")
        again = said((Quote("q" if why else "77"), Text("why?")), user=5, at=False)  # nobody looks for whose that is
        await house.take(quoting, again)
        assert house.transport.texts == ["first", *([] if why else ["because"])]
        assert [(entry.wakes, entry.reason) for entry in house.verdicts[1:]] == [(not why, why or "quote")]
