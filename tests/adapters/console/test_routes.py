from __future__ import annotations

from aiohttp import web

from adapters.console.site import Route
from tests.adapters.console.visiting import visiting


async def name_part(request: web.Request) -> web.Response:
    return web.Response(text=request.match_info["id"])


async def test_a_part_of_a_path_is_one_part() -> None:
    async with visiting(Route("GET", "/parts/{id}/x", name_part)) as place:
        await place.log_in()
        for given, part in (("a.b", "a.b"), ("%7Ba%7D", "{a}"), ("50%25", "50%"), ("%E7%BE%A4", "群")):
            assert (await place.ask("GET", f"/parts/{given}/x"))[:2] == (200, part)
        assert (await place.ask("HEAD", "/parts/a/x"))[0] == 200
        for path in ("/parts/a/b/x", "/parts/a%2Fb/x", "/parts//x", "/partsXa/x", "/parts/a/X"):
            assert (await place.ask("GET", path))[0] == 404, path
        assert (await place.ask("PUT", "/parts/a/x"))[0] == 404
