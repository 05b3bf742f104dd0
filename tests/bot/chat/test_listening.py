from __future__ import annotations

import asyncio

from bot.chat.perception import MAX_VOICES, listened
from bot.core.segments import Record
from bot.prompt.compose import Question
from frostagent.types.errors import MediaError
from frostagent.types.speech import Text
from tests.fakes import said


class Ears:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def hear(self, account: int, record: Record) -> str:
        self.asked.append(record.file)
        if record.file == "bad":
            raise MediaError("gone")
        if record.file == "slow":
            await asyncio.Event().wait()
        return f"said {record.file}"


async def test_the_voices_of_question_lines_and_quote_are_the_words_in_them() -> None:
    line, quoted = said((Record("b"),), message_id="2", at=False), said((Record("c"),), message_id="3", at=False)
    question = Question(said((Text("x"), Record("a")), at=False), quoted=quoted, lines=(line,))
    told = await listened(question, Ears())
    assert told.message.segments == (Text("x"), Record("a", text="said a"))
    assert told.lines[0].segments == (Record("b", text="said b"),)
    assert told.quoted is not None
    assert told.quoted.segments == (Record("c", text="said c"),)


async def test_what_cannot_be_heard_in_time_costs_nothing_else() -> None:
    question = Question(said((Record("a"), Record("bad"), Record("slow"), Record("fourth")), at=False))
    ears = Ears()
    told = await listened(question, ears, within=0.05)
    assert told.message.segments == (Record("a", text="said a"), Record("bad"), Record("slow"), Record("fourth"))
    assert ears.asked == ["a", "bad", "slow"][:MAX_VOICES]


async def test_a_question_without_a_voice_is_the_same() -> None:
    question = Question(said("hi"))
    assert await listened(question, Ears()) is question
