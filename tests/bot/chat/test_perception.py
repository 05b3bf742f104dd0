from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from bot.chat.perception import Perception, Senses
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnanswered, NotConnected
from bot.core.events import MessageReceived
from bot.core.ports import Seen
from bot.core.segments import Forward, Picture
from bot.memory.history import MAX_KNOWN, History
from bot.policy.message_trimming import trim_message
from bot.prompt.compose import Forwarded, PicturePlace, Question, QuestionPicture, user_message
from frostagent.types.errors import Lack, MediaError
from frostagent.types.speech import Quote, Text
from tests.bot.prompt import VIEW
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore, RecordingTransport, inside, said

OWN = said("I said that", user=BOT, message_id="100", at=False)
OTHER = said("somebody else", user=5, message_id="200", at=False)


def quoting(message_id: str) -> MessageReceived:
    return said((Quote(message_id), Text("why?")), at=False)


def perception(transport: RecordingTransport, history: History | None = None) -> Perception:
    return Perception(transport=transport, history=history or History(store=RecordingStore()), patience=0.05)


async def test_a_quote_of_the_bots_own_message_is_recognised_by_asking_the_server() -> None:
    eyes = perception(RecordingTransport([OWN, OTHER]))
    assert await eyes.quotes_the_bot(quoting("100"), "100")
    assert not await eyes.quotes_the_bot(quoting("200"), "200")
    assert not await eyes.quotes_the_bot(quoting("300"), "300")


async def test_a_message_we_remember_is_not_asked_for() -> None:
    transport, history = RecordingTransport(), History(store=RecordingStore())
    history.know(OWN)
    assert await perception(transport, history).quotes_the_bot(quoting("100"), "100")
    assert transport.looked_up == []


async def test_a_question_comes_with_what_it_quotes() -> None:
    message = quoting("200")
    question = await perception(RecordingTransport([OTHER])).perceive(message)
    assert question.message is message
    assert question.quoted == OTHER
    assert question.forwarded == Forwarded()


async def test_whose_words_the_bot_passed_on_in_a_message_that_is_not_remembered_nobody_knows() -> None:
    question = await perception(RecordingTransport([OWN])).perceive(quoting("100"))
    assert question.quoted is not None
    assert (question.quoted.is_own, question.quoted.cap) == (True, "everyone")
    history = History(store=RecordingStore())
    history.know(OWN)
    assert (await perception(RecordingTransport(), history).perceive(quoting("100"))).quoted == OWN


SECRET = said((Text("secret"), Picture(url="https://a.example/secret.png")), user=5, message_id="500", at=False)


@each_case(
    ("asked_in", "said_in", "is_told"),
    [
        (GROUP, GROUP, True),
        (GROUP, Conversation(BOT, "group", 5555), False),
        (GROUP, PRIVATE, False),
        (GROUP, Conversation(BOT, "private", 4242), False),
        (GROUP, Conversation(BOT, "private", 0), False),
        (GROUP, Conversation(BOT, "group", 0), True),
        (PRIVATE, PRIVATE, True),
        (PRIVATE, Conversation(BOT, "private", 0), True),
        (PRIVATE, GROUP, False),
        (PRIVATE, Conversation(BOT, "private", 778), False),
    ],
)
async def test_what_was_said_in_another_conversation_is_not_told_here(
    asked_in: Conversation, said_in: Conversation, is_told: bool
) -> None:
    found = structs.replace(SECRET, conversation=said_in)
    own = structs.replace(said("mine", user=BOT, message_id="501"), conversation=said_in)
    eyes = perception(RecordingTransport([found, own]))
    asking = said((Quote("500"), Text("why?")), where=asked_in)
    question = await eyes.perceive(asking)
    assert (question.quoted == found, question.elsewhere) == (is_told, not is_told)
    told = user_message(question, VIEW).text
    assert ("secret" in told, "[引用的消息不在这里] why?" in told) == (is_told, not is_told)
    assert await eyes.quotes_the_bot(asking, "501") is is_told


async def test_a_forward_inside_a_message_from_elsewhere_is_not_opened() -> None:
    elsewhere = structs.replace(said((Forward("f1"),), message_id="500"), conversation=PRIVATE)
    transport = RecordingTransport([elsewhere])
    transport.forwards["f1"] = (OTHER,)
    assert (await perception(transport).perceive(quoting("500"))).forwarded == Forwarded()


async def test_what_is_quoted_and_forwarded_is_no_flood_either() -> None:
    flood = said("x" * 480_000, user=5, message_id="500", at=False)
    transport = RecordingTransport([flood])
    transport.forwards["f1"] = (flood,) * 5000
    question = await perception(transport).perceive(said((Quote("500"), Forward("f1"))))
    assert question.quoted == trim_message(flood)
    assert len(user_message(question, VIEW).text) < 20_000


async def test_a_forward_in_a_line_beside_the_question_is_opened_too() -> None:
    transport = RecordingTransport()
    transport.forwards["f1"] = (OTHER,)
    lines = (said((Forward("f1"),), message_id="400", at=False),)
    asked = said("sum it up")
    expected = Question(asked, forwarded=inside(OTHER), lines=lines)
    assert await perception(transport).perceive(asked, lines) == expected


async def test_a_question_comes_with_the_messages_it_forwards() -> None:
    transport = RecordingTransport()
    transport.forwards["f1"] = (OTHER,)
    question = await perception(transport).perceive(said((Forward("f1"), Text("sum it up"))))
    assert question.forwarded == inside(OTHER)


async def test_a_quoted_forward_is_opened_too() -> None:
    transport = RecordingTransport([said((Forward("f1"),), message_id="400", at=False)])
    transport.forwards["f1"] = (OTHER,)
    question = await perception(transport).perceive(quoting("400"))
    assert question.forwarded == inside(OTHER)


async def test_what_the_server_does_not_know_any_more_is_left_out() -> None:
    message = said((Forward("gone"), Text("sum it up")))
    question = await perception(RecordingTransport()).perceive(message)
    assert question.message is message
    assert question.forwarded == Forwarded()


async def test_a_forward_that_cannot_be_opened_does_not_cost_the_quote_it_is_in() -> None:
    """Refused, or not answered in time."""

    class Slow(RecordingTransport):
        async def get_forward(self, account: int, forward: Forward) -> tuple[MessageReceived, ...]:
            await asyncio.Event().wait()
            return ()

    quoted = said((Forward("gone"), Text("look")), message_id="400", at=False)
    for transport in (RecordingTransport([quoted]), Slow([quoted])):
        question = await perception(transport).perceive(quoting("400"))
        assert (question.quoted, question.forwarded) == (quoted, Forwarded())


async def test_a_server_that_does_not_answer_does_not_hold_up_the_question() -> None:
    class Mute(RecordingTransport):
        async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
            await asyncio.Event().wait()
            return None

    message = quoting("1")
    assert (await perception(Mute()).perceive(message)).quoted is None
    assert not await perception(Mute()).quotes_the_bot(message, "1")


async def test_without_a_connection_a_question_has_no_quote_but_who_is_quoted_can_be_asked_later() -> None:
    class Away(RecordingTransport):
        async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
            raise NotConnected("away")

    assert (await perception(Away()).perceive(quoting("1"))).quoted is None
    with pytest.raises(NotConnected):
        await perception(Away()).quotes_the_bot(quoting("1"), "1")


async def test_a_look_up_whose_connection_broke_is_made_once_more() -> None:
    class Breaking(RecordingTransport):
        async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
            found = await super().get_message(account, message_id)
            if self.looked_up.count(message_id) == 1 or message_id == "2":
                raise ActionUnanswered("closed")
            return found

    transport = Breaking([said("mine", user=BOT, at=False, message_id="1")])
    assert await perception(transport).quotes_the_bot(quoting("1"), "1")
    assert not await perception(transport).quotes_the_bot(quoting("2"), "2")
    assert transport.looked_up == ["1", "1", "2", "2"]


def test_floods_leave_no_room_for_as_many_messages_that_can_be_quoted() -> None:
    history = History(store=RecordingStore())
    history.know(OWN)
    history.know(said("x" * 1000 * MAX_KNOWN, message_id="flood"))
    assert history.known(GROUP, "100") is None
    assert history.known(GROUP, "flood") is not None


# --- pictures ---------------------------------------------------------------------------------------


class Eyes:
    """See every picture that has a url, unless it says otherwise."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    async def see(self, account: int, image: Picture) -> Seen:
        self.seen.append((account, image.url))
        if image.url == "slow":
            await asyncio.Event().wait()
        if image.url in {"", "broken"}:
            raise MediaError("gone")
        return Seen(f"data:{image.url}")


def seeing(transport: RecordingTransport | None = None) -> tuple[Perception, Eyes]:
    eyes, history = Eyes(), History(store=RecordingStore())
    senses = Senses(eyes, looking=0.05)
    return Perception(transport=transport or RecordingTransport(), history=history, senses=senses), eyes


def showing(*urls: str, user: int = 777, message_id: str = "500") -> MessageReceived:
    """A message of pictures."""
    return said(tuple(Picture(url=url) for url in urls), user=user, message_id=message_id, at=False)


async def test_the_pictures_of_a_question_are_seen_in_the_order_of_its_text() -> None:
    eyes, _ = seeing()
    question = Question(showing("a", "b"), quoted=showing("c", user=5), forwarded=inside(showing("d", user=6)))
    assert await eyes.look(question) == (
        QuestionPicture(PicturePlace.FORWARDED, "data:d"),
        QuestionPicture(PicturePlace.QUOTED, "data:c"),
        QuestionPicture(PicturePlace.QUESTION, "data:a"),
        QuestionPicture(PicturePlace.QUESTION, "data:b"),
    )


async def test_of_too_many_pictures_the_questions_own_are_seen_first() -> None:
    eyes, asked = seeing()
    forwarded = inside(*(showing("f") for _ in range(30)))
    question = Question(showing("a", "b"), quoted=showing("c", user=5), forwarded=forwarded)
    assert [picture.url for picture in await eyes.look(question)] == ["data:f", "data:c", "data:a", "data:b"]
    assert len(asked.seen) == 4


async def test_a_picture_that_cannot_be_had_in_time_does_not_cost_the_others() -> None:
    eyes, _ = seeing()
    question = Question(showing("broken", "a", "slow"))
    assert await eyes.look(question) == (
        QuestionPicture(PicturePlace.QUESTION, lack=Lack.UNREADABLE),
        QuestionPicture(PicturePlace.QUESTION, "data:a"),
        QuestionPicture(PicturePlace.QUESTION, lack=Lack.OUT_OF_REACH),
    )


async def test_pictures_are_asked_for_at_the_account_that_got_the_question() -> None:
    eyes, asked = seeing()
    await eyes.look(Question(structs.replace(showing("a"), self_id=10002)))
    assert asked.seen == [(10002, "a")]


async def test_a_picture_of_the_bot_itself_is_seen_as_the_server_keeps_it() -> None:
    """What is remembered of it has the name of a file of ours."""
    mine = structs.replace(showing("", user=BOT), segments=(Picture(file="demo.png"),))
    question = Question(said("what is this?"), quoted=mine)
    eyes, _ = seeing(RecordingTransport([showing("kept", user=BOT)]))
    assert await eyes.look(question) == (QuestionPicture(PicturePlace.QUOTED, "data:kept"),)
    eyes, _ = seeing(RecordingTransport([structs.replace(showing("kept", user=BOT), conversation=PRIVATE)]))
    assert await eyes.look(question) == ()
    eyes, asked = seeing(RecordingTransport())
    assert await eyes.look(question) == ()
    assert asked.seen == []


async def test_a_server_that_is_away_costs_the_quoted_picture_and_nothing_else() -> None:
    class Away(RecordingTransport):
        async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
            raise NotConnected("away")

    eyes, _ = seeing(Away())
    question = Question(showing("a"), quoted=showing("b", user=BOT))
    assert await eyes.look(question) == (QuestionPicture(PicturePlace.QUESTION, "data:a"),)


async def test_where_no_model_sees_nobody_looks() -> None:
    assert await perception(RecordingTransport()).look(Question(showing("a"))) == ()
