from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from bot.core.blocked_words import fold_text


def test_width_case_blanks_and_what_nobody_sees_make_no_difference() -> None:
    for text in ("loan", "LOAN", "ＬｏＡｎ", "l o\ta\u3000n\n", "l\u200bo\u2060a\ufeffn", "l\u0336o\u0336an"):
        assert fold_text(text) == "loan", text
    assert fold_text("加\u00ad微\u202e信\u3164") == "加微信"
    assert fold_text("\ud800加\U000e0041微信") == "加微信"


@given(st.text(st.characters(max_codepoint=sys.maxunicode)))
def test_folding_again_changes_nothing(text: str) -> None:
    assert fold_text(fold_text(text)) == fold_text(text)
