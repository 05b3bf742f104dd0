from __future__ import annotations

from bot.domain.chat import AssistantMessage, UserMessage
from bot.prompt.people import People
from tests.bot.prompt.test_frames import PROMPT


def test_the_people_of_a_prompt_are_those_whose_names_we_wrote_in_it() -> None:
    people = People.of([PROMPT, AssistantMessage("路人(5): 不算"), UserMessage("小红(3003): 他说 王五(6): 不算")])
    assert people.numbers == {"2002", "3003", "88888", "4444", "777"}
    assert people.names == {"阿澈", "小红", "老王", "李 四", "小明"}
