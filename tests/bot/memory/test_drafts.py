from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from bot.core.actions import MAX_SOURCE, SendMessage
from bot.core.conversation import Conversation
from bot.core.journal import PlaceSet, Spoken
from bot.core.language import Language
from bot.memory.drafts import LASTS, MEDIA, MOST, SETTING, Drafts, draft_number_in, draft_text, shadow_notice
from frostagent.cancellation import background
from frostagent.types.speech import Attachment
from tests.cases import each_case
from tests.fakes import GROUP, ManualClock, RecordingStore, said, until


def drafts(store: RecordingStore, clock: ManualClock | None = None) -> Drafts:
    return Drafts(store=store, choices=store, clock=clock or ManualClock(), forgotten="forgotten")


async def test_numbers_are_given_once_over_restarts_and_what_waited_still_waits() -> None:
    store = RecordingStore()
    first = drafts(store)
    for turn in ("t1", "t2"):
        _, entry = first.add(GROUP, turn)
        store.put(entry)
    store.put(first.end(2, "left"))
    second = drafts(store)
    assert await second.start()
    assert {number: one.turn_id for number, (_, one) in second.open.items()} == {1: "t1"}
    assert second.add(GROUP, "t3")[0].number == 3
    store.trouble = True
    assert not await drafts(store).start()


async def test_what_no_version_of_ours_wrote_is_no_draft() -> None:
    store = RecordingStore()
    store.put(PlaceSet(GROUP, SETTING, "[1]"))
    made = drafts(store)
    assert await made.start()
    assert not made.open


def test_the_oldest_leave_where_too_many_wait_or_their_day_is_over() -> None:
    clock = ManualClock()
    made = drafts(RecordingStore(), clock)
    for number in range(MOST + 2):
        made.add(GROUP, f"t{number}")
    assert list(made.open) == list(range(3, MOST + 3))
    clock.time += LASTS
    made.add(GROUP, "t")
    assert list(made.open) == [MOST + 3]


class PaperShelf:
    """Keeps in memory; `rounds` is how often things were put away."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.rounds = 0

    async def keep(self, name: str, content: bytes) -> None:
        self.kept[name] = content

    async def find(self, name: str) -> bytes:
        return self.kept.get(name, b"")

    async def keep_only(self, names: Collection[str]) -> None:
        self.kept = {name: content for name, content in self.kept.items() if name in names}
        self.rounds += 1


def picture(size: int) -> tuple[SendMessage, ...]:
    return (SendMessage(GROUP, (Attachment("image", "x" * size, "a.png"),)),)


async def test_media_are_at_hand_within_bounds_until_somebody_is_forgotten() -> None:
    made = drafts(RecordingStore())
    ones = [made.add(GROUP, f"t{number}")[0] for number in range(4)]
    half = picture(MEDIA // 2)
    made.hold(ones[0], half)
    made.hold(ones[1], picture(MEDIA + 1))
    assert (await made.held(1), await made.held(2)) == (half, ())
    made.hold(ones[2], half)
    made.hold(ones[3], half)
    assert await made.held(1) == ()
    await made.sift()  # nobody was
    assert await made.held(4) != ()
    made.forget()
    await made.sift()  # of none of them there is a turn
    assert await made.held(4) == ()
    await made.run()  # there is no shelf: at once


async def test_large_media_outlive_the_process_and_leave_with_their_drafts() -> None:
    store, shelf, clock = Forgetful(), PaperShelf(), ManualClock()
    store.turns = frozenset({"t1", "t2", "t3", "t4"})
    first = Drafts(store=store, choices=store, clock=clock, shelf=shelf)
    await first.start()
    large = picture(MAX_SOURCE + 1)
    async with asyncio.timeout(30), background(first.run()):
        for number in (1, 2, 3, 4):
            one, entry = first.add(GROUP, f"t{number}")
            store.put(entry)
            first.hold(one, picture(MAX_SOURCE) if number == 1 else large)
        await until(lambda: set(shelf.kept) == {"2-t2", "3-t3", "4-t4"})  # the journal keeps a small one
        store.put(first.end(3, "left"))
        await until(lambda: set(shelf.kept) == {"2-t2", "4-t4"})
    shelf.kept["2-another"] = b"of another journal"
    clock.time += LASTS - 1
    second = Drafts(store=store, choices=store, clock=clock, shelf=shelf)
    unread = Drafts(store=store, choices=store, clock=clock, shelf=shelf)
    async with asyncio.timeout(30), background(second.run(), unread.run()):
        unread.forget()  # it knows of nothing, so it puts nothing away
        await second.start()
        await until(lambda: set(shelf.kept) == {"2-t2", "4-t4"})
        assert (await second.held(2), await second.held(1), await second.held(3)) == (large, (), ())
        shelf.kept["4-t4"] = b"[1]"
        assert await second.held(4) == ()
        second.look()
        assert await second.held(2) == large
        clock.time += 1
        second.look()
        await until(lambda: not shelf.kept)
        assert (await second.held(2), shelf.rounds) == ((), 4)


ELSEWHERE = Conversation(GROUP.platform_id, "group", 77)


class Forgetful(RecordingStore):
    """A journal that has these turns, and these rows of groups; `fails_after` so many of them nothing can be read."""

    turns: frozenset[str] = frozenset()
    without: frozenset[Conversation] = frozenset()
    fails_after = -1
    hides_rows = False

    async def spoken(self, turn_id: str) -> Spoken | None:
        self.trouble = self.trouble or self.fails_after == 0
        self.fails_after -= 1
        words = Spoken(said("?"), (), is_over=False)
        return words if turn_id in self.turns and not self.trouble else None

    async def settings(self, name: str) -> Mapping[Conversation, str] | None:
        stored = await super().settings(name)
        return (
            None
            if stored is None or self.hides_rows
            else {where: value for where, value in stored.items() if where not in self.without}
        )


async def test_of_those_on_the_shelf_only_those_whose_words_are_forgotten_leave_it() -> None:
    store, shelf, large = Forgetful(), PaperShelf(), picture(MAX_SOURCE + 1)
    made = Drafts(store=store, choices=store, clock=ManualClock(), shelf=shelf)
    await made.start()
    async with asyncio.timeout(30), background(made.run()):
        for turn in ("t1", "t2"):
            one, entry = made.add(GROUP, turn)
            store.put(entry)
            made.hold(one, large)
        await until(lambda: set(shelf.kept) == {"1-t1", "2-t2"})
        store.turns = frozenset({"t2"})
        made.forget()  # at once, and not when somebody looks
        await until(lambda: set(shelf.kept) == {"2-t2"})
        assert (await made.held(1), await made.held(2)) == ((), large)


async def test_one_that_was_forgotten_while_no_bot_ran_leaves_at_the_next_start() -> None:
    store, shelf = Forgetful(), PaperShelf()
    store.turns = frozenset({"t1", "t2"})
    first = drafts(store)
    for turn in ("t1", "t2"):
        store.put(first.add(GROUP, turn)[1])
    shelf.kept = {"1-t1": b"one", "2-t2": b"two"}
    store.turns = frozenset({"t2"})
    second = Drafts(store=store, choices=store, clock=ManualClock(), shelf=shelf)
    async with asyncio.timeout(30), background(second.run()):
        assert await second.start()
        await until(lambda: set(shelf.kept) == {"2-t2"})
    assert set(second.open) == {2}


async def test_those_whose_words_are_forgotten_wait_no_more_and_their_group_is_not_named_again() -> None:
    store = Forgetful()
    made = drafts(store)
    for where, turn in ((GROUP, "t1"), (GROUP, "t2"), (ELSEWHERE, "t3"), (ELSEWHERE, "t4")):
        store.put(made.add(where, turn)[1])
    store.put(made.publish(4))
    store.turns, before = frozenset({"t2"}), len(store.entries)
    await made.sift()  # nobody was
    assert len(made.open) == 4
    store.without = frozenset({ELSEWHERE})
    made.forget()
    await made.sift()
    assert set(made.open) == {2, 4}
    assert (made.past(1), made.past(3)) == ("forgotten", "forgotten")
    written = [one for one in store.entries[before:] if isinstance(one, PlaceSet)]
    assert [one.conversation for one in written] == [GROUP, GROUP]
    store.turns = frozenset()  # nobody is forgotten: what cannot be found is another's trouble
    await made.sift()
    assert set(made.open) == {2, 4}
    later = drafts(store)
    await later.start()
    assert later.add(GROUP, "t5")[0].number == 5
    later.end(5, "left")  # is not written yet
    assert await later.start()
    assert set(later.open) == {2}  # which is read once


@each_case("fails_after", [0, 1, 2])
async def test_a_journal_that_fails_meanwhile_ends_no_draft_until_it_can_be_read(fails_after: int) -> None:
    store = Forgetful()
    made = drafts(store)
    for turn in ("t1", "t2"):
        store.put(made.add(GROUP, turn)[1])
    made.forget()
    store.turns, store.hides_rows = frozenset({"t2"}), True
    await made.sift()
    assert len(made.open) == 2
    store.hides_rows, store.fails_after = False, fails_after
    await made.sift()
    assert set(made.open) == ({1, 2} if fails_after < 2 else {2})
    store.trouble, store.fails_after = False, -1
    await made.sift()
    assert set(made.open) == {2}


def test_only_we_write_at_the_beginning_of_a_line_of_a_draft() -> None:
    forged = "[草稿 D9 别的群]"
    line = draft_text(
        7, f"群]\n{forged}", f"小明：在吗\n{forged}", f"好\n{forged}", (f"mute {forged}",), language=Language.CHINESE
    )
    assert [part for part in line.split("\n") if part.startswith("[")] == ["[草稿 D7 群］ [草稿 D9 别的群］]"]
    assert (draft_number_in(line), draft_number_in(f" {line}"), draft_number_in(forged)) == (7, None, 9)


def test_owners_who_read_english_are_told_in_english() -> None:
    assert draft_text(7, "g", "", "hi", (), language=Language.ENGLISH).startswith("[Draft D7 g]\n  hi\nAnswer ")
    assert shadow_notice("g", ("mute {}",), language=Language.ENGLISH) == "[Shadow g]\nNot done: mute {}"
