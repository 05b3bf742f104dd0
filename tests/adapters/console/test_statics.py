from __future__ import annotations

from tests.adapters.console.visiting import visiting


async def test_only_the_files_there_are_can_be_had() -> None:
    async with visiting() as place:
        status, text, answer = await place.ask("GET", "/static/console.css")
        assert (status, answer.content_type) == (200, "text/css")
        assert "prefers-color-scheme: dark" in text
        for name in ("../server.py", "%2e%2e%2fserver.py", "server.py", "none"):
            assert (await place.ask("GET", f"/static/{name}"))[0] != 200
