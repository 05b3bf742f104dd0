from __future__ import annotations

from urllib.parse import quote

from msgspec.structs import replace

from adapters.console.health import SHOWN
from bot.domain.books import Ignored
from bot.domain.events import Conversation
from bot.domain.shown import Failure, LimitState, ModelState, OutboxState, State
from tests.adapters.console.visiting import visiting
from tests.fakes import GROUP


async def test_models_failures_and_what_nobody_heard_are_told() -> None:
    async with visiting() as place:
        await place.log_in()
        place.state = State(
            models=(ModelState("resting", 30.0),),
            place="data/frostagent.db",
            failures=(Failure(1.0, "t9", "billing: <b>no money</b>"),),
            ignored=(Ignored(GROUP, 13, "the sender is blocked", 1.0),),
        )
        place.state = replace(
            place.state,
            outbox=(
                OutboxState(GROUP, 2, 1, 1.0),
                *(OutboxState(Conversation(7, "group", number), 1, 0, 2.0) for number in range(1, SHOWN + 2)),
            ),
        )
        place.limits = (
            LimitState("BOT_USER_RATE", "6 / 60 s"),
            LimitState("BOT_LOOP", ""),
            LimitState("/limit", "$2", "777"),
        )
        _, text, _ = await place.ask("GET", "/health", headers={"Accept-Language": "en"})
        told = "rests for 30.0 s", "data/frostagent.db", "/turns/t9", "&lt;b&gt;no money", "BOT_BLOCK"
        for words in (*told, "6 / 60 s", "no limit", "777 <code>/limit"):
            assert words in text, words
        assert f'<a href="/chats/{quote(str(GROUP), safe="")}">{GROUP}</a>' in text
        assert "2 wait · 1 without an answer of QQ" in text
        assert (text.count("1 wait · "), "and 2 more chats" in text) == (SHOWN - 1, True)
        place.state = State()
        _, text, _ = await place.ask("GET", "/health", headers={"Accept-Language": "en"})
        assert "All that was said is delivered." in text
