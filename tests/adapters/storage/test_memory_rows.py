from __future__ import annotations

from adapters.storage.rows import EVERYWHERE, memory_rows, shelf_of
from adapters.storage.statements import Statement
from bot.core.memories import Visibility
from tests.adapters.storage.entries import fact
from tests.cases import each_case
from tests.fakes import GROUP


@each_case(
    ("visibility", "shelves"),
    [
        (Visibility.HERE, [str(GROUP)]),
        (Visibility.PERSON, [str(GROUP), shelf_of(777)]),
        (Visibility.EVERYWHERE, [str(GROUP), EVERYWHERE]),
    ],
)
def test_a_fact_stands_on_a_shelf_for_each_place_where_it_may_be_told(
    visibility: Visibility, shelves: list[str]
) -> None:
    rows = memory_rows(fact("m1", "猫", visibility=visibility))
    words = [row for statement, row in rows if statement is Statement.ADD_TERM]
    assert [row["shelf"] for row in words] == shelves
    assert {row["term"] for row in words} == {"猫"}
