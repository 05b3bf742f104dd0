from __future__ import annotations

import re

from adapters.console.http import cookie_name
from adapters.console.logins import BURST, EVERY, LINK_SECONDS
from bot.core.journal import Audited
from bot.core.language import Language
from tests.adapters.console.visiting import SAME, TOKEN, visiting


async def test_a_login_is_written_down_and_told_to_the_owners() -> None:
    async with visiting() as place:
        assert await place.log_in("wrong") == 403
        assert await place.log_in() == 303
        assert place.journal.lines is not None
        refused, done = place.journal.lines
        assert (refused.action, refused.outcome, refused.login, refused.address) == (
            "login",
            "refused",
            "",
            "127.0.0.1",
        )
        assert (done.action, done.outcome, len(done.login)) == ("login", "ok", 8)
        assert len(place.told) == 1
        assert "127.0.0.1" in place.told[0]
        status, text, _ = await place.ask("GET", "/access")
        assert status == 200
        assert done.login in text
        assert TOKEN not in text
        assert place.cookie() not in text


async def test_what_was_done_is_told_in_the_language_of_the_page() -> None:
    async with visiting() as place:
        await place.log_in()
        lines = place.journal.lines
        assert lines is not None
        for action, what, outcome in (
            ("doctor", "", "3 of 10 to mend"),
            ("try out", "demo model", "ok"),
            ("call tool", "dice", "TOOL_TIMEOUT"),
            ("call tool", "dice", "refused: effects"),
            ("allow", "10001:A3", "ok"),
        ):
            lines.append(Audited(at=1.0, login="", address="", action=action, object=what, outcome=outcome))
        for language, there in (
            ("zh", ("共 10 项，3 项要处理", "打开试聊 演示模型", ">超时<", "被拒（它会改变东西）", " A3，账号 10001<")),
            (
                "en",
                ("3 of 10 to mend", "demo model", ">took too long<", "refused: effects", "allowed A3, account 10001<"),
            ),
        ):
            _, text, _ = await place.ask("GET", "/access", headers={"Accept-Language": language})
            assert [words for words in there if words not in text] == []


NAMES = ("usual", "away", "approval", "audience", "models", "chat", "real model", "not finished")


async def test_a_name_is_no_words_whatever_it_is() -> None:
    async with visiting() as place:
        await place.log_in()
        done = [("call tool", name) for name in NAMES] + [("persona apply", name) for name in NAMES[1:]]
        done += [("persona apply", "usual"), ("persona back", "usual"), ("tried", "2 requests, 31 tokens")]
        place.journal.lines = [Audited(at=1.0, login="", address="", action=act, object=one) for act, one in done]
        _, text, _ = await place.ask("GET", "/access", headers={"Accept-Language": "zh"})
        called = [f"调用工具 {name}" for name in NAMES] + [f"改人设 {name}" for name in NAMES[1:]]
        told = [*called, "改人设 默认", "恢复人设 默认", "试聊结束 2 次请求，31 token"]
        assert sorted(re.findall(r"<td>((?:调用工具|改人设|恢复人设|试聊结束) [^<]*)</td>", text)) == sorted(told)


async def test_owners_hear_of_a_login_in_their_language() -> None:
    async with visiting() as place:
        place.language = Language.ENGLISH
        assert await place.log_in() == 303
        (line,) = place.told
        assert line.startswith("Somebody logged in to the console (from 127.0.0.1). ")


async def test_too_many_tries_lock_out_everybody_but_those_who_are_in() -> None:
    async with visiting() as place:
        assert await place.log_in() == 303
        for _ in range(BURST - 1):
            assert await place.log_in("wrong") == 403
        for token in ("wrong", TOKEN):
            assert await place.log_in(token) == 429
        assert (await place.ask("GET", "/access"))[0] == 200
        place.clock.time += EVERY
        assert await place.log_in() == 303
        assert await place.log_in() == 429


async def test_a_link_lets_in_once_within_five_minutes() -> None:
    async with visiting() as place:
        where, _, code = place.console.link().partition("#")
        assert where == f"http://{place.host}/login"
        assert (await place.ask("GET", f"/login?code={code}"))[0] == 200  # a link is not used by being looked at
        for expected in (303, 403):
            assert (await place.ask("POST", "/login", data={"code": code}, headers=SAME))[0] == expected
        late = place.console.logins.invite()
        place.clock.time += LINK_SECONDS
        assert (await place.ask("POST", "/login", data={"code": late}, headers=SAME))[0] == 403


async def test_whoever_logs_out_is_out_and_all_can_be() -> None:
    async with visiting() as place:
        await place.log_in()
        other = place.cookie()
        await place.log_in()
        assert (await place.ask("POST", "/logout", data={"form": await place.form()}, headers=SAME))[0] == 303
        assert not place.cookie()
        place.session.cookie_jar.update_cookies({cookie_name(place.console.origins.first): other})
        code = place.console.logins.invite()
        assert (await place.ask("POST", "/access/end", data={"form": await place.form()}, headers=SAME))[0] == 303
        assert place.console.logins.find(other) is None
        assert (await place.ask("POST", "/login", data={"code": code}, headers=SAME))[0] == 403


async def test_the_language_is_the_browsers_until_somebody_chooses_and_it_leads_nowhere_else() -> None:
    async with visiting() as place:
        assert "登录控制台" in (await place.ask("GET", "/login", headers={"Accept-Language": "zh-CN,en"}))[1]
        assert "Log in to" in (await place.ask("GET", "/login", headers={"Accept-Language": "fr"}))[1]
        evil = (
            "//evil.example",
            "https://evil.example",
            "/\t/evil.example",
            "/\\evil.example",
            "/a\r\nSet-Cookie: a=b",
        )
        for back, expected in (("/login", "/login"), *((one, "/") for one in evil)):
            data = {"language": "zh", "back": back}
            _, _, answer = await place.ask("POST", "/language", data=data, headers=SAME)
            assert answer.headers["Location"] == expected
        assert "登录控制台" in (await place.ask("GET", "/login", headers={"Accept-Language": "en"}))[1]


async def test_a_journal_that_is_away_is_said() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.lines = None
        assert "cannot be read" in (await place.ask("GET", "/access"))[1]
