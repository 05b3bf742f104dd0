"""What a browser may send along with a form, and what nobody may."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from adapters.console import http
from adapters.console.http import FIELDS, FILE, MAX_FILE, MAX_FORM, MAX_PARTS
from adapters.console.site import Route
from tests.adapters.console.visiting import SAME, Place, visiting

KEPT: list[tuple[dict[str, str], bytes]] = []


async def keep(request: web.Request) -> web.Response:
    KEPT.append(({name: value for name, value in request[FIELDS].items() if name != "form"}, request[FILE]))
    return web.Response(text="kept")


ROUTES = (
    Route("POST", "/file", keep, takes_file=True),
    Route("POST", "/plain", keep),
)


async def send(place: Place, data: Any, path: str = "/file", **headers: str) -> int:
    return (await place.ask("POST", path, data=data, headers=SAME | headers))[0]


def parts(form: str, *files: tuple[str, bytes, str], **fields: str) -> aiohttp.FormData:
    data = aiohttp.FormData(quote_fields=False)
    for name, value in {"form": form, **fields}.items():
        data.add_field(name, value)
    for name, content, filename in files:
        data.add_field(name, io.BytesIO(content), filename=filename, content_type="image/png")
    return data


async def test_fields_and_a_file_come_in_whatever_the_file_is_called() -> None:
    KEPT.clear()
    async with visiting(*ROUTES) as place:
        await place.log_in()
        form, names = await place.form(), ("a.png", "../../etc/passwd", "C:\\x\\y.exe", "x'; <script>", "名.png", "")
        for name in names:
            assert await send(place, parts(form, ("picture", b"\x89PNG\r\n--", name), text="你好")) == 200
        assert await send(place, {"form": form, "text": "plain"}) == 200
    assert [*[({"text": "你好"}, b"\x89PNG\r\n--")] * len(names), ({"text": "plain"}, b"")] == KEPT


async def test_what_is_too_large_is_refused_as_it_comes() -> None:
    KEPT.clear()
    async with visiting(*ROUTES) as place:
        await place.log_in()
        form = await place.form()
        assert await send(place, parts(form, ("picture", b"x" * MAX_FILE, "x"))) == 200

        async def endless() -> Any:  # of no length that is told beforehand
            yield b'--b\r\nContent-Disposition: form-data; name="picture"; filename="x"\r\n\r\n'
            for _ in range(2 * MAX_FILE // 65_536):
                yield b"x" * 65_536
            yield b"\r\n--b--\r\n"

        kind = {"Content-Type": "multipart/form-data; boundary=b"}
        assert await send(place, parts(form, ("picture", b"x" * (MAX_FILE + 1), "x"))) == 413
        assert await send(place, parts(form, ("picture", b"x" * 2 * MAX_FILE, "x"))) == 413
        assert await send(place, endless(), **kind) == 413
        assert await send(place, parts(form, text="x" * (MAX_FORM + 1))) == 413
        assert await send(place, parts(form, a="x" * (MAX_FORM // 2), b="x" * (MAX_FORM // 2 + 9))) == 413
    assert [len(file) for _, file in KEPT] == [MAX_FILE]


async def test_a_file_is_taken_where_a_route_says_so_and_from_whoever_is_logged_in_alone() -> None:
    KEPT.clear()
    async with visiting(*ROUTES) as place:
        assert await send(place, parts("x", ("picture", b"x", "x"))) == 401
        await place.log_in()
        form = await place.form()
        assert await send(place, parts(form, ("picture", b"x", "x")), "/plain") == 415
        for wrong in ("", form[:-1]):
            assert await send(place, parts(wrong, ("picture", b"x", "x"))) == 403
        other = {"Sec-Fetch-Site": "cross-site"}
        assert (await place.ask("POST", "/file", data=parts(form), headers=other))[0] == 403
    assert not KEPT


HEAD = 'Content-Disposition: form-data; name="form"\r\n'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", "x"),
        ("multipart/form-data; boundary=", "x"),
        ("multipart/form-data; boundary=b", ""),
        ("multipart/form-data; boundary=b", "no boundary at all"),
        ("multipart/form-data; boundary=b", f"--b\r\n{HEAD}\r\nx"),
        ("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n"),
        ("multipart/form-data; boundary=b", f"--b\r\n{HEAD}Content-Transfer-Encoding: base64\r\n\r\neA==\r\n--b--\r\n"),
        ("multipart/form-data; boundary=b", f"--b\r\n{HEAD}Content-Encoding: gzip\r\n\r\nx\r\n--b--\r\n"),
        ("multipart/form-data; boundary=b", f"--b\r\n{HEAD}\r\n\udcff\r\n--b--\r\n"),
        ("multipart/form-data; boundary=b", f"--b\r\n{'x' * 20_000}: y\r\n\r\nx\r\n--b--\r\n"),
        ("multipart/form-data; boundary=b", "--b\r\nnonsense\r\n\r\nx\r\n--b--\r\n"),
        (
            "multipart/form-data; boundary=b",
            "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nx\r\n--c--\r\n--b--\r\n",
        ),
        ("multipart/form-data; boundary=b", f"--b\r\n{HEAD}\r\nx\r\n" * (MAX_PARTS + 1) + "--b--\r\n"),
    ],
)
async def test_what_no_browser_sends_is_refused_and_not_an_error_of_ours(
    kind: str, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    KEPT.clear()
    async with visiting(*ROUTES) as place:
        await place.log_in()
        sent = body.encode("utf-8", "surrogateescape")
        assert await send(place, sent, **{"Content-Type": kind}) in {400, 403}
    assert not KEPT
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


async def test_who_sends_slowly_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FILE_WITHIN", 0.01)
    async with visiting(*ROUTES) as place:
        await place.log_in()
        end = asyncio.Event()

        async def slow() -> Any:
            yield b"--b\r\n"
            await end.wait()

        async with asyncio.TaskGroup() as group:
            kind = {"Content-Type": "multipart/form-data; boundary=b"}
            task = group.create_task(send(place, slow(), **kind))
            done, _ = await asyncio.wait({task}, timeout=20)
            end.set()
        assert done
    assert task.result() == 503
