from __future__ import annotations

from bot.core.actions import plain_words
from bot.core.segments import Mention, Picture
from frostagent.types.speech import Quote, Text
from tests.fakes import BOT


def test_a_message_is_a_line_of_words_without_the_call() -> None:
    said = (Quote("1"), Mention(BOT), Text(" 看 "), Mention(7, "小明"), Mention(8), Picture("a.png"))
    assert plain_words(said, own=BOT) == "看 @小明 @8 [image]"
