"""The second tier: what needs a process, a browser or an engine (`make check`). A cluster is made in one place."""

from __future__ import annotations

from tests.adapters.storage.conftest import postgres, schemas, sqlite, url
from tests.system.cluster.cluster import cluster, rabbit, store_url, unconnected

__all__ = ("cluster", "postgres", "rabbit", "schemas", "sqlite", "store_url", "unconnected", "url")
