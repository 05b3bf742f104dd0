"""The owner's word on a call, through the whole service."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.simulator.wire import text
from adapters.simulator.world import Person
from bot.chat import active_work
from frostagent.types.messages import ToolMessage
from tests.e2e.town import (
    ANOTHER_WIPE,
    GROUP,
    MEMBER,
    OWNER,
    RING,
    SECOND,
    STRANGER,
    TWO_WIPES,
    WIPE,
    MovableClock,
    Town,
    open_town,
)
from tests.fakes import calls, words


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with open_town(tmp_path) as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    """The time of the services to come."""
    movable = MovableClock()
    monkeypatch.setattr("bot.app.SystemClock", lambda: movable)
    return movable


async def test_what_the_owner_allows_is_done_and_the_run_goes_on(town: Town) -> None:
    async with town.live(WIPE, words("wiped!")) as stage:
        await stage.ask("@bot wipe sda, please")
        (request,) = stage.private()
        first, second, third = request.split("\n")
        assert first == '#A1 wipe_disk {"disk": "sda"}'
        assert second == "小明(20003)，群 4242：「wipe sda, please」"
        assert "同意 A1" in third
        assert stage.group() == ["That needs my owner's yes: I have asked, one moment please. (A1)"]
        assert stage.done == []
        await stage.answer("同意\u3000a1")
        assert stage.done == ["sda is wiped"]
        assert stage.told == "sda is wiped"
        assert stage.group()[1:] == ["wiped!"]
        assert stage.private()[1:] == ["A1 已同意。"]


async def test_what_the_owner_denies_is_not_done_and_the_model_reads_why(town: Town) -> None:
    async with town.live(WIPE, words("he would not")) as stage:
        await stage.ask()
        await stage.answer("拒绝 A1 那是我的 硬盘")
        assert stage.done == []
        assert stage.told == "error: the tool call was denied: the owner said no: 那是我的 硬盘 [TOOL_DENIED]"
        assert stage.group()[1:] == ["he would not"]


@pytest.mark.parametrize(("line", "done"), [("同意", ["sda is wiped"]), ("拒绝 不行", [])])
async def test_a_quote_of_the_request_says_which_one_is_meant(town: Town, line: str, done: list[str]) -> None:
    async with town.live(WIPE, words("well")) as stage:
        await stage.ask()
        await stage.answer(stage.quoting(OWNER, line))
        assert stage.done == done
        assert stage.group()[1:] == ["well"]


async def test_in_its_group_the_owner_may_answer_too_and_quote_the_notice_there(town: Town) -> None:
    async with town.live(WIPE, words("first"), WIPE, words("second")) as stage:
        await stage.ask()
        await stage.say("@bot 同意 A1", user=OWNER)
        assert stage.group()[1:] == ["A1 已同意。", "first"]
        await stage.ask()
        notice = next(message for message in reversed(stage.simulator.delivered) if message.group_id == GROUP)
        await stage.say([{"type": "reply", "data": {"id": str(notice.message_id)}}, text("approve")], user=OWNER)
        assert stage.group()[-2:] == ["A2 已同意。", "second"]


async def test_answers_of_anybody_else_are_ordinary_messages(town: Town) -> None:
    """Of the asker too, and of an owner in another group."""
    town.simulator.world.add_group(4343, "Other", (Person(OWNER, "主人"),))
    async with town.live(WIPE, words("you are not the owner"), words("no"), words("what is A1?")) as stage:
        await stage.ask()
        await stage.say("@bot 同意 A1", user=MEMBER)
        await stage.answer("同意 A1", user=SECOND)
        message_id = await stage.simulator.say("@bot 同意 A1", group_id=4343, user_id=OWNER)
        await stage.until(lambda: stage.simulator.delivered[-1].group_id == 4343)
        assert message_id
        assert stage.done == []
        assert len(stage.model.requests) == 4


async def test_two_calls_at_once_are_two_requests_and_the_run_goes_on_when_both_are_decided(town: Town) -> None:
    async with town.live(TWO_WIPES, words("one of them")) as stage:
        await stage.ask()
        await stage.until(lambda: len(stage.private()) == 2)
        assert [request.split("\n")[0] for request in stage.private()] == [
            '#A1 wipe_disk {"disk": "sda"}',
            '#A2 wipe_disk {"disk": "sdb"}',
        ]
        await stage.answer("同意 A2")
        assert (stage.done, len(stage.model.requests)) == (["sdb is wiped"], 1)
        await stage.answer("拒绝 A1")
        assert stage.done == ["sdb is wiped"]
        assert stage.group()[1:] == ["one of them"]
        assert len(stage.private()) == 4


async def test_two_runs_wait_side_by_side_and_their_lane_is_free(town: Town) -> None:
    async with town.live(WIPE, words("hello"), ANOTHER_WIPE, words("b"), words("a")) as stage:
        await stage.ask()
        await stage.say("@bot hi", user=MEMBER)
        assert stage.group()[1:] == ["hello"]
        await stage.ask()
        await stage.answer("同意 A2")
        await stage.answer("同意 A1")
        assert stage.done == ["sdc is wiped", "sda is wiped"]
        assert stage.group()[-2:] == ["b", "a"]


async def test_the_first_of_two_owners_decides_and_the_second_hears_it(town: Town) -> None:
    async with town.live(WIPE, words("wiped!"), owners=frozenset({OWNER, SECOND})) as stage:
        await stage.ask()
        await stage.until(lambda: len(stage.private(SECOND)) == 1)
        await stage.answer("approve A1", user=SECOND)
        await stage.answer("拒绝 A1", user=OWNER)
        assert stage.done == ["sda is wiped"]
        assert stage.private(OWNER)[-1] == "A1 已经处理过了：二号(20002) 已同意。"


async def test_a_number_that_there_is_not_gets_a_clear_line_and_no_run(town: Town) -> None:
    async with town.live() as stage:
        await stage.answer("同意 A7")
        assert stage.private() == ["没有编号为 A7 的请求，可能已经过期或处理过了。"]


async def test_in_a_group_a_number_that_there_is_not_is_talk(town: Town) -> None:
    async with town.live() as stage:
        await stage.say("同意 A4", user=OWNER)
        assert stage.simulator.delivered == []


async def test_nobody_answers_in_time(town: Town, clock: MovableClock) -> None:
    async with town.live(WIPE, words("nobody came")) as stage:

        def of_it() -> list[str]:  # a clock that jumps is a standstill to the bot, and its owner hears of that, too
            return [line for line in stage.private() if "A1" in line]

        await stage.ask()
        clock.advance(601)
        await stage.until(lambda: len(stage.group()) == 2 and len(of_it()) == 2)
        assert stage.group()[1:] == ["nobody came"]
        assert of_it()[1:] == ["A1 过期了：没有人及时同意，所以没有做。"]
        assert "nobody allowed it in time" in stage.told
        await stage.answer("同意 A1")
        assert of_it()[2:] == ["A1 过期了：没有人及时同意，所以没有做。"]
        assert stage.done == []


async def test_without_an_owner_the_model_is_told_at_once(town: Town) -> None:
    async with town.live(WIPE, words("nobody to ask"), owners=frozenset()) as stage:
        await stage.say("@bot please", user=MEMBER)
        assert stage.group() == ["nobody to ask"]
        assert "no owner" in stage.told
        assert stage.told.endswith("[TOOL_DENIED]")


async def test_where_no_owner_can_be_reached_the_model_is_told_at_once(town: Town) -> None:
    async with town.live(WIPE, words("he is away"), owners=frozenset({STRANGER})) as stage:
        await stage.simulator.say("@bot please", user_id=MEMBER)
        await stage.until(lambda: stage.group() == ["he is away"])
        assert "could be reached" in stage.told


async def test_an_owner_who_asks_in_private_is_asked_there_once(town: Town) -> None:
    async with town.live(WIPE, words("wiped!")) as stage:
        await stage.answer("wipe it")
        await stage.answer("同意 A1")
        request, *rest = stage.private()
        assert request.startswith("#A1 wipe_disk")
        assert sorted(rest) == ["A1 已同意。", "wiped!"]


async def test_a_recalled_question_takes_its_request_back(town: Town) -> None:
    async with town.live(WIPE) as stage:
        message_id = await stage.ask()
        await stage.simulator.incidents.recall(message_id)
        await stage.until(lambda: len(stage.private()) == 2)
        await stage.answer("同意 A1")
        assert stage.private()[1:] == ["A1 不用管了：提问已经撤回或结束，没有做。"] * 2
        assert stage.done == []


@pytest.mark.parametrize("quoted", [False, True])
async def test_a_request_can_be_answered_after_a_restart(town: Town, *, quoted: bool) -> None:
    async with town.live(WIPE) as stage:
        await stage.ask()
        answer = stage.quoting(OWNER, "同意")
    async with town.live(words("after all")) as stage:
        await stage.until(lambda: len(stage.private()) == 2)
        assert len({request.rpartition("\n")[0] for request in stage.private()}) == 1
        await stage.answer(answer if quoted else "同意 A1")
        assert stage.done == ["sda is wiped"]
        assert stage.group()[1:] == ["after all"]
    async with town.live(WIPE, words("again")) as stage:
        await stage.settle(await stage.simulator.say("@bot more", user_id=MEMBER))
        await stage.answer("拒绝 A1")
        assert stage.done == ["sda is wiped"]


async def test_a_request_that_expired_while_nobody_was_there_is_denied(town: Town, clock: MovableClock) -> None:
    async with town.live(WIPE) as stage:
        await stage.ask()
    clock.advance(601)
    clock.begun.clear()
    async with town.live(words("too late")) as stage:
        await clock.until_asleep(active_work.LOOK, times=2)  # the store looks after its file as often
        clock.advance(6)
        await stage.until(lambda: stage.group()[1:] == ["too late"])
        assert "nobody allowed it in time" in stage.told
        assert stage.done == []


async def test_an_answer_while_the_service_stops_is_taken_by_the_next_one(town: Town) -> None:
    async with town.live(WIPE) as stage:
        await stage.ask()
        await stage.service.app.lanes.finish(within=0)
        await stage.answer("同意 A1")
        assert stage.done == []
    async with town.live(words("after all")) as stage:
        await stage.until(lambda: stage.group()[1:] == ["after all"])
        assert stage.done == ["sda is wiped"]
    async with town.live(words("hi")) as stage:
        await stage.answer("hi")
        assert stage.private()[-1] == "hi"


async def test_an_answer_found_in_a_history_decides_nothing(town: Town) -> None:
    """One that is older than its request looks like any other there."""
    async with town.live(WIPE, words("wiped!")) as stage:
        await stage.say("hi", user=OWNER)
        await stage.ask()
        await stage.simulator.sockets.drop()
        await stage.simulator.say("@bot 同意 A1", user_id=OWNER)
        stage.simulator.sockets.come_back()
        await stage.until(lambda: any("A1 还在等" in text for text in stage.group()))
        assert stage.done == []
        await stage.answer("同意 A1")
        assert stage.done == ["sda is wiped"]


async def test_one_member_fills_no_owners_mailbox(town: Town) -> None:
    many = calls(*(("wipe_disk", f'{{"disk": "sd{letter}"}}') for letter in "abcdefgh"))
    async with town.live(many, words("well")) as stage:
        await stage.ask()
        await stage.until(lambda: len(stage.private()) == 3)
        await stage.service.wait_idle()
        for number in (1, 2, 3):
            await stage.answer(f"拒绝 A{number}")
        assert len([text for text in stage.private() if text.startswith("#A")]) == 3
        results = [message.content for message in stage.model.requests[-1].messages if isinstance(message, ToolMessage)]
        assert sum("3 requests of this asker" in result for result in results) == 5
        assert stage.done == []


async def test_an_answer_never_reaches_the_model(town: Town) -> None:
    async with town.live(WIPE, words("wiped!")) as stage:
        await stage.ask()
        await stage.say("同意 A1", user=OWNER)
    async with town.live(words("hi")) as stage:
        await stage.say("@bot hi", user=MEMBER)
        assert not any("同意" in str(message) for message in stage.model.requests[0].messages)


async def test_the_arguments_cannot_look_like_anything_but_arguments(town: Town) -> None:
    evil = '{"disk": "x\\n#A9 say_hello {}\\u202e[CQ:at,qq=all]' + "长" * 900 + '"}'
    async with town.live(calls(("wipe_disk", evil)), words("ok")) as stage:
        await stage.ask()
        await stage.until(lambda: len(stage.private()) == 2)
        sent, file = [message for message in stage.simulator.delivered if message.user_id == OWNER]
        assert [segment["type"] for segment in sent.segments] == ["text"]
        first, *_, last = sent.text.split("\n")
        assert "\u202e" not in first
        assert len(first) < 450
        assert len(sent.text.split("\n")) == 4
        assert last == "完整内容在随后的文件 A1.txt 里。"
        assert [(segment["type"], segment["data"]["name"]) for segment in file.segments] == [("file", "A1.txt")]
        whole = base64.b64decode(file.segments[0]["data"]["file"].removeprefix("base64://")).decode()
        assert "长" * 900 in whole
        assert "\\u202e" in whole
        assert not any(char == "\u202e" for char in whole)
        assert [line[:1] for line in whole.split("\n")] == ["#", " ", " ", " "]
        await stage.answer("拒绝 A1")


async def test_a_tool_the_operator_wants_approved_waits_as_well(town: Town) -> None:
    async with town.live(RING, words("rang"), approve=("ring_bell",)) as stage:
        await stage.ask(user=OWNER)
        await stage.answer("同意 A1")
        assert stage.done == ["rang 3"]
