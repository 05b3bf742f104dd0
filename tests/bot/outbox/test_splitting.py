from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.outbox.layout import split_text
from tests.cases import each_case

LIMIT = 1500
FENCES = ("```", "````", "~~~")


def bare(text: str) -> str:
    """What must not be lost: everything but blank space."""
    return "".join(text.split())


def code_of(text: str) -> str:
    """The same without fence lines, which a cut adds."""
    return bare("\n".join(line for line in text.split("\n") if not line.strip().startswith(FENCES)))


def is_balanced(piece: str) -> bool:
    """Whether every code block that is opened is closed."""
    fence = ""
    for line in map(str.strip, piece.split("\n")):
        if fence:
            fence = "" if line.startswith(fence) and not line.strip(fence[0]) else fence
        elif line.startswith(("```", "~~~")):
            fence = line[: len(line) - len(line.lstrip(line[0]))]
    return not fence


# --- prose ----------------------------------------------------------------------------------------


def test_a_short_text_is_one_piece() -> None:
    assert split_text(" hello\n\nworld ") == ("hello\n\nworld",)
    assert split_text("长" * LIMIT) == ("长" * LIMIT,)


@each_case("text", ["", " ", "\n\n", " \t\u3000\n" * 1000])
def test_blank_text_is_no_piece(text: str) -> None:
    assert split_text(text) == ()


def test_paragraphs_stay_together_while_they_fit() -> None:
    assert split_text("aaaa\n\nbbbb\n\ncccc\n\ndddd", 10) == ("aaaa\n\nbbbb", "cccc\n\ndddd")


@each_case(
    ("text", "pieces"),
    [
        ("一二三四。\n五六七。八九十", ("一二三四。", "五六七。八九十")),
        ("一二三四。五六七八九。十", ("一二三四。", "五六七八九。十")),
        ("一二三四！”五六七八九。十", ("一二三四！”", "五六七八九。十")),
        ("One two. Three four.", ("One two.", "Three", "four.")),
        ("v1.14.51 is out now", ("v1.14.51", "is out now")),
        ("一二三四，五六七八九十", ("一二三四，", "五六七八九十")),
        ("one two three four", ("one two", "three four")),
        ("一二三四五六七八九十甲乙", ("一二三四五六七八九十", "甲乙")),
        ("一。二三四五六七八九十甲", ("一。二三四五六七八九", "十甲")),
    ],
)
def test_a_long_paragraph_is_cut_at_the_best_place_there_is(text: str, pieces: tuple[str, ...]) -> None:
    assert split_text(text, 10) == pieces


def test_a_long_chinese_text_is_cut_after_its_sentences() -> None:
    text = "今天北京的天气很好，适合出门走走。" * 300
    pieces = split_text(text)
    assert "".join(pieces) == text
    assert all(piece.endswith("。") for piece in pieces)
    assert len(pieces) == -(-len(text) // (LIMIT // 17 * 17))


PROSE = st.text(st.sampled_from("ab一二。！？，,. \n\t\u3000\u2028…”;:；😀")) | st.text(
    st.characters(blacklist_characters="`~")
)


@given(PROSE, st.integers(1, 60))
def test_of_prose_nothing_is_lost_but_blank_space(text: str, limit: int) -> None:
    pieces = split_text(text, limit)
    assert bare("".join(pieces)) == bare(text)


@given(st.text() | st.text(st.sampled_from("ab `~\n。一")), st.integers(1, 60))
def test_every_piece_of_anything_fits_and_none_is_blank(text: str, limit: int) -> None:
    pieces = split_text(text, limit)
    assert all(0 < len(piece) <= limit and piece.strip() for piece in pieces)
    assert bool(pieces) == bool(text.strip())


@given(st.lists(st.text(st.sampled_from("ab`~ c"), max_size=40), max_size=12).map("\n".join), st.integers(20, 60))
def test_no_mark_of_a_fence_loses_a_letter(text: str, limit: int) -> None:
    whole = "".join(split_text(text, limit))  # where a fence is repeated, there is more of it
    letters = iter(whole)
    assert all(letter in letters for letter in text if letter.isalpha())


# --- code -----------------------------------------------------------------------------------------


def test_a_code_block_that_fits_is_never_cut() -> None:
    code = "```python\n" + "x = 1\n\n" * 8 + "```"
    assert split_text("先看这里：\n" + code + "\n就这样。" * 5, len(code)) == (
        "先看这里：",
        code,
        "就这样。\n就这样。\n就这样。\n就这样。\n就这样。",
    )


def test_a_code_block_that_is_never_closed_is_not_cut_either_while_it_fits() -> None:
    code = "```python\n" + "y\n" * 20 + "x"
    assert split_text(f"hello there\n{code}", len(code)) == ("hello there", code)


def test_a_code_block_that_is_too_long_is_fenced_again_in_each_piece() -> None:
    code = "```python\n" + "\n".join(f"x{number} = {number}" for number in range(9)) + "\n```"
    assert split_text(code, 40) == (
        "```python\nx0 = 0\nx1 = 1\nx2 = 2\n```",
        "```python\nx3 = 3\nx4 = 4\nx5 = 5\n```",
        "```python\nx6 = 6\nx7 = 7\nx8 = 8\n```",
    )


def test_a_code_block_that_is_too_long_and_never_closed_is_closed() -> None:
    pieces = split_text("```\n" + "abc\n" * 20, 30)
    assert all(piece.startswith("```\n") and piece.endswith("\n```") for piece in pieces)
    assert code_of("\n".join(pieces)) == "abc" * 20


def test_a_line_of_code_longer_than_a_piece_is_cut_where_it_must_be() -> None:
    pieces = split_text("```js\n" + "x" * 100 + "\n```", 40)
    assert [len(piece) for piece in pieces] == [40, 40, 40, 20]
    assert code_of("\n".join(pieces)) == "x" * 100


def test_a_longer_fence_holds_shorter_ones() -> None:
    inner = "```py\n1\n```"
    code = "````md\n" + f"{inner}\n" * 2 + "````"
    assert split_text(f"aaaa bbbb cccc\n\n{code}\n\ndddd eeee ffff", len(code)) == (
        "aaaa bbbb cccc",
        code,
        "dddd eeee ffff",
    )


def test_words_between_inline_fences_are_words() -> None:
    text = "```foo``` 是一个函数。" + "它很好用。" * 12
    pieces = split_text(text, 40)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert sum("```" in piece for piece in pieces) == 1


def test_a_fence_as_long_as_a_piece_is_not_repeated_in_each() -> None:
    pieces = split_text("```" + "x" * 50 + "\n" + "y" * 500, 60)
    assert len(pieces) < 12
    assert bare("".join(pieces)) == "```" + "x" * 50 + "y" * 500


WORDS = st.text(st.sampled_from("ab一二。，. "), min_size=1, max_size=80).filter(str.strip)
CODE = st.builds(
    lambda fence, language, lines: (
        "\n".join([f"{fence}{language}", *lines, fence]) if lines else f"{fence}{language}\n{fence}"
    ),
    st.sampled_from(FENCES),
    st.sampled_from(["", "python", " c++"]),
    st.lists(st.text(st.sampled_from("ab =一\t"), max_size=90), max_size=12),
)


@given(st.lists(WORDS | CODE, max_size=8), st.sampled_from(["\n", "\n\n"]), st.integers(60, 200))
def test_any_answer_is_cut_so_that_its_code_still_reads(blocks: list[str], between: str, limit: int) -> None:
    text = between.join(blocks)
    pieces = split_text(text, limit)
    assert all(len(piece) <= limit for piece in pieces)
    assert all(map(is_balanced, pieces))
    assert code_of("\n".join(pieces)) == code_of(text)
    for block in blocks:
        if block.startswith(FENCES) and len(block) <= limit:
            assert any(block in piece for piece in pieces)
