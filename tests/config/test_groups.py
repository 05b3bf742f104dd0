from __future__ import annotations

from pathlib import Path

import pytest

from config.tables import GroupRow, read_groups

PERSONAS = {"fox.zh": None, "tutor.zh": None}


def read(folder: Path, text: str) -> tuple[dict[int, GroupRow], list[str]]:
    file = folder / "groups.toml"
    file.write_text(text, "utf-8")
    rows, problems = read_groups(file, PERSONAS)
    return dict(rows), [problem.what for problem in problems]


def test_a_row_says_what_is_otherwise_in_a_group(tmp_path: Path) -> None:
    rows, problems = read(
        tmp_path,
        """
        [[group]]
        number = 4242
        persona = "fox.zh"
        rules = "不聊游戏以外的事。"
        chance = 0.02
        quiet = "22:00-8:00"
        quiet_mode = "all"
        day_cost = 2
        day_tokens = 200000
        tools_audience = {look = "group_admin"}

        [[group]]
        number = 4243
        """,
    )
    assert problems == []
    assert rows == {
        4242: GroupRow(
            number=4242,
            persona="fox.zh",
            rules="不聊游戏以外的事。",
            chance=0.02,
            quiet=((1320, 480),),
            quiet_mode="all",
            day_cost=2.0,
            day_tokens=200_000,
            tools_audience={"look": "group_admin"},
        ),
        4243: GroupRow(number=4243),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[group]]\nnumber = '4242'", ["groups.toml row 1: number: must be a whole number"]),
        (
            "[[group]]\nnumber = 1\nchance = 2.0\nlimit = 3",
            [
                "groups.toml row 1: chance: must be at most 1",
                "groups.toml row 1: limit: is not a known field",
            ],
        ),
        ("[group]\nnumber = 1", ["groups.toml has [group]: write each row under [[group]]"]),
        ("[[groups]]\nnumber = 1", ["groups.toml has groups, but may only have [[group]]"]),
        ("[[group]]\nnumber = 1\npersona = 'owl'", ["groups.toml row 1: persona: there are only fox.zh, tutor.zh"]),
    ],
)
def test_what_is_wrong_with_a_row_is_told_and_the_row_left_out(tmp_path: Path, text: str, said: list[str]) -> None:
    assert read(tmp_path, text) == ({}, said)


def test_of_two_rows_for_one_group_the_first_counts_and_the_second_is_told(tmp_path: Path) -> None:
    rows, problems = read(tmp_path, "[[group]]\nnumber = 1\nrules = 'a'\n[[group]]\nnumber = 1\nrules = 'b'")
    assert rows[1].rules == "a"
    assert problems == ["groups.toml row 2: an earlier row has the group 1"]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert read_groups(None, PERSONAS) == ({}, ())
    rows, (problem,) = read_groups(tmp_path / "groups.toml", PERSONAS)
    assert rows == {}
    assert problem.what == f"{tmp_path / 'groups.toml'} cannot be read (No such file or directory)"


@pytest.mark.parametrize(
    ("most", "more"),
    [
        ("number = 1", "number = 0"),
        (f'number = 1\nrules = "{"r" * 500}"', f'number = 1\nrules = "{"r" * 501}"'),
        ("number = 1\nchance = 1.0", "number = 1\nchance = 1.1"),
        ("number = 1\nchance = 0.0", "number = 1\nchance = -0.1"),
        ('number = 1\nquiet_mode = "weak"', 'number = 1\nquiet_mode = "some"'),
        ('number = 1\ntools_audience = {look = "owner"}', 'number = 1\ntools_audience = {look = "nobody"}'),
        ("number = 1\nday_cost = 0", "number = 1\nday_cost = -0.1"),
        ("number = 1\nday_cost = 0.0", "number = 1\nday_cost = inf"),
        ("number = 1\nday_tokens = 0", "number = 1\nday_tokens = -1"),
        ('number = 1\nquiet = "22:00-8:00"', 'number = 1\nquiet = "22:00"'),
    ],
)
def test_each_field_of_a_row_has_its_bounds(tmp_path: Path, most: str, more: str) -> None:
    rows, problems = read(tmp_path, f"[[group]]\n{most}")
    assert (set(rows), problems) == ({1}, [])
    rows, problems = read(tmp_path, f"[[group]]\n{more}")
    assert (rows, len(problems)) == ({}, 1)


def test_a_persona_of_the_longest_name_may_be_a_groups(tmp_path: Path) -> None:
    file = tmp_path / "groups.toml"
    for length, count in ((64, 1), (65, 0)):
        file.write_text(f'[[group]]\nnumber = 1\npersona = "{"p" * length}"', "utf-8")
        rows, _ = read_groups(file, {"p" * length: None})
        assert len(dict(rows)) == count
