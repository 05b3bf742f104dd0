"""What the sources have in common."""

from __future__ import annotations

import base64
import datetime as dt
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import SecretStr

from adapters.fetching.client import HttpxWeb
from bot.configured_tools import weather_keys
from bot.core.ports import WebResponse
from config.settings import Settings
from tests.adapters.fetching.replay import Replay
from tests.cases import each_case
from tools.get_weather.places import WeatherPlace
from tools.get_weather.requests import A_DAY, SourceFailed, WeatherKeys, WeatherQuestion, Wire, localise, read, tidy


class Body(Wire):
    figure: float


def answer(body: bytes, status: int = 200) -> WebResponse:
    return WebResponse(status, body, "https://a.test")


def reason(body: Any) -> str:
    return str(body["why"])


def test_a_body_is_read_as_its_kind() -> None:
    assert read("A", Body, answer(b'{"figure": "1.5", "more": 1}')).figure == 1.5


@each_case(
    ("status", "rest"), [(500, 60), (502, 60), (429, 60), (400, 0), (404, 0), (401, A_DAY), (403, A_DAY), (204, 60)]
)
def test_a_status_says_how_long_to_leave_a_source_alone(status: int, rest: float) -> None:
    with pytest.raises(SourceFailed, match=f"A answered {status}: because") as caught:
        read("A", Body, answer(b'{"why": "because"}', status), reason)
    assert caught.value.rest == rest


@each_case("body", [b"", b"<html>", b"[]", b"null", b'{"figure": NaN}', b'{"why": []}', b"[" * 10000])
def test_garbage_is_told_as_such(body: bytes) -> None:
    with pytest.raises(SourceFailed, match="A sent an answer that cannot be read"):
        read("A", Body, answer(body), reason)


async def test_a_source_that_cannot_be_reached_is_one_that_failed(server: Replay, web: HttpxWeb) -> None:
    question = WeatherQuestion(
        place=WeatherPlace(id=0, name="x", latitude=0, longitude=0), web=web, keys=WeatherKeys(), now=0
    )
    with pytest.raises(SourceFailed, match="A: ") as caught:
        await question.get("A", "http://127.0.0.1:9/", kind=Body, params={})
    assert caught.value.rest > 0


def test_times_become_local() -> None:
    noon = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    assert localise(noon, "Asia/Shanghai").isoformat() == "2026-07-01T20:00:00"
    for zone in ("", "Nowhere/Land", "../etc", "Asia"):
        assert localise(noon, zone).hour == 12


def test_a_vendors_words_become_one_short_line() -> None:
    assert tidy(" a\n\x00b  c ") == "a b c"
    assert len(tidy("x" * 500)) == 120


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
    keys = weather_keys(settings)
    assert (keys.qweather_key, keys.amap_key, keys.contact, keys.has_token) == ("sesame-q", "sesame-a", True, True)
    assert not weather_keys(Settings()).contact


def test_a_secret_is_not_shown() -> None:
    keys = WeatherKeys(qweather_key="sesame", amap_key="sesame", qweather_private_key="sesame")
    assert "sesame" not in repr(keys)
