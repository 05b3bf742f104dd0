from __future__ import annotations

from bot.commands.reset import DONE, reset_command
from bot.core.command import NOT_NOW
from bot.core.journal import ConversationReset
from bot.memory.history import History
from frostagent.types.messages import AssistantMessage, UserMessage
from frostagent.types.traits import Audience
from tests.bot.commands.typed import lines
from tests.fakes import GROUP, RecordingStore


async def test_a_conversation_begins_anew_once_that_is_written_down() -> None:
    store = RecordingStore()
    history = History(store=store)
    await history.load(GROUP)
    history.add_round(GROUP, "t1", UserMessage("?"), [AssistantMessage("!")])
    command = reset_command(store, history)
    assert command.audience is Audience.GROUP_ADMIN
    store.trouble = True
    assert await lines(command) == [NOT_NOW.zh]
    assert history.messages(GROUP)
    store.trouble = False
    assert await lines(command) == [DONE.zh]
    assert ConversationReset(GROUP) in store.entries
    assert history.messages(GROUP) == ()
