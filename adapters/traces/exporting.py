"""Exports spans as configured by the OTEL_ variables of the environment. Needs the extra `otel`;
import it only then.

OTEL_TRACES_EXPORTER is `otlp` (the default), `console` or `none`. The exporter itself reads
OTEL_EXPORTER_OTLP_ENDPOINT and its relatives for the destination, and OTEL_SERVICE_NAME for our
name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import entry_points

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import set_tracer_provider

from frostagent.cancellation import last_moments

logger = logging.getLogger(__name__)

GROUP = "opentelemetry_traces_exporter"
SHORT = {"otlp": "otlp_proto_http"}
LAST_SPANS = 2.0  # seconds at the end to send the remaining spans


def find_exporter(environ: Mapping[str, str]) -> SpanExporter | None:
    """Return the wanted exporter of spans, or None. Raises LookupError if not installed."""
    wanted = environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if wanted == "none" or environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    name = SHORT.get(wanted, wanted)
    for entry in entry_points(group=GROUP, name=name):
        exporter: SpanExporter = entry.load()()
        return exporter
    raise LookupError(f"the exporter {wanted} is not installed")


@asynccontextmanager
async def exporting(
    environ: Mapping[str, str], *, announce: Callable[[TracerProvider], None] = set_tracer_provider
) -> AsyncIterator[None]:
    """Export spans while the block runs; `announce` makes the provider known to all tracers.

    If spans are wanted but cannot be sent, that is logged.
    """
    try:
        exporter = find_exporter(environ)
    except LookupError as error:
        logger.warning(
            'OTEL_: %s, so no spans are sent; install the extra: pip install "frostagent[otel]"',
            error,
        )
        exporter = None
    if exporter is None:
        yield
        return
    named = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = Resource.create(None if named else {"service.name": "frostagent"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    announce(provider)
    try:
        yield
    finally:
        with suppress(TimeoutError):
            async with last_moments(LAST_SPANS):
                await asyncio.to_thread(provider.shutdown)
