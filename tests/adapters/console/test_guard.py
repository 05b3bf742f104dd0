"""The security table of the console, a row a test: real requests on loopback."""

from __future__ import annotations

import pytest
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from adapters.console.http import COOKIE, cookie_name, read_origin
from adapters.console.logins import LOGIN_LONGEST
from adapters.console.server import HEADERS
from adapters.console.site import ROUTES, Route
from tests.adapters.console.visiting import SAME, SECRET, TOKEN, visiting
from tests.cases import each_case


async def shown(_: web.Request) -> web.Response:
    return web.Response(text=f"<b>{SECRET}</b>", content_type="text/html")


async def broken(_: web.Request) -> web.Response:
    raise LookupError(SECRET)


def filled(route: Route) -> str:
    return route.path.replace("{name}", "console.css").replace("{id}", "x")


def test_all_but_four_routes_need_a_login() -> None:
    public = {(route.method, route.path) for route in ROUTES if route.is_public}
    assert public == {
        ("GET", "/login"),
        ("POST", "/login"),
        ("POST", "/language"),
        ("GET", "/static/{version}/{name}"),
    }
    assert not Route("GET", "/new", shown).is_public


@pytest.mark.parametrize("prefix", ["", "/deep/console"])
async def test_every_route_is_closed_without_a_login_to_another_host_and_to_another_page(prefix: str) -> None:
    origin = f"https://bot.example.com{prefix}" if prefix else ""
    async with visiting(origin=origin) as place:
        ours = {"Host": "bot.example.com"} if prefix else {}
        for route in ROUTES:
            path = prefix + filled(route)
            status, text, _ = await place.ask(route.method, path, headers={"Host": "evil.example"} | SAME)
            assert (status, text.count("\n")) == (421, 0), route
            if route.method == "POST":
                for evil in (
                    {"Sec-Fetch-Site": "cross-site"},
                    {"Sec-Fetch-Site": "same-site"},
                    {"Sec-Fetch-Site": "none"},
                    {"Origin": "https://evil.example"},
                    {"Origin": "null"},
                    {},
                ):
                    status, _, _ = await place.ask("POST", path, data={"token": TOKEN}, headers=ours | evil)
                    assert status == 403, (route, evil)
            if route.is_public:
                continue
            name = cookie_name(place.console.origins.first)
            for cookies in ({}, {name: TOKEN}, {f"__Host-{name}": "x"}):
                status, _, answer = await place.ask(route.method, path, headers=ours | SAME, data={}, cookies=cookies)
                closed = 401 if route.method == "POST" or route.is_slow else 303
                assert status == closed, route
                assert answer.headers.get("Location", f"{prefix}/login#") == f"{prefix}/login#"


async def test_a_route_that_is_not_there_is_refused() -> None:
    async with visiting() as place:
        assert (await place.ask("GET", "/new"))[0] == 303
        assert (await place.ask("POST", "/new", headers=SAME, data={}))[0] == 403
        await place.log_in()
        for method, path in (
            ("GET", "/new"),
            ("GET", "/none"),
            ("GET", "/static/0/../guard.py"),
            ("PUT", "/access"),
        ):
            assert (await place.ask(method, path))[0] == 404, path
        form = await place.form()
        assert (await place.ask("POST", "/new", headers=SAME, data={"form": form}))[0] == 404


@pytest.mark.parametrize("prefix", ["", "/deep/console"])
async def test_the_address_of_an_action_leads_to_the_page_above_it_and_does_nothing(prefix: str) -> None:
    """A browser has it in its bar, once what came of the action is shown."""
    async with visiting(origin=f"http://bot.example.com{prefix}" if prefix else "") as place:
        host = {"Host": "bot.example.com" if prefix else place.host}
        _, _, answer = await place.ask("POST", f"{prefix}/login", data={"token": TOKEN}, headers=host | SAME)
        cookies = {name: one.value for name, one in answer.cookies.items()}
        lines = list(place.journal.lines or ())
        at = {"where": "10001%3Agroup%3A4242", "tool": "x"}
        paths = {method: {r.path for r in ROUTES if r.method == method} for method in ("GET", "POST")}
        for path in paths["POST"] - paths["GET"]:
            _, _, answer = await place.ask("GET", prefix + path.format(**at), headers=host, cookies=cookies)
            above = answer.headers["Location"]
            assert above == prefix + (path.format(**at).rpartition("/")[0] or "/")
            assert (await place.ask("GET", above, headers=host, cookies=cookies))[0] == 200, path
        assert (await place.ask("POST", f"{prefix}/none", headers=host | SAME, cookies=cookies))[0] == 404
        assert place.journal.lines == lines


async def test_every_answer_has_the_headers_and_no_secret() -> None:
    routes = (Route("GET", "/shown", shown), Route("GET", "/broken", broken))
    async with visiting(*routes) as place:
        await place.log_in()
        for path, expected in (("/shown", 200), ("/broken", 500), ("/none", 404), ("/login", 303), ("/access", 200)):
            status, text, answer = await place.ask("GET", path)
            assert (status, SECRET in text) == (expected, False), path
            assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert (await place.ask("GET", "/shown"))[1] == "<b>***</b>"
        policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
        assert policy == {
            "default-src": "'none'",
            **dict.fromkeys(("script-src", "style-src", "img-src", "connect-src", "form-action"), "'self'"),
            **dict.fromkeys(("base-uri", "frame-ancestors", "trusted-types"), "'none'"),
            "require-trusted-types-for": "'script'",
        }
        # Without a referrer a form's Origin is "null", and http that is not loopback has no Sec-Fetch-Site.
        assert {name: value for name, value in HEADERS.items() if name != "Content-Security-Policy"} == {
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Frame-Options": "DENY",
        }


async def test_a_browser_is_refused_by_a_page_in_its_language_and_a_program_by_a_line() -> None:
    async with visiting(Route("GET", "/broken", broken)) as place:
        html = {"Accept": "text/html", "Accept-Language": "zh"}
        status, text, _ = await place.ask("GET", "/", headers=html | {"Host": "evil.example"})
        assert (status, "这不是控制台的地址" in text, "/static" in text) == (421, True, False)
        near = place.console.origins.first.text
        assert near in text
        status, text, _ = await place.ask("GET", "/", headers={"Host": "127.0.0.1:1"})
        assert status == 421
        assert f"which is {near} (CONSOLE_PORT)" in text
        assert "CONSOLE_ORIGIN" in text
        status, text, _ = await place.ask("POST", "/access/end", headers=html)
        assert (status, "请重新打开页面" in text, "nav" in text) == (403, True, False)
        await place.log_in()
        for path, expected, words in (("/none", 404, "没有这个页面"), ("/broken", 500, "显示不了")):
            status, text, answer = await place.ask("GET", path, headers=html)
            assert (status, words in text, "<nav" in text) == (expected, True, True)
            assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "<" not in (await place.ask("GET", "/none"))[1]


async def test_a_change_needs_the_form_of_that_login() -> None:
    async with visiting() as place:
        await place.log_in()
        form = await place.form()
        for wrong in ({}, {"form": ""}, {"form": form[:-1]}, {"form": "é"}):
            assert (await place.ask("POST", "/access/end", data=wrong, headers=SAME))[0] == 403
        json = {"Content-Type": "application/json"}
        assert (await place.ask("POST", "/access/end", data="{}", headers=SAME | json))[0] == 415
        first = place.cookie()
        await place.log_in()
        assert place.cookie() != first
        assert (await place.ask("POST", "/access/end", data={"form": form}, headers=SAME))[0] == 403
        same = {"Origin": f"http://{place.host}"}  # a browser that says no Sec-Fetch-Site
        assert (await place.ask("POST", "/access/end", data={"form": await place.form()}, headers=same))[0] == 303
        assert (await place.ask("GET", "/access"))[0] == 303


async def test_a_form_is_small() -> None:
    async with visiting() as place:
        assert (await place.ask("POST", "/login", data={"token": "x" * 70_000}, headers=SAME))[0] == 413


async def test_on_https_the_cookie_is_one_that_nobody_else_can_set() -> None:
    async with visiting(origin="https://bot.example.com/console") as place:
        ours = {"Host": "bot.example.com"} | SAME
        _, _, answer = await place.ask("POST", "/console/login", data={"token": TOKEN}, headers=ours)
        said = answer.headers["Set-Cookie"].lower()
        assert said.startswith(f"__host-{COOKIE}-")
        assert all(
            part in said for part in ("httponly", "samesite=strict", "secure", "path=/", f"max-age={LOGIN_LONGEST:.0f}")
        )
        assert "domain" not in said
        assert answer.headers["Location"] == "/console/"
        stripped = await place.ask("POST", "/login", data={"token": TOKEN}, headers=ours)  # by a proxy
        assert stripped[2].headers["Location"] == "/console/"
    async with visiting() as place:
        _, _, answer = await place.ask("POST", "/login", data={"token": TOKEN}, headers=SAME)
        said = answer.headers["Set-Cookie"].lower()
        assert said.startswith(f"{COOKIE}-")
        assert "secure" not in said
        assert "httponly" in said
        assert "samesite=strict" in said


@each_case("proxy", ["", "10.9.8.7"])
async def test_forwarded_headers_of_anybody_but_the_proxy_change_nothing(proxy: str) -> None:
    async with visiting(proxy=proxy) as place:
        forged = {"X-Forwarded-For": "10.9.8.7", "X-Forwarded-Host": "evil.example", "Forwarded": "for=10.9.8.7"}
        await place.ask("POST", "/login", data={"token": TOKEN}, headers=SAME | forged)
        assert place.journal.lines is not None
        assert [line.address for line in place.journal.lines] == ["127.0.0.1"]


async def test_of_the_proxy_the_last_hop_is_who_logs_in_and_who_owners_hear_of() -> None:
    async with visiting(proxy="127.0.0.1") as place:
        forged = CIMultiDict(SAME)
        forged.extend([("X-Forwarded-For", "10.0.0.1, 10.0.0.2"), ("X-Forwarded-For", "198.51.100.7")])
        await place.ask("POST", "/login", data={"token": TOKEN}, headers=forged)
        assert place.journal.lines is not None
        assert [line.address for line in place.journal.lines] == ["198.51.100.7"]
        assert ["198.51.100.7" in line for line in place.told] == [True]
        _, text, _ = await place.ask("GET", "/access")
        assert "198.51.100.7" in text
        assert "10.0.0" not in text


async def test_whoever_tries_and_tries_is_named_gets_no_more_tries_and_logs_nobody_out() -> None:
    async with visiting(proxy="127.0.0.1") as place:
        owner = {"X-Forwarded-For": "192.0.2.1"}
        assert await place.log_in() == 303
        tried = []
        for number in range(9):
            hops = {"X-Forwarded-For": f"10.0.0.{number}, 198.51.100.{number}"}
            status, _, _ = await place.ask("POST", "/login", data={"token": "wrong"}, headers=SAME | hops)
            tried.append(status)
        assert tried == [403] * 4 + [429] * 5
        assert (await place.ask("GET", "/access", headers=owner))[0] == 200
        assert place.journal.lines is not None
        refused = [line.address for line in place.journal.lines if line.outcome == "refused"]
        assert sorted(refused) == [f"198.51.100.{number}" for number in range(4)]


async def test_two_consoles_of_one_host_do_not_log_each_other_out() -> None:
    async with visiting() as place, visiting() as other:
        await place.log_in()
        other.session.cookie_jar.update_cookies(place.session.cookie_jar.filter_cookies(URL(f"http://{place.host}/")))
        await other.log_in()
        place.session.cookie_jar.update_cookies(other.session.cookie_jar.filter_cookies(URL(f"http://{other.host}/")))
        assert (await place.ask("GET", "/access"))[0] == 200
    names = {cookie_name(read_origin(f"https://h{path}")) for path in ("", "/a", "/b")}
    assert len(names) == 3


async def test_a_proxy_that_passes_no_host_on_is_told_what_to_set() -> None:
    async with visiting(origin="https://bot.example.com/x") as place:
        by_origin = {"Origin": "https://bot.example.com"} | SAME
        for method, path, headers in (("GET", "/x/", {}), ("GET", "/x", {}), ("POST", "/login", by_origin)):
            status, text, _ = await place.ask(method, path, headers=headers)
            assert (status, "proxy_set_header Host" in text) == (421, True)
        assert (await place.ask("GET", "/login"))[0] == 200  # on this machine, by a tunnel
        _, text, _ = await place.ask("GET", "/", headers={"Host": "other.example"})
        assert "CONSOLE_ORIGIN" in text
