from __future__ import annotations

from aiohttp import web

from adapters.console.routes import Access, Route, Routes, Visit


async def nothing(_: Visit) -> web.Response:
    return web.Response()


def test_a_part_of_a_path_is_one_part() -> None:
    route = Route("GET", "/turns/{id}/x", nothing, Access.LOGGED_IN)
    routes = Routes([route], refuse=lambda *_: web.Response())
    assert routes.find("GET", "/turns/a.b/x") == (route, {"id": "a.b"})
    assert routes.find("HEAD", "/turns/a/x") == (route, {"id": "a"})
    for method, path in (("GET", "/turns/a/b/x"), ("GET", "/turns//x"), ("POST", "/turns/a/x"), ("GET", "/turnsXa/x")):
        assert routes.find(method, path) is None
