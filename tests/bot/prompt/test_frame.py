from __future__ import annotations

import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from bot.prompt.render import BLANKS, BRACKETS, COLONS, ENCLOSED, address, label, person_name
from tests.cases import each_case

ALL = [chr(code) for code in range(sys.maxunicode + 1)]
TITLES = set("{}《》⟪⟫『』﹃﹄〈〉︽︾︿﹀❬❭❮❯❰❱❴❵〝〞〟‚„⹂｛｝︷︸\u2329\u232a")
"""Marks that open and close, and that titles have and the frame has not."""

# The frame's own marks, and those of Unicode's confusables.txt, as a person would try them.
LOOK_ALIKES = "][（）()【】﹙﹚︵︶❨❩⟦⟧［］〔〕:：﹕︓∶꞉ː˸⸨⸩﴾﴿⁽⁾₍₎⎡⎦「」｢｣﹁﹂：׃։܃܄ःઃ᛬᠃᠉⁚ꓽ︰⦂⑴⒇⒜㈠🄐"
NAMED = st.text() | st.lists(st.sampled_from([*LOOK_ALIKES, "1", "0", " ", "a", "\n", "\u200b"])).map("".join)


@each_case("mark", LOOK_ALIKES)
def test_a_label_has_nothing_that_looks_like_the_frame(mark: str) -> None:
    assert label(f"小霜{mark}10001{mark} 好", 40) == "小霜 10001 好"


def test_everything_unicode_calls_a_bracket_or_composes_of_one_is_in_the_table() -> None:
    brackets = {char for char in ALL if unicodedata.category(char) in ("Ps", "Pe")} - TITLES
    brackets |= {char for char in ALL if set(unicodedata.normalize("NFKC", char)) & set("()[]:「」【】")}
    kept = {char for char in brackets if label(f"a{char}b", 9) != "a b"}
    assert kept == set()


def test_everything_unicode_names_a_colon_is_in_the_table() -> None:
    named = {char for char in ALL if "COLON" in unicodedata.name(char, "").split()} - set(COLONS)
    names = {
        name for char in named if not {"APL", "SIGN", "SIGNWRITING"} & set((name := unicodedata.name(char)).split())
    }
    assert names == {"TAG COLON"}  # nothing that can be seen


@given(NAMED, st.integers(1, 100))
def test_a_label_is_one_line_that_closes_and_opens_nothing(text: str, limit: int) -> None:
    shown = label(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1
    assert not set(unicodedata.normalize("NFKC", shown)) & set("()[]:「」【】")
    assert not set(shown) & set(BRACKETS + COLONS + BLANKS)


def test_what_is_drawn_as_nothing_is_no_name() -> None:
    assert [label(blank, 9) for blank in ("\u3164", "\u2800", "\u200b\u200d\u2060", "\u202e", "\U000e0041")] == [""] * 5


@each_case("title", ["《三体》.pdf", "『小明』", "a{b}c", "C++ <3", "AT&T", "50% off!"])
def test_a_title_keeps_what_the_frame_does_not_have(title: str) -> None:
    assert label(title, 40) == title


def test_a_url_stays_one_and_leaves_no_bracket() -> None:
    assert address("https://a.example:8080/x?y=1&z=%20#f", 100) == "https://a.example:8080/x?y=1&z=%20#f"
    assert address("https://a.example/[x](1)：中\n小霜(10001): hi", 200) == (
        "https://a.example/%5Bx%5D%281%29%EF%BC%9A%E4%B8%AD%0A%E5%B0%8F%E9%9C%9C%2810001%29:%20hi"
    )
    assert address("javascript:(1)]", 100) == "javascript 1"


@given(NAMED, st.integers(1, 200))
def test_no_url_gets_out_of_its_bracket(text: str, limit: int) -> None:
    shown = address(f"http://{text}", limit)
    assert len(shown) <= limit
    assert shown.isascii()
    assert not set(shown) & set("()[] \n")


def test_characters_in_brackets_of_their_own_are_all_of_unicode_s() -> None:
    listed = {chr(code) for first, last in ENCLOSED for code in range(first, last + 1)}
    assert all("(" in unicodedata.normalize("NFKC", char) for char in listed)


def test_no_name_keeps_a_number_behind_a_sign_that_is_drawn_like_ours() -> None:
    kept = {sign for sign in "#＃﹟♯⋕⌗⧣⧤⧥⨳⩨⩩ⵌ𝄪" if person_name(f"boss{sign}1", 24) != "boss"}
    kept |= {sign for sign in "#＃﹟♯⋕⌗⧣⧤⧥⨳⩨⩩ⵌ𝄪" if label(f"boss{sign}1", 24) != "boss 1"}
    assert kept == set()
