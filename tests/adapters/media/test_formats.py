"""What a file is, by its first bytes."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from adapters.media.formats import describe, fits, format_of, name_for, picture_kind
from frostagent.types.speech import MediaKind
from tests.adapters.media import hostile
from tests.cases import each_case

MP3 = b"ID3\4\0\0\0\0\0\0" + bytes(100)
MP4 = b"\0\0\0\x20ftypisom" + bytes(100)
PDF = b"%PDF-1.7\n"
ZIP = b"PK\3\4" + bytes(100)

SOUNDS: Final = (
    b"\x02#!SILK_V3" + bytes(9), b"#!SILK_V3" + bytes(9), b"#!AMR\n", MP3, b"\xff\xfb\x90\x44" + bytes(9),
    b"RIFF\x24\0\0\0WAVEfmt ", b"OggS\0\2", b"fLaC\0", b"\0\0\0\x20ftypM4A " + bytes(9), b"\xff\xf1\x50\x80",
)  # fmt: skip
FILMS: Final = (
    MP4, b"\0\0\0\x14ftypqt  ", b"\x1aE\xdf\xa3\1\0", b"RIFF\x24\0\0\0AVI LIST", b"FLV\1\5", b"\0\0\1\xba\x44",
    b"0&\xb2u\x8ef\xcf\x11\xa6\xd9",
)  # fmt: skip


@each_case("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP"])
def test_the_pictures_that_are_read_are_known(kind: str) -> None:
    data = hostile.encoded(kind)
    assert picture_kind(data) == kind
    assert fits("image", data)
    assert not fits("record", data)
    assert not fits("video", data)


@each_case("name", hostile.FOREIGN)
def test_what_is_none_is_called_by_its_name(name: str) -> None:
    data = hostile.FOREIGN[name]()
    assert picture_kind(data) == ""
    assert not fits("image", data)
    assert fits("file", data)
    assert describe(data)
    assert "JPEG" not in describe(data)


def test_sounds_and_films_are_told_apart() -> None:
    assert [data for data in SOUNDS if not fits("record", data) or fits("video", data) or fits("image", data)] == []
    assert [data for data in FILMS if not fits("video", data) or fits("image", data)] == []
    assert [data for data in FILMS if fits("record", data)] == [MP4, FILMS[1]], "the sound of a film is a voice"


@each_case(
    ("name", "data", "given"),
    [
        ("cat.png", hostile.encoded("PNG"), "cat.png"),
        ("cat.JPEG", hostile.encoded("JPEG"), "cat.JPEG"),
        ("cat.png", hostile.encoded("JPEG"), "cat.jpg"),
        ("cat", hostile.encoded("GIF"), "cat.gif"),
        ("", hostile.encoded("WEBP"), "file.webp"),
        ("download.php", hostile.encoded("PNG"), "download.php.png"),
        ("cat\u202egnp.exe", hostile.encoded("PNG"), "catgnp.exe.png"),
        ("a/b\\c\n.jpg", hostile.encoded("JPEG"), "a_b_c .jpg"),
        ("x" * 500, hostile.encoded("PNG"), "x" * 116 + ".png"),
        ("talk.m4a", MP4, "talk.mp4"),
        ("song", MP3, "song.mp3"),
        ("paper", PDF, "paper.pdf"),
        ("paper.docx", ZIP, "paper.docx"),
        ("paper.pdf", b"MZ\x90\0", "paper.pdf"),
        ("notes.txt", b"<html><body>", "notes.txt"),
        ("data", b"\1\2\3", "data"),
    ],
)  # fmt: skip
def test_a_name_is_cleaned_and_ends_like_the_medium_it_is(name: str, data: bytes, given: str) -> None:
    assert name_for(name, data) == given


@given(st.binary(max_size=600))
def test_whatever_comes_is_looked_at_without_a_word(data: bytes) -> None:
    found = format_of(data)
    kinds: list[MediaKind] = [kind for kind in ("image", "record", "video", "file") if fits(kind, data)]
    assert "file" in kinds
    assert found is None or found.kind in kinds
    assert describe(data)
    assert name_for("a", data)
