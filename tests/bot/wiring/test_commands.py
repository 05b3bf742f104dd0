from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.conversation.context.prompt_context import PromptContext
from bot.domain.model_messages import AssistantMessage, ModelRequest, SystemMessage, ToolSpec, UserMessage
from bot.domain.traits import Audience
from bot.memory.history import History
from bot.memory.personas import Cast, Persona, Personas
from bot.memory.summaries import Summaries
from bot.wiring.commands import measure
from bot.wiring.keeping import Keeping
from tests.bot.test_app import reverse
from tests.fakes import GROUP, ManualClock, RecordingStore, ScriptedModel, said


async def test_what_the_next_prompt_would_hold_is_measured_by_its_blocks() -> None:
    store = RecordingStore()
    history = History(store=store)
    around = ModelRequest((SystemMessage("你是狐狸。" * 20),), (ToolSpec("look", "Look." * 50, {}),))
    with ScriptedModel() as model:
        keeping = Keeping(
            Personas(Cast(Persona("", "")), store=store, choices=store, clock=ManualClock()),
            store,
            history,
            PromptContext(history=history, speakers=history.speakers),
            Summaries(model=model, store=store, clock=ManualClock()),
            lambda _: around,
            lambda: 9000.0,
        )
        await history.load(GROUP)
        history.add_round(GROUP, "t1", UserMessage("问" * 300), [AssistantMessage("答" * 300)])
        history.overhear(said("chatter", at=False))
        size = await measure(keeping, GROUP)
    assert 50 < size.system < 120
    assert 200 < size.tools < 400
    assert 300 < size.rounds < 600
    assert (size.summary, size.number, size.overheard, size.room) == (0, 1, 1, 9000.0)


async def test_commands_are_answered_without_a_model_and_no_prompt_tells_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # its journal is there
    async with reverse(bot_memory=True) as (service, simulator, model):
        for words in ("@bot /help", "@bot /usage", "@bot /context", "@bot /why", "@bot /me", "@bot /unheard-of"):
            await simulator.say(words)
        sent = await simulator.wait_sent(6)
        assert len(model.requests) == 1  # what is no command is words
        texts = "\n".join(message.text for message in sent)
        for begin in ("/help", "This chat took:", "persona and rules:", "I have answered nothing", "I have no facts"):
            assert begin in texts
        await simulator.say("@bot hello")
        await simulator.wait_sent(7)
        async with asyncio.timeout(30):
            await service.wait_idle()
        assert "/usage" not in str(model.requests[-1]["messages"])


AUDIENCES = {
    Audience.EVERYONE: "help stop usage context why me forget",
    Audience.GROUP_ADMIN: "reset persona quiet mute unmute",
    Audience.OWNER: "groups model errors limit digest live shadow off",
}
"""`/forget` of others is an owner's, which it says itself."""


async def test_each_command_has_its_audience_a_name_in_both_languages_and_words_for_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with reverse() as (service, _, _):
        there = {command.names[0]: command for command in service.rooms.commands._by_name.values()}
    theirs = {audience: {n for n, one in there.items() if one.audience is audience} for audience in AUDIENCES}
    assert theirs == {audience: set(names.split()) for audience, names in AUDIENCES.items()}
    for name, command in there.items():
        assert all(command.about), name
        assert name == "stop" or any(sign >= "\u4e00" for sign in "".join(command.names)), name
