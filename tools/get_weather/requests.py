"""Shared by all sources: the question, the answer, and errors."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.core.language import Bilingual, text_of
from bot.core.ports import Web, WebResponse
from frostagent.types.errors import ToolFailed
from tools.get_weather.places import WeatherPlace
from tools.get_weather.weather import Weather

TOKEN_STEP = 900  # seconds for which a token is reused, so that equal requests stay equal
TOKEN_LIFE = 3600
CLOCK_SKEW = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherKeys:
    """The operator's keys; empty if not set. `qweather_private_key` is the base64 content of a PKCS
    #8 Ed25519 PEM file.

    `contact` means that our User-Agent has contact details, as MET Norway requires.
    """

    qweather_host: str = ""
    qweather_key: str = field(default="", repr=False)
    qweather_project: str = ""
    qweather_key_id: str = ""
    qweather_private_key: str = field(default="", repr=False)
    amap_key: str = field(default="", repr=False)
    contact: bool = False

    @property
    def has_qweather(self) -> bool:
        return bool(self.qweather_host and (self.qweather_key or self.has_token))

    @property
    def has_token(self) -> bool:
        return bool(self.qweather_project and self.qweather_key_id and self.qweather_private_key)

    def qweather_headers(self, now: float) -> dict[str, str]:
        """The authentication headers, never both kinds; `now` in seconds since 1970."""
        if self.has_token:
            return {"Authorization": f"Bearer {self._token(now)}"}
        return {"X-QW-Api-Key": self.qweather_key}

    def _token(self, now: float) -> str:
        issued = int(now) // TOKEN_STEP * TOKEN_STEP - CLOCK_SKEW
        head = _part({"alg": "EdDSA", "kid": self.qweather_key_id})
        claims = _part({"sub": self.qweather_project, "iat": issued, "exp": issued + TOKEN_LIFE})
        signed = b".".join((head, claims))
        # The library is large, and only signing needs it.
        serialization = import_module("cryptography.hazmat.primitives.serialization")
        key: Any = serialization.load_der_private_key(
            base64.b64decode(self.qweather_private_key), password=None
        )
        return b".".join((signed, _plain(key.sign(signed)))).decode("ascii")


def _part(claims: Mapping[str, object]) -> bytes:
    return _plain(json.dumps(claims, separators=(",", ":")).encode())


def _plain(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


FRESH = 600.0  # seconds for which an answer counts as new
# Seconds for which equal requests are one: concurrent ones, and the other half of a failed answer.
TOGETHER = 60.0
DAYS = 7

A_MINUTE, AN_HOUR, A_DAY = 60.0, 3600.0, 86400.0
FOR_GOOD = 10 * 365 * A_DAY  # until a restart


REST = {400: 0.0, 404: 0.0, 401: A_DAY, 403: A_DAY}
"""Rest times by status, in seconds: 400 and 404 concern only this place."""


class Wire(BaseModel):
    """The part of a vendor's body that is read."""

    model_config = ConfigDict(allow_inf_nan=False, defer_build=True)


W = TypeVar("W", bound=Wire)


class SourceFailed(ToolFailed):
    """A source has no answer. It rests for `rest` seconds; 0 if only this place is the problem."""

    def __init__(self, message: str, *, rest: float = A_MINUTE) -> None:
        self.rest = rest
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A weather, its lifetime in seconds, and the source's Last-Modified.

    `retold` computes the weather at another time (seconds since 1970) from the same answer, for a
    source that sends only a forecast. Raises SourceFailed if the answer does not reach that far.
    """

    weather: Weather
    fresh: float = FRESH
    modified: str = ""
    retold: Callable[[float], Weather] | None = None

    def at(self, now: float) -> Weather:
        """The weather at that time."""
        return self.weather if self.retold is None else self.retold(now)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherQuestion:
    """A question to one source. `now` is in seconds since 1970; `earlier` is its last answer."""

    place: WeatherPlace
    web: Web
    keys: WeatherKeys
    now: float
    earlier: Fetched | None = None

    @property
    def local_now(self) -> dt.datetime:
        """The local time at the place."""
        return localise(dt.datetime.fromtimestamp(self.now, dt.UTC), self.place.zone)

    async def get(
        self,
        source: str,
        url: str,
        *,
        kind: type[Wire],
        params: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
    ) -> WebResponse:
        """A response of any status; only one that fits `kind` is cached. Raises SourceFailed."""
        try:
            return await self.web.get(
                url, params=params, headers=headers, fresh=TOGETHER, keep=partial(holds, kind)
            )
        except ToolFailed as error:
            why = Bilingual(f"{source}: {error}", f"{source}：{text_of(error).zh}")
            raise SourceFailed(why) from error


def read(
    source: str, kind: type[W], response: WebResponse, reason: Callable[[Any], str] = lambda _: ""
) -> W:
    """The body as `kind`; `reason` extracts the vendor's error text. Raises SourceFailed."""
    if response.status != 200:
        rest = REST.get(response.status, A_MINUTE)
        raise refusal(source, response, said(response, reason), rest=rest)
    try:
        return kind.model_validate_json(response.body)
    except ValidationError as error:
        raise SourceFailed(
            f"{source} sent an answer that cannot be read{said(response, reason)}"
        ) from error


def refusal(source: str, response: WebResponse, words: str, *, rest: float) -> SourceFailed:
    """The error for a status other than 200; `words` come from `said`."""
    en = f"{source} answered {response.status}{words}"
    zh = f"{source} 答复了 {response.status}{words}"
    return SourceFailed(Bilingual(en, zh), rest=rest)


def holds(kind: type[Wire], response: WebResponse) -> bool:
    try:
        kind.model_validate_json(response.body)
    except ValidationError:
        return False
    return True


def said(response: WebResponse, reason: Callable[[Any], str]) -> str:
    """The vendor's error text as ": reason", or empty."""
    try:
        words = reason(response.json())
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return ""
    return f": {tidy(words)}" if words else ""


def tidy(text: str, longest: int = 120) -> str:
    """A vendor's text as one short line, for a model."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:longest]


def localise(time: dt.datetime, zone: str) -> dt.datetime:
    """Convert a time with an offset to the zone's local time without one (UTC if unknown). Raises
    OverflowError at the very end of the calendar.
    """
    try:
        there: dt.tzinfo = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        there = dt.UTC
    return time.astimezone(there).replace(tzinfo=None)
