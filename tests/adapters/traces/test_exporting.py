from __future__ import annotations

import logging
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from adapters.traces.exporting import GROUP, exporting, find_exporter
from tests.cases import each_case

ROOT = Path(__file__).parents[3]
CONSOLE = {"OTEL_TRACES_EXPORTER": "console"}


SCRIPT = """
import asyncio
from adapters.traces.exporting import exporting
from adapters.traces.spans import TurnSpans
from tests.cases import each_case
from tests.adapters.traces.scene import run_scene
from tests.fakes import ManualClock

async def main():
    observer = TurnSpans(clock=ManualClock())
    async with exporting({"OTEL_TRACES_EXPORTER": "console"}):
        await run_scene(observer)

asyncio.run(main())
"""


@pytest.mark.system
def test_spans_go_where_the_environment_says() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert b'"name": "tool.execute"' in done.stdout
    assert b'"service.name": "frostagent"' in done.stdout


@each_case("environ", [{"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true", **CONSOLE}])
async def test_no_spans_are_sent_where_nobody_wants_them(environ: dict[str, str]) -> None:
    announced: list[TracerProvider] = []
    async with exporting(environ, announce=announced.append):
        assert announced == []


async def test_the_operators_name_for_the_service_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    announced: list[TracerProvider] = []
    environ = CONSOLE | {"OTEL_RESOURCE_ATTRIBUTES": "service.name=my-bot"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    async with exporting(environ, announce=announced.append):
        assert announced[0].resource.attributes["service.name"] == "my-bot"


async def test_an_exporter_that_is_not_installed_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with exporting({"OTEL_TRACES_EXPORTER": "pigeon"}):
            pass
    assert 'the exporter pigeon is not installed, so no spans are sent; install the extra: pip install "frostagent' in (
        caplog.text
    )


def test_otlp_is_the_default_and_means_the_one_over_http() -> None:
    if entry_points(group=GROUP, name="otlp_proto_http"):
        exporter = find_exporter({})
        assert exporter is not None
        exporter.shutdown()
    else:
        with pytest.raises(LookupError, match="the exporter otlp is not installed"):
            find_exporter({})
