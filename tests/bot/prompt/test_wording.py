from __future__ import annotations

from bot.prompt.compose import PicturePlace
from bot.prompt.prompt_language import WORDINGS


def test_a_heading_is_in_brackets_with_its_time() -> None:
    for words in WORDINGS:
        assert words.heading(words.question, "14:10") == f"[{words.question} 14:10]"
        assert words.heading(words.now) == f"[{words.now}]"


def test_every_language_has_a_word_for_all_there_is() -> None:
    for words in WORDINGS:
        assert set(words.places) == set(PicturePlace)
        assert set(words.roles) == {"owner", "admin", "member"}
        assert len(words.weekdays) == 7
