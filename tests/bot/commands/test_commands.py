from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from bot.commands.commands import SORRY, Commands, may_use
from bot.core.command import Asked, command
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived
from bot.core.segments import Mention, Picture, Segment
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from frostagent.types.runs import Asker
from frostagent.types.speech import Quote, Text
from frostagent.types.traits import Audience
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, ManualClock, RecordingStore, RecordingTransport, said

OWNER = 999


class Desk:
    """Commands with a chat around them; `asked` is what they were asked."""

    def __init__(self) -> None:
        store, clock = RecordingStore(), ManualClock()
        self.transport, self.history = RecordingTransport(), History(store=store)
        self.outbox, _ = build_outbox(self.transport, store, clock)
        self.asked: list[Asked] = []
        self.is_enough = False
        self.commanders = Audience.EVERYONE

        @command("echo", "回声", about=("说一遍", "say it"))
        async def echo(asked: Asked) -> str:
            self.asked.append(asked)
            return f"{asked.either('听到', 'heard')} {' '.join(asked.words)}".strip()

        @command("Groups", about=("", ""), audience="owner")
        async def groups(asked: Asked) -> str:
            self.asked.append(asked)
            return ""

        @command("crash", about=("", ""))
        async def crash(asked: Asked) -> str:
            raise RuntimeError("a bug")

        @command("hang", about=("", ""), within=0.01)
        async def hang(asked: Asked) -> str:
            await asyncio.Event().wait()
            return "never"

        self.commands = Commands(
            (echo, groups, crash, hang),
            postbox=Postbox(outbox=self.outbox, history=self.history, clock=clock),
            history=self.history,
            owners=frozenset({OWNER}),
            hears=lambda message, _: message.sender.user_id != 666,
            commanders=lambda _: self.commanders,
            lets=lambda _: not self.is_enough,
            clock=clock,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with asyncio.timeout(30), self.outbox.open():
            async with self.commands.open():
                yield
            await self.outbox.wait_idle()

    def sent(self) -> list[str]:
        return [
            "".join(part.text for part in action.segments if isinstance(part, Text)) for action in self.transport.sent
        ]


@each_case("text", ["/echo a b", " /ECHO  a\nb ", "／回声 a b", "/回声 a b"])
async def test_a_command_that_is_said_to_the_bot_is_answered(text: str) -> None:
    desk = Desk()
    async with desk.open():
        message = said(text, message_id="5")
        assert desk.commands.start_command(replace(message, time=message.time - 30))
    (asked,) = desk.asked
    assert (asked.where, asked.user_id, asked.words) == (GROUP, 777, ("a", "b"))
    assert asked.said == message.time - 30
    assert desk.sent() == ["听到 a b"]
    assert desk.transport.sent[0].segments[0] == Quote("5")


@each_case(
    "message",
    [
        said("/echo a", at=False),  # to nobody
        said("/unknown a"),
        said("echo a"),
        said("what is /echo"),
        said("/ echo"),
        said("/echo/a"),
        said((Text("/echo "), Picture(file="a.png"))),
        said("/echo a", user=BOT),
        said("/echo a", user=666),  # not heard
        said("/groups"),  # not the asker's
        said("/groups", role="owner"),
        said("/echo " + "a" * 2000),
    ],
)
async def test_anything_else_is_words_like_any_others(message: MessageReceived) -> None:
    desk = Desk()
    async with desk.open():
        assert not desk.commands.start_command(message)
    assert (desk.asked, desk.sent()) == ([], [])


async def test_in_private_and_in_answer_to_the_bot_no_mention_is_needed() -> None:
    desk = Desk()
    desk.history.know(said("hello", user=BOT, message_id="8", at=False))
    desk.history.know(said("hello", message_id="9", at=False))
    async with desk.open():
        assert desk.commands.start_command(said("/echo", where=PRIVATE))
        assert desk.commands.start_command(said((Quote("8"), Text("/echo a")), at=False))
        assert not desk.commands.start_command(said((Quote("9"), Text("/echo b")), at=False))
    assert [asked.quoted for asked in desk.asked] == ["", "8"]


async def test_who_types_too_often_is_not_answered_nor_is_it_words_but_what_is_not_for_all_is_obeyed() -> None:
    desk = Desk()
    desk.is_enough = True
    async with desk.open():
        assert desk.commands.start_command(said("/echo"))
        assert desk.commands.start_command(said("/groups", user=OWNER))
    assert [asked.user_id for asked in desk.asked] == [OWNER]


async def test_an_owner_may_what_is_his_and_an_empty_answer_says_nothing() -> None:
    desk = Desk()
    async with desk.open():
        assert desk.commands.start_command(said("/groups", user=OWNER))
    assert desk.asked[0].asker.is_owner
    assert desk.sent() == []


async def test_where_the_bot_is_held_to_silence_it_obeys_only_who_may_end_that() -> None:
    desk = Desk()
    desk.commanders = Audience.GROUP_ADMIN
    async with desk.open():
        assert not desk.commands.start_command(said("/echo"))
        assert desk.commands.start_command(said("/echo a", role="admin"))
        assert desk.commands.start_command(said("/echo b", user=OWNER))
        assert desk.commands.start_command(said("/echo c", where=PRIVATE))
    assert sorted(asked.words for asked in desk.asked) == [("a",), ("b",), ("c",)]


async def test_whom_a_command_mentions_stands_among_its_words() -> None:
    desk = Desk()
    parts: tuple[Segment, ...] = (Text("/echo "), Mention(888), Text("x"))
    async with desk.open():
        assert desk.commands.start_command(said(parts))
    assert desk.asked[0].words == ("@888", "x")


async def test_the_answer_is_in_the_askers_language_for_all_one_can_see() -> None:
    desk = Desk()
    async with desk.open():
        desk.commands.start_command(said("/echo", name="Ming"))
        desk.commands.start_command(said("/echo", name="小明"))
        desk.commands.start_command(said("/echo 在吗", name="Ming"))
    assert desk.sent() == ["heard", "听到", "听到 在吗"]


async def test_a_command_that_breaks_is_one_polite_line_and_the_next_one_is_answered() -> None:
    desk = Desk()
    async with desk.open():
        assert desk.commands.start_command(said("/crash"))
        assert desk.commands.start_command(said("/echo a"))
    assert sorted(desk.sent()) == sorted([SORRY.zh, "听到 a"])
    assert +desk.commands.taken == {"echo": 1, "crash": 1}


async def test_a_command_that_hangs_is_given_up_after_its_time() -> None:
    desk = Desk()
    async with desk.open():
        assert desk.commands.start_command(said("/hang"))
    assert desk.sent() == [SORRY.zh]


async def test_a_command_is_waited_for_until_it_is_answered() -> None:
    desk = Desk()
    async with desk.open():
        await desk.commands.wait_idle()  # there is none
        for text in ("/echo a", "/echo b"):
            assert desk.commands.start_command(said(text))
        await desk.commands.wait_idle()
        assert len(desk.asked) == 2


async def test_while_nobody_is_at_work_nothing_is_a_command() -> None:
    assert not Desk().commands.start_command(said("/echo a"))


@each_case(
    ("asker", "where", "mine"),
    [
        (Asker("1"), GROUP, {Audience.EVERYONE}),
        (Asker("1", role="admin"), GROUP, {Audience.EVERYONE, Audience.GROUP_ADMIN}),
        (Asker("1", role="owner"), GROUP, {Audience.EVERYONE, Audience.GROUP_ADMIN}),
        (Asker("1"), PRIVATE, {Audience.EVERYONE, Audience.GROUP_ADMIN}),
        (Asker("1", is_owner=True), GROUP, set(Audience)),
        (Asker("1", is_owner=True), PRIVATE, set(Audience)),
    ],
)
def test_rights_come_from_roles_and_numbers(asker: Asker, where: Conversation, mine: set[Audience]) -> None:
    assert {audience for audience in Audience if may_use(asker, audience, where=where)} == mine
