"""Keys and tokens."""

from __future__ import annotations

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import SecretStr

from config.settings import Settings
from tools.get_weather.requests import WeatherKeys

PRIVATE = Ed25519PrivateKey.generate()
PEM_BODY = base64.b64encode(PRIVATE.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())).decode()
SIGNING = WeatherKeys(
    qweather_host="h.test", qweather_project="PROJECT", qweather_key_id="KID", qweather_private_key=PEM_BODY
)
NOW = 1_780_000_123.0


def unpack(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_a_token_is_what_qweather_documents() -> None:
    scheme, _, token = SIGNING.qweather_headers(NOW)["Authorization"].partition(" ")
    assert (scheme, "=" in token) == ("Bearer", False)
    head, claims, signature = token.split(".")
    assert json.loads(unpack(head)) == {"alg": "EdDSA", "kid": "KID"}
    said: dict[str, Any] = json.loads(unpack(claims))
    assert sorted(said) == ["exp", "iat", "sub"]
    assert said["sub"] == "PROJECT"
    assert said["iat"] <= NOW - 30
    assert NOW + 60 < said["exp"] <= said["iat"] + 86400
    PRIVATE.public_key().verify(unpack(signature), f"{head}.{claims}".encode())


def test_a_token_stays_the_same_for_a_while_so_that_equal_requests_are_equal() -> None:
    start = NOW // 900 * 900
    first = SIGNING.qweather_headers(start)
    assert SIGNING.qweather_headers(start + 899) == first
    assert SIGNING.qweather_headers(start + 900) != first


def test_a_key_is_sent_only_where_there_is_no_token() -> None:
    assert WeatherKeys(qweather_host="h", qweather_key="k").qweather_headers(NOW) == {"X-QW-Api-Key": "k"}
    both = WeatherKeys(
        qweather_key="k", qweather_project="P", qweather_key_id="K", qweather_private_key=PEM_BODY
    ).qweather_headers(NOW)
    assert list(both) == ["Authorization"]


def test_qweather_is_there_with_a_host_and_a_whole_credential() -> None:
    assert not WeatherKeys().has_qweather
    assert not WeatherKeys(qweather_host="h").has_qweather
    assert not WeatherKeys(qweather_key="k").has_qweather
    assert not WeatherKeys(qweather_host="h", qweather_project="P", qweather_key_id="K").has_qweather
    assert WeatherKeys(qweather_host="h", qweather_key="k").has_qweather
    assert SIGNING.has_qweather


def test_the_settings_have_what_the_keys_are_made_of() -> None:
    settings = Settings(
        qweather_host="h.test",
        qweather_key=SecretStr("sesame-q"),
        qweather_jwt_project="P",
        qweather_jwt_key_id="K",
        qweather_jwt_private_key=SecretStr(PEM_BODY),
        amap_key=SecretStr("sesame-a"),
        tools_contact="bot@example.com",
    )
    keys = WeatherKeys.from_settings(settings)
    assert (keys.qweather_key, keys.amap_key, keys.contact, keys.has_token) == ("sesame-q", "sesame-a", True, True)
    assert not WeatherKeys.from_settings(Settings()).contact


def test_a_secret_is_not_shown() -> None:
    keys = WeatherKeys(qweather_key="sesame", amap_key="sesame", qweather_private_key="sesame")
    assert "sesame" not in repr(keys)
