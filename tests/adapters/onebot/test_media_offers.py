"""What goes into a frame and what beside it; a ledger says what was offered."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from adapters.onebot.protocol import INLINE
from adapters.onebot.transport import MOST_INLINE, with_offered_media
from bot.core.actions import MergedForward, SendMessage, SentSegment
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from frostagent.types.speech import Attachment, Quote, Text
from tests.cases import each_case

GROUP = Conversation(10001, "group", 4242)
REFUSED = ActionRefused("send_group_msg", retcode=1200, wording="no")


@dataclass
class Paper:
    url: str
    asked: bool = False


@dataclass
class Ledger:
    """Every file that was offered, and which addresses are there now."""

    is_asked: bool = False
    offered: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)

    @contextmanager
    def offer(self, encoded: str, /) -> Iterator[Paper]:
        self.offered.append(encoded)
        url = f"http://bot/media/{len(self.offered)}"
        self.there.append(url)
        yield Paper(url, self.is_asked)
        self.there.remove(url)


def inline(letters: int, letter: str = "A") -> str:
    """A source of so many letters."""
    return INLINE + letter * (letters - len(INLINE))


def message(*segments: SentSegment) -> SendMessage:
    return SendMessage(GROUP, segments)


@each_case(
    "action",
    [
        message(Text("hello")),
        message(MergedForward(("a" * MOST_INLINE, "b"), "bot")),
        message(Text("x" * (MOST_INLINE + 1))),
        message(Attachment("image", inline(MOST_INLINE))),
        message(
            Attachment("image", inline(MOST_INLINE // 2)), Attachment("file", inline(MOST_INLINE // 2, "B"), "a.zip")
        ),
        message(Attachment("video", "file:///media/" + "x" * MOST_INLINE)),
        message(Attachment("video", "https://films.example/" + "x" * MOST_INLINE)),
    ],
)
def test_what_a_frame_takes_goes_in_it(action: SendMessage) -> None:
    ledger = Ledger()
    with with_offered_media(action, ledger) as (light, beside):
        assert (light is action, beside) == (True, 0)
    assert ledger.offered == []


def test_what_is_too_large_together_goes_beside_it_and_the_rest_stays_as_it_was() -> None:
    film, picture = inline(MOST_INLINE - 5), inline(100, "B")
    on_disk = Attachment("record", "file:///media/a.amr")
    action = message(
        Quote("7"), Text("look"), Attachment("video", film), Attachment("image", picture, "b.png"), on_disk,
        Attachment("file", film, "film.mp4"),
    )  # fmt: skip
    ledger = Ledger()
    with with_offered_media(action, ledger) as (light, beside):
        assert light == message(
            Quote("7"),
            Text("look"),
            Attachment("video", "http://bot/media/1"),
            Attachment("image", "http://bot/media/2", "b.png"),
            on_disk,
            Attachment("file", "http://bot/media/1", "film.mp4"),
        )
        assert beside == 2 * len(film) + len(picture)
        assert ledger.there == ["http://bot/media/1", "http://bot/media/2"]
    assert ledger.there == []
    assert ledger.offered == [film.removeprefix(INLINE), picture.removeprefix(INLINE)]


def test_one_letter_more_than_a_frame_takes_is_too_many() -> None:
    ledger = Ledger()
    with with_offered_media(message(Attachment("image", inline(MOST_INLINE + 1))), ledger) as (light, beside):
        assert light == message(Attachment("image", "http://bot/media/1"))
        assert beside == MOST_INLINE + 1


def test_what_a_frame_takes_fits_into_what_a_broker_carries_with_all_that_is_around_it() -> None:
    from adapters.broker.payloads import LARGEST, GatewayCall, pack
    from adapters.onebot.protocol import write_action

    longest = message(Text("好" * 5000), Attachment("file", inline(MOST_INLINE), "好" * 200))
    assert len(pack(GatewayCall(10001, *write_action(longest)))) <= LARGEST


@pytest.mark.parametrize(
    ("is_asked", "error", "told"),
    [
        (False, REFUSED, True),
        (False, ActionUnanswered("nobody"), True),
        (True, REFUSED, False),
        (False, NotConnected("gone"), False),
        (False, None, False),
    ],
)
def test_the_operator_hears_where_a_server_did_not_come_for_a_file(
    is_asked: bool, error: Exception | None, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        with with_offered_media(message(Attachment("image", inline(4 * 3 * 2**20))), Ledger(is_asked)):
            if error is not None:
                raise error

    if error is None:
        fail()
    else:
        with pytest.raises(type(error)):
            fail()
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        lines
        == ["account 10001: its OneBot server did not come for a file of 9.0 MB: see that it reaches MEDIA_URL"] * told
    )
