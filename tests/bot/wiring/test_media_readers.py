from __future__ import annotations

from pydantic import SecretStr

from adapters.media.attachments import PictureSight, TextReader, VoiceEar
from bot.app import as_it_is
from bot.conversation.context.describing import DescribedSight
from bot.conversation.context.perception import LOOKING
from bot.models.meter import Meter
from bot.runtime.clock import RandomIds, SystemClock
from bot.wiring.discovery import Discovered
from bot.wiring.media_readers import DESCRIBING, build_senses
from bot.wiring.onebot import build_sockets
from bot.wiring.resources import open_resources
from config.settings import Settings
from tests.cases import each_case
from tests.fakes import RecordingStore

LLM = {"llm_base_url": "http://localhost:1/v1", "llm_model": "m"}


@each_case(
    ("more", "sight", "ear"),
    [
        ({}, type(None), type(None)),
        ({"llm_vision_model": "m"}, PictureSight, type(None)),
        ({"llm_model": "gpt-4o", "llm_vision_model": "v"}, PictureSight, type(None)),
        ({"llm_vision_model": "v"}, DescribedSight, type(None)),
        ({"stt_base_url": "http://localhost:2/v1", "stt_api_key": SecretStr("k")}, type(None), VoiceEar),
    ],
)
async def test_who_looks_and_who_listens_is_as_the_settings_have_it(
    more: dict[str, object], sight: type, ear: type
) -> None:
    settings, clock, ids = Settings.model_validate({**LLM, **more}), SystemClock(), RandomIds()
    async with open_resources(
        settings,
        Discovered(),
        wrap=as_it_is,
        meter=Meter(None, clock=clock, ids=RandomIds()),
        user_agent="test",
        clock=clock,
        ids=ids,
        tell=lambda _: None,
    ) as means:
        line = build_sockets(settings, clock=clock, ids=ids)
        senses = build_senses(means, line.transport, RecordingStore(), clock)
    assert senses.looking == (DESCRIBING if sight is DescribedSight else LOOKING)
    assert (type(senses.sight), type(senses.ear), type(senses.reader)) == (sight, ear, TextReader)
