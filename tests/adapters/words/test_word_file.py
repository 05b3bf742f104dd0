"""The word list: a table of evasions, and what is wrong with a file, by its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.words import word_file
from adapters.words.word_file import Automaton, WordFile, read_rules
from frostagent.types.errors import ConfigError
from tests.cases import each_case

LIST = """\
# what nobody is to read here
加微信
in: 代 写
out: /1[3-9]\\d{9}/
both: /free.?loans?/
BOTH:  Casino
"""

EVASIONS = [
    "加微信",
    "请加微信吧",
    "加 微 信",
    "加\u3000微\t信",
    "加\n微\r\n信",
    "加\u200b微\u200c信",
    "加\u2060微\ufeff信",
    "加\u00ad微\u180e信",
    "加\u202e微\u202c信",
    "加\u2066微\u2069信",
    "加\ufe0f微\ufe0e信",
    "加\U000e0061微\U000e007f信",
    "加\u0336微\u0336信\u0336",
    "加\u20dd微\u20dd信",
    "加\u3164微\uffa0信",
    "加\u115f微\u1160信",
    "加\u2800微信",
    "加\x00微\x1b信",
    "加\ud800微信",
    "加\ue000微信",
    "加\u00a0微\u2003信",
    "加\u2028微\u2029信",
    "⼀加微信",
    "ＣＡＳＩＮＯ",
    "Ｃａｓｉｎｏ",
    "cAsInO",
    "c a s i n o",
    "𝐜𝐚𝐬𝐢𝐧𝐨",
    "𝒸𝒶𝓈𝒾𝓃ℴ",
    "ⓒⓐⓢⓘⓝⓞ",
    "ｃａｓｉｎｏ！",
    "caſino",
    "Free Loan",
    "ＦＲＥＥ-ＬＯＡＮＳ",
    "free\u200b loans",
]

INNOCENT = ["加个微博，信我", "casual in order", "freely loaned", "", "\u200b", "微信加", "carloans"]


@pytest.fixture
def words(tmp_path: Path) -> WordFile:
    file = tmp_path / "words.txt"
    file.write_text(LIST, "utf-8")
    return WordFile(file)


@pytest.mark.parametrize("text", EVASIONS, ids=ascii)
def test_no_disguise_hides_a_word(words: WordFile, text: str) -> None:
    assert words.stops(text)
    assert words.blocks_answer(text)


def test_other_words_are_nobodys_business(words: WordFile) -> None:
    assert [text for text in INNOCENT if words.stops(text) or words.blocks_answer(text)] == []


def test_a_line_counts_where_it_says_and_is_named(words: WordFile) -> None:
    assert (words.stops("代写"), words.blocks_answer("代写")) == (3, 0)
    assert (words.stops("138 0013 8000"), words.blocks_answer("138 0013 8000")) == (0, 4)
    assert (words.stops("casino 加微信"), words.blocks_answer("casino")) == (2, 6)


@each_case(
    ("line", "text"),
    [
        ("/ＬＯ.Ｎ/", "loan"),
        ("/[Ｋ-Ｍ]oan/", "loan"),
        (r"/\x{FF2C}o\w/", "loan"),
        ("/（.+）？/", "(loan)?"),
        (r"/\Qloan（.\E+/", "loan（．．"),
    ],
)
def test_an_expression_is_looked_for_in_any_width(line: str, text: str) -> None:
    (rule,), wrong = read_rules(line)
    assert (Automaton([rule]).find(text), Automaton([rule]).find("lean"), wrong) == (1, 0, [])


def test_what_no_text_has_is_refused_in_an_expression() -> None:
    _rules, wrong = read_rules("/㍿+/\n/加\u200b微/")
    assert wrong == [
        "line 1: '㍿' is '株式会社' in searched text: write that",
        r"line 2: '\u200b' is in no searched text: leave it out",
    ]


def test_what_is_wrong_is_told_by_its_line() -> None:
    rules, wrong = read_rules("好\n/(/\n\u200b\nin:\n/a b/\n/x*/\n/(?=a)/\n" + "长" * 501 + "\n/a{9999}/\nout: /")
    assert [rule.line for rule in rules] == [1, 10]
    assert [line.partition(":")[0] for line in wrong] == [f"line {line}" for line in range(2, 10)]
    assert [line.partition(": ")[2][:14] for line in wrong] == [
        "is not a regul",
        "has no visible",
        "has no visible",
        "searched text ",
        "matches an emp",
        "is not a regul",
        "has more than ",
        "is not a regul",
    ]


def test_a_file_that_breaks_leaves_the_last_good_list(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    with pytest.raises(ConfigError, match="cannot be read"):
        WordFile(file)
    file.write_text("旧", "utf-8")
    words = WordFile(file)
    file.write_text("新\n/(/", "utf-8")
    (problem,) = words.reload()
    assert (problem.name, problem.what[:17]) == ("WORDS_FILE", "words.txt line 2:")
    assert (words.stops("旧"), words.stops("新")) == (1, 0)
    file.write_text("新", "utf-8")
    assert words.reload() == ()
    assert (words.stops("旧"), words.stops("新")) == (0, 1)


def test_a_list_that_is_too_large_for_looking_leaves_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "words.txt"
    file.write_text("旧", "utf-8")
    words = WordFile(file)
    monkeypatch.setattr(word_file, "MEMORY", 2**16)
    file.write_text("in: 新\nout: /(a{90}b){9}/", "utf-8")
    (problem,) = words.reload()
    assert (problem.name, problem.what[:15]) == ("WORDS_FILE", "words.txt has t")
    assert (words.stops("旧"), words.stops("新"), words.blocks_answer("旧")) == (1, 0, 1)


def test_an_empty_list_finds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("# nothing yet\n\n", "utf-8")
    assert WordFile(file).stops("anything") == 0
