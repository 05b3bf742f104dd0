from __future__ import annotations

import json
import re
from base64 import b32encode

from msgspec.structs import replace

from adapters.console.chats import LONGEST
from adapters.console.logins import CODE_SECONDS, code_of
from bot.core.console_views import ApplicantRule, Chat, ChatLine, Fact, GreetingState
from bot.core.journal import Round
from bot.welcome import MAX_TEMPLATE
from tests.adapters.console.samples import ELSEWHERE, HOSTILE, NOW, job
from tests.adapters.console.visiting import SAME, SECRET, TOKEN, visiting
from tests.fakes import GROUP

ENGLISH = {"Accept-Language": "en"}
AT = "/chats/10001%3Agroup%3A4242"


async def test_a_chat_is_read_as_in_qq_and_its_words_stay_words() -> None:
    async with visiting() as place:
        await place.log_in()
        assert "No messages yet" in (await place.ask("GET", "/chats", headers=ENGLISH))[1]
        text = (await place.ask("GET", AT, headers=ENGLISH))[1]
        assert "No messages of this chat are kept" in text
        assert "No earlier round is repeated" in text
        assert "They are about" not in text
        line = ChatLine(
            message_id="5", at=NOW, sender=7, name=HOSTILE, text=HOSTILE, begins=True, reason="mention", wakes=True
        )
        facts = (Fact(7, HOSTILE, "here", NOW), Fact(0, "x", "strange", NOW))
        told = (Round("t1", ()), Round("t2", ()))
        one = Chat(where=GROUP, group=HOSTILE, lines=(line,), summary=HOSTILE, facts=facts, next=9, rounds=7)
        place.journal.talks.append(replace(one, told=told, light=500))
        _, rows, _ = await place.ask("GET", "/chats", headers=ENGLISH)
        assert f'href="{AT}"' in rows
        assert "/chats?before=1" in rows
        _, text, _ = await place.ask("GET", AT, headers=ENGLISH)
        for words in (
            "The prompt begins here",
            f"{AT}?before=9",
            "told here",
            "strange",
            "repeats 7 earlier rounds",
            "About 2.5k tokens.",
        ):
            assert words in text, words
        assert text.count("alert(1)") == 6
        assert not re.search(r"<script>|<img|x{9}", rows + text)
        assert (await place.ask("GET", "/chats/evil"))[0] == 404
        place.journal.lines = None
        assert (await place.ask("GET", AT))[0] == 503
        assert "cannot be read" in (await place.ask("GET", "/chats", headers=ENGLISH))[1]


async def test_a_chat_is_taken_away_as_lines_of_json_with_no_secret_and_nothing_recalled() -> None:
    async with visiting() as place:
        await place.log_in()
        said = [
            ChatLine(message_id=str(number), at=NOW, sender=7, name=HOSTILE, text=text, is_gone=text == "gone")
            for number, text in enumerate((f'"{SECRET}"', "b", "gone", "d"))
        ]
        place.journal.talks += [
            Chat(where=GROUP, group="", lines=tuple(said[2:]), next=1),
            Chat(where=GROUP, group="", lines=tuple(said[:2])),
        ]
        _, text, answer = await place.ask("GET", f"{AT}/file")
        assert answer.headers["Content-Disposition"] == 'attachment; filename="chat-10001-group-4242.jsonl"'
        lines = [json.loads(line) for line in text.splitlines()]
        assert [one["text"] for one in lines] == ['"***"', "b", "", "d"]
        assert lines[0]["name"] == HOSTILE
        assert [(one.action, one.object) for one in (place.journal.lines or [])[-1:]] == [("export", str(GROUP))]
        assert (await place.ask("GET", "/chats/evil/file"))[0] == 404
        place.journal.lines = None
        assert (await place.ask("GET", f"{AT}/file"))[0] == 503


async def test_a_chat_is_forgotten_by_whoever_types_its_number_and_has_a_code() -> None:
    key = b"12345678901234567890"
    async with visiting(totp=b32encode(key).decode()) as place:

        def code() -> str:
            return code_of(key, int(place.clock.now() // CODE_SECONDS))

        await place.ask("POST", "/login", data={"token": TOKEN, "totp": code()}, headers=SAME)
        place.clock.time += CODE_SECONDS
        form = {"form": await place.form()}
        words = []
        for more in ({}, {"name": "4243", "totp": code()}, {"name": "4242"}, {"name": " 4242", "totp": code()}):
            status, text, _ = await place.ask("POST", f"{AT}/forget", data=form | more, headers=SAME | ENGLISH)
            words.append((status, next(one for one in ("not the number", "not the code", "7 records") if one in text)))
        assert words == [(400, "not the number")] * 2 + [(400, "not the code"), (200, "7 records")]
        assert place.forgotten == [GROUP]
        place.clock.time += CODE_SECONDS
        data = form | {"name": "777", "totp": code()}
        assert (await place.ask("POST", "/chats/10001%3Aprivate%3A777/forget", data=data, headers=SAME))[0] == 200
        done = [(one.object, one.outcome) for one in place.journal.lines or () if one.action == "forget"]
        assert done == [
            (str(GROUP), "name"),
            (str(GROUP), "name"),
            (str(GROUP), "code"),
            (str(GROUP), "ok"),
            ("private", "ok"),
        ]
        assert (await place.ask("POST", "/chats/evil/forget", data=form, headers=SAME))[0] == 404


async def test_what_cannot_be_erased_now_is_said() -> None:
    async with visiting() as place:
        await place.log_in()
        place.is_stuck = True
        data = {"form": await place.form(), "name": "4242"}
        status, text, _ = await place.ask("POST", f"{AT}/forget", data=data, headers=SAME | ENGLISH)
        assert (status, "could not be erased" in text, place.forgotten) == (400, True, [])


async def test_what_is_scheduled_there_is_shown_and_cancelled() -> None:
    async with visiting() as place:
        await place.log_in()
        place.jobs = [job(7, HOSTILE), job(8, "weather", rule="day"), job(9, "elsewhere", where=ELSEWHERE)]
        _, text, _ = await place.ask("GET", AT, headers=ENGLISH)
        for words in ("J7", "reminder · 777", "J8 weather", "every day", f'action="{AT}/jobs"', 'href="/jobs"'):
            assert words in text, words
        assert HOSTILE not in text
        assert "J9" not in text
        form = {"form": await place.form()}
        status, text, _ = await place.ask("POST", f"{AT}/jobs", data=form | {"number": "7"}, headers=SAME | ENGLISH)
        assert (status, "Cancelled." in text, [one.number for one in place.jobs]) == (200, True, [8, 9])
        for number in ("7", "9", "x", ""):
            data = form | {"number": number}
            status, text, _ = await place.ask("POST", f"{AT}/jobs", data=data, headers=SAME | ENGLISH)
            assert (status, "There is no such job" in text) == (400, True)
        assert (await place.ask("POST", "/chats/evil/jobs", data=form, headers=SAME))[0] == 404
        done = [(one.object, one.outcome) for one in place.journal.lines or () if one.action == "cancel"]
        assert done[:3] == [(str(GROUP), "J7"), (str(GROUP), "J7: failed"), (str(GROUP), "J9: failed")]
        place.is_stuck = True
        assert "The journal cannot be read right now." in (await place.ask("GET", AT, headers=ENGLISH))[1]


async def test_a_group_shows_what_it_says_of_who_comes_and_goes_and_whom_it_lets_in() -> None:
    async with visiting() as place:
        await place.log_in()
        _, text, _ = await place.ask("GET", AT, headers=ENGLISH)
        for words in ("Who joins and who leaves", "No rules. They are written in GROUPS_FILE.", "left to the admins"):
            assert words in text, words
        assert text.count("Nothing is said.") == 2
        assert 'value="usual"' not in text  # nothing was chosen that could be taken back
        assert "changed by" not in text
        place.greetings = {
            "joined": GreetingState(change="joined", words=HOSTILE, source="file"),
            "left": GreetingState(change="left", words="run", source="set", at=NOW, by="20001"),
        }
        place.applicants = (
            ApplicantRule(HOSTILE, accepts=True),
            ApplicantRule("/spam/", accepts=False, reason=HOSTILE),
        )
        _, text, _ = await place.ask("GET", AT, headers=ENGLISH)
        assert HOSTILE not in text
        for words in (
            "from GROUPS_FILE",
            "Written by the cheap model",
            "set by command or here · changed by 20001, ",
            "accepted if the answer has",
            "refused if the answer has <code>/spam/</code>",
            "owners are asked (BOT_APPLICANTS=ask)",
        ):
            assert words in text, words
        assert text.count('value="usual"') == 1
        assert text.count('value="run">') == 2  # the buttons: no text is `run`
        _, private, _ = await place.ask("GET", "/chats/10001%3Aprivate%3A777", headers=ENGLISH)
        assert "Who joins" not in private


async def test_what_a_group_says_is_changed_and_who_did_it_is_written_down() -> None:
    async with visiting() as place:
        await place.log_in()
        form, at = {"form": await place.form()}, f"{AT}/greeting"

        async def post(change: str, do: str, words: str = "") -> tuple[int, str]:
            data = form | {"change": change, "do": do, "words": words}
            return (await place.ask("POST", at, data=data, headers=SAME | ENGLISH))[:2]

        status, text = await post("joined", "words", "  Hi {name},\n welcome ")
        assert (status, "Changed." in text, place.greetings["joined"].words) == (200, True, "Hi {name}, welcome")
        assert "<blockquote>Hi {name}, welcome</blockquote>" in text
        assert "changed by a1b2c3" in text
        for do in ("run", "off", "usual"):
            assert (await post("left", do, "typed, too"))[0] == 200
            assert place.greetings["left"].words == do
        status, text = await post("left", "words", " ")
        assert (status, "Write a message" in text) == (400, True)
        status, text = await post("left", "words", "x" * (LONGEST + 1))
        assert (status, "at most 200 characters" in text, f'value="{"x" * 201}"' in text) == (400, True, True)
        assert (await post("left", "words", "x" * LONGEST))[0] == 200
        place.is_stuck = True
        status, text = await post("joined", "words", "not now")
        assert (status, "It cannot be changed now" in text, 'value="not now"' in text) == (400, True, True)
        for change, do in (("joined", "evil"), ("evil", "words"), ("", "run")):
            assert (await post(change, do, "x"))[0] == 400
        assert (await place.ask("POST", "/chats/evil/greeting", data=form, headers=SAME))[0] == 404
        data = form | {"change": "left", "do": "run"}
        assert (await place.ask("POST", "/chats/10001%3Aprivate%3A7/greeting", data=data, headers=SAME))[0] == 404
        done = [(one.action, one.object, one.outcome) for one in place.journal.lines or () if one.action != "login"]
        assert done == [
            ("welcome", str(GROUP), "ok"),
            *[("farewell", str(GROUP), "ok")] * 4,
            ("welcome", str(GROUP), "not now"),
        ]
        assert {one.login for one in place.journal.lines or () if one.action == "welcome"} != {""}
        _, text, _ = await place.ask("GET", "/access", headers=ENGLISH)
        assert "changed what is said if someone joins" in text
        assert LONGEST == MAX_TEMPLATE
