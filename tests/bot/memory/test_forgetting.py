from __future__ import annotations

from bot.domain.notes import Forgotten
from bot.memory.forgetting import Forgetting
from bot.memory.history import History
from tests.bot.commands.test_forget import Nobody, Shredder
from tests.bot.memory.test_row import Ear
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


async def test_the_other_bots_of_a_cluster_are_told_before_and_after_and_let_go_without_erasing() -> None:
    ear, shredder = Ear(), Shredder(lambda: None)
    asked, waiting, let_go = Nobody(), Nobody(), list[int]()
    here = Forgetting(shredder, History(store=RecordingStore()), asked=Nobody(), waiting=Nobody(), neighbours=ear)
    there = Forgetting(
        shredder, History(store=RecordingStore()), asked=asked, waiting=waiting, then=(lambda: let_go.append(1),)
    )
    await here.person(777)
    await here.group(4242, said=5.0)
    assert ear.notes == [Forgotten(user=777)] * 2 + [Forgotten(group=4242, said=5.0)] * 2
    assert len(shredder.gone) == 2
    for note in ear.notes[1:3]:
        assert isinstance(note, Forgotten)
        await there.elsewhere(note)
    assert len(shredder.gone) == 2
    assert asked.gone == [(777, 0), (0, 4242)]
    assert waiting.gone == [(777, 0), (0, 4242)]
    assert let_go == [1, 1]
