from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from config.secrets import secrets_of
from config.settings import Settings


def test_every_secret_of_the_settings_is_found() -> None:
    planted: dict[str, Any] = {
        name: SecretStr(f"planted-{name}")
        for name, field in Settings.model_fields.items()
        if field.annotation is SecretStr and name != "store_url"
    }
    assert planted
    found = secrets_of(Settings(**planted))
    assert found >= {secret.get_secret_value() for secret in planted.values()}


@pytest.mark.parametrize(
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
