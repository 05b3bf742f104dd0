from __future__ import annotations

from bot.core import codec
from bot.core.group_admin import GroupAct, Mute, Pin, Recall, SetCard


def test_what_is_to_be_done_is_data() -> None:
    acts: list[GroupAct] = [Mute(5, 60), SetCard(5, "静"), Recall("7"), Pin("7")]
    assert [codec.read(GroupAct, codec.write(act)) for act in acts] == acts
