from __future__ import annotations

import re

from bot.domain.shown import Chat, ChatLine, Fact
from tests.adapters.console.samples import HOSTILE, NOW
from tests.adapters.console.visiting import visiting
from tests.fakes import GROUP

ENGLISH = {"Accept-Language": "en"}
AT = "/chats/10001%3Agroup%3A4242"


async def test_a_chat_is_read_as_in_qq_and_its_words_stay_words() -> None:
    async with visiting() as place:
        await place.log_in()
        assert "Nobody has said anything yet" in (await place.ask("GET", "/chats", headers=ENGLISH))[1]
        assert "Nothing of this chat is kept" in (await place.ask("GET", AT, headers=ENGLISH))[1]
        line = ChatLine(
            message_id="5", at=NOW, sender=7, name=HOSTILE, text=HOSTILE, begins=True, reason="mention", wakes=True
        )
        facts = (Fact(7, HOSTILE, "here", NOW), Fact(0, "x", "strange", NOW))
        place.journal.talks.append(
            Chat(where=GROUP, group=HOSTILE, lines=(line,), summary=HOSTILE, facts=facts, next=9)
        )
        _, rows, _ = await place.ask("GET", "/chats", headers=ENGLISH)
        assert f'href="{AT}"' in rows
        assert "/chats?before=1" in rows
        _, text, _ = await place.ask("GET", AT, headers=ENGLISH)
        for words in ("The prompt begins here", f"{AT}?before=9", "told here", "strange"):
            assert words in text, words
        assert text.count("alert(1)") == 6
        assert not re.search(r"<script>|<img|x{9}", rows + text)
        assert (await place.ask("GET", "/chats/evil"))[0] == 404
        place.journal.lines = None
        assert (await place.ask("GET", AT))[0] == 503
        assert "cannot be read" in (await place.ask("GET", "/chats", headers=ENGLISH))[1]
