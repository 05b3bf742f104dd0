from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.core.actions import SendMessage
from bot.core.errors import ActionRefused, ActionUnanswered
from bot.memory.history import History
from bot.outbox.delivery import MAX_LINES, MAX_PIECES, ROOM, Postbox
from bot.outbox.layout import LIMIT
from bot.outbox.sender import MAX_WAITING
from frostagent.types.speech import Attachment, Confirmed, Quote, Receipt, Text
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import PRIVATE, ManualClock, RecordingStore, RecordingTransport, until


@dataclass
class Post:
    """A postbox with fakes around it; `unshown` is what could not be shown."""

    unshown: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        store, clock = RecordingStore(), ManualClock()
        self.transport, self.history = RecordingTransport(), History(store=store)
        self.outbox, _ = build_outbox(self.transport, store, clock)
        self.postbox = Postbox(outbox=self.outbox, history=self.history, clock=clock)

    def show(self, words: str) -> None:
        self.postbox.show(PRIVATE, words, name="A3", unshown=lambda: self.unshown.append(words))


@asynccontextmanager
async def office() -> AsyncIterator[Post]:
    made = Post()
    async with asyncio.timeout(30), made.outbox.open():
        yield made
        await made.outbox.wait_idle()


def refusals(number: int) -> list[ActionRefused]:
    return [ActionRefused("send_private_msg", retcode=1200, wording="no") for _ in range(number)]


async def test_a_line_is_said_known_again_and_its_receipt_told() -> None:
    receipts: list[Receipt] = []
    async with office() as at:
        assert at.postbox.post(PRIVATE, "hi", quote="7", then=receipts.append)
        await at.outbox.wait_idle()
        assert at.transport.sent == [SendMessage(PRIVATE, (Quote("7"), Text("hi")))]
        assert receipts == [Confirmed("9001")]
        known = at.history.known(PRIVATE, "9001")
        assert known is not None
        assert (known.is_own, known.segments[-1]) == (True, Text("hi"))


async def test_a_line_that_is_refused_is_not_known() -> None:
    async with office() as at:
        at.transport.failures += refusals(1)
        assert at.postbox.post(PRIVATE, "hi")
        await at.outbox.wait_idle()
        assert at.history.known(PRIVATE, "9001") is None


async def test_where_too_much_waits_nothing_is_said() -> None:
    async with office() as at:
        assert all(at.postbox.post(PRIVATE, str(number)) for number in range(MAX_WAITING))
        assert not at.postbox.post(PRIVATE, "more")
        at.show("words")
        assert at.unshown == ["words"]


async def test_remarks_leave_room_for_answers() -> None:
    async with office() as at:
        assert [at.postbox.remark(PRIVATE, str(number)) for number in range(MAX_LINES + 1)] == [True] * MAX_LINES + [
            False
        ]
        assert at.outbox.post(SendMessage(PRIVATE, (Text("answer"),)), turn_id="t1")
        assert at.postbox.post(PRIVATE, "a line that somebody waits for")
        await at.outbox.wait_idle()
        for number in range(MAX_LINES + 1):
            at.outbox.post(SendMessage(PRIVATE, (Text(str(number)),)), turn_id="t2")
        assert at.postbox.remark(PRIVATE, "again")


async def test_what_is_shown_is_a_file_and_nothing_else() -> None:
    async with office() as at:
        at.show("很长\n的")
        await at.outbox.wait_idle()
        encoded = base64.b64encode("很长\n的".encode()).decode()
        assert at.transport.sent == [SendMessage(PRIVATE, (Attachment("file", f"base64://{encoded}", "A3.txt"),))]
        assert at.unshown == []


async def test_where_the_server_takes_no_file_it_is_told_whole_in_messages() -> None:
    words = "".join(chr(0x4E00 + number) for number in range(3 * ROOM - 5))
    async with office() as at:
        at.transport.failures += refusals(1)
        at.show(words)
        await until(lambda: len(at.transport.texts) == 3)
        heads, pieces = zip(*(text.split("\n") for text in at.transport.texts), strict=True)
        assert heads == tuple(f"A3 完整内容（{number}/3）" for number in (1, 2, 3))
        assert "".join(pieces) == words
        assert max(map(len, at.transport.texts)) <= LIMIT
        assert at.unshown == []


async def test_a_file_that_may_have_arrived_is_not_told_again() -> None:
    async with office() as at:
        at.transport.failures = [ActionUnanswered("lost")]
        at.show("words")
        await at.outbox.wait_idle()
        assert (at.transport.sent, at.unshown) == ([], [])


@each_case(("size", "told"), [(MAX_PIECES * ROOM, MAX_PIECES), (MAX_PIECES * ROOM + 1, 0)])
async def test_what_is_too_long_for_messages_is_not_shown_in_parts(size: int, told: int) -> None:
    words = "x" * size
    async with office() as at:
        at.transport.failures += refusals(1)
        at.show(words)
        await until(lambda: len(at.transport.sent) == told and (told or at.unshown))
        assert at.unshown == [words] * (told == 0)
