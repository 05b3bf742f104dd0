from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.fetching.client import HttpxWeb
from adapters.fetching.limits import FetchLimits
from adapters.media.folder import KINDS, MediaFolder
from frostagent.types.errors import MediaError
from frostagent.types.speech import Attachment, MediaKind
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.adapters.media import hostile

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
SECRET = b"a key"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A media folder with a picture, beside a file that is nobody's business."""
    root = tmp_path / "media"
    (root / "cats").mkdir(parents=True)
    (root / "cat.png").write_bytes(PICTURE)
    (root / "cats" / "一只 猫.png").write_bytes(PICTURE)
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "media-of-others").mkdir()
    (tmp_path / "media-of-others" / "cat.png").write_bytes(SECRET)
    return root


async def refusal(folder: MediaFolder, *, path: str = "", url: str = "") -> str:
    with pytest.raises(MediaError) as caught:
        await folder.attach("image", path=path, url=url)
    return str(caught.value)


# --- what may be sent -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["cat.png", "./cat.png", " cat.png\n", "cats/../cat.png", "cats/一只 猫.png"])
async def test_a_file_travels_inside_the_frame(root: Path, path: str) -> None:
    attachment = await MediaFolder(root, web=None).attach("image", path=path)
    assert attachment.kind == "image"
    assert attachment.name in {"cat.png", "一只 猫.png"}
    data = attachment.source.removeprefix("base64://")
    assert base64.b64decode(data, validate=True) == PICTURE


@pytest.mark.parametrize("mode", ["base64", "file"])
async def test_a_file_may_be_named_from_the_root_or_as_a_file_url(root: Path, mode: str) -> None:
    folder = MediaFolder(root, web=None, mode="file" if mode == "file" else "base64")
    file = root / "cats" / "一只 猫.png"
    plain = await folder.attach("image", path="cats/一只 猫.png")
    for path in (str(file), f"file://{file}", file.as_uri(), "file://cats/" + quote("一只 猫.png")):
        assert await folder.attach("image", path=path) == plain


async def test_in_file_mode_the_server_is_told_where_it_lies(root: Path) -> None:
    folder = MediaFolder(root, web=None, mode="file")
    (root / "50% #1?.png").write_bytes(PICTURE)
    picture = await folder.attach("image", path="cats/一只 猫.png")
    assert picture == Attachment("image", f"file://{quote(str(root))}/cats/{quote('一只 猫.png')}", "一只 猫.png")
    awkward = await folder.attach("image", path="50% #1?.png")
    assert awkward.source == f"file://{quote(str(root))}/50%25%20%231%3F.png"


async def test_the_name_is_the_files_own_unless_another_is_given(root: Path) -> None:
    folder = MediaFolder(root, web=None)
    assert (await folder.attach("file", path="cats/一只 猫.png")).name == "一只 猫.png"
    assert (await folder.attach("file", path="cat.png", name="dog.png")).name == "dog.png"


async def test_tricks_are_taken_out_of_every_name(root: Path) -> None:
    (root / "a\n\u202egnp.exe").write_bytes(PICTURE)
    for mode in ("base64", "file"):
        folder = MediaFolder(root, web=None, mode="file" if mode == "file" else "base64")
        assert (await folder.attach("file", path="a\n\u202egnp.exe")).name == "a gnp.exe"
        assert (await folder.attach("file", path="cat.png", name="..\\\u202egnp.exe")).name == "_gnp.exe"


async def test_a_link_inside_the_folder_is_followed_inside_the_folder(root: Path) -> None:
    (root / "link.png").symlink_to("cats/一只 猫.png")
    (root / "kittens").symlink_to("cats", target_is_directory=True)
    for path in ("link.png", "kittens/一只 猫.png"):
        assert (await MediaFolder(root, web=None).attach("image", path=path)).source.startswith("base64://")


async def test_the_folder_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root, target_is_directory=True)
    assert (await MediaFolder(link, web=None).attach("image", path="cat.png")).name == "cat.png"
    assert (await MediaFolder(link, web=None).attach("image", path=str(link / "cat.png"))).name == "cat.png"


async def test_the_path_wins_over_the_url(root: Path) -> None:
    attachment = await MediaFolder(root, web=None).attach("image", path="cat.png", url="https://example.com/dog.png")
    assert attachment.name == "cat.png"
    assert "there is no file dog.png" in await refusal(
        MediaFolder(root, web=None), path="dog.png", url="https://example.com/dog.png"
    )


@given(data=st.binary(min_size=1, max_size=300))
def test_every_byte_arrives(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.getbasetemp()
    (root / "any.bin").write_bytes(data)
    source = asyncio.run(MediaFolder(root, web=None).attach("file", path="any.bin")).source
    assert base64.b64decode(source.removeprefix("base64://"), validate=True) == data


# --- what may not ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt", "cats/../../secret.txt", "./../media-of-others/cat.png", "../media-of-others/cat.png",
        "/etc/passwd", "//etc/passwd", "file:///etc/passwd", "file://../secret.txt", "file://%2e%2e/secret.txt",
        "file:///%2e%2e/%2e%2e/etc/passwd", "/dev/zero", "/proc/self/environ", "..", "/",
    ],
)  # fmt: skip
async def test_nothing_outside_the_folder_is_sent(root: Path, path: str) -> None:
    for folder in (MediaFolder(root, web=None), MediaFolder(root, web=None, mode="file")):
        assert "is outside the media folder" in await refusal(folder, path=path)


async def test_no_link_leads_out_of_the_folder(root: Path, tmp_path: Path) -> None:
    (root / "relative.txt").symlink_to("../secret.txt")
    (root / "absolute.txt").symlink_to(tmp_path / "secret.txt")
    (root / "door").symlink_to(tmp_path, target_is_directory=True)
    (root / "chain.txt").symlink_to("relative.txt")
    for path in ("relative.txt", "absolute.txt", "door/secret.txt", "chain.txt", "door/media/../secret.txt"):
        assert "is outside the media folder" in await refusal(MediaFolder(root, web=None), path=path)


async def test_a_circle_of_links_is_refused(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    assert "media folder" in await refusal(MediaFolder(root, web=None), path="a")


@pytest.mark.parametrize("path", ["cat.png\0", "\0", "cats\0/../../secret.txt", "file://cat.png%00"])
async def test_a_zero_byte_is_refused(root: Path, path: str) -> None:
    assert "zero byte" in await refusal(MediaFolder(root, web=None), path=path)


@pytest.mark.parametrize("path", ["x" * 300, "x" * 5000, "x/" * 3000, "\ud800.png", "cats/\udfff", "%2e%2e/secret.txt"])
async def test_a_name_no_file_can_have_is_refused_like_any_other(root: Path, path: str) -> None:
    assert "media folder" in await refusal(MediaFolder(root, web=None), path=path)


@pytest.mark.parametrize("path", ["dog.png", "cats", ".", "cat.png/x", "~/cat.png", "file://"])
async def test_what_is_no_file_is_refused_with_what_there_is(root: Path, path: str) -> None:
    assert (await refusal(MediaFolder(root, web=None), path=path)).endswith("in the media folder; it holds: cat.png")


async def test_a_pipe_is_no_file(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert "there is no file pipe" in await refusal(MediaFolder(root, web=None), path="pipe")


async def test_an_empty_folder_and_a_missing_one_say_so(tmp_path: Path) -> None:
    assert (await refusal(MediaFolder(tmp_path, web=None), path="a.png")).endswith(
        "in the media folder, which is empty"
    )
    assert (await refusal(MediaFolder(tmp_path / "missing", web=None), path="a.png")).endswith("in the media folder")


async def test_only_some_of_a_full_folder_is_told(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.png").touch()
    told = await refusal(MediaFolder(tmp_path, web=None), path="a.png")
    assert "00.png, 01.png" in told
    assert "10.png" not in told


async def test_an_empty_file_is_not_sent(root: Path) -> None:
    (root / "empty.png").touch()
    assert await refusal(MediaFolder(root, web=None), path="empty.png") == "empty.png is empty; send another file"


async def test_a_file_too_large_for_a_frame_is_not_read(root: Path) -> None:
    with (root / "film.mp4").open("wb") as file:
        file.truncate(3 * 1024 * 1024 + 1)
    folder = MediaFolder(root, web=None, max_bytes=3 * 1024 * 1024)
    assert "film.mp4 is larger than 3 MiB" in await refusal(folder, path="film.mp4")
    assert (
        await MediaFolder(root, web=None, mode="file", max_bytes=1).attach("video", path="film.mp4")
    ).name == "film.mp4"
    with (root / "film.mp4").open("r+b") as file:
        file.truncate(3 * 1024 * 1024)
    assert (await folder.attach("video", path="film.mp4")).name == "film.mp4"


async def test_a_file_that_may_not_be_read_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = PermissionError(13, "Permission denied")  # no mode of a file keeps root from reading it
    monkeypatch.setattr(Path, "read_bytes", Mock(side_effect=refused))
    assert "cannot be read (Permission denied)" in await refusal(MediaFolder(root, web=None), path="cat.png")


# --- urls that are passed on ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (" http://example.com/cat.png \n", "cat.png"),
        ("https://example.com/..%2F..%2Fetc%2Fcat.png", "cat.png"),
        ("https://example.com/a%0A%E2%80%AEgnp.exe", "a gnp.exe"),
        ("https://example.com:443/", "file"),
        ("https://例子.中国/my cat.png", "my cat.png"),
        ("https://example.com/" + "x" * 500, "x" * 120),
    ],
)
async def test_without_a_web_a_public_url_is_passed_on_as_it_is(root: Path, url: str, name: str) -> None:
    folder = MediaFolder(root, web=None)
    assert await folder.attach("image", url=url) == Attachment("image", url.strip(), name)
    assert (await folder.attach("image", path=" ", url=url, name="na\nmed.png")).name == "na med.png"


async def test_without_a_web_no_other_url_is_passed_on(root: Path) -> None:
    for url in ("http://127.0.0.1.nip.io/", "http://bot.frostagent_default:8080/metrics", "http://example.com:81/"):
        assert "cannot be sent (" in await refusal(MediaFolder(root, web=None), url=url)


@pytest.mark.parametrize("nothing", ["", " ", "\n"])
async def test_neither_path_nor_url_is_an_error(root: Path, nothing: str) -> None:
    assert await refusal(MediaFolder(root, web=None), path=nothing, url=nothing) == "neither path nor url is given"


# --- urls that are fetched --------------------------------------------------------------------------


HOST = "pictures.example"
PNG = hostile.encoded("PNG")


@dataclass(slots=True)
class House:
    """A folder that fetches, and the server of pictures.example; other names resolve as a test says."""

    folder: MediaFolder
    server: Replay
    names: dict[str, list[str]]

    def tell(self, name: str, body: bytes, status: int = 200, **headers: str) -> str:
        """There is such a file; its url."""
        told = {key.replace("_", "-"): value for key, value in headers.items()}
        self.server.tell(f"/{HOST}/{name}", body, status=status, headers=told)
        return f"https://{HOST}/{name}"

    async def why(self, url: str, kind: MediaKind = "image") -> str:
        with pytest.raises(MediaError) as caught:
            await self.folder.attach(kind, url=url)
        return str(caught.value)


@pytest.fixture
async def house(root: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    names: dict[str, list[str]] = {}

    async def resolve(host: str, port: int) -> list[str]:
        if host not in names:
            raise OSError("no such name")
        return names[host]

    async with Replay() as server:
        web = HttpxWeb(
            clock=StoppedClock(),
            user_agent="test",
            base_urls=server.standing_in_for(HOST),
            limits=FetchLimits(request_seconds=5, total_seconds=5, body_bytes=50_000),
            resolve=resolve,
            foreign=True,
        )
        async with aclosing(web):
            yield House(MediaFolder(root, web=web, max_bytes=40_000), server, names)


async def test_what_a_url_leads_to_is_sent_as_bytes(house: House) -> None:
    url = house.tell("cat.png", PNG)
    attachment = await house.folder.attach("image", url=f" {url}\n")
    assert (attachment.kind, attachment.name) == ("image", "cat.png")
    assert base64.b64decode(attachment.source.removeprefix("base64://"), validate=True) == PNG
    assert house.server.count(f"/{HOST}/cat.png") == 1


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("image", hostile.encoded("GIF")),
        ("record", b"ID3\4" + bytes(20)),
        ("video", b"\0\0\0\x20ftypisom" + bytes(20)),
        ("file", b"any bytes at all"),
    ],
)
async def test_every_kind_of_medium_is_fetched(house: House, kind: MediaKind, data: bytes) -> None:
    attachment = await house.folder.attach(kind, url=house.tell("it", data))
    assert base64.b64decode(attachment.source.removeprefix("base64://"), validate=True) == data


@pytest.mark.parametrize(
    ("kind", "name"),  # nothing at all is told otherwise, and a sound may be a record
    sorted(set(product(["image", "record", "video"], hostile.FOREIGN.keys() - {"nothing"})) - {("record", "sound")}),
)
async def test_what_is_not_what_it_shall_be_sent_as_is_refused(house: House, kind: MediaKind, name: str) -> None:
    data = hostile.FOREIGN[name]()
    told = await house.why(house.tell("cat.png", data, Content_Type="image/png"), kind)
    assert f"cat.png' is no {KINDS[kind]} but " in told
    assert told.endswith("; give another url of a public host, or do without it")


async def test_a_page_instead_of_a_picture_is_called_one(house: House) -> None:
    told = await house.why(house.tell("cat.png", b"<!doctype html><html>log in</html>", Content_Type="image/png"))
    assert told.startswith(f"'https://{HOST}/cat.png' is no picture but a web page; ")


@pytest.mark.parametrize("status", [204, 401, 403, 404, 500])
async def test_an_answer_that_is_none_is_told(house: House, status: int) -> None:
    assert f"(its server answered {status})" in await house.why(house.tell("cat.png", b"", status), "file")


async def test_nothing_and_too_much_are_told(house: House) -> None:
    assert "cat.png' is empty" in await house.why(house.tell("cat.png", b""), "file")
    assert "sent more than 50,000 bytes" in await house.why(house.tell("big", bytes(50_001)), "file")
    assert "big' is larger than 0 MiB, too large to send" in await house.why(house.tell("big", bytes(40_001)), "file")
    assert (await house.folder.attach("file", url=house.tell("big", bytes(40_000)))).name == "big"


@pytest.mark.parametrize(
    ("disposition", "path", "name"),
    [
        ('attachment; filename="dog.png"', "cat.png", "dog.png"),
        ("attachment; filename*=UTF-8''%E2%80%AEgnp.exe", "cat.png", "gnp.exe.png"),
        ('attachment; filename="..\\\\..\\\\a.png"', "cat.png", "_.._a.png"),
        ("", "%E2%80%AEgpj%09%5Cx.png", "gpj _x.png"),
        ("attachment; filename*=UTF-8''a%0D%0Ab.png", "cat.png", "a b.png"),
        ("", "download.php", "download.php.png"),
        ("", "", "file.png"),
        ("inline", "cat.jpg", "cat.png"),
    ],
)
async def test_a_files_name_is_that_of_the_header_or_the_url_made_harmless(
    house: House, disposition: str, path: str, name: str
) -> None:
    house.tell(unquote(path), PNG, Content_Disposition=disposition)
    assert (await house.folder.attach("file", url=f"https://{HOST}/{path}")).name == name
    assert (await house.folder.attach("file", url=f"https://{HOST}/{path}", name="na\nmed")).name == "na med.png"


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "100.100.100.200", "::1", "fd00::1"])
async def test_a_name_that_leads_to_a_private_address_is_refused(house: House, address: str) -> None:
    house.names["sly.example"] = ["93.184.216.34", address]
    told = await house.why("http://sly.example/cat.png")
    assert "(sly.example leads to an address that is not public and is not fetched); give another url" in told
    assert house.server.asked == []


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/", "http://169.254.169.254/latest/", "//localhost/x", "file:///etc/passwd", "http://0x7f.1/",
        "http://sly.example/", "http://pictures.example:8080/", "http://other.example:81/",
        "https://me:secret@other.example/", "https://me@pictures.example/",
        "http://127.0.0.1.nip.io/", "http://bot.frostagent_default/metrics",
    ],
)  # fmt: skip
async def test_a_redirect_to_where_it_may_not_go_is_refused(house: House, location: str) -> None:
    house.names |= {"sly.example": ["10.0.0.1"], "127.0.0.1.nip.io": ["127.0.0.1"], "other.example": ["1.1.1.1"]}
    url = house.tell("moved", b"", 302, Location=location)
    assert "cannot be sent (" in await house.why(url)
    assert [asked.path for asked in house.server.asked] == [f"/{HOST}/moved"]


async def test_a_url_that_cannot_be_is_refused_before_anything_is_asked(house: House) -> None:
    for url in ("http://127.0.0.1.nip.io/", "http://pictures.example:8080/", house.server.url("/x")):
        assert "cannot be sent (" in await house.why(url)
    assert house.server.asked == []


async def test_a_file_that_the_onebot_server_reads_itself_can_be_read_by_its_account(tmp_path: Path) -> None:
    file = tmp_path / "made.png"
    file.touch(0o600)
    await MediaFolder(tmp_path, web=None, mode="file").attach("image", path="made.png")
    assert file.stat().st_mode == 0o100644
