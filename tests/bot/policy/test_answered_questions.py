from __future__ import annotations

from msgspec import structs

from bot.core.actions import SendMessage
from bot.core.events import MessageReceived
from bot.core.journal import SendState, Spoken, StoredSend
from bot.core.segments import Segment
from bot.policy.answered_questions import (
    answered_ids,
    history_order,
    is_undelivered,
    lacks_answer,
    lost_part,
    quoted_ids,
)
from frostagent.types.speech import Quote, Text
from tests.fakes import BOT, GROUP, PRIVATE, said

NOW = 1_700_000_000.0


def ask(message_id: str, *, ago: float = 60) -> MessageReceived:
    message = said(f"question {message_id}", message_id=message_id)
    return structs.replace(message, time=NOW - ago)


def own(message_id: str, *quotes: str, ago: float = 50) -> MessageReceived:
    segments: tuple[Segment, ...] = (*map(Quote, quotes), Text("an answer"))
    message = said(segments, user=BOT, message_id=message_id, at=False)
    return structs.replace(message, time=NOW - ago)


# --- which questions are answered -----------------------------------------------------------------


def test_what_own_words_quote_is_answered_wherever_it_stands() -> None:
    assert answered_ids([own("9", "1")]) == {"1"}
    assert answered_ids([ask("1"), ask("2"), own("9", "1")]) == {"1"}
    assert answered_ids([ask("2"), own("9", "1"), ask("3")]) == {"1"}


def test_own_words_without_a_quote_may_answer_all_that_stands_before_them_and_nothing_after() -> None:
    assert answered_ids([ask("1"), ask("2"), own("9"), ask("3")]) == {"1", "2"}
    assert answered_ids([own("9"), ask("1")]) == set()
    assert answered_ids([]) == set()


def test_a_long_answer_goes_on_without_a_quote_and_answers_nothing_more() -> None:
    assert answered_ids([ask("1"), ask("2"), own("8", "1"), own("9"), own("10")]) == {"1"}


def test_after_somebody_else_has_spoken_own_words_are_no_longer_the_rest_of_an_answer() -> None:
    assert answered_ids([ask("1"), own("8", "1"), ask("2"), own("9")]) == {"1", "2"}


def test_own_words_whose_question_is_known_answer_nothing_else() -> None:
    assert answered_ids([ask("1"), own("9")], accounted=["9"]) == set()
    assert answered_ids([ask("1"), ask("2"), own("9", "1")], accounted=["9"]) == {"1"}
    assert answered_ids([ask("1"), own("9"), own("10")], accounted=["9"]) == {"1"}


def test_an_answer_with_a_quote_hides_no_question_that_was_answered_without_one_before() -> None:
    assert answered_ids([ask("1"), own("8"), ask("2"), own("9", "2"), ask("3")]) == {"1", "2"}


def test_only_quotes_of_which_nobody_knows_are_another_process_s() -> None:
    history = [ask("1"), ask("2"), own("8", "1"), own("9", "2"), own("10")]
    assert quoted_ids(history) == {"1", "2"}
    assert quoted_ids(history, accounted=["8"]) == {"2"}
    assert quoted_ids([structs.replace(own("9", "1"), sender=ask("1").sender)]) == set()


# --- what never arrived ---------------------------------------------------------------------------


def test_a_history_that_has_the_question_and_nothing_of_ours_behind_it_lacks_the_answer() -> None:
    question = ask("1")
    assert lacks_answer([question], question, NOW, accounted=())
    assert lacks_answer([own("9"), question, ask("2")], question, NOW, accounted=())
    assert not lacks_answer([question, ask("2"), own("9")], question, NOW, accounted=())


def test_own_words_that_are_known_or_for_somebody_else_are_not_the_answer() -> None:
    question = ask("1")
    assert lacks_answer([question, own("9")], question, NOW, accounted=["9"])
    assert lacks_answer([question, own("9", "2")], question, NOW, accounted=())
    assert not lacks_answer([question, own("9", "1")], question, NOW, accounted=())


def test_a_history_that_does_not_reach_back_past_the_answer_says_nothing() -> None:
    question, sent = ask("1"), NOW - 40
    assert not lacks_answer([], question, sent, accounted=())
    assert not lacks_answer([ask("2", ago=41)], question, sent, accounted=())
    assert not lacks_answer([structs.replace(question, sender=own("9").sender)], question, sent, accounted=())
    assert lacks_answer([ask("2", ago=71)], question, sent, accounted=())
    assert not lacks_answer([ask("2", ago=71), own("9", ago=45)], question, sent, accounted=())
    assert lacks_answer([ask("2", ago=80), own("9", ago=71)], question, sent, accounted=())


def test_a_question_without_an_identity_is_found_in_no_history() -> None:
    question = ask("0")
    assert not lacks_answer([question], question, NOW - 40, accounted=())


def send(send_id: str, state: SendState, *, final: bool = True, elsewhere: bool = False) -> StoredSend:
    action = SendMessage(PRIVATE if elsewhere else GROUP, (Text("hello"),))
    return StoredSend(send_id=send_id, turn_id="t", action=action, final=final, at=NOW, state=state)


def spoken(*sends: StoredSend, is_over: bool = True) -> Spoken:
    return Spoken(ask("1"), sends, is_over)


def test_a_turn_whose_only_answer_is_lost_is_unheard() -> None:
    lost = send("a", SendState.UNKNOWN)
    assert is_undelivered(spoken(lost), {"a"})
    assert not is_undelivered(spoken(lost), set())
    assert not is_undelivered(spoken(lost, is_over=False), {"a"})
    assert not is_undelivered(spoken(), {"a"})


def test_a_turn_is_heard_where_another_part_of_its_answer_may_have_arrived() -> None:
    lost = send("a", SendState.UNKNOWN)
    for state in (SendState.CONFIRMED, SendState.UNKNOWN, SendState.SENDING, SendState.QUEUED):
        assert not is_undelivered(spoken(send("b", state), lost), {"a"})
    for state in (SendState.REFUSED, SendState.WITHDRAWN, SendState.DROPPED):
        assert is_undelivered(spoken(lost, send("b", state)), {"a"})
        assert not is_undelivered(spoken(send("b", state)), {"a"})


def test_words_in_the_middle_of_a_run_are_its_answer_only_where_there_is_no_other() -> None:
    middle, final = send("a", SendState.CONFIRMED, final=False), send("b", SendState.UNKNOWN)
    assert is_undelivered(spoken(middle, final), {"b"})
    lost = send("a", SendState.UNKNOWN, final=False)
    assert is_undelivered(spoken(lost), {"a"})
    assert not is_undelivered(spoken(lost, send("b", SendState.CONFIRMED)), {"a"})
    assert not is_undelivered(spoken(lost, send("b", SendState.CONFIRMED, final=False)), {"a"})


def test_what_was_said_elsewhere_is_no_answer() -> None:
    lost = send("a", SendState.UNKNOWN)
    assert is_undelivered(spoken(lost, send("b", SendState.CONFIRMED, elsewhere=True)), {"a"})
    assert not is_undelivered(spoken(send("a", SendState.UNKNOWN, elsewhere=True)), {"a"})


# --- order ----------------------------------------------------------------------------------------


def test_what_a_history_shows_stands_in_its_order_and_the_rest_between_by_its_time() -> None:
    place_of = history_order([ask("3", ago=60), ask("1", ago=60), ask("2", ago=50)])
    messages = [ask("5", ago=40), ask("2"), ask("4", ago=55), ask("1"), None, ask("6", ago=70), ask("3")]
    names = [message.message_id if message else "" for message in sorted(messages, key=place_of)]
    assert names == ["", "6", "3", "1", "4", "2", "5"]


def test_an_id_that_many_have_has_no_place() -> None:
    place_of = history_order([ask("0", ago=60), ask("1", ago=50)])
    assert place_of(ask("0", ago=40)) > place_of(ask("1"))


def test_what_an_asker_misses_of_an_answer_that_was_refused() -> None:
    lost, middle = send("a", SendState.REFUSED), send("a", SendState.REFUSED, final=False)
    cut, queued = send("b", SendState.WITHDRAWN), send("b", SendState.QUEUED)
    parts: dict[str, tuple[StoredSend, ...]] = {
        "all": (lost,),
        "all, with what was cut off": (lost, cut),
        "all, with what is about to be cut off": (lost, queued),
        "all, whatever was said elsewhere": (lost, send("b", SendState.CONFIRMED, elsewhere=True)),
        "rest": (send("b", SendState.CONFIRMED), lost, cut),
        "rest, if the first may have arrived": (send("b", SendState.UNKNOWN), lost),
        "nothing: another one answers": (middle, send("b", SendState.CONFIRMED)),
        "nothing: another one may answer": (middle, send("b", SendState.QUEUED, final=False)),
        "nothing: others answered in the middle": (middle, send("b", SendState.CONFIRMED, final=False)),
        "all: nothing else was said": (middle,),
        "nothing: it was said elsewhere": (send("a", SendState.REFUSED, elsewhere=True),),
    }
    assert [name for name, sends in parts.items() if not name.startswith(lost_part(spoken(*sends), "a"))] == []
