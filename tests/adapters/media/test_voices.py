from __future__ import annotations

import base64
import io
import wave

import pytest

from adapters.media.attachments import MAX_TRANSCRIPT, VoiceEar, length_of
from bot.core.errors import ActionRefused, TransportError
from bot.core.ports import KeptFile
from bot.core.segments import Record
from frostagent.types.errors import Lack, MediaError
from tests.adapters.media.offline import NoWeb
from tests.cases import each_case


def wav(seconds: float) -> bytes:
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(1000)
        sound.writeframes(bytes(int(seconds * 1000)))
    return written.getvalue()


def ear(kept: bytes | TransportError, words: str = " 明天\n去吗 ") -> tuple[VoiceEar, list[bytes]]:
    heard: list[bytes] = []

    async def ask(account: int, file: str) -> KeptFile:
        assert (account, file) == (1, "a.amr")
        if isinstance(kept, TransportError):
            raise kept
        return KeptFile(base64=base64.b64encode(kept).decode())

    async def transcribe(data: bytes, seconds: float) -> str:
        assert seconds == length_of(data)
        heard.append(data)
        return words

    return VoiceEar(web=NoWeb(), ask=ask, transcribe=transcribe), heard


async def test_a_voice_is_the_words_in_it_in_one_line() -> None:
    listening, heard = ear(wav(59))
    assert await listening.hear(1, Record("a.amr")) == "明天 去吗"
    assert heard == [wav(59)]
    listening, _ = ear(wav(1), "啊" * 9000)
    assert await listening.hear(1, Record("a.amr")) == "啊" * MAX_TRANSCRIPT


async def test_a_minute_and_five_megabytes_are_listened_to() -> None:
    largest = wav(60)
    largest += bytes(5 * 2**20 - len(largest))
    listening, heard = ear(largest)
    assert await listening.hear(1, Record("a.amr", seconds=60)) == "明天 去吗"
    assert heard == [largest]


@each_case(
    ("record", "kept", "lack"),
    [
        (Record("a.amr", seconds=61), wav(1), Lack.TOO_LARGE),
        (Record("a.amr"), wav(61), Lack.TOO_LARGE),
        (Record("a.amr"), wav(1) + bytes(5 * 2**20 + 1 - len(wav(1))), Lack.TOO_LARGE),
        (Record("a.amr"), b"\x02#!SILK_V3", Lack.UNREADABLE),
        (Record("a.amr"), ActionRefused("get_record", retcode=1200, wording="no"), Lack.EXPIRED),
    ],
)
async def test_what_is_too_long_or_cannot_be_had_is_not_listened_to(
    record: Record, kept: bytes | TransportError, lack: Lack
) -> None:
    listening, heard = ear(kept)
    with pytest.raises(MediaError) as caught:
        await listening.hear(1, record)
    assert (caught.value.lack, heard) == (lack, [])
