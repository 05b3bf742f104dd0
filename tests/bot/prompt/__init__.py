"""How the tests see a conversation: everybody's number is their account, and it is always UTC."""

from __future__ import annotations

from datetime import UTC

from msgspec.structs import replace

from bot.prompt.render import View
from bot.prompt.wording_en import EN

VIEW = View(number=lambda user_id: user_id, zone=UTC)
ENGLISH = replace(VIEW, words=EN)
