"""What the recorded conversations need is what the tests of the model client have; a cluster is made in one place."""

from __future__ import annotations

from tests.adapters.openai.conftest import session, sessions, vendor
from tests.adapters.storage.conftest import postgres, schemas, sqlite, url
from tests.e2e.cluster import cluster, rabbit, store_url, unconnected

__all__ = (
    "cluster",
    "postgres",
    "rabbit",
    "schemas",
    "session",
    "sessions",
    "sqlite",
    "store_url",
    "unconnected",
    "url",
    "vendor",
)
