from __future__ import annotations

import pytest

from config.hours import hours
from config.values import Wrong


@pytest.mark.parametrize("text", ["23:30", "25:00-1:00", "24:30-1:00", "8:00-8:00", "0:00-24:00", "8-9", "nights"])
def test_what_is_no_part_of_a_day_is_named(text: str) -> None:
    with pytest.raises(Wrong, match="23:30-07:30"):
        hours(text)


def test_a_day_ends_where_the_next_one_begins() -> None:
    assert hours("23:00-24:00") == hours("23:00 - 0:00") == ((1380, 0),)
    assert hours("") == ()
