"""The bot over HTTP: health (/healthz), readiness (/readyz), and metrics (/metrics)."""
