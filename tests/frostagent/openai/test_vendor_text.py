"""Text and JSON as vendors send them (numbers of vendors.md)."""

from __future__ import annotations

from frostagent.models.openai.vendor_text import repair_text, to_json


def test_json_that_is_none_to_the_letter_is_kept() -> None:
    assert to_json({"a": "\ud83d", "b": 2**70}) == '{"a": "\\ud83d", "b": 1180591620717411303424}'


def test_lone_halves_of_a_character_are_replaced_and_two_are_joined() -> None:
    assert repair_text("a\ud83d") == "a\ufffd"
    assert repair_text("\ud83d\ude00") == "😀"
