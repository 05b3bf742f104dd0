"""The operator's keys for the sources of weather that want one, or a name. Nothing here is
ever shown.

QWeather takes either an API key or a token signed with an Ed25519 key (a JWT,
`docs/protocol/sources.md` 1.6).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from pydantic import SecretStr

TOKEN_STEP = (
    900  # seconds a token is used: within them it is the same text, so equal requests stay equal
)
TOKEN_LIFE = 3600
CLOCK_SKEW = 30


class GivenKeys(Protocol):
    """The settings that are about the weather."""

    @property
    def tools_contact(self) -> str: ...
    @property
    def qweather_host(self) -> str: ...
    @property
    def qweather_key(self) -> SecretStr: ...
    @property
    def qweather_jwt_project(self) -> str: ...
    @property
    def qweather_jwt_key_id(self) -> str: ...
    @property
    def qweather_jwt_private_key(self) -> SecretStr: ...
    @property
    def amap_key(self) -> SecretStr: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherKeys:
    """Empty is "not given". `qweather_private_key` is the base64 of a PKCS #8 Ed25519 key, as its
    PEM file has it.

    `contact` says that our User-Agent tells how to reach whoever runs the bot, which MET Norway
    asks for.
    """

    qweather_host: str = ""
    qweather_key: str = field(default="", repr=False)
    qweather_project: str = ""
    qweather_key_id: str = ""
    qweather_private_key: str = field(default="", repr=False)
    amap_key: str = field(default="", repr=False)
    contact: bool = False

    @classmethod
    def of(cls, given: GivenKeys) -> WeatherKeys:
        """The keys among the settings."""
        return cls(
            qweather_host=given.qweather_host,
            qweather_key=given.qweather_key.get_secret_value(),
            qweather_project=given.qweather_jwt_project,
            qweather_key_id=given.qweather_jwt_key_id,
            qweather_private_key=given.qweather_jwt_private_key.get_secret_value(),
            amap_key=given.amap_key.get_secret_value(),
            contact=bool(given.tools_contact),
        )

    @property
    def has_qweather(self) -> bool:
        return bool(self.qweather_host and (self.qweather_key or self.has_token))

    @property
    def has_token(self) -> bool:
        return bool(self.qweather_project and self.qweather_key_id and self.qweather_private_key)

    def qweather_headers(self, now: float) -> dict[str, str]:
        """The headers that prove who we are, never both ways at once; `now` in seconds since
        1970.
        """
        if self.has_token:
            return {"Authorization": f"Bearer {self._token(now)}"}
        return {"X-QW-Api-Key": self.qweather_key}

    def _token(self, now: float) -> str:
        issued = int(now) // TOKEN_STEP * TOKEN_STEP - CLOCK_SKEW
        head = _part({"alg": "EdDSA", "kid": self.qweather_key_id})
        claims = _part({"sub": self.qweather_project, "iat": issued, "exp": issued + TOKEN_LIFE})
        signed = b".".join((head, claims))
        # Cryptography is large, and only those who sign need it.
        serialization = import_module("cryptography.hazmat.primitives.serialization")
        key: Any = serialization.load_der_private_key(
            base64.b64decode(self.qweather_private_key), password=None
        )
        return b".".join((signed, _plain(key.sign(signed)))).decode("ascii")


def _part(claims: Mapping[str, object]) -> bytes:
    return _plain(json.dumps(claims, separators=(",", ":")).encode())


def _plain(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
