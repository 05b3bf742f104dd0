"""Who looks at pictures and listens to voices is as the settings have it."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from adapters.media.attachments import PictureSight, ReceivedDocuments, VoiceEar
from bot.app import open_service
from bot.build import DESCRIBING
from bot.chat.perception import LOOKING, DescribedSight
from tests.bot.test_app import settings
from tests.cases import each_case


@each_case(
    ("more", "sight", "ear"),
    [
        ({}, type(None), type(None)),
        ({"llm_vision_model": "demo"}, PictureSight, type(None)),
        ({"llm_model": "gpt-4o", "llm_vision_model": "v"}, PictureSight, type(None)),
        ({"llm_vision_model": "v"}, DescribedSight, type(None)),
        ({"stt_base_url": "http://localhost:2/v1", "stt_api_key": SecretStr("k")}, type(None), VoiceEar),
    ],
)
async def test_who_looks_and_who_listens_is_as_the_settings_have_it(
    more: dict[str, object], sight: type, ear: type, tmp_path: Path
) -> None:
    given = settings("http://localhost:1/v1", store_url=f"sqlite:///{tmp_path}/frost.db", **more)
    async with open_service(given) as service:
        senses = service.app.senses
    assert senses.looking == (DESCRIBING if sight is DescribedSight else LOOKING)
    assert (type(senses.sight), type(senses.ear), type(senses.reader)) == (sight, ear, ReceivedDocuments)
