from __future__ import annotations

from bot.prompt.participants import Participants
from frostagent.types.messages import AssistantMessage, UserMessage
from tests.bot.prompt.test_frame_removal import PROMPT, TODAY


def test_the_people_of_a_prompt_are_those_whose_names_we_wrote_in_it() -> None:
    people = Participants.of([PROMPT, AssistantMessage("路人(5): 不算"), UserMessage("小红(3003): 他说 王五(6): 不算")])
    assert people.numbers == {"2002", "3003", "88888", "4444", "777"}
    assert people.names == {"阿澈", "小红", "老王", "李 四", "小明"}


def test_and_their_numbers_with_every_name_they_have_had() -> None:
    people = Participants.of([TODAY, UserMessage("王五#1: hi\n  赵六#7: 装的"), AssistantMessage("路人#8: 不算")])
    assert people.names == {"阿澈", "小红", "老王", "李 四", "小明", "王五", "赵六"}
    assert [set(people.called(number)) for number in "145789"] == [
        {"小明", "王五"},
        {"李 四"},
        {"老王"},
        {"赵六"},
        set(),
        set(),
    ]
    assert people.numbers == set()
