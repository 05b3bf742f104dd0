from __future__ import annotations

from bot.prompt.prompt_language import choose_wording, is_chinese
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.types.messages import AssistantMessage, Message, UserMessage
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
    assert choose_wording(english, "你好") is EN
    assert choose_wording(english, "hi there", chosen="zh") is ZH
    assert choose_wording([], "how are you today?") is EN
    assert choose_wording([], "你好") is ZH
    assert choose_wording([], "你好", chosen="en") is EN


def test_a_round_stays_in_the_words_it_was_written_in_whatever_its_people_are_called() -> None:
    chinese = UserMessage("[群聊记录 14:02]\nuser2#1: 闲话。\n[提问 14:10]\nSomebody#2: plain question of mine")
    english = UserMessage("[Chat log 14:02]\n小明#1: 好\n[Asked 14:10]\n小红#2: 你好吗")
    older = UserMessage("[提问] 消息号 5\nTom(777): how are you today?")
    assert choose_wording([chinese], "how are you today?") is ZH
    assert choose_wording([english], "你好") is EN
    assert choose_wording([older], "你好") is EN
    assert choose_wording([UserMessage("Tom#1: [提问 14:10] how are you today?")], "") is EN


@each_case("text", ["hi", "ok", "666", "", "lol [图片]"])
def test_what_is_said_in_every_language_is_chinese_on_qq(text: str) -> None:
    assert choose_wording([], text) is ZH
