from __future__ import annotations

from bot.core.drafts import draft_id, draft_of, published_id, published_of
from tests.cases import each_case


@each_case(
    ("send_id", "number", "published"),
    [
        (f"{draft_id(7)}ab12-3", 7, 0),
        (f"{published_id(7)}ab12-3", 0, 7),
        ("ab12-3", 0, 0),
        ("draft-", 0, 0),
        ("published-", 0, 0),
    ],
)
def test_the_rows_of_a_draft_are_known_by_their_names(send_id: str, number: int, published: int) -> None:
    assert (draft_of(send_id), published_of(send_id)) == (number, published)
    assert not f"{draft_id(71)}x".startswith(draft_id(7))
