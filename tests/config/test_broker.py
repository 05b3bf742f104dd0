"""BROKER_URL and what goes with it."""

from __future__ import annotations

import pytest

from config import checks
from config.loading import is_configured, load_settings
from config.settings import Settings
from frostagent.types.errors import ConfigError
from tests.cases import each_case

MODEL = {"LLM_BASE_URL": "https://api.deepseek.com/v1", "LLM_MODEL": "deepseek-chat"}
SOCKETS = {"ONEBOT_ACCESS_TOKEN": "sesame-open-sesame-sesame"}
BROKER = {"BROKER_URL": "amqp://bot:sesame@queue/"}
STORE = {"STORE_URL": "postgresql://bot:sesame@db/frost"}


def load(**environ: str) -> Settings:
    return load_settings(environ=environ, env_file=None)[0]


def problems(**environ: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as refused:
        load(**environ)
    return {problem.name: f"{problem.what}. {problem.fix}" for problem in refused.value.problems}


def test_without_a_broker_there_is_one_process() -> None:
    settings = load(**MODEL, **SOCKETS)
    assert (settings.has_broker, settings.bot_role, settings.broker_partitions) == (False, "all", 1)


@each_case("url", ["http://queue/", "queue", "amqp://", "amqp://[", "amqp:queue"])
def test_what_is_no_rabbitmq_is_refused_and_not_shown(url: str) -> None:
    told = problems(**MODEL, **SOCKETS, **STORE, BROKER_URL=url)
    assert told == {"BROKER_URL": "is not the URL of a RabbitMQ. Write it as amqp://user:password@host/"}


@each_case("url", ["amqp://queue", "amqps://a:b@queue:5671/house?heartbeat=3"])
def test_what_is_one_is_taken(url: str) -> None:
    settings = load(**MODEL, **SOCKETS, **STORE, BROKER_URL=url)
    assert settings.has_broker
    assert settings.broker_url.get_secret_value() == url


@each_case("role", ["gateway", "worker"])
def test_a_part_of_a_cluster_needs_a_broker(role: str) -> None:
    told = problems(**MODEL, **SOCKETS, BOT_ROLE=role)
    assert told["BROKER_URL"].startswith(f"is not set, but BOT_ROLE={role} is a part of a cluster")


def test_a_role_that_there_is_not_is_refused() -> None:
    assert "Write one of: all, gateway, worker" in problems(**MODEL, **SOCKETS, BOT_ROLE="boss")["BOT_ROLE"]


@each_case("role", ["all", "worker"])
def test_who_works_needs_a_database_that_others_reach(role: str) -> None:
    told = problems(**MODEL, **SOCKETS, **BROKER, BOT_ROLE=role)
    assert told.keys() == {"STORE_URL"}
    assert "Name a PostgreSQL database" in told["STORE_URL"]
    assert load(**MODEL, **SOCKETS, **BROKER, **STORE, BOT_ROLE=role).bot_role == role


def test_a_gateway_needs_neither_model_nor_database_but_a_token() -> None:
    assert load(**SOCKETS, **BROKER, BOT_ROLE="gateway").bot_role == "gateway"
    assert problems(**BROKER, BOT_ROLE="gateway").keys() == {"ONEBOT_ACCESS_TOKEN"}


def test_of_a_gateway_whose_broker_is_written_wrongly_only_that_is_told() -> None:
    assert problems(**SOCKETS, BROKER_URL="queue:5672", BOT_ROLE="gateway").keys() == {"BROKER_URL"}


def test_a_worker_is_not_warned_of_sockets_that_it_does_not_have() -> None:
    environ = MODEL | BROKER | STORE | {"ONEBOT_ACCESS_TOKEN": "shortest"}
    warned = {
        role: [problem.name for problem in load_settings(environ=environ | {"BOT_ROLE": role}, env_file=None)[1]]
        for role in ("all", "worker")
    }
    assert warned == {"all": ["ONEBOT_ACCESS_TOKEN"], "worker": []}


def test_a_role_alone_is_a_configuration() -> None:
    assert is_configured({"BOT_ROLE": "worker"}, None)
    assert is_configured({"BROKER_URL": "amqp://queue/"}, None)


def test_a_worker_needs_no_token_of_sockets_but_a_model() -> None:
    assert load(**MODEL, **BROKER, **STORE, BOT_ROLE="worker").bot_role == "worker"
    assert problems(**BROKER, **STORE, BOT_ROLE="worker").keys() == {"LLM_BASE_URL", "LLM_MODEL"}


def test_where_the_library_is_missing_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda _: None)
    told = problems(**MODEL, **SOCKETS, **BROKER, **STORE)
    assert "requirements-broker.txt" in told["BROKER_URL"]
