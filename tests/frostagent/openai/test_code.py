"""Where code is in a text."""

from __future__ import annotations

from frostagent.models.openai.markup import MAX_SPAN, without_code
from tests.cases import each_case


@each_case(
    ("text", "left"),
    [
        ("a `b` c", "a c"),
        ("a ``b ` c`` d", "a d"),
        ("a `b", "a b"),
        ("`a\nb` c", "c"),
        ("`a\n\nb` c", "a b c"),
        ("a\n```x\nb\n```\nc", "a c"),
        ("a\n~~~\nb\n```\nc\n~~~~ \nd", "a d"),
        ("a\n> ```\n> b\n> ```\nc", "a c"),
        ("a\n```\nb", "a"),
        ("no code", "no code"),
    ],
)
def test_code_is_blanked_out(text: str, left: str) -> None:
    """Backticks that nothing closes are blanked too, and what follows them is not."""
    assert " ".join(without_code(text).split()) == left
    assert len(without_code(text)) == len(text)


def test_a_backtick_far_away_closes_nothing() -> None:
    for size, is_code in ((MAX_SPAN - 1, True), (MAX_SPAN, False)):
        assert (without_code("`" + "x" * size + "`").strip() == "") is is_code
