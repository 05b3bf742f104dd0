from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.core.events import MessageReceived, Sender
from bot.core.journal import KnownLine
from bot.core.segments import Forward, Mention, Picture, Segment
from bot.policy.message_aliases import find_aliases, is_row_of, message_fingerprint, rename_messages
from frostagent.types.speech import Face, Quote, Text
from tests.fakes import BOT, said

LINES = st.lists(
    st.tuples(st.sampled_from([5, 6, BOT]), st.integers(0, 12), st.sampled_from(["哈哈", "好", ""])), max_size=14
)


def line(id_: str, time: float, words: str = "哈哈", *, user: int = 5) -> MessageReceived:
    return replace(said(words, user=user, message_id=id_), time=time, sender=Sender(user))


def known(message: MessageReceived, *, sender: int | None = None, gone: bool = False) -> KnownLine:
    user = message.sender.user_id if sender is None else sender
    return KnownLine(message.message_id, user, message.time, None if gone else message.segments)


@given(heard=LINES, missed=LINES, agree=st.lists(st.booleans(), min_size=14, max_size=14))
def test_of_each_persons_equal_lines_as_many_are_new_as_were_missed(
    heard: list[tuple[int, int, str]], missed: list[tuple[int, int, str]], agree: list[bool]
) -> None:
    """However near they are to each other, and whether some ids agree or none."""
    live = [line(f"live {n}", time, words, user=user) for n, (user, time, words) in enumerate(heard)]
    rows = [
        one if same else replace(one, message_id=f"row {n}")
        for n, (one, same) in enumerate(zip(live, agree, strict=False))
    ]
    rows += [line(f"missed {n}", time, words, user=user) for n, (user, time, words) in enumerate(missed)]
    rows.sort(key=lambda one: one.time)
    names = find_aliases(rows, map(known, live))
    ids = {one.message_id for one in live}
    assert set(names.values()) <= ids
    assert len(set(names.values())) == len(names)  # one to one
    new = [one for one in rename_messages(rows, names) if one.message_id not in ids]
    told = Counter((one.sender.user_id, message_fingerprint(one.segments)) for one in new)
    assert told == Counter((user, message_fingerprint(line("", 0, words).segments)) for user, _, words in missed)


def test_two_equal_lines_of_one_person_in_one_second_stay_two() -> None:
    live = [line("a", 100), line("b", 100)]
    assert find_aliases(live, map(known, live)) == {}  # by their ids
    rows = [line("1", 100), line("2", 100), line("3", 101)]
    assert find_aliases(rows, map(known, live)) == {"1": "a", "2": "b"}
    assert find_aliases(rows, [known(live[0])]) == {"1": "a"}


def test_what_differs_in_person_time_or_content_is_another_line() -> None:
    row = line("1", 100)
    others = [
        line("a", 103),
        line("a", 100, user=6),
        line("a", 100, "哈哈哈"),
        replace(line("a", 100), segments=(Text("哈哈"), Picture("x.png"))),
        replace(line("a", 100), segments=(Mention(7), Text("哈哈"))),
    ]
    assert [find_aliases([row], [known(other)]) for other in others] == [{}] * len(others)
    own = line("1", 100, user=BOT)  # its own words have the time of our clock
    assert find_aliases([own], [known(line("a", 70, user=BOT))]) == {"1": "a"}
    assert find_aliases([own], [known(line("a", 69, user=BOT))]) == {}


def test_content_is_what_every_server_tells_alike() -> None:
    same: list[tuple[tuple[Segment, ...], tuple[Segment, ...]]] = [
        ((Quote("7"), Text("a b")), (Text("ab"),)),
        ((Picture("a.png", url="x"),), (Picture("{B}.jpg"),)),
        ((Mention(5, "小明"), Text(" hi")), (Mention(5), Text("hi"))),
        ((Face("1", "/微笑"),), (Face("1"),)),
        ((Forward("7"),), (Forward("8", "[]"),)),
    ]
    for one, other in same:
        assert message_fingerprint(one) == message_fingerprint(other)


def test_what_was_recalled_is_known_by_its_time_and_what_was_forgotten_by_that_alone() -> None:
    rows = [line("1", 100, "同意 A1"), line("2", 100, "好"), line("3", 200, "/me"), line("4", 300)]
    lines = [
        known(line("a", 100), gone=True),
        known(line("b", 100, "好")),
        known(line("c", 200), sender=0, gone=True),
        known(line("d", 302), gone=True),
    ]
    assert find_aliases(rows, lines) == {"1": "a", "2": "b", "3": "c"}


def test_where_ids_agree_a_new_line_beside_a_recalled_or_forgotten_one_is_new() -> None:
    rows = [line("a", 90), line("1", 100, "几点？"), line("2", 200, "在哪？")]
    lines = [known(rows[0]), known(line("b", 100), gone=True), known(line("c", 200), sender=0, gone=True)]
    assert find_aliases(rows, lines) == {}
    # A line under another id shows that ids do not agree; "a" was taken from such a history before.
    assert find_aliases([*rows, line("3", 300)], [*lines, known(line("d", 300))]) == {"1": "b", "2": "c", "3": "d"}


def test_quotes_in_a_history_are_of_the_lines_as_they_are_known() -> None:
    rows = [line("1", 100), replace(line("2", 150), segments=(Quote("1"), Text("谁？")))]
    names = find_aliases(rows, [known(line("a", 100))])
    first, second = rename_messages(rows, names)
    assert (first.message_id, second.message_id, second.segments[0]) == ("a", "2", Quote("a"))
    assert rename_messages(rows, {}) == tuple(rows)


def test_an_event_that_comes_behind_its_row_is_that_row_within_a_second() -> None:
    row = line("1", 100)
    assert is_row_of(row, line("a", 101))
    for event in (line("a", 102), line("a", 100, user=6), line("a", 100, "好")):
        assert not is_row_of(row, event)
