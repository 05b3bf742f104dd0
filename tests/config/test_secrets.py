from __future__ import annotations

import base64
import traceback
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from config import values
from config.loading import load_settings
from config.secrets import all_secrets, proxy_secrets, secret_names, secrets_of
from config.settings import Settings
from frostagent.types.errors import ConfigError
from tests.cases import each_case

TOKEN = "sesame-open-sesame-sesame"
SIGNING_KEY = base64.b64encode(values.ED25519 + bytes(range(32))).decode()


def test_every_secret_of_the_settings_is_found() -> None:
    planted: dict[str, Any] = {
        name: SecretStr(f"planted-here-as-{name}")
        for name, field in Settings.model_fields.items()
        if field.annotation is SecretStr and name not in ("store_url", "qweather_jwt_private_key")
    }
    planted["broker_url"] = SecretStr("amqp://planted:here@as")
    planted["console_totp"] = SecretStr("PLANTEDHERE" * 2 + "AAAA")
    planted["qweather_jwt_private_key"] = SecretStr(SIGNING_KEY)
    assert planted
    found = secrets_of(Settings(**planted))
    assert found >= {secret.get_secret_value() for secret in planted.values()}


@each_case(
    ("url", "passwords"),
    [
        ("postgresql://bot:open-sesame@db/frost", {"open-sesame"}),
        ("postgresql://bot:open%2Fsesame@db/frost", {"open%2Fsesame", "open/sesame"}),
        ("postgresql://bot:open?se#same@db/frost", {"open?se#same"}),
        ("postgresql://bot:open@sesame@db/frost", {"open", "open@sesame"}),
        ("postgresql+asyncpg://db/frost?user=bot&password=sesame&sslmode=require", {"sesame"}),
        ("sqlite+aiosqlite:///data/frostagent.db", set()),
    ],
)
def test_of_a_secret_url_the_password_alone_is_secret_too(url: str, passwords: set[str]) -> None:
    class Stored(BaseModel):
        store_url: SecretStr

    assert secrets_of(Stored(store_url=SecretStr(url))) == {url} | passwords


def test_secrets_are_found_in_lists_and_objects_and_nothing_else_is() -> None:
    class Endpoint(BaseModel):
        base_url: str
        key: SecretStr

    class Deep(BaseModel):
        name: str
        endpoints: tuple[Endpoint, ...]
        by_name: dict[str, SecretStr]
        empty: SecretStr = SecretStr("")
        number: int = 7

    deep = Deep(
        name="fox",
        endpoints=(Endpoint(base_url="https://a.test", key=SecretStr("first")),),
        by_name={"b": SecretStr("second")},
    )
    assert secrets_of(deep) == {"first", "second"}


@each_case(
    ("url", "secrets"),
    [
        ("http://bot:sesame@proxy:3128", {"bot:sesame", "sesame", "Ym90OnNlc2FtZQ=="}),
        (
            "http://bot:open%2Fup@proxy:3128/",
            {"bot:open%2Fup", "bot:open/up", "open%2Fup", "open/up", "Ym90Om9wZW4vdXA="},
        ),
        ("http://bot:op@en@proxy:port", {"bot:op@en", "op@en", "Ym90Om9wQGVu"}),
        ("sesame@proxy:3128", {"sesame", "c2VzYW1l"}),
        ("http://[::1", set()),
        ("http://proxy:3128", set()),
        ("", set()),
    ],
)
@each_case("name", ["HTTPS_PROXY", "http_proxy", "all_proxy"])
def test_what_lets_the_bot_in_at_a_proxy_is_secret_however_it_is_spelt(name: str, url: str, secrets: set[str]) -> None:
    assert proxy_secrets({name: url, "PATH": "bot:other@host"}) == secrets
    settings = Settings(llm_api_key=SecretStr("sk-model"))
    assert all_secrets(settings, {name: url}) == secrets | secrets_of(settings)


def test_no_secret_is_ever_shown() -> None:
    fields = [name for name, field in Settings.model_fields.items() if field.annotation is SecretStr]
    assert set(fields) == {
        *("llm_api_key", "onebot_access_token", "coder_api_key", "stt_api_key", "store_url"),
        *("broker_url", "console_token", "console_totp"),
        *("qweather_key", "qweather_jwt_private_key", "amap_key", "search_key"),
    }
    given = dict.fromkeys(fields, TOKEN) | {"store_url": f"postgresql://bot:{TOKEN}@db/frost"}
    given["broker_url"] = f"amqp://bot:{TOKEN}@queue/"
    given["console_totp"] = "A" * 32
    given["qweather_jwt_private_key"] = SIGNING_KEY
    settings = Settings.model_validate(given)
    for text in (
        repr(settings),
        str(settings),
        settings.model_dump_json(),
        str(settings.model_dump()),
        repr(settings.main_model),
        repr(settings.coder_endpoint),
    ):
        assert TOKEN not in text
        assert "sesame" not in text


def test_a_bad_secret_is_not_shown_in_any_traceback() -> None:
    secrets = dict.fromkeys(["llm_api_key", "onebot_access_token", "coder_api_key", "store_url"], "open sesame")
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate(secrets)
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={name.upper(): value for name, value in secrets.items()}, env_file=None)
    for error in (refused.value, caught.value):
        assert "sesame" not in "".join(traceback.format_exception(error))


def test_each_of_several_keys_and_those_of_fallbacks_are_secrets() -> None:
    fallback = {"base_url": "https://b.test", "api_key": "sk-three", "model": "b"}
    settings = Settings.model_validate({"llm_api_key": "sk-one, sk-two", "llm_fallbacks": [fallback]})
    assert secrets_of(settings) >= {"sk-one", "sk-two", "sk-three"}
    assert "sk-three" not in repr(settings)


def test_the_variables_that_hold_secrets_are_named_and_no_others() -> None:
    environ = {
        "UPSTREAM_API_KEY": "sk-a",
        "LLM_BASE_URL": "https://a.test/v1",
        "LLM_MODEL": "m",
        "LLM_FALLBACKS": '[{"base_url": "https://b.test/v1", "api_key": "sk-b", "model": "b"}]',
        "TOOLS_MIRRORS": '{"a.test": "https://b.test"}',
        "ONEBOT_ACCESS_TOKEN": TOKEN,
    }
    settings, _ = load_settings(environ=environ, env_file=None)
    settings = settings.model_copy(update={"subagent_keys": {"MY_KEY": SecretStr("sk-c")}})
    names = secret_names(settings)
    assert names >= {"LLM_API_KEY", "UPSTREAM_API_KEY", "LLM_FALLBACKS", "ONEBOT_ACCESS_TOKEN", "STORE_URL", "MY_KEY"}
    assert names >= {"NAPCAT_WEBUI_TOKEN", "GRAFANA_PASSWORD"}
    assert names.isdisjoint({"LLM_MODEL", "LLM_BASE_URL", "TOOLS_MIRRORS", "a.test", "MODEL_NAME", "BOT_NAME"})
