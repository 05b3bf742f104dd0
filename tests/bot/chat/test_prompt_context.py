from __future__ import annotations

from msgspec.structs import replace

from bot.chat.context_builder import LOOK_UPS, PromptContext
from bot.core.journal import MemberNumbered
from bot.core.segments import Mention
from bot.memory.history import History
from bot.prompt.compose import OverheardTalk, Question
from frostagent.types.speech import Quote, Text
from tests.fakes import BOT, GROUP, RecordingStore, said


async def telling(store: RecordingStore) -> PromptContext:
    history = History(store=store)
    made = PromptContext(history=history, speakers=history.speakers)
    await history.load(GROUP)
    return made


async def test_a_mention_has_the_name_its_person_was_last_seen_by() -> None:
    teller = await telling(RecordingStore())
    for name in ("小红", "红红"):
        teller.named(Question(said("hi", user=5, name=name)))
    named = teller.named(Question(said((Mention(5, "装的"), Mention(6, "小刚"), Mention(7)))))
    assert named.message.segments[1:] == (Mention(5, "红红"), Mention(6, "小刚"), Mention(7))


async def test_what_was_quoted_long_ago_does_not_bring_an_old_name_back() -> None:
    teller = await telling(RecordingStore())
    old = said("早先说的", user=5, name="旧名", message_id="1")
    question = teller.named(Question(said("hi", user=5, name="新名"), quoted=old))
    teller.render(question, OverheardTalk(replies={"1": old}), teller.view(GROUP))
    named = teller.named(Question(said((Mention(5),))))
    assert named.message.segments[-1] == Mention(5, "新名")


async def test_of_what_is_quoted_among_others_only_the_latest_is_looked_for_in_the_store() -> None:
    asked: list[str] = []

    class Store(RecordingStore):
        async def find(self, conversation: object, message_id: str) -> None:
            asked.append(message_id)

    teller = await telling(Store())
    lines = [said((Quote(str(number)), Text("hm")), at=False, message_id=f"m{number}") for number in range(20)]
    first = said((Quote("m3"), Text("on m3")), at=False, message_id="f")
    talk = await teller.with_replies(Question(said("hi", message_id="q")), OverheardTalk([*lines, first]))
    assert set(asked) == {str(number) for number in range(20 - LOOK_UPS, 20)}
    assert set(talk.replies) == {"m3"}


async def test_a_line_of_a_question_under_way_is_by_number_and_its_person_is_met() -> None:
    store = RecordingStore()
    teller = await telling(store)
    added = teller.addition(said("还有 "), None, quoted=said("晴", user=BOT))
    assert added.text.endswith("]\n小明#1: [引用 我 的「晴」] 还有")
    assert store.entries == [MemberNumbered(conversation=GROUP, number=1, user_id=777, name="小明")]


async def test_what_is_told_by_itself_is_one_line_of_its_conversation() -> None:
    teller = await telling(RecordingStore())
    assert teller.is_at_hand(GROUP)
    assert not teller.is_at_hand(replace(GROUP, session_id=1))
    assert teller.line(said("长" * 50, at=False), limit=10) == f"小明#1: {'长' * 9}…"


async def test_who_is_mentioned_before_he_speaks_has_his_name_all_the_same() -> None:
    history = History(store=RecordingStore())
    teller = PromptContext(history=history, speakers=history.speakers)
    await history.load(GROUP)
    for message in (said((Mention(5),), at=False), said("hi", user=5, name="小红", at=False)):
        history.overhear(message)
    talk = teller.take_talk(GROUP, 777)
    assert talk.messages[0].segments == (Mention(5, "小红"),)
    assert (len(teller.take_talk(GROUP, 777).messages), talk.missed) == (0, 0)
