"""The page at which OneBot servers fetch large files: does MEDIA_URL lead to it?"""

from __future__ import annotations

import asyncio

import aiohttp

from adapters.openai.client import make_session
from adapters.web.file_offers import NOTHING
from bot.cli.doctor.checks import Check, warn, well
from bot.cli.doctor.chinese import sentence
from bot.cli.doctor.reverse import ASKED_WITHIN, find_running
from config.settings import Settings

MEND = (
    "See that MEDIA_URL names this machine and WEB_PORT (docs/cluster.md), and start the bot anew; "
    "large files are not sent otherwise"
)


async def check_media_url(settings: Settings) -> list[Check]:
    """Ask there for a file that there is not, as far as can be seen from here: OneBot servers may
    see it otherwise. Nothing is to be said while no bot runs.
    """
    if await find_running(settings) is None:
        return []
    url = settings.media_url
    try:
        async with (
            asyncio.timeout(ASKED_WITHIN),
            make_session() as session,
            session.get(f"{url}/doctor", allow_redirects=False) as response,
        ):
            said = await response.content.read(len(NOTHING) + 1)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return [
            warn(
                "media url", sentence("{} cannot be reached ({})", url, type(error).__name__), MEND
            )
        ]
    if (response.status, said) == (404, NOTHING.encode()):
        return [well("media url", sentence("{} leads to the bot", url))]
    return [
        warn(
            "media url", sentence("{} leads elsewhere: it answered {}", url, response.status), MEND
        )
    ]
