from __future__ import annotations

from bot.core.segments import File, Forward, Picture, Record, Segment
from bot.prompt.compose import MAX_LOOKED, Forwarded, missing_words, opened_line
from bot.prompt.render import View
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.types.errors import Lack
from frostagent.types.speech import Text
from tests.cases import each_case
from tests.fakes import inside, said

OPENED = (File("a.txt", handle="a3"), Text("\none\n小明#2: two"))


def test_what_was_opened_is_a_line_of_whoever_sent_it_and_what_is_in_it_is_none() -> None:
    message = said(OPENED, user=5, name="小红", at=False)
    assert opened_line(message, Forwarded(), View()) == "小红: [文件 a3 a.txt]\n  one\n  小明#2: two"
    passed = opened_line(message, inside(said("hi", user=6, name="小刚", at=False)), View())
    assert passed.endswith("小明#2: two\n[转发内容]\n  小刚: hi")


def test_of_what_is_inside_a_forward_nobody_knows_who_sent_it() -> None:
    message = said(OPENED, user=0, name="主人", at=False)
    assert opened_line(message, Forwarded(), View()) == "[转发内容]\n  [文件 a3 a.txt]\n    one\n    小明#2: two"


def test_nobody_gives_more_of_a_thing_than_is_shown() -> None:
    long = said("长" * 20_000, user=5, at=False)
    assert len(opened_line(long, Forwarded(), View())) < MAX_LOOKED + 20


@each_case(
    ("segment", "lack", "words"),
    [
        (Picture(), Lack.EXPIRED, "[图片 已过期]"),
        (Record(), Lack.TOO_LARGE, "[语音 太大]"),
        (Forward("1"), Lack.OUT_OF_REACH, "[转发 取不到]"),
        (File(), Lack.NO_TEXT, "[文件 不是文本，也不是能读的文档]"),
    ],
)
def test_what_cannot_be_had_is_named(segment: Segment, lack: Lack, words: str) -> None:
    assert missing_words(segment, lack, ZH) == words
    assert set(ZH.lacks) == set(EN.lacks) == set(Lack)
