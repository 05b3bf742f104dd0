from __future__ import annotations

import base64

import pytest

from adapters.media.attachments import TextReader, as_text
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, TransportError
from bot.core.ports import KeptFile
from bot.core.segments import File
from frostagent.types.errors import Lack, MediaError
from tests.adapters.media.offline import NoWeb
from tests.cases import each_case
from tests.fakes import GROUP

FILE = File("作业.txt", "f1", size=1229)


def reader(kept: KeptFile | TransportError) -> TextReader:
    async def ask(conversation: Conversation, file: File) -> KeptFile:
        assert (conversation, file.id) == (GROUP, "f1")
        if isinstance(kept, TransportError):
            raise kept
        return kept

    return TextReader(web=NoWeb(), ask=ask)


def holding(data: bytes) -> KeptFile:
    return KeptFile(base64=base64.b64encode(data).decode())


@each_case("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
async def test_a_text_is_read_in_the_encodings_text_comes_in(encoding: str) -> None:
    assert await reader(holding("第一行\n你好".encode(encoding))).read(GROUP, FILE) == "第一行\n你好"


async def test_of_a_long_text_the_beginning_is_read_and_its_length_told() -> None:
    text = await reader(holding(b"x" * 9000)).read(GROUP, FILE)
    assert text == "x" * 8000 + "…(共 9000 字)"


@each_case(
    ("file", "kept", "lack"),
    [
        (File("a.zip", "f1", size=5 * 2**20), holding(b"x"), Lack.TOO_LARGE),
        (File("a.txt", "f1"), holding(b"x" * (200 * 1024 + 1)), Lack.TOO_LARGE),
        (FILE, holding(b"PK\x03\x04\0\0"), Lack.NO_TEXT),
        (FILE, holding(b"\xff\xfe\x00"), Lack.NO_TEXT),
        (FILE, ActionRefused("get_group_file_url", retcode=1200, wording="文件不存在"), Lack.EXPIRED),
        (FILE, KeptFile(path="/app/of/another/container"), Lack.OUT_OF_REACH),
    ],
)
async def test_what_cannot_be_read_says_why(file: File, kept: KeptFile | TransportError, lack: Lack) -> None:
    with pytest.raises(MediaError) as caught:
        await reader(kept).read(GROUP, file)
    assert caught.value.lack is lack


def test_colours_of_a_terminal_are_text() -> None:
    assert as_text(b"\x1b[31mred\x1b[0m\tok\r\n\f") == "\x1b[31mred\x1b[0m\tok\r\n\f"
