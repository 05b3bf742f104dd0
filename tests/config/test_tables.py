from __future__ import annotations

from pathlib import Path

import pytest

from config.tables import read_rows


@pytest.mark.parametrize(
    ("content", "rows", "wrong"),
    [
        (b"", [], ""),
        (b"\xef\xbb\xbf[[owl]]\nname = 'a'\n[[owl]]\n", [{"name": "a"}, {}], ""),
        (b"owl = [1]", [1], ""),
        (b"x = 1\n[[owl]]", [{}], "owls.toml has x, but may only have [[owl]]"),
        (b"[owl]", [], "owls.toml has [owl]: write each row under [[owl]]"),
        (b"owl = 5", [], "owls.toml has [owl]: write each row under [[owl]]"),
        (b"[[owl]", [], "{file} is not TOML: "),
        (b"\xff\xfe", [], "{file} is not UTF-8 text"),
        (None, [], "{file} cannot be read (No such file or directory)"),
    ],
)
def test_rows_are_read_as_they_stand_and_what_is_wrong_with_the_file_is_told(
    tmp_path: Path, content: bytes | None, rows: list[object], wrong: str
) -> None:
    file = tmp_path / "owls.toml"
    if content is not None:
        file.write_bytes(content)
    read, complaints = read_rows(file, "owl")
    assert read == rows
    assert len(complaints) == bool(wrong)
    assert "".join(complaints).startswith(wrong.format(file=file))
