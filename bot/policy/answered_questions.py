"""Matches questions and answers in a history. Pure; a history is oldest first and includes the
account's own messages.

An answer in a group quotes its question; answers in private and messages sent during a run do not.
So quotes decide if there are any. An own message without a quote may answer anything before it,
unless its question is known (`accounted`: ids of such messages).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeAlias

from bot.core.events import MessageReceived
from bot.core.journal import SendState, Spoken
from frostagent.types.speech import Quote

SKEW = 30.0  # seconds the server's clock may be behind ours
Part: TypeAlias = Literal["all", "rest", "nothing"]
ON_WIRE = (SendState.SENDING, SendState.UNKNOWN, SendState.CONFIRMED)  # may have been read
UNREAD = (
    SendState.REFUSED,
    SendState.WITHDRAWN,
    SendState.DROPPED,
)  # certainly unread for ever


def answered_ids(
    history: Sequence[MessageReceived], *, accounted: Collection[str] = ()
) -> frozenset[str]:
    """Return the ids of messages that count as answered: quoted by an own message, or before an own
    message that may be their answer.

    Messages right after an own message with a quote belong to it: a long answer is several
    messages.
    """
    found: set[str] = set()
    said_to = 0  # index; everything before it counts as answered
    goes_on = False
    for place, message in enumerate(history):
        if not message.is_own:
            goes_on = False
        elif quotes := quotes_of(message):
            found |= quotes
            goes_on = True
        elif not goes_on and message.message_id not in accounted:
            said_to = place
    return frozenset(found) | {
        message.message_id for message in history[:said_to] if not message.is_own
    }


def quoted_ids(
    history: Sequence[MessageReceived], *, accounted: Collection[str] = ()
) -> frozenset[str]:
    """Return the ids quoted by unaccounted own messages: another process answered them."""
    own = (message for message in history if message.is_own and message.message_id not in accounted)
    return frozenset[str]().union(*map(quotes_of, own))


def lacks_answer(
    history: Sequence[MessageReceived],
    question: MessageReceived,
    at: float,
    *,
    accounted: Collection[str],
) -> bool:
    """Whether the history covers the time `at` when the answer was sent, and shows that it never
    arrived.

    It covers that time if it contains the question, or a message older than `at` by more than the
    clocks may differ. An unaccounted own message may be the answer, altered in transit.
    """
    place = next((place for place, one in enumerate(history) if _is_same(one, question)), None)
    if place is not None:
        after = history[place + 1 :]
    elif history and history[0].time < at - SKEW:
        after = [message for message in history if message.time >= at - SKEW]
    else:
        return False
    return not any(
        message.is_own
        and message.message_id not in accounted
        and (not (quotes := quotes_of(message)) or question.message_id in quotes)
        for message in after
    )


def is_undelivered(spoken: Spoken, lost: Collection[str]) -> bool:
    """Whether a turn has ended without an answer because these sends, by id, were lost.

    Its answer is what was sent as final, or everything sent during the run if nothing was.
    """
    here = [
        send for send in spoken.sends if send.action.conversation == spoken.question.conversation
    ]
    answers = [send for send in here if send.final] or here
    gone = [send.send_id in lost for send in answers]
    unread = (is_lost or send.state in UNREAD for send, is_lost in zip(answers, gone, strict=True))
    return spoken.is_over and any(gone) and all(unread)


def lost_part(spoken: Spoken, send_id: str) -> Part:
    """Return what the asker misses of an answer because this send was refused; "nothing" if another
    send answers, or still may. See `is_undelivered`.
    """
    here = [
        send for send in spoken.sends if send.action.conversation == spoken.question.conversation
    ]
    finals = [send for send in here if send.final]
    answers = finals or here
    if all(send.send_id != send_id for send in answers):
        return "nothing"
    if not finals:  # messages sent during a run: each may have been the answer
        return "all" if all(send.state in UNREAD for send in here) else "nothing"
    return "rest" if any(send.state in ON_WIRE for send in finals) else "all"


def history_order(history: Sequence[MessageReceived]) -> Callable[[MessageReceived | None], float]:
    """Return a function that gives a message's position in the history; None comes first.

    A message that is not in the history is placed by its time.
    """
    places = {
        message.message_id: float(place)
        for place, message in enumerate(history)
        if message.has_identity
    }
    times = [message.time for message in history]

    def place_of(message: MessageReceived | None) -> float:
        if message is None:
            return -1.0
        return places.get(message.message_id, bisect_right(times, message.time) - 0.5)

    return place_of


def quotes_of(message: MessageReceived) -> frozenset[str]:
    return frozenset(
        segment.message_id for segment in message.segments if isinstance(segment, Quote)
    )


def _is_same(one: MessageReceived, question: MessageReceived) -> bool:
    return (
        question.has_identity
        and one.message_id == question.message_id
        and one.sender.user_id == question.sender.user_id
    )
