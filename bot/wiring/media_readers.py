"""Who takes in what people send besides words, put together from the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from adapters.media.attachments import TextReader, VoiceEar
from adapters.onebot.transport import AnyTransport
from bot.conversation.context.describing import DescribedSight
from bot.conversation.context.perception import LOOKING, Senses
from bot.domain.ports import Clock, PictureReader, Store, VoiceListener
from bot.wiring.resources import Resources

DESCRIBING = 25.0  # seconds until all pictures of a question are described

SensesOf: TypeAlias = Callable[[Store, Clock], Senses]


def build_senses(means: Resources, transport: AnyTransport, store: Store, clock: Clock) -> Senses:
    """The senses. Pictures go to the main model if it is known to see, else LLM_VISION_MODEL
    describes them, else nobody looks.
    """
    models, web = means.models, means.media.web
    sight: PictureReader | None = None
    ear: VoiceListener | None = None
    looking = LOOKING
    if models.see or models.vision is not None:
        sight = means.media.sight(transport.get_image)
    if sight is not None and models.vision is not None and not models.see:
        looking = DESCRIBING
        sight = DescribedSight(sight, model=models.vision, store=store, clock=clock)
    if means.transcribe is not None:
        ear = VoiceEar(web=web, ask=transport.get_record, transcribe=means.transcribe)
    return Senses(sight, ear, TextReader(web=web, ask=transport.get_file), looking)
