from __future__ import annotations

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender
from bot.core.journal import AttachmentNamed, Remembered
from bot.core.segments import File, Forward, Picture, Record, Segment
from bot.memory.attachments import MAX_CONTENT, MAX_THINGS, Attachments
from bot.memory.history import History
from frostagent.types.speech import Text
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore, said


def book(*things: AttachmentNamed, kinds: str = "ivaf") -> tuple[Attachments, RecordingStore]:
    store = RecordingStore()
    known = Attachments(store=store, kinds=kinds)
    known.learn(GROUP, things)
    return known, store


def sharing(*segments: Segment, message_id: str = "500", user: int = 5) -> MessageReceived:
    return said(segments, user=user, message_id=message_id, at=False)


def handles(message: MessageReceived) -> list[str]:
    return [getattr(segment, "handle", "") for segment in message.segments]


def test_each_thing_has_a_short_name_which_is_written_down_once() -> None:
    things, store = book()
    message = sharing(Picture("a.png"), Text("看"), Record("b.amr"), File("c.txt", "c1"), Forward("9"))
    assert handles(things.named(message)) == ["i1", "", "v2", "a3", "f4"]
    assert things.named(message) == things.named(message)
    assert [entry.number for entry in store.entries if isinstance(entry, AttachmentNamed)] == [1, 2, 3, 4]


def test_a_thing_is_found_by_its_name_with_or_without_brackets_and_by_no_other() -> None:
    things, _ = book()
    things.named(sharing(Picture("a.png")))
    found = things.find(GROUP, "[图片 i1]")
    assert found is not None
    assert (found.segment, found.sender.user_id, found.message_id) == (Picture("a.png"), 5, "500")
    assert things.find(GROUP, "i1") == found
    for other in ("i2", "f1", "1", "", "i01x"):
        assert things.find(GROUP, other) is None
    assert things.find(PRIVATE, "i1") is None


def test_names_go_on_after_a_restart_and_the_same_thing_keeps_its_own() -> None:
    first, store = book()
    first.named(sharing(Picture("a.png")))
    (entry,) = (entry for entry in store.entries if isinstance(entry, AttachmentNamed))
    second, store = book(entry)
    assert handles(second.named(sharing(Picture("a.png"), Picture("b.png")))) == ["i1", "i2"]
    assert len(store.entries) == 1


def test_what_was_recalled_is_not_found_and_nothing_gets_its_name() -> None:
    gone = AttachmentNamed(conversation=GROUP, number=7, message_id="", sender=Sender(0), segment=None)
    things, _ = book(gone)
    assert things.find(GROUP, "i7") is None
    assert handles(things.named(sharing(Picture("a.png")))) == ["i8"]
    things.forget_message(GROUP, "500")
    assert things.find(GROUP, "i8") is None
    assert handles(things.named(sharing(Picture("b.png"), message_id="501"))) == ["i9"]


def test_of_what_is_inside_a_forward_nobody_knows_whose_it_is_and_it_goes_with_the_forward() -> None:
    things, _ = book()
    outer = sharing(Forward("9"))
    inner = replace(sharing(Picture("a.png"), message_id="1"), conversation=Conversation(BOT, "private", 9))
    assert handles(things.named(inner, within=outer)) == ["i1"]
    found = things.find(GROUP, "i1")
    assert found is not None
    assert (found.sender.user_id, found.message_id) == (0, "500")


def test_nothing_is_named_that_nobody_could_open() -> None:
    things, store = book(kinds="af")
    assert handles(things.named(sharing(Picture("a.png"), Record("b.amr"), File("c.txt")))) == ["", "", "a1"]
    assert handles(things.named(sharing(File("mine.txt"), user=BOT))) == [""]
    assert handles(things.named(sharing(File("d.txt"), message_id=""))) == [""]
    unread = Attachments(store=store)
    assert handles(unread.named(sharing(File("c.txt")))) == [""]


def test_of_very_many_things_the_latest_can_be_opened() -> None:
    things, _ = book()
    for number in range(MAX_THINGS + 1):
        things.named(sharing(Picture(f"{number}.png")))
    assert things.find(GROUP, "i1") is None
    assert things.find(GROUP, f"i{MAX_THINGS + 1}") is not None
    assert handles(things.named(sharing(Picture("0.png")))) == [f"i{MAX_THINGS + 2}"]


def test_a_forward_is_kept_with_what_came_inside_it_unless_that_is_a_flood() -> None:
    things, _ = book()
    things.named(sharing(Forward("1", "[]"), Forward("2", "x" * (MAX_CONTENT + 1))))
    kept = [thing.segment for name in ("f1", "f2") if (thing := things.find(GROUP, name))]
    assert kept == [Forward("1", "[]"), Forward("2")]


async def test_the_history_knows_what_the_store_knows_and_forgets_what_is_recalled() -> None:
    store = RecordingStore()
    thing = AttachmentNamed(conversation=GROUP, number=3, message_id="500", sender=Sender(5), segment=Picture("a.png"))
    store.remembered[GROUP] = Remembered(things=(thing,))
    history = History(store=store)
    await history.load(GROUP)
    assert history.things.find(GROUP, "i3") == thing
    history.forget_message(GROUP, "500")
    assert history.things.find(GROUP, "i3") is None
    assert await history.reread()
    await history.load(GROUP)
    assert history.things.find(GROUP, "i3") == thing
