from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapters.console import rendering
from adapters.console.rendering import StaticFiles
from adapters.console.server import HEADERS
from tests.adapters.console.visiting import visiting


async def test_only_the_files_there_are_can_be_had() -> None:
    async with visiting() as place:
        path = StaticFiles().path
        status, text, answer = await place.ask("GET", f"{path}/console.css")
        assert (status, answer.content_type) == (200, "text/css")
        assert "prefers-color-scheme: dark" in text
        for name in ("../server.py", "%2e%2e%2fserver.py", "server.py", "none"):
            assert (await place.ask("GET", f"{path}/{name}"))[0] != 200


async def test_browsers_keep_them_as_what_they_are_in_this_version() -> None:
    async with visiting() as place:
        _, page, answer = await place.ask("GET", "/login")
        found = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
        assert len(found) == 4  # an icon, the styles, two scripts
        assert answer.headers["Cache-Control"] == "no-store"
        for path in found:
            _, text, answer = await place.ask("GET", path)
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS | {
                "Cache-Control": "max-age=31536000, immutable"
            }
            assert text
            status, same, answer = await place.ask("GET", path.replace("/static/", "/static/0"))
            assert (status, same) == (200, text)
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS


def test_their_folder_is_named_for_what_is_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "STATIC_FOLDER", tmp_path)
    paths = []
    for name, text in (("a.js", "1"), ("a.js", "1"), ("a.js", "2"), ("b.js", "2"), ("notes", "3")):
        (tmp_path / name).write_text(text)
        paths.append(StaticFiles().path)
    assert [paths.index(path) for path in paths] == [0, 0, 2, 3, 3]
