"""STORE_URL in all its forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.storage import url as module
from adapters.storage.url import file_of, place_of, read_url
from frostagent.types.errors import ConfigError
from tests.cases import each_case


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read_url(text)
    (problem,) = caught.value.problems
    assert problem.name == "STORE_URL"
    return str(problem)


@each_case("text", ["sqlite+aiosqlite:///data/frost.db", "sqlite:///data/frost.db", " sqlite:///data/frost.db\n"])
def test_every_form_of_an_sqlite_url_is_the_same_file(text: str) -> None:
    url = read_url(text)
    assert url.drivername == "sqlite+pysqlite"
    assert file_of(url) == Path("data/frost.db")
    assert place_of(url) == "data/frost.db"


def test_four_slashes_are_an_absolute_path() -> None:
    assert file_of(read_url("sqlite:////var/lib/霜降/frost.db")) == Path("/var/lib/霜降/frost.db")


@each_case("scheme", ["postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg", "postgresql+psycopg2"])
def test_every_form_of_a_postgresql_url_goes_through_psycopg(scheme: str) -> None:
    url = read_url(f"{scheme}://bot:sesame@db.test:5433/frost?sslmode=require")
    assert url.drivername == "postgresql+psycopg"
    assert (url.username, url.password, url.host, url.port, url.database) == ("bot", "sesame", "db.test", 5433, "frost")
    assert url.query == {"sslmode": "require"}
    assert file_of(url) is None
    assert place_of(url) == "PostgreSQL, frost at db.test"


def test_a_server_without_a_host_or_a_database_is_named_as_well_as_can_be() -> None:
    assert place_of(read_url("postgresql://bot@/")) == "PostgreSQL, bot at this machine"
    assert place_of(read_url("postgresql://")) == "PostgreSQL, postgres at this machine"


@each_case(
    ("text", "what"),
    [
        ("data/frost.db", "is not the URL of a database"),
        ("postgresql://db:port/frost", "is not the URL of a database"),
        ("mysql://u:sesame@db/frost", "names mysql, which is not supported"),
        ("sqlite://data/frost.db", "has two slashes"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///file:frost.db?mode=ro&uri=true", "names no file"),
    ],
)
def test_what_cannot_be_used_is_refused_without_repeating_it(text: str, what: str) -> None:
    told = refusal(text)
    assert what in told
    assert "sqlite+aiosqlite:///data/frostagent.db" in told
    assert "sesame" not in told


def test_a_missing_driver_is_told_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _name: None)
    said = refusal("postgresql://db/frost")
    assert "pip install -r requirements-postgres.txt" in said
    assert "EXTRAS=postgres into .env, then: docker compose up -d --build" in said
