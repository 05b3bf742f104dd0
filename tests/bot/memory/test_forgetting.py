from __future__ import annotations

from bot.memory.forgetting import Forgetting
from bot.memory.history import History
from tests.bot.commands.test_forget import Nobody, Shredder
from tests.fakes import GROUP, PRIVATE, RecordingStore


async def test_a_chat_is_a_group_or_the_person_it_is_with_and_memory_lets_go_before_and_after() -> None:
    let_go: list[int] = []
    asked, waiting = Nobody(), Nobody()
    shredder = Shredder(lambda: let_go.append(0))
    history, then = History(store=RecordingStore()), (lambda: let_go.append(1),)
    forgetting = Forgetting(shredder, history, asked=asked, waiting=waiting, then=then)
    assert await forgetting.chat(GROUP) == 12
    assert await forgetting.chat(PRIVATE) == 12
    assert shredder.gone == [("group", GROUP.session_id), ("user", PRIVATE.session_id)]
    assert let_go == [1, 0, 1] * 2
    assert asked.gone == [(0, GROUP.session_id), (PRIVATE.session_id, 0)]  # what is asked since is answered
    assert waiting.gone == [(0, GROUP.session_id)] * 2 + [(PRIVATE.session_id, 0)] * 2
