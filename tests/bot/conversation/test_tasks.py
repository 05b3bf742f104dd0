from __future__ import annotations

from bot.conversation.tasks import PutOff, Task
from bot.policy.wake import Wake
from tests.fakes import BOT, GROUP, PRIVATE, said


def test_what_was_put_off_is_taken_once_by_its_account_or_dropped_by_its_place_and_id() -> None:
    first, second, third = (
        Task(said("hi", message_id=name, where=where), Wake("name"), 0.0)
        for name, where in (("1", GROUP), ("2", GROUP), ("1", PRIVATE))
    )
    put_off = PutOff()
    for task in (first, second, third):
        put_off.add(task)
    assert put_off.take(20002) == []
    assert put_off.drop(GROUP, "1") == [first]
    assert put_off.take(BOT) == [second, third]
    assert put_off.take(BOT) == []
