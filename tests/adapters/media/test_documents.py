"""Files that people send: where their bytes come from, and what is told of one that cannot be read."""

from __future__ import annotations

import base64

import pytest

from adapters.media.attachments import FRESH, MAX_FILE_BYTES, ReceivedDocuments
from bot.core.conversation import Conversation
from bot.core.documents import Document, UnreadableDocument
from bot.core.errors import ActionRefused, TransportError
from bot.core.ports import KeptFile
from bot.core.segments import File
from frostagent.types.errors import Lack, MediaError
from tests.adapters.media.offline import NoWeb
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, ManualClock

FILE = File("作业.txt", "f1", size=1229)


class Reader:
    """Documents that say their own bytes, and one that is encrypted."""

    def __init__(self) -> None:
        self.read_ones: list[bytes] = []

    async def read(self, data: bytes, *, told: str = "") -> Document:
        assert not told, "nobody says what a file is"
        self.read_ones.append(data)
        if data == b"locked":
            raise UnreadableDocument("it is encrypted", Lack.ENCRYPTED)
        return Document(kind="text", paragraphs=(data.decode(),))


class Shelf:
    """Received documents from a server that has this."""

    def __init__(self, kept: KeptFile | TransportError) -> None:
        self.kept = kept
        self.clock = ManualClock()
        self.reader = Reader()
        self.documents = ReceivedDocuments(web=NoWeb(), ask=self.ask, documents=self.reader, clock=self.clock)

    async def ask(self, conversation: Conversation, file: File) -> KeptFile:
        if isinstance(self.kept, TransportError):
            raise self.kept
        return self.kept


def holding(data: bytes) -> KeptFile:
    return KeptFile(base64=base64.b64encode(data).decode())


async def test_a_file_is_read_from_what_its_server_holds() -> None:
    assert (await Shelf(holding("你好".encode())).documents.read(GROUP, FILE)).paragraphs == ("你好",)


async def test_its_parts_are_read_from_one_document_for_ten_minutes() -> None:
    shelf = Shelf(holding(b"one"))
    for handle in ("", "a7"):
        await shelf.documents.read(GROUP, File("作业.txt", "f1", size=1229, handle=handle))
    assert len(shelf.reader.read_ones) == 1
    shelf.clock.time += FRESH
    await shelf.documents.read(GROUP, FILE)
    assert len(shelf.reader.read_ones) == 2


async def test_another_file_conversation_or_account_has_another_document() -> None:
    shelf = Shelf(holding(b"one"))
    other = Conversation(BOT + 1, "group", GROUP.session_id)
    for where, file in ((GROUP, FILE), (PRIVATE, FILE), (other, FILE), (GROUP, File("作业.txt", "f2", size=1229))):
        await shelf.documents.read(where, file)
    assert len(shelf.reader.read_ones) == 4


@each_case(
    ("file", "kept", "lack"),
    [
        (File("a.zip", "f1", size=MAX_FILE_BYTES + 1), holding(b"x"), Lack.TOO_LARGE),
        (File("a.txt", "f1"), holding(b"x" * (MAX_FILE_BYTES + 1)), Lack.TOO_LARGE),
        (FILE, holding(b"locked"), Lack.ENCRYPTED),
        (FILE, ActionRefused("get_group_file_url", retcode=1200, wording="文件不存在"), Lack.EXPIRED),
        (FILE, KeptFile(path="/app/of/another/container"), Lack.OUT_OF_REACH),
    ],
)
async def test_what_cannot_be_read_says_why(file: File, kept: KeptFile | TransportError, lack: Lack) -> None:
    with pytest.raises(MediaError) as caught:
        await Shelf(kept).documents.read(GROUP, file)
    assert caught.value.lack is lack
