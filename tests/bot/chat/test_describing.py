from __future__ import annotations

import asyncio

import pytest

from bot.chat.perception import MAX_WORDS, DescribedSight
from bot.core.ports import Seen
from bot.core.segments import Picture
from frostagent.testing.scripted_model import ScriptedModel
from frostagent.types.errors import MediaError, ModelTransport
from frostagent.types.messages import UserMessage
from tests.fakes import ManualClock, RecordingStore, words


class Eyes:
    async def see(self, account: int, image: Picture) -> Seen:
        return Seen(f"data:{image.file}")


def described(model: ScriptedModel, store: RecordingStore) -> DescribedSight:
    return DescribedSight(Eyes(), model=model, store=store, clock=ManualClock())


async def test_a_picture_is_described_once_by_the_model_that_sees_and_paid_for() -> None:
    store = RecordingStore()
    with ScriptedModel(words("一只\n猫"), words("a dog")) as model:
        sight = described(model, store)
        async with asyncio.TaskGroup() as group:
            cats = [group.create_task(sight.see(1, Picture("cat"))) for _ in range(50)]
        assert {task.result() for task in cats} == {Seen(words="一只 猫")}
        assert await sight.see(1, Picture("dog")) == Seen(words="a dog")
        again = described(model, store)  # another process
        assert await again.see(1, Picture("cat")) == Seen(words="一只 猫")
    asked = [request.messages[-1] for request in model.requests]
    assert "in at most 60 words" in " ".join(model.requests[0].messages[0].text.split())
    assert [message.images for message in asked if isinstance(message, UserMessage)] == [("data:cat",), ("data:dog",)]
    assert len(store.of("usage_added")) == 2


async def test_a_model_that_does_not_count_is_cut_and_one_that_says_nothing_is_asked_again() -> None:
    store = RecordingStore()
    with ScriptedModel(ModelTransport("away"), words(" "), words("x" * 5000)) as model:
        sight = described(model, store)
        for _ in range(2):
            with pytest.raises(MediaError):
                await sight.see(1, Picture("cat"))
        assert await sight.see(1, Picture("cat")) == Seen(words="x" * MAX_WORDS)
