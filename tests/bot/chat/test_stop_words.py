from __future__ import annotations

from bot.chat.stop_handler import CHINESE, StopWord, stop_in
from bot.core.segments import Mention, Picture
from frostagent.types.speech import Quote, Text
from tests.cases import each_case
from tests.fakes import BOT, said

NAMES = ("小霜", "Frost")


@each_case("text", [*CHINESE, "别说了！", " 停。", "闭嘴！！", "/stop", "/STOP", "／stop", "/stop  all"])
def test_a_stop_is_one_of_a_few_words_and_nothing_else(text: str) -> None:
    command = text.strip()[0] in "/／"
    assert stop_in(said(text, at=False), NAMES) == StopWord(False, command, "all" in text)
    assert stop_in(said(text), NAMES) == StopWord(True, command, "all" in text)


@each_case("text", ["stop", "Stop!", "stop it", "Stop talking.", "please stop", "shut up"])
def test_english_words_for_it_need_somebody_whom_they_mean(text: str) -> None:
    assert stop_in(said(text), NAMES) == StopWord(True, False, False)
    assert stop_in(said(f"Frost, {text}", at=False), NAMES) == StopWord(True, False, False)
    assert stop_in(said(text, at=False), NAMES) == StopWord(False, False, False)


@each_case("text", ["小霜，停", "frost /stop", "停止 小霜！"])
def test_a_name_says_whom_it_means(text: str) -> None:
    assert stop_in(said(text, at=False), NAMES) == StopWord(True, "/" in text, False)


@each_case(
    "text",
    [
        "停车场在哪",
        "他让我闭嘴",
        "闭嘴是什么意思",
        "住口袋里",
        "/stop it",
        "怎么停止",
        "",
        "小霜",
        "stop the music",
        "don't stop",
        "停" * 200,
    ],
)
def test_talk_is_no_stop(text: str) -> None:
    assert stop_in(said(text), NAMES) is None


def test_beside_a_quote_of_anybody_it_is_one_beside_a_picture_or_a_mention_it_is_none() -> None:
    assert stop_in(said((Quote("1"), Text("停"))), NAMES) == StopWord(True, False, False)
    for more in (Picture("f.png"), Mention(5)):
        assert stop_in(said((Text("停"), more)), NAMES) is None
    assert stop_in(said((Text("停"), Mention(BOT)), at=False), NAMES) == StopWord(True, False, False)
