"""The program that unpacks pictures: what it speaks, and what it may not do."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ExifTags, Image

from adapters.media.confined import serve
from adapters.media.confined_protocol import ANSWER, DONE, HEAD, REFUSED
from adapters.media.decoder import AREA, CPU, LONGEST, MAX_PIXELS, MAX_SCANS, MEMORY, count_scans, write_jpeg
from frostagent.types.errors import MediaError
from tests.adapters.media import hostile
from tests.cases import each_case

ROOT = Path(__file__).parents[3]
HONEST = hostile.encoded("PNG")


@contextmanager
def started(*, idle: float = 60, parent: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-P", "-m", "adapters.media.decoder", str(idle), str(parent or os.getpid())]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, env={"PYTHONPATH": str(ROOT)}, **pipes) as process:  # type: ignore[call-overload]  # two
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[bytes], data: bytes) -> tuple[int, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HEAD.pack(len(data)) + data)
    process.stdin.flush()
    kind, size = ANSWER.unpack(process.stdout.read(ANSWER.size))
    return kind, process.stdout.read(size)


def test_pictures_are_answered_one_after_the_other_until_the_input_ends() -> None:
    with started() as process:
        for _ in range(2):
            kind, jpeg = ask(process, HONEST)
            assert (kind, jpeg[:3]) == (DONE, b"\xff\xd8\xff")
            assert ask(process, b"GIF89a") == (REFUSED, b"unreadable\nit cannot be read (UnidentifiedImageError)")
            assert ask(process, b"") == (REFUSED, b"unreadable\nit is no picture")
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def test_it_ends_in_the_middle_of_a_picture_that_does_not_come() -> None:
    for piece in (b"", b"\0\0", HEAD.pack(100), HEAD.pack(100) + HONEST[:50]):
        source, into = os.pipe()
        os.write(into, piece)
        os.close(into)
        serve(source, -1, do=write_jpeg, cpu=CPU, idle=30)
        os.close(source)


def test_it_ends_when_nothing_comes() -> None:
    with started(idle=0.01) as process:
        assert process.wait(30) == 0


def test_it_does_not_begin_for_somebody_who_is_gone() -> None:
    with started(parent=2**22 + 1) as process:
        assert process.wait(30) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_has_little_memory_and_time_and_can_write_no_file() -> None:
    with started() as process:
        ask(process, HONEST)
        proc = Path(f"/proc/{process.pid}")
        limits = {line[:25].strip(): line[26:].split()[0] for line in (proc / "limits").read_text().splitlines()}
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines())
        assert limits["Max address space"] == str(MEMORY)
        assert limits["Max file size"] == limits["Max core file size"] == "0"
        assert limits["Max open files"] == "32"
        assert CPU < int(limits["Max cpu time"]) <= CPU + 2
        assert status["NoNewPrivs"] == "1"
        assert (proc / "oom_score_adj").read_text() == "1000\n"


RED, BLUE, WHITE = (255, 0, 0), (0, 0, 255), (255, 255, 255)


def encoded(picture: Image.Image, kind: str, **options: object) -> bytes:
    written = io.BytesIO()
    picture.save(written, kind, **options)
    return written.getvalue()


def seen(data: bytes) -> Image.Image:
    """The picture that a model would see."""
    picture = Image.open(io.BytesIO(write_jpeg(data)), formats=("JPEG",))
    picture.load()
    return picture


def is_about(picture: Image.Image, place: tuple[int, int], colour: tuple[int, int, int]) -> bool:
    dot = picture.getpixel(place)
    assert isinstance(dot, tuple)
    return all(abs(one - other) < 20 for one, other in zip(dot, colour, strict=True))


@each_case("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP"])
def test_each_kind_that_qq_sends_becomes_a_jpeg(kind: str) -> None:
    picture = seen(encoded(Image.new("RGB", (64, 48), RED), kind))
    assert picture.size == (64, 48)
    assert is_about(picture, (30, 20), RED)


@each_case("mode", ["1", "L", "LA", "P", "RGBA", "I;16", "CMYK", "YCbCr"])
def test_any_way_to_write_colours_can_be_read(mode: str) -> None:
    kind = "JPEG" if mode in {"CMYK", "YCbCr"} else "PNG"
    assert seen(encoded(Image.new(mode, (20, 20)), kind)).mode == "RGB"


def test_of_pictures_that_move_the_first_is_shown() -> None:
    frames = [Image.new("RGB", (20, 20), colour) for colour in (RED, BLUE)]
    for kind in ("GIF", "WEBP", "PNG"):
        assert is_about(seen(encoded(frames[0], kind, save_all=True, append_images=frames[1:])), (10, 10), RED)


@each_case("size", [(3000, 3000), (6000, 1000), (1080, 2400), (3000, 100)])
def test_a_large_picture_becomes_one_of_moderate_size_and_keeps_its_shape(size: tuple[int, int]) -> None:
    picture = seen(encoded(Image.new("RGB", size), "JPEG"))
    assert max(picture.size) <= LONGEST
    assert picture.width * picture.height <= AREA
    assert picture.width / picture.height == pytest.approx(size[0] / size[1], rel=0.05)


def test_what_is_transparent_is_white() -> None:
    picture = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    picture.paste((*BLUE, 255), (20, 0, 40, 40))
    shown = seen(encoded(picture, "PNG"))
    assert is_about(shown, (5, 20), WHITE)
    assert is_about(shown, (35, 20), BLUE)


def test_a_picture_stands_upright_and_tells_nothing_else_of_its_camera() -> None:
    picture = Image.new("RGB", (64, 32), RED)
    picture.paste(BLUE, (0, 0, 32, 32))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    exif[ExifTags.Base.Make] = "Someone's phone"
    shown = seen(encoded(picture, "JPEG", exif=exif, comment=b"at home"))
    assert shown.size == (32, 64)
    assert is_about(shown, (16, 8), BLUE)
    assert is_about(shown, (16, 56), RED)
    assert not shown.getexif()
    assert "comment" not in shown.info


@pytest.mark.filterwarnings("ignore:.*EXIF:UserWarning", "ignore:Truncated File Read:UserWarning")
def test_exif_that_cannot_be_read_is_no_reason_not_to_look() -> None:
    data = encoded(Image.new("RGB", (20, 20)), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert seen(data).size == (20, 20)


@each_case(
    "data",
    [
        b"",
        b"<html>",
        b'{"retcode":-5503007,"retmsg":"download url has expired"}',
        b"%PDF-1.7",
        b"<svg/>",
        b"RIFFxxxxWAVE",
    ],
)
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(MediaError, match="no picture"):
        write_jpeg(data)


def test_a_picture_that_was_cut_off_is_refused() -> None:
    whole = encoded(Image.effect_noise((200, 200), 50), "PNG")
    with pytest.raises(MediaError, match="cannot be read"):
        write_jpeg(whole[: len(whole) // 2])


@pytest.mark.filterwarnings("ignore:Image size:PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("size", [(8000, MAX_PIXELS // 8000 + 1), (10_000, 10_000), (60_000, 60_000)])
def test_a_picture_of_too_many_dots_is_refused_before_it_is_unpacked(size: tuple[int, int]) -> None:
    with pytest.raises(MediaError, match=r"dots,? (too many )?to unpack"):
        write_jpeg(hostile.png(width=size[0], height=size[1]))


def test_a_jpeg_of_as_many_scans_as_may_be_is_shown_and_one_more_is_not() -> None:
    assert is_about(seen(hostile.scans(MAX_SCANS)), (10, 10), RED)
    with pytest.raises(MediaError, match="it has more than 64 scans"):
        write_jpeg(hostile.scans(MAX_SCANS + 1))


def test_scans_are_counted_no_further_than_needed_and_only_those_of_the_picture_itself() -> None:
    plain = hostile.encoded("JPEG")
    assert count_scans(plain) == 1
    assert count_scans(hostile.noise(64, "JPEG")) == 1
    assert count_scans(hostile.noise(64, "JPEG", restart_marker_blocks=1)) == 1
    assert count_scans(hostile.scans(17)) == 17
    assert count_scans(hostile.scans(5000)) == MAX_SCANS + 1
    thumbnail = hostile.segment(0xE1, b"Exif\0\0" + b"\xff\xda\0\2" * 200)
    assert count_scans(hostile.with_segments(thumbnail)) == 1
    assert count_scans(plain + b"\0\2" + b"\xff\xda\0\2" * 200) == 1, "a film may follow, as phones write it"
    assert count_scans(b"\xff\xd8\xff") == 0


@given(st.binary(max_size=300))
def test_scans_of_whatever_comes_are_counted(data: bytes) -> None:
    assert 0 <= count_scans(b"\xff\xd8\xff" + data) <= MAX_SCANS + 1


@each_case("size", [(1, 1), (10, 300), (20_000, 12)])
def test_a_picture_too_narrow_to_be_seen_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(MediaError, match="too narrow"):
        write_jpeg(encoded(Image.new("RGB", size), "PNG"))


GOOD = [encoded(Image.effect_noise((30, 30), 50).convert("P"), kind) for kind in ("PNG", "GIF")] + [
    encoded(Image.effect_noise((30, 30), 50), kind) for kind in ("JPEG", "WEBP", "BMP")
]


@given(st.sampled_from(GOOD), st.lists(st.tuples(st.floats(0, 0.999), st.binary(min_size=1, max_size=4)), max_size=6))
def test_whatever_comes_is_shown_or_refused(data: bytes, damage: list[tuple[float, bytes]]) -> None:
    broken = bytearray(data)
    for place, other in damage:
        at = int(place * len(broken))
        broken[at : at + len(other)] = other
    try:
        jpeg = write_jpeg(bytes(broken))
    except MediaError:
        return
    assert jpeg.startswith(b"\xff\xd8\xff")
