from __future__ import annotations

import asyncio

import pytest

from bot.chat.perception import Forwards
from bot.core.events import MessageReceived
from bot.core.segments import Forward, Segment
from bot.policy.message_trimming import trim_message
from bot.prompt.compose import MAX_ASIDE, Forwarded, ForwardedMessage
from frostagent.models.tokens import estimate_text
from frostagent.types.speech import Text
from tests.fakes import BOT, RecordingTransport, inside, said

MAX_MESSAGES, MAX_TOKENS, MAX_FETCHES = 60, 3000.0, 8


def saying(*segments: Segment) -> MessageReceived:
    return said(segments, user=5, message_id="500", at=False)


def passed_on(id_: str) -> MessageReceived:
    return saying(Text(f"see {id_}"), Forward(id_))


async def test_of_a_forward_in_a_forward_three_levels_are_opened_each_after_what_it_is_in() -> None:
    transport = RecordingTransport()
    for level in range(1, 5):
        transport.forwards[f"f{level}"] = (passed_on(f"f{level + 1}"), saying(Text(f"end {level}")))
    opened = await Forwards(transport).open(BOT, Forward("f1"))
    assert opened == Forwarded(
        (
            ForwardedMessage(passed_on("f2"), 1),
            ForwardedMessage(passed_on("f3"), 2),
            ForwardedMessage(passed_on("f4"), 3),
            ForwardedMessage(saying(Text("end 3")), 3),
            ForwardedMessage(saying(Text("end 2")), 2),
            ForwardedMessage(saying(Text("end 1")), 1),
        )
    )
    assert transport.opened == ["f1", "f2", "f3"]


async def test_an_inner_forward_that_cannot_be_had_costs_nothing_else() -> None:
    transport = RecordingTransport()
    transport.forwards["f1"] = (passed_on("gone"), saying(Text("hi")))
    assert await Forwards(transport).open(BOT, Forward("f1")) == inside(passed_on("gone"), saying(Text("hi")))


async def test_what_lies_deep_leaves_room_for_what_lies_on_top_and_the_rest_is_counted() -> None:
    transport = RecordingTransport()
    top = tuple(saying(Text(str(number))) for number in range(40))
    transport.forwards["f1"] = (passed_on("f2"), *top)
    transport.forwards["f2"] = top
    opened = await Forwards(transport).open(BOT, Forward("f1"))
    assert [passed.depth for passed in opened.lines] == [1, *[2] * (MAX_MESSAGES - 41), *[1] * 40]
    assert opened.left_out == 81 - MAX_MESSAGES


async def test_long_messages_take_more_of_the_room_and_are_no_flood() -> None:
    transport = RecordingTransport()
    flood = saying(Text("长" * 480_000))
    transport.forwards["f1"] = (flood,) * 5000
    opened = await Forwards(transport).open(BOT, Forward("f1"))
    assert set(opened.lines) == {ForwardedMessage(trim_message(flood))}
    assert 1 < len(opened.lines) < MAX_TOKENS / (MAX_ASIDE / 2)
    assert opened.left_out == 5000 - len(opened.lines)


async def test_the_server_is_asked_for_so_many_forwards_and_not_for_what_came_inline() -> None:
    transport = RecordingTransport()
    many = tuple(passed_on(f"g{number}") for number in range(20))
    transport.forwards["f1"] = (saying(Forward("inline", "[]")), *many)
    transport.forwards |= {f"g{number}": (saying(Text("x")),) for number in range(20)}
    transport.forwards["inline"] = (saying(Text("there")),)
    opened = await Forwards(transport).open(BOT, Forward("f1"))
    assert transport.opened == ["f1", "inline", *(f"g{number}" for number in range(MAX_FETCHES - 1))]
    assert ForwardedMessage(saying(Text("there")), 2) in opened.lines


async def test_what_came_before_the_time_was_over_is_kept() -> None:
    class Slow(RecordingTransport):
        async def get_forward(self, account: int, forward: Forward) -> tuple[MessageReceived, ...]:
            if forward.id == "slow":
                await asyncio.Event().wait()
            return await super().get_forward(account, forward)

    transport = Slow()
    transport.forwards["f1"] = (passed_on("f2"), passed_on("slow"))
    transport.forwards["f2"] = (saying(Text("in time")),)
    opened = await Forwards(transport, patience=0.05).open(BOT, Forward("f1"))
    assert [passed.depth for passed in opened.lines] == [1, 2, 1]


async def test_three_thousand_tokens_are_told_of_it_and_not_one_line_more() -> None:
    transport = RecordingTransport()
    line = saying(Text("长" * 200))
    transport.forwards["f1"] = (line,) * 60
    opened = await Forwards(transport).open(BOT, Forward("f1"))
    tokens = estimate_text(f"{line.sender.name}: {'长' * 200}")
    assert len(opened.lines) * tokens <= MAX_TOKENS < (len(opened.lines) + 1) * tokens


async def test_six_seconds_are_waited_for_one_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(RecordingTransport):
        async def get_forward(self, account: int, forward: Forward) -> tuple[MessageReceived, ...]:
            await asyncio.Event().wait()
            return ()

    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    over = []
    async with asyncio.TaskGroup() as group:
        opening = group.create_task(Forwards(Silent()).open(BOT, Forward("f1")))
        for seconds in (0.0, 5.9, 6.1):
            monkeypatch.setattr(loop, "time", lambda passed=seconds: now + passed)
            for _ in range(5):
                await asyncio.sleep(0)
            over.append(opening.done())
        opening.cancel()
    assert over == [False, False, True]
    assert opening.result() == Forwarded()
