"""One measurement of one subject: start, idle, one message at a time, then many groups at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.bench.driver import Driver, driving
from tests.bench.subject import Running, Subject, running


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much is asked.

    `calm` is how many seconds after the connection a bot counts as idle, `seconds` the time of the closed loop over all
    `groups`.
    """

    calm: float = 0.3
    warm_up: int = 30
    messages: int = 200
    groups: int = 200
    seconds: float = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of it: latencies in ms, messages per second, ms of processor for a message, MiB, seconds.

    The model answers at once, so a latency is what the bot adds and the wires take; on a busy machine the tenth
    percentile says most. `beside` is what another process took for a message, in ms of processor.
    """

    p10: float
    p50: float
    p95: float
    p99: float
    rate: float
    cpu: float
    idle: float
    peak: float
    start: float
    beside: float = 0.0


def nobody() -> float:
    """Nothing works beside the subject."""
    return 0.0


async def measure(
    subject: Subject, load: Load, *, model: str, cores: Sequence[int], beside: Callable[[], float] = nobody
) -> Figures:
    """Start the subject, load it, end it. `beside` is the processor time that another process has used so far."""
    started = time.perf_counter()
    async with running(subject, model=model, cores=cores) as bot, driving(bot.url) as driver:
        start = time.perf_counter() - started
        await asyncio.sleep(load.calm)
        idle = bot.memory()
        for number in range(load.warm_up):
            await driver.ask(number % load.groups)
        latencies = sorted([await driver.ask(number % load.groups) for number in range(load.messages)])
        used = beside()
        rate, cpu, answered = await saturate(bot, driver, load)
        return Figures(
            p10=percentile(latencies, 10) * 1000,
            p50=percentile(latencies, 50) * 1000,
            p95=percentile(latencies, 95) * 1000,
            p99=percentile(latencies, 99) * 1000,
            rate=rate,
            cpu=cpu * 1000,
            idle=idle,
            peak=bot.peak(),
            start=start,
            beside=1000 * (beside() - used) / answered,
        )


async def saturate(bot: Running, driver: Driver, load: Load) -> tuple[float, float, int]:
    """Ask in every group, one question at a time in each; messages per second, seconds of processor for one, and how
    many there were.
    """
    began, used = time.perf_counter(), bot.cpu()
    answered = 0

    async def talk(group: int) -> None:
        nonlocal answered
        while True:
            await driver.ask(group)
            answered += 1
            if time.perf_counter() - began >= load.seconds:
                return

    async with asyncio.TaskGroup() as talks:
        for group in range(load.groups):
            talks.create_task(talk(group))
    return answered / (time.perf_counter() - began), (bot.cpu() - used) / answered, answered


def percentile(ordered: Sequence[float], rank: int) -> float:
    """The value that so many of a hundred do not exceed."""
    return ordered[max(0, -(-len(ordered) * rank // 100) - 1)]
