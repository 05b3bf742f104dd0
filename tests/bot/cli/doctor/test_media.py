"""MEDIA_URL as the doctor sees it: it leads to the bot, elsewhere, or nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from adapters.web.file_offers import FileOffers
from adapters.web.server import WebServer
from bot.cli.checks import Outcome, ok, warning
from bot.cli.doctor.onebot import MEND_MEDIA_URL, check_media_url
from config.settings import Settings
from tests.adapters.web.test_server import figures
from tests.bot.cli.doctor.surroundings import answering
from tests.bot.cli.doctor.test_reverse import READY
from tests.cases import each_case
from tests.ports import free_port


def web_server(port: int, offers: FileOffers | None) -> WebServer:
    """That of a bot."""
    return WebServer(host="127.0.0.1", port=port, ready=lambda: READY, metrics=figures, offers=offers)


@asynccontextmanager
async def bot(*, offers: FileOffers | None) -> AsyncIterator[int]:
    async with web_server(0, offers) as server:
        yield server.port


def settings(web_port: int, url: str) -> Settings:
    return Settings.model_validate({"web_port": web_port, "media_url": url})


async def test_an_address_that_leads_to_the_bot_is_well() -> None:
    async with bot(offers=FileOffers("")) as port:
        url = f"http://127.0.0.1:{port}/media"
        assert await check_media_url(settings(port, url)) == [ok("media url", f"{url} leads to the bot")]


@each_case("offers", [None, FileOffers("")])
async def test_an_address_that_leads_elsewhere_in_it_is_told(offers: FileOffers | None) -> None:
    async with bot(offers=offers) as port:
        url = f"http://127.0.0.1:{port}/{'x/' if offers else ''}media"
        said = f"{url} leads elsewhere: it answered 404"
        assert await check_media_url(settings(port, url)) == [warning("media url", said, MEND_MEDIA_URL)]


@each_case("status", [200, 302, 502])
async def test_what_something_else_answers_is_told_and_not_followed(status: int) -> None:
    asked = []

    def respond(request: web.BaseRequest) -> web.Response:
        asked.append(request.path)
        return web.Response(status=status, headers={"Location": "/elsewhere"}, text="nothing is offered here\n")

    async with bot(offers=FileOffers("")) as port, answering(respond) as other:
        url = f"{other}/media"
        [check] = await check_media_url(settings(port, url))
    assert (check.outcome, check.said) == (Outcome.WARNING, f"{url} leads elsewhere: it answered {status}")
    assert asked == ["/media/doctor"]


async def test_an_address_at_which_nobody_is_is_told() -> None:
    async with bot(offers=FileOffers("")) as port:
        url = f"http://127.0.0.1:{free_port()}/media"
        [check] = await check_media_url(settings(port, url))
    assert (check.outcome, check.fix) == (Outcome.WARNING, MEND_MEDIA_URL.en)
    assert check.said == f"{url} cannot be reached (ClientConnectorError)"


async def test_while_no_bot_runs_there_is_nothing_to_say() -> None:
    port = free_port()
    assert await check_media_url(settings(port, f"http://127.0.0.1:{port}/media")) == []
