"""A real RabbitMQ and a real PostgreSQL, where a check looks at both."""

from __future__ import annotations

from tests.adapters.broker.conftest import broker, node, rabbit_url
from tests.adapters.storage.conftest import postgres, schemas

__all__ = ["broker", "node", "postgres", "rabbit_url", "schemas"]
