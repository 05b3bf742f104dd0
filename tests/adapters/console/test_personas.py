from __future__ import annotations

import re

from bot.core.console_views import PersonaState
from tests.adapters.console.samples import HOSTILE
from tests.adapters.console.test_totp import SECRET, code
from tests.adapters.console.visiting import AWAY, SAME, TOKEN, Place, visiting
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
        assert f"Chosen for group {GROUP.session_id}, " in text
        assert text.count("alert(1)") == 4
        assert not re.search(r"<script>|<img|x{9}", text)
        _, text, _ = await place.ask("GET", "/persona?where=%3Cscript%3E", headers=ENGLISH)
        assert "There is no such chat" in text
        assert "<script>" not in text


async def said(place: Place, **fields: str) -> tuple[int, str]:
    fields |= {"form": await place.form()}
    status, text, _ = await place.ask("POST", "/persona/text", data=fields, headers={**SAME, **ENGLISH})
    return status, text


async def test_a_text_is_looked_at_used_and_taken_back() -> None:
    async with visiting() as place:
        await place.log_in()
        place.personas = [PersonaState(key="", name="Frost", text="be kind\nbe short")]
        _, text, _ = await place.ask("GET", "/persona/text?key=", headers=ENGLISH)
        assert "be kind\nbe short</textarea>" in text
        assert "Use it from the next answer on" not in text  # there is nothing new
        status, text = await said(place, text=f"be kind\r\n{HOSTILE}", do="look")
        assert status == 200
        assert '<li class="old"><span class="hidden">removed:</span>be short</li>' in text
        assert '<li class="same">be kind</li>' in text
        assert not re.search(r"<script>|<img|x{9}", text)
        assert place.personas[0].text == "be kind\nbe short"
        _, text = await said(place, text="be silly", do="apply")
        assert "In use from the next answer on" in text
        assert place.personas[0].text == "be silly"
        _, text = await said(place, text="", do="back")
        assert "be kind\nbe short</textarea>" in text
        lines = place.journal.lines or []
        assert [(one.action, one.object) for one in lines[-2:]] == [
            ("persona apply", "usual"),
            ("persona back", "usual"),
        ]


async def test_what_cannot_be_used_is_told_and_what_was_typed_is_not_lost() -> None:
    async with visiting() as place:
        await place.log_in()
        place.personas = [PersonaState(key="", name="Frost", text="be kind")]
        for typed, told in (("  ", "needs some words"), ("x" * 6001, "too long")):
            status, text = await said(place, text=typed, do="apply")
            assert (status, told in text, typed.strip() in text) == (400, True, True)
        place.is_stuck = True
        assert "nothing was changed" in (await said(place, text="be silly", do="apply"))[1]
        for path, status in (("/persona/text?key=gone", 404), ("/persona/text", 200)):
            assert (await place.ask("GET", path))[0] == status
        assert (await said(place, key="gone", text="x"))[0] == 404
        place.is_stuck = False
        assert (await said(place, text="be loud", do="shout"))[0] == 400
        assert place.personas[0].text != "be loud"


async def test_hundreds_of_lines_that_are_nearly_the_same_hold_nobody_up() -> None:
    """Looking for like lines takes minutes for as many: this test would run out of time."""
    async with visiting() as place:
        await place.log_in()
        place.personas = [PersonaState(key="", name="Frost", text="\n".join(f"be {n:07d}" for n in range(540)))]
        _, text = await said(place, text="\n".join(f"be {n + 540:07d}" for n in range(540)), do="look")
        assert (text.count('<li class="old">'), text.count('<li class="new">')) == (540, 540)


async def test_with_a_code_set_nothing_is_used_without_it() -> None:
    async with visiting(totp=SECRET) as place:
        await place.ask("POST", "/login", data={"token": TOKEN, "totp": code(place)}, headers=SAME)
        place.personas = [PersonaState(key="", name="Frost", text="be kind")]
        assert (await said(place, text="be silly", do="apply"))[0] == 403
        assert (await said(place, text="be silly", do="look"))[0] == 200
        assert place.personas[0].text == "be kind"


async def test_that_nobody_has_an_account_just_now_is_told_instead_of_its_prompt() -> None:
    async with visiting() as place:
        await place.log_in()
        _, text, _ = await place.ask("GET", f"/persona?where={AWAY}:group:1", headers=ENGLISH)
        assert "No worker has this account just now" in text
        assert "rendered for" not in text
