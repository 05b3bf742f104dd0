from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frostagent.engine.budget import Budget, BudgetShare, Limits, Room
from frostagent.types.runs import Spent


def test_a_run_of_its_own_may_ask_so_often_and_the_last_time_is_for_words() -> None:
    share = Budget(Limits(requests=3)).share()
    assert [share.begin() for _ in range(4)] == [Room.MORE, Room.MORE, Room.LAST, Room.NONE]
    assert share.is_over
    assert share.budget.spent.requests == 3


def test_where_there_is_no_more_for_it_each_run_has_its_last_request_and_none_begins() -> None:
    out = False
    budget = Budget(is_out=lambda: out)
    root, part = budget.share(), budget.part()
    assert part is not None
    assert [root.begin(), part.begin()] == [Room.MORE, Room.MORE]
    out = True
    assert [part.begin(), part.begin(), root.begin(), root.begin()] == [Room.LAST, Room.NONE, Room.LAST, Room.NONE]
    assert budget.part() is None


def test_what_is_taken_back_was_not_asked_for_and_its_last_words_are_still_due() -> None:
    out = False
    share = Budget(Limits(tokens=100), is_out=lambda: out).share()
    assert share.begin(40) is Room.MORE
    share.take_back()
    assert share.budget.spent == Spent()
    out = True
    assert [share.begin(40), share.begin(40)] == [Room.LAST, Room.NONE]
    assert share.budget.spent == Spent(requests=1, tokens=40)


def test_one_request_is_the_last_at_once() -> None:
    assert Budget(Limits(requests=1)).share().begin() is Room.LAST


def test_without_limits_there_is_always_more() -> None:
    share = Budget().share()
    assert {share.begin(10.0**9) for _ in range(100)} == {Room.MORE}
    assert not share.is_short
    assert not share.counts_tokens
    assert share.budget.sends_left == float("inf")


def test_what_runs_inside_never_takes_the_last_words_of_what_is_around_it() -> None:
    budget = Budget(Limits(requests=5))
    root = budget.share()
    assert root.begin() is Room.MORE
    first, second = budget.part(), budget.part()
    assert first is not None
    assert second is not None
    assert [first.begin(), first.begin(), second.begin(), second.begin()] == [
        Room.MORE,
        Room.LAST,
        Room.LAST,
        Room.NONE,
    ]
    assert budget.part() is None
    assert root.begin() is Room.LAST
    assert budget.spent.requests == 5


def test_what_a_run_inside_held_is_free_when_it_is_over() -> None:
    budget = Budget(Limits(requests=3))
    budget.share()
    inner = budget.part()
    assert inner is not None
    assert budget.requests_left == 1
    inner.close()
    inner.close()
    assert budget.requests_left == 2


def test_attempts_are_requests_and_may_take_what_was_held_for_the_last() -> None:
    share = Budget(Limits(requests=3)).share()
    assert share.begin() is Room.MORE
    assert [share.again(), share.again(), share.again()] == [True, True, False]
    assert share.is_short
    assert share.begin() is Room.NONE


def test_an_attempt_of_one_run_never_takes_what_another_holds() -> None:
    budget = Budget(Limits(requests=3))
    root = budget.share()
    root.begin()
    inner = budget.part()
    assert inner is not None
    assert inner.begin() is Room.LAST
    assert not inner.again()
    assert root.begin() is Room.LAST


def test_tokens_are_counted_as_estimated_until_they_are_known() -> None:
    share = Budget(Limits(tokens=1000)).share()
    assert share.counts_tokens
    assert share.begin(300) is Room.MORE
    assert share.budget.spent.tokens == 300
    share.settle(700)
    assert share.budget.spent.tokens == 700
    share.settle(0)
    assert share.budget.spent.tokens == 700
    assert share.begin(200) is Room.LAST


def test_two_more_requests_of_the_size_must_fit_for_there_to_be_more() -> None:
    assert Budget(Limits(tokens=1000)).share().begin(500) is Room.MORE
    assert Budget(Limits(tokens=1000)).share().begin(501) is Room.LAST


def test_where_the_tokens_are_gone_there_is_no_request_either() -> None:
    share = Budget(Limits(tokens=1000)).share()
    assert [share.begin(600), share.begin(600)] == [Room.LAST, Room.NONE]


def test_a_run_inside_begins_only_where_its_first_request_fits() -> None:
    budget = Budget(Limits(tokens=1000))
    budget.share().begin(300)
    assert budget.part(401) is None
    inner = budget.part(400)
    assert inner is not None
    assert budget.part(1) is None
    assert inner.begin(400) is Room.LAST
    assert not inner.again()


def test_an_attempt_repeated_counts_its_tokens_once_more() -> None:
    share = Budget(Limits(tokens=1000)).share()
    share.begin(100)
    assert share.again()
    assert share.budget.spent == Spent(2, 200)


def test_messages_are_counted_and_never_less_than_none_are_left() -> None:
    budget = Budget(Limits(sends=5))
    budget.take(sends=4)
    assert budget.sends_left == 1
    budget.take(sends=4)
    assert budget.sends_left == 0


def test_an_earlier_segment_counts_and_the_last_words_are_due_all_the_same() -> None:
    budget = Budget(Limits(requests=4, sends=5), Spent(requests=9, sends=2))
    share = budget.share()
    assert share.begin() is Room.LAST
    assert share.begin() is Room.NONE
    assert budget.sends_left == 3


@given(st.integers(1, 30), st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["begin", "again", "close", "part"]))))
def test_whatever_the_tree_does_its_sum_is_held_and_the_root_has_its_last_words(
    limit: int, moves: list[tuple[int, str]]
) -> None:
    budget = Budget(Limits(requests=limit))
    root = budget.share()
    inner: list[BudgetShare] = []
    for who, what in moves:
        if what == "part":
            if (part := budget.part()) is not None:
                inner.append(part)
        elif inner:
            getattr(inner[who % len(inner)], what)()
    assert budget.spent.requests <= limit - 1
    rooms = [root.begin()]
    while rooms[-1] is Room.MORE:
        rooms.append(root.begin())
    assert rooms[-1] is Room.LAST
    assert budget.spent.requests <= limit


def test_only_the_first_attempt_of_the_first_request_of_all_is_first() -> None:
    budget = Budget()
    root, inner = budget.share(), budget.part()
    assert inner is not None
    root.begin()
    assert root.is_first
    assert root.again()
    assert not root.is_first
    inner.begin()
    assert not inner.is_first
    going_on = Budget(spent=Spent(requests=1)).share()
    going_on.begin()
    assert not going_on.is_first
