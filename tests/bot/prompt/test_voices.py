from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.core.events import MessageReceived, relayed
from bot.core.segments import Card, File, Link, Location, Mention
from bot.prompt.compose import OverheardTalk, Question, user_message
from bot.prompt.participants import NOBODY_KNOWS, speakers_in
from bot.prompt.prompt_language import WORDINGS
from bot.prompt.wording import Wording
from frostagent.types.messages import AssistantMessage, Message, ToolMessage
from frostagent.types.speech import Quote, Text
from frostagent.types.traits import Audience
from tests.bot.prompt import VIEW
from tests.cases import each_case
from tests.fakes import BOT, inside, said

OWNER = 999


def told(question: Question, *overheard: MessageReceived) -> frozenset[int]:
    told = user_message(question, VIEW, OverheardTalk(overheard))
    return speakers_in([told, AssistantMessage("小红#6: ok")], int)


def test_who_asked_was_overheard_or_quoted_is_known_again() -> None:
    overheard = said("hi", user=5, at=False), said("two\nlines", user=6, name="张三", at=False)
    question = Question(said("well?", user=OWNER), quoted=said("do it", user=7))
    assert told(question, *overheard) == {5, 6, 7, OWNER}
    assert told(Question(said("well?", user=OWNER, name="主人"))) == {OWNER}


def test_a_name_inside_a_mention_is_somebodys_word_and_a_number_is_not() -> None:
    named = said((Mention(5, "群发通知"), Mention(BOT), Text("hi")), user=OWNER)
    assert told(Question(named)) == {5, OWNER}
    bare = said((Mention(5), Mention(6, "6"), Text("hi")), user=OWNER)
    assert told(Question(bare)) == {OWNER}


@each_case(
    "shared", [Card("json", "{}", "title"), Link("share", "title"), Link("music", "song"), File("a.txt"), Location("x")]
)
def test_of_what_was_passed_on_nobody_knows_whose_words_it_is(shared: Card | Link | File | Location) -> None:
    assert told(Question(said((shared,), user=OWNER))) == {NOBODY_KNOWS, OWNER}


def test_neither_of_a_forward_nor_of_a_summary() -> None:
    forwarded = Question(said("sum up", user=OWNER), forwarded=inside(said("hi", user=OWNER)))
    assert told(forwarded) == {NOBODY_KNOWS, OWNER}
    assert speakers_in((), int, summary="小明#5 问了天气") == {NOBODY_KNOWS}
    assert speakers_in((), int) == frozenset()


def test_of_a_number_that_nobody_has_nobody_knows_whose_words_it_is() -> None:
    rounds = [user_message(Question(said("hi", user=7)), VIEW)]
    assert speakers_in(rounds, {7: 70007}.get) == {70007}
    assert speakers_in(rounds, {7: 0}.get) == {NOBODY_KNOWS}


def test_only_what_people_said_counts() -> None:
    others: tuple[Message, ...] = (AssistantMessage("小明#5: hi"), ToolMessage("c", "web", "小明#5: hi"))
    assert speakers_in(others, int) == frozenset()


def test_who_is_told_of_in_a_result_is_not_known_later() -> None:
    result = ToolMessage("c", "chat_log", "小明#2: hi", authority=Audience.EVERYONE)
    assert speakers_in((result,), int) == {NOBODY_KNOWS}


NAMES = st.text(max_size=30) | st.sampled_from(["小明#1: ", "a ↩小明#1「x」", "a]b", "\u3164", "x\ny", "(7)"])


@given(NAMES, NAMES, st.text(), st.text())
def test_nobody_gets_his_words_into_a_round_unseen(name: str, other: str, text: str, more: str) -> None:
    asked = said(text, user=OWNER, name=name)
    overheard = said(more, user=5, name=other, at=False)
    quoted = replace(said(more, user=6), sender=said("x", user=6, name=other).sender)
    assert told(Question(asked, quoted=quoted), overheard) >= {5, 6, OWNER}
    replying = replace(overheard, segments=(Quote("1"), *overheard.segments))
    told_ = user_message(Question(asked), VIEW, OverheardTalk([replying], replies={"1": quoted}))
    assert speakers_in([told_], int) >= {5, 6, OWNER}


@each_case("words", WORDINGS)
def test_what_the_bot_passed_on_is_nobodys_word_to_later_questions(words: Wording) -> None:
    view = replace(VIEW, words=words)
    own = said("news", user=BOT)
    assert own.is_own

    def told(quoted: MessageReceived) -> frozenset[int]:
        asked = user_message(Question(said("well?", user=OWNER), quoted=quoted), view)
        reply = said((Quote(quoted.message_id), Text("hm")), user=OWNER, at=False)
        overheard = OverheardTalk((reply,), replies={quoted.message_id: quoted})
        both = [asked, user_message(Question(said("well?", user=OWNER)), view, overheard)]
        first, second = (speakers_in([one], int) for one in both)
        assert first == second
        return first

    assert told(own) == {OWNER}
    assert told(relayed(own, Audience.OWNER)) == {OWNER}
    assert told(relayed(own, Audience.GROUP_ADMIN)) == {NOBODY_KNOWS, OWNER}
    assert told(relayed(own)) == {NOBODY_KNOWS, OWNER}
    task = said(f"[{words.relayed}] [定时 J1，14:10] 打开", user=OWNER)
    assert speakers_in([user_message(Question(task), view)], int) == {NOBODY_KNOWS, OWNER}
