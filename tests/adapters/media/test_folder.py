from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.media.folder import MAX_URL, MediaFolder
from bot.domain.actions import Attachment
from bot.domain.errors import MediaError

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
    attachment = await MediaFolder(root).attach("image", path=path)
    assert attachment.kind == "image"
    assert attachment.name in {"cat.png", "一只 猫.png"}
    data = attachment.source.removeprefix("base64://")
    assert base64.b64decode(data, validate=True) == PICTURE


@pytest.mark.parametrize("mode", ["base64", "file"])
async def test_a_file_may_be_named_from_the_root_or_as_a_file_url(root: Path, mode: str) -> None:
    folder = MediaFolder(root, mode="file" if mode == "file" else "base64")
    file = root / "cats" / "一只 猫.png"
    plain = await folder.attach("image", path="cats/一只 猫.png")
    for path in (str(file), f"file://{file}", file.as_uri(), "file://cats/" + quote("一只 猫.png")):
        assert await folder.attach("image", path=path) == plain


async def test_in_file_mode_the_server_is_told_where_it_lies(root: Path) -> None:
    folder = MediaFolder(root, mode="file")
    (root / "50% #1?.png").write_bytes(PICTURE)
    picture = await folder.attach("image", path="cats/一只 猫.png")
    assert picture == Attachment("image", f"file://{quote(str(root))}/cats/{quote('一只 猫.png')}", "一只 猫.png")
    awkward = await folder.attach("image", path="50% #1?.png")
    assert awkward.source == f"file://{quote(str(root))}/50%25%20%231%3F.png"


async def test_the_name_is_the_files_own_unless_another_is_given(root: Path) -> None:
    folder = MediaFolder(root)
    assert (await folder.attach("file", path="cats/一只 猫.png")).name == "一只 猫.png"
    assert (await folder.attach("file", path="cat.png", name="dog.png")).name == "dog.png"


async def test_a_link_inside_the_folder_is_followed_inside_the_folder(root: Path) -> None:
    (root / "link.png").symlink_to("cats/一只 猫.png")
    (root / "kittens").symlink_to("cats", target_is_directory=True)
    for path in ("link.png", "kittens/一只 猫.png"):
        assert (await MediaFolder(root).attach("image", path=path)).source.startswith("base64://")


async def test_the_folder_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root, target_is_directory=True)
    assert (await MediaFolder(link).attach("image", path="cat.png")).name == "cat.png"
    assert (await MediaFolder(link).attach("image", path=str(link / "cat.png"))).name == "cat.png"


async def test_the_path_wins_over_the_url(root: Path) -> None:
    attachment = await MediaFolder(root).attach("image", path="cat.png", url="https://example.com/dog.png")
    assert attachment.name == "cat.png"
    assert "there is no file dog.png" in await refusal(
        MediaFolder(root), path="dog.png", url="https://example.com/dog.png"
    )


@given(data=st.binary(min_size=1, max_size=300))
def test_every_byte_arrives(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.getbasetemp()
    (root / "any.bin").write_bytes(data)
    source = asyncio.run(MediaFolder(root).attach("file", path="any.bin")).source
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
    for folder in (MediaFolder(root), MediaFolder(root, mode="file")):
        assert "is outside the media folder" in await refusal(folder, path=path)


async def test_no_link_leads_out_of_the_folder(root: Path, tmp_path: Path) -> None:
    (root / "relative.txt").symlink_to("../secret.txt")
    (root / "absolute.txt").symlink_to(tmp_path / "secret.txt")
    (root / "door").symlink_to(tmp_path, target_is_directory=True)
    (root / "chain.txt").symlink_to("relative.txt")
    for path in ("relative.txt", "absolute.txt", "door/secret.txt", "chain.txt", "door/media/../secret.txt"):
        assert "is outside the media folder" in await refusal(MediaFolder(root), path=path)


async def test_a_circle_of_links_is_refused(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    assert "media folder" in await refusal(MediaFolder(root), path="a")


@pytest.mark.parametrize("path", ["cat.png\0", "\0", "cats\0/../../secret.txt", "file://cat.png%00"])
async def test_a_zero_byte_is_refused(root: Path, path: str) -> None:
    assert "zero byte" in await refusal(MediaFolder(root), path=path)


@pytest.mark.parametrize("path", ["x" * 300, "x" * 5000, "x/" * 3000, "\ud800.png", "cats/\udfff", "%2e%2e/secret.txt"])
async def test_a_name_no_file_can_have_is_refused_like_any_other(root: Path, path: str) -> None:
    assert "media folder" in await refusal(MediaFolder(root), path=path)


@pytest.mark.parametrize("path", ["dog.png", "cats", ".", "cat.png/x", "~/cat.png", "file://"])
async def test_what_is_no_file_is_refused_with_what_there_is(root: Path, path: str) -> None:
    assert (await refusal(MediaFolder(root), path=path)).endswith("in the media folder; it holds: cat.png")


async def test_a_pipe_is_no_file(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert "there is no file pipe" in await refusal(MediaFolder(root), path="pipe")


async def test_an_empty_folder_and_a_missing_one_say_so(tmp_path: Path) -> None:
    assert (await refusal(MediaFolder(tmp_path), path="a.png")).endswith("in the media folder, which is empty")
    assert (await refusal(MediaFolder(tmp_path / "missing"), path="a.png")).endswith("in the media folder")


async def test_only_some_of_a_full_folder_is_told(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.png").touch()
    told = await refusal(MediaFolder(tmp_path), path="a.png")
    assert "00.png, 01.png" in told
    assert "10.png" not in told


async def test_an_empty_file_is_not_sent(root: Path) -> None:
    (root / "empty.png").touch()
    assert await refusal(MediaFolder(root), path="empty.png") == "empty.png is empty; send another file"


async def test_a_file_too_large_for_a_frame_is_not_read(root: Path) -> None:
    with (root / "film.mp4").open("wb") as file:
        file.truncate(3 * 1024 * 1024 + 1)
    folder = MediaFolder(root, max_bytes=3 * 1024 * 1024)
    assert "film.mp4 is larger than 3 MiB" in await refusal(folder, path="film.mp4")
    assert (await MediaFolder(root, mode="file", max_bytes=1).attach("video", path="film.mp4")).name == "film.mp4"
    with (root / "film.mp4").open("r+b") as file:
        file.truncate(3 * 1024 * 1024)
    assert (await folder.attach("video", path="film.mp4")).name == "film.mp4"


async def test_a_file_that_may_not_be_read_is_told(root: Path) -> None:
    (root / "cat.png").chmod(0)
    if os.access(root / "cat.png", os.R_OK):
        pytest.skip("this user may read everything")
    assert "cannot be read (Permission denied)" in await refusal(MediaFolder(root), path="cat.png")


# --- urls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.com/a/cat.png", "cat.png"),
        (" http://example.com/cat.png \n", "cat.png"),
        ("https://example.com/cat.png?size=1#x", "cat.png"),
        ("https://example.com/%E7%8C%AB.png", "猫.png"),
        ("https://example.com/..%2F..%2Fetc%2Fcat.png", "cat.png"),
        ("https://example.com:8443/", ""),
        ("https://example.com", ""),
        ("https://例子.中国/cat.png", "cat.png"),
        ("https://EXAMPLE.com./my cat.png", "my cat.png"),
        ("https://my_host.example.com/cat.png", "cat.png"),
        ("https://[2606:4700:4700::1111]/cat.png", "cat.png"),
        ("https://1.1.1.1/cat.png", "cat.png"),
        ("https://example.com/" + "x" * 500, "x" * 80),
    ],
)
async def test_a_public_url_is_sent_as_it_is(root: Path, url: str, name: str) -> None:
    assert await MediaFolder(root).attach("image", url=url) == Attachment("image", url.strip(), name)
    assert (await MediaFolder(root).attach("image", path=" ", url=url, name="named.png")).name == "named.png"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/cat.png", "http://localhost/cat.png", "http://10.0.0.1/", "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://2130706433/",
        "http://0x7f.1/", "http://napcat:3000/", "http://printer.local/", "http://me@127.0.0.1/", "file:///etc/passwd",
        "ftp://example.com/cat.png", "base64://aaaa", "data:image/png,x", "javascript:alert(1)", "cat.png",
        "example.com/cat.png", "//example.com/cat.png", "https://", "https:///cat.png", "http://[::1/", "http://..",
    ],
)  # fmt: skip
async def test_no_other_url_is_sent(root: Path, url: str) -> None:
    told = await refusal(MediaFolder(root), url=url)
    assert "cannot be sent (" in told
    assert told.endswith("; give an http or https url of a public host")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1\\@example.com/cat.png", "http://example.com\\cat.png", "http://127.0.0.%31/", "http://%6cocalhost/",
        "http://127.0.0。①/", "http://127.0.0.①/", "http://①②⑦.0.0.1/", "http://nas.ｌocal/", "http://127.0.0.1\u00ad/",
        "http://nas.lo\u200bcal/", "http://[fe80::1%25eth0]/", "http://exa mple.com/", "http://\ud800.com/",
    ],
)  # fmt: skip
async def test_no_url_is_sent_that_the_server_may_read_otherwise(root: Path, url: str) -> None:
    assert "cannot be sent (" in await refusal(MediaFolder(root), url=url)


async def test_an_endless_url_is_not_sent_nor_told(root: Path) -> None:
    url = "https://example.com/" + "x" * MAX_URL
    assert await refusal(MediaFolder(root), url=url) == "the url is longer than 2048 characters; give a shorter one"
    assert len(await refusal(MediaFolder(root), url="x" * 100_000)) < 300
    assert (await MediaFolder(root).attach("image", url=url[:MAX_URL])).source == url[:MAX_URL]


@pytest.mark.parametrize("nothing", ["", " ", "\n"])
async def test_neither_path_nor_url_is_an_error(root: Path, nothing: str) -> None:
    assert await refusal(MediaFolder(root), path=nothing, url=nothing) == "neither path nor url is given"
