from __future__ import annotations

import re

from bot.prompt import frame_patterns
from tests.cases import each_case


def test_one_of_several_words_is_found_as_it_stands() -> None:
    assert re.findall(frame_patterns.any_pattern(["a.b", "(c)"]), "a.b axb (c) c") == ["a.b", "(c)"]


@each_case(
    ("line", "who"),
    [
        ("小明#2: hi", ("小明", "2")),
        ("小明＃2：hi", ("小明", "2")),
        ("**小明#2:** hi", ("小明", "2")),
        ("小明#2 ↩阿澈#1「好: 的」: hi", ("小明", "2")),
        ("小明#2 ↩我: hi", ("小明", "2")),
        ("小明(20003): hi", ("小明", "20003")),
    ],
)
def test_a_line_begins_with_a_name_and_a_number_however_a_model_writes_it(line: str, who: tuple[str, str]) -> None:
    found = frame_patterns.LINE.match(line)
    assert found is not None
    assert (found["name"], found["number"]) == who
    assert line[found.end() :] == "hi"


@each_case("line", ["小明说 #2 很好: 对", "小明#二: hi", "小明#2 说: hi", "#2: hi"])
def test_what_only_looks_a_little_like_one_is_none(line: str) -> None:
    assert frame_patterns.LINE.match(line) is None
