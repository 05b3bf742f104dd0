"""A base url that was given with or without its version: `/v1` is where most servers have what we
ask for, not all.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from yarl import URL

from adapters.openai.endpoint import PATH
from bot.domain.chat import Completion, ModelRequest
from bot.domain.errors import ModelError
from bot.domain.ports import ChatModel

logger = logging.getLogger(__name__)

VERSION = re.compile(r"/v\d+[a-z0-9]*\Z")
NOT_THERE = frozenset({404, 405})  # what a server answers where nothing takes our requests


def other_url(base_url: str) -> str:
    """The same base url without its /v1, or with it; empty for one that says all, as a whole path
    does.
    """
    url = URL(base_url.strip())
    path = url.path.rstrip("/")
    if path.endswith(PATH):
        return ""
    if VERSION.search(path):
        return (
            str(url.with_path(VERSION.sub("", path), keep_query=True))
            if path.endswith("/v1")
            else ""
        )
    return str(url.with_path(f"{path}/v1", keep_query=True))


class EitherUrl:
    """A `ChatModel` at the base url as it was given, or else at the other one: whichever is there,
    from then on.
    """

    def __init__(self, make: Callable[[str], ChatModel], base_url: str) -> None:
        """`make` makes a model of a base url. Raises what that raises."""
        self._model = make(base_url)
        other = other_url(base_url)
        self._other = make(other) if other else None

    @property
    def name(self) -> str:
        """Model and host, for logs."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer, whole and finished. Raises ModelError, that of the url as it was given where both
        are not there.
        """
        model = self._model
        try:
            completion = await model.complete(request)
        except ModelError as missing:
            other = (
                self._other if model is self._model else self._model
            )  # found meanwhile, by another request
            if other is None or missing.status not in NOT_THERE:
                raise
            return await self._try_other(other, request, missing)
        self._other = None
        return completion

    async def _try_other(
        self, other: ChatModel, request: ModelRequest, missing: ModelError
    ) -> Completion:
        try:
            completion = await other.complete(request)
        except ModelError as error:
            if error.status in NOT_THERE:
                raise missing from None
            raise
        logger.info(
            "%s is there with the version of its base url (/v1) put in, or left out", other.name
        )
        self._model, self._other = other, None
        return completion
