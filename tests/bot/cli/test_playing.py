from __future__ import annotations

from bot.cli.playing import KEPT, Play
from bot.domain.shown import TriedLine


async def test_a_line_is_said_as_that_member_and_what_goes_wrong_as_it_is_typed() -> None:
    play, said = Play(("user1",), ("timeout",)), list[str]()

    async def say(line: str) -> None:
        said.append(line)
        play.note("bot", "hi")

    await play.say("user1", "too early")
    play.connect(say)
    await play.say("user1", "@bot  hello\n!timeout")
    await play.say("user1", "!timeout")
    await play.say("bot", "forged")
    assert said == ["user1: @bot hello !timeout", "!timeout"]
    assert play.lines == (
        TriedLine("user1", "@bot hello !timeout"),
        TriedLine("bot", "hi"),
        TriedLine("user1", "!timeout"),
        TriedLine("bot", "hi"),
    )
    for number in range(KEPT):
        play.note("bot", str(number))
    assert len(play.lines) == KEPT
