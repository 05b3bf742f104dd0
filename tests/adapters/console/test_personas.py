from __future__ import annotations

import re

from bot.domain.shown import PersonaState
from tests.adapters.console.samples import HOSTILE
from tests.adapters.console.visiting import visiting
from tests.fakes import GROUP

ENGLISH = {"Accept-Language": "en"}


async def test_personas_are_read_with_their_chats_and_the_prompt_of_one() -> None:
    async with visiting() as place:
        await place.log_in()
        place.personas = [PersonaState(key="", name="Frost", text="be kind")]
        assert "There is no other persona" in (await place.ask("GET", "/persona", headers=ENGLISH))[1]
        place.personas.append(PersonaState(key="cat", name=HOSTILE, text=HOSTILE, chats=(str(GROUP), HOSTILE)))
        _, text, _ = await place.ask("GET", f"/persona?where={GROUP}", headers=ENGLISH)
        assert f"rendered for {GROUP}" in text
        assert f"Chosen for {GROUP}" in text
        assert text.count("alert(1)") == 4
        assert not re.search(r"<script>|<img|x{9}", text)
        _, text, _ = await place.ask("GET", "/persona?where=%3Cscript%3E", headers=ENGLISH)
        assert "That is no chat" in text
        assert "<script>" not in text
