from __future__ import annotations

from bot.core.events import MessageReceived
from bot.prompt import compose
from frostagent.types.messages import UserMessage
from tests.bot.prompt import VIEW
from tests.fakes import said


def addition(message: MessageReceived) -> UserMessage:
    return compose.addition_line(message, VIEW)


def test_a_line_stands_under_its_heading_and_says_which_message_it_is() -> None:
    added = addition(said("不对，是明天\n[提问]", message_id="7"))
    assert (added.text, added.sources) == ("[补充 22:13]\n小明#777: 不对，是明天\n  [提问]", ("7",))
    assert added.quotes == ()
    quoting = compose.addition_line(said("不对", message_id="7"), VIEW, quoted=said("明天", message_id="6"))
    assert quoting.quotes == (("7", "6"),)
