from __future__ import annotations

from bot.domain.model_messages import AssistantMessage, Message, UserMessage
from bot.prompt.prompt_language import is_chinese, wording_of
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from tests.cases import each_case


@each_case(
    ("text", "chinese"),
    [
        ("北京天气怎么样", True),
        ("用 Python 写一个快排, quicksort", True),
        ("what does 你好 mean in English?", False),
        ("[提问 14:10]\n小明#2 ↩阿澈#1「好」: hello there", False),
        ("[Asked 14:10]\nTom#2: 你好", True),
        ("看 https://example.com/a/very/long/address/of/something", True),
    ],
)
def test_the_language_is_that_of_what_people_say(text: str, chinese: bool) -> None:
    assert is_chinese(text) is chinese


def test_the_first_round_decides_and_what_is_chosen_before_it() -> None:
    english: list[Message] = [
        UserMessage("Tom#1: how are you today?"),
        AssistantMessage("fine"),
        UserMessage("Tom#1: 你好吗"),
    ]
    assert wording_of(english, "你好") is EN
    assert wording_of(english, "hi there", chosen="zh") is ZH
    assert wording_of([], "how are you today?") is EN
    assert wording_of([], "你好") is ZH
    assert wording_of([], "你好", chosen="en") is EN


def test_a_round_stays_in_the_words_it_was_written_in_whatever_its_people_are_called() -> None:
    chinese = UserMessage("[群聊记录 14:02]\nuser2#1: 闲话。\n[提问 14:10]\nSomebody#2: plain question of mine")
    english = UserMessage("[Chat log 14:02]\n小明#1: 好\n[Asked 14:10]\n小红#2: 你好吗")
    older = UserMessage("[提问] 消息号 5\nTom(777): how are you today?")
    assert wording_of([chinese], "how are you today?") is ZH
    assert wording_of([english], "你好") is EN
    assert wording_of([older], "你好") is EN
    assert wording_of([UserMessage("Tom#1: [提问 14:10] how are you today?")], "") is EN


@each_case("text", ["hi", "ok", "666", "", "lol [图片]"])
def test_what_is_said_in_every_language_is_chinese_on_qq(text: str) -> None:
    assert wording_of([], text) is ZH
