from __future__ import annotations

from msgspec import structs

from frostagent.types.speech import Quote, Text
from tests.bot.chat.test_catchup import HELLO, ago, back, quotes
from tests.bot.hall import hall, muted, recalled
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said, until, words


async def test_a_message_found_in_a_history_without_an_identity_or_of_ours_is_nothing() -> None:
    async with hall() as house:
        for message in (said("hi", message_id="0"), said("hi", user=BOT, message_id="5")):
            house.late.take_missed(message)
        await house.lanes.wait_idle()
        assert house.store.entries == []


async def test_where_the_bot_is_muted_nobody_is_asked_to_ask_again() -> None:
    async with hall() as house:
        house.late.preload([], [], whole=False)
        old = structs.replace(said("hi"), time=house.clock.now() - 10)
        await house.take(muted(60))
        house.late.take_missed(old)
        await house.outbox.wait_idle()
        assert house.transport.sent == []
        assert len(house.store.of("message_observed")) == 1


async def test_until_the_journal_was_read_what_is_older_than_the_process_is_left_alone() -> None:
    older, younger = ago(said("older", message_id="1"), 1), said("younger", message_id="2")
    async with back(words("yes"), words("again"), read=False) as house:
        house.transport.histories[GROUP] = (older, younger)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        await house.lanes.wait_idle()
        assert [getattr(entry, "message", None) for entry in house.store.of("message_observed")] == [younger]
        house.late.preload([], [(GROUP, house.clock.now())])  # it is read, and does not know of it
        await until(lambda: len(house.transport.sent) == 2)
        assert house.transport.sent[1].segments[0] == Quote("1")


@each_case("ahead", [300, -300])
async def test_how_old_a_missed_question_is_does_not_depend_on_the_servers_clock(ahead: int) -> None:
    new, old, young = (
        ago(said("hi", message_id=name), ahead + age) for name, age in (("1", 0), ("2", 130), ("3", 110))
    )
    async with back(words("new"), words("young")) as house:
        house.seen.note_history(GROUP, (old,))
        await house.take(new)
        house.late.preload([], [(GROUP, old.time)])
        house.transport.histories[GROUP] = (old, young)
        await house.dispatcher.handle(HELLO)
        await until(lambda: len(house.transport.sent) == 2)
        assert house.transport.texts == ["new", "young"]


async def test_what_was_taken_back_before_the_journal_was_read_is_nothing() -> None:
    back_again, stays = ago(said("hi", message_id="1"), 60), ago(said("hi", message_id="2"), 60)
    async with back(words("yes"), read=False) as house:
        for event in (back_again, stays, recalled("1")):
            await house.dispatcher.handle(event)
        house.late.preload([], [])
        await until(lambda: house.transport.sent)
        await house.lanes.wait_idle()
        assert quotes(house) == ["2"]
        assert [getattr(entry, "message", None) for entry in house.store.of("message_observed")] == [stays]


async def test_what_a_history_showed_as_answered_before_the_journal_was_read_stays_so() -> None:
    async with hall() as house:
        house.late.take_missed(ago(said("hi"), 1), answered=True)
        house.late.preload([], [])
        assert house.store.entries == []


async def test_what_is_known_already_is_not_missed_when_a_history_shows_it() -> None:
    message = said("hi", at=False)
    async with hall() as house:
        await house.take(message)
        house.late.take_missed(message)
        assert not house.ages.is_missed(message)
        assert house.door.duplicates == 0


async def test_a_question_that_waits_for_its_account_is_known_when_it_is_quoted() -> None:
    async with hall() as house:
        house.late.ask_again(said("hi", message_id="70"))
        await house.take(said((Quote("70"), Text("so am I")), at=False))
        assert house.transport.looked_up == []
