"""Names of files, whoever made them up."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from bot.core.filenames import MAX_BYTES, NEUTRAL, clean_name, split_ending
from tests.cases import each_case


@each_case(
    "name",
    [
        "cat.png",
        "一只 猫.png",
        "报告 (2).pdf",
        "a-b_c.tar.gz",
        "été.txt",
        "わたし.mp3",
        "😀.gif",
        "README",
        "v1.0",
        "con-cat.txt",
    ],
)
def test_an_honest_name_stays_as_it_is(name: str) -> None:
    assert clean_name(name) == name


@each_case(
    ("name", "clean"),
    [
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("a\u2066b\u2069c\u200e\u200f\u061c.txt", "abc.txt"),
        ("a\u200bb\u200d\ufeff\u2060\u00adc.txt", "abc.txt"),
        ("a\u3164b\u2800c\u115f\ufe0f\U000e0101.txt", "abc.txt"),
        ("a\nb\r\nc\td.txt", "a b c d.txt"),
        ("a\u2028b\u2029c\x85d.txt", "a b c d.txt"),
        ("a\0b\x1bc\x7fd.txt", "abcd.txt"),
        ("report.pdf" + " " * 200 + ".exe", "report.pdf .exe"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..\\..\\windows\\win.ini", "_.._windows_win.ini"),
        ("a／b＼c∕d⁄e.txt", "a_b_c_d_e.txt"),
        ('a<b>:"|?*.txt', "a_b_.txt"),
        (".bashrc", "bashrc"),
        ("...a.txt...", "a.txt"),
        (" a.txt ", "a.txt"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("com1 .txt", "_com1 .txt"),
        ("\ud800half.png", "half.png"),
        ("\ue000private.png", "private.png"),
    ],
)
def test_tricks_are_taken_out(name: str, clean: str) -> None:
    assert clean_name(name) == clean


@each_case("name", ["", " ", ".", "..", "...", "/", "\\\\", "\u202e", "\n", "_", "?*", "\u200b\u200b"])
def test_where_nothing_is_left_there_is_a_neutral_name(name: str) -> None:
    assert clean_name(name) == NEUTRAL
    assert clean_name(name, neutral="picture") == "picture"


def test_a_name_that_is_too_long_is_cut_between_letters_and_keeps_its_ending() -> None:
    for name in ("x" * 500 + ".png", "猫" * 500 + ".png", "a" + "猫" * 500 + ".png"):
        clean = clean_name(name)
        assert clean.endswith(".png")
        assert MAX_BYTES - 3 < len(clean.encode()) <= MAX_BYTES
    assert clean_name("x" * 500) == "x" * MAX_BYTES
    assert clean_name("x" * 50 + "." + "y" * 500) == ("x" * 50 + "." + "y" * 500)[:MAX_BYTES]


@given(st.text() | st.text(alphabet="\u202e./\\ aCON\n\u200b:1猫", max_size=300))
def test_whatever_comes_is_one_short_line_without_tricks_and_cleaning_it_again_changes_nothing(name: str) -> None:
    clean = clean_name(name)
    assert clean == clean_name(clean)
    assert 0 < len(clean.encode()) <= MAX_BYTES
    assert clean.isprintable()
    assert not set(clean) & set('/\\:*?"<>|')
    assert not clean.startswith((".", " "))
    assert not clean.endswith((".", " "))
    assert not any(unicodedata.bidirectional(letter) in {"RLO", "LRO", "RLE", "LRE", "RLI", "LRI"} for letter in clean)


@each_case(
    ("name", "parts"),
    [
        ("a.png", ("a", ".png")),
        ("a.tar.GZ", ("a.tar", ".GZ")),
        ("a", ("a", "")),
        (".png", (".png", "")),
        ("a.", ("a.", "")),
        ("a.much-too-long", ("a.much-too-long", "")),
        ("a.猫", ("a.猫", "")),
    ],
)
def test_an_ending_is_a_few_plain_letters_behind_the_last_dot(name: str, parts: tuple[str, str]) -> None:
    assert split_ending(name) == parts
