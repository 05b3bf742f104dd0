"""What must hold of a whole run over a cluster, from what people got, what the model saw and the journal. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapters.simulator.call import SentMessage
from bot.policy.fallback_replies import is_fallback_reply
from tests.system.processes.test_signals import quoted
from tests.torture.journal import Journal
from tests.torture.oracle import unsound_rows


@dataclass(frozen=True, slots=True)
class Query:
    """A question to this account in this group. `missed`: no gateway was there, so that it is found in the history."""

    token: str
    account: int
    group: int
    message_id: str
    missed: bool = False


Heard = Mapping[int, Sequence[SentMessage]]
"""What people got of each account, in order."""


def judge_run(asked: Sequence[Query], heard: Heard, invalid: Sequence[str], journal: Journal) -> list[str]:
    """All that is wrong, of questions in the order in which they were asked."""
    return [
        *invalid,
        *_said_twice(heard),
        *_said_elsewhere(asked, heard),
        *_answered_twice(asked, heard),
        *_out_of_order(asked, heard),
        *unsound_rows(journal),
        *_doubled(journal),
    ]


def _token(message: SentMessage) -> str:
    """The question that the model's words are about, empty where they are not the model's."""
    kind, _, words = message.text.partition(":")
    return words.partition(" ")[0].partition("-")[0] if kind in ("A", "F", "S") else ""


def _is_final(message: SentMessage, query: Query) -> bool:
    """Whether it ends the question: its answer, or a polite line that quotes it."""
    if message.text in (f"A:{query.token}", f"F:{query.token}"):
        return True
    return is_fallback_reply(message.text) and message.group_id == query.group and quoted(message) == query.message_id


def _said_twice(heard: Heard) -> Iterator[str]:
    """Of what was said in a run: answers are judged by their questions."""
    for account, messages in heard.items():
        for text, times in Counter(message.text for message in messages if message.text.startswith("S:")).items():
            if times > 1:
                yield f"{account} said {text!r} {times} times"


def _said_elsewhere(asked: Sequence[Query], heard: Heard) -> Iterator[str]:
    places = {query.token: (query.account, query.group) for query in asked}
    for account, messages in heard.items():
        for message in messages:
            token, here = _token(message), (account, message.group_id)
            if token and places.get(token) != here:
                yield f"{message.text!r} was said in {here}, and asked for in {places.get(token)}"


def _answered_twice(asked: Sequence[Query], heard: Heard) -> Iterator[str]:
    for query in asked:
        answers = [message.text for message in heard[query.account] if _is_final(message, query)]
        if len(answers) > 1:
            yield f"{query} was answered {len(answers)} times: {answers}"


def _out_of_order(asked: Sequence[Query], heard: Heard) -> Iterator[str]:
    """Of one chat; what was missed is looked for while what comes is answered."""
    order = {query.token: number for number, query in enumerate(asked) if not query.missed}
    for account, messages in heard.items():
        last = dict[int | None, str]()
        for message in messages:
            if message.text[:2] not in ("A:", "F:") or (token := _token(message)) not in order:
                continue
            before = last.get(message.group_id, token)
            if order[token] < order[before]:
                yield f"{account} answered {token} after {before} in {message.group_id}"
            last[message.group_id] = token


def _doubled(journal: Journal) -> Iterator[str]:
    for name, ids in (
        ("send", [row["send_id"] for row in journal.sends]),
        ("turn", [one.turn_id for one in journal.turns]),
    ):
        yield from (f"{name} {one} is stored {times} times" for one, times in Counter(ids).items() if times > 1)
