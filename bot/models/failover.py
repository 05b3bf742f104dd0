"""A ChatModel over ChatModels: who is asked next, and what each attempt cost.

An adapter's client makes one attempt and classifies; each class has its one action in
`bot/models/reactions.py`. No class can loop: each form of the request is tried once, an upstream
fails only so often, and all waits share one patience. Somebody in a chat hears nothing meanwhile:
whoever stalls is not asked again, and after a while nobody who failed is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from bot.domain.chat import Attempt, Completion, FinishReason, ModelRequest, Usage
from bot.domain.errors import (
    ContentFiltered,
    DaySpent,
    ModelError,
    ModelStalled,
)
from bot.domain.ports import Clock, Ids
from bot.domain.tongue import Tell
from bot.models.attempts import Errand, Way
from bot.models.meter import Meter
from bot.models.reactions import ATTEMPTS, Reactions, nobody
from bot.models.upstreams import RefusedBeginnings, Upstream
from bot.policy.repairs import has_pictures

logger = logging.getLogger(__name__)

PATIENCE = 60.0  # seconds; a vendor that asks for more is not waited for: a person is
ANSWER = 300  # tokens; what is reserved for an answer


class Failover:
    """Asks upstreams in order until one answers; every other end is one ModelError.

    Retry-After is honoured up to `patience` seconds, counted over all waits of one request; without
    it the waits are about 1, 2, 4 s, and with it no shorter. An answer is only handed on whole, so
    asking again never repeats anything said.
    """

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        *,
        clock: Clock,
        ids: Ids,
        vision: Sequence[Upstream] = (),
        tell: Tell = nobody,
        meter: Meter | None = None,
        attempts: int = ATTEMPTS,
        patience: float = PATIENCE,
    ) -> None:
        """`vision` are asked, in order, where the request has pictures; empty: the same as for any
        other.

        `tell` reaches the owner: what only they can mend, where the request could go on by another
        way; else the error that gets out tells it. `meter` counts every attempt, and what it took.
        """
        self._upstreams = tuple(upstreams)
        self._vision = tuple(vision)
        self._clock = clock
        self._reactions = Reactions(clock=clock, ids=ids, tell=tell, attempts=attempts)
        self._meter = meter or Meter(None, clock=clock, ids=ids)
        self._patience = patience
        self._spoilt = RefusedBeginnings()

    @property
    def name(self) -> str:
        """Whom it asks first."""
        return self._upstreams[0].name

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """All it asks, in order; those for pictures last."""
        return (*self._upstreams, *self._vision)

    def first(self, request: ModelRequest) -> Upstream:
        """Who would be asked first."""
        return self._order(request)[0]

    def estimate(self, request: ModelRequest) -> tuple[str, Usage]:
        """Who would be asked first, and what is reserved for that."""
        upstream = self.first(request)
        fitting = upstream.fit(request, self._clock.monotonic())
        return upstream.name, upstream.reading(fitting, answer=ANSWER)

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer, whoever does. Raises the last ModelError; DaySpent at once."""
        errand = Errand(
            self._spoilt.left_out_of(request),
            self._order(request),
            patience=self._patience,
            began=self._clock.monotonic(),
        )
        while way := errand.choose(self._clock.monotonic()):
            if errand.error is not None and not request.may_be_made_again():
                break
            if not await self._wait(errand, way):
                break
            if completion := await self._ask(errand, way):
                return completion
        if errand.error is None:
            raise RuntimeError("there is nobody to ask")
        raise errand.error

    def _order(self, request: ModelRequest) -> tuple[Upstream, ...]:
        """Whom to ask; last of all those whose answer to this was empty."""
        asked = self._vision if self._vision and has_pictures(request) else self._upstreams
        if not request.passed_over:
            return asked
        return tuple(sorted(asked, key=lambda upstream: upstream.name in request.passed_over))

    async def _wait(self, errand: Errand, way: Way) -> bool:
        """Wait until that way is open; False where that would be too long. Nobody is refused
        without being tried.
        """
        if way.wait <= 0 or (errand.error is None and way.wait > self._patience):
            return True
        if errand.waited + way.wait > self._patience:
            return False
        errand.waited += way.wait
        logger.info("%s: asking in %.1f s", way.upstream.name, way.wait)
        await self._clock.sleep(way.wait)
        return True

    async def _ask(self, errand: Errand, way: Way) -> Completion | None:
        """One attempt; None where there is to be another."""
        upstream, line = way.upstream, way.line
        started = self._clock.monotonic()
        request = errand.request_for(upstream, started)
        said = upstream.busy_until, line.busy_until
        try:
            completion = await self._attempt(way, request)
        except DaySpent:
            raise
        except ModelError as error:
            way.hear(*said)
            logger.info(
                "%s: %s (status %s, code %s)",
                upstream.name,
                error.kind,
                error.status,
                error.code or "-",
            )
            if (words := str(error)) not in errand.reported:
                errand.reported.add(words)
                # the vendor's words, who may repeat what people said
                logger.debug("%s: %s", upstream.name, words)
            errand.error = error
            seconds = self._clock.monotonic() - started
            self._reactions.react(errand, way, error, request=request, seconds=seconds)
            return None
        way.hear(*said)
        upstream.breaker.succeed()
        line.breaker.succeed()
        if completion.finish is FinishReason.CONTENT_FILTER and errand.clean():
            if completion.usage:  # nobody gets it
                self._meter.charge(upstream.name, completion.usage, request.allowance)
            errand.error = ContentFiltered(completion.refusal or "the vendor filtered the answer")
            return None
        self._remember(errand, completion)
        if form := errand.remember(upstream, self._clock.monotonic()):
            name = form.name.lower().replace("_", " ")
            logger.warning("%s takes the request in another form: %s", upstream.name, name)
        if upstream is not errand.upstreams[0]:
            logger.info("%s answered instead of %s", upstream.name, errand.upstreams[0].name)
        return (
            completion
            if completion.endpoint == upstream.name
            else replace(completion, endpoint=upstream.name)
        )

    async def _attempt(self, way: Way, request: ModelRequest) -> Completion:
        """The answer, with what it cost; it is counted, whatever comes of it."""
        upstream = way.upstream
        estimate = partial(upstream.reading, request, answer=ANSWER)
        reserved = await self._meter.reserve(upstream.name, estimate, request.allowance)
        started, outcome, status = self._clock.monotonic(), "crashed", 0
        completion: Completion | None = None
        try:
            with upstream.breaker.asking(), way.line.breaker.asking():
                said = await way.line.model.complete(request)
            upstream.learn(request, said)
            completion = upstream.counted(request, said, reserved=reserved)
        except ModelError as error:
            outcome, status = error.kind, error.status or 0
            if error.took is None:
                self._meter.release(reserved)
            else:
                answer = 0 if isinstance(error, ModelStalled) else ANSWER
                usage = upstream.taken(error.took, request, answer=answer, reserved=reserved)
                if error.asked_twice:
                    usage = replace(usage + estimate(), reserved=reserved)
                self._meter.charge(upstream.name, usage, request.allowance)
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            self._break_off(way, request, reserved)
            raise
        else:
            outcome = "ok"
            return completion
        finally:
            if outcome == "crashed":
                self._meter.release(reserved)
            seconds = self._clock.monotonic() - started
            self._meter.count(Attempt(upstream.name, outcome, seconds, completion, status))

    def _break_off(self, way: Way, request: ModelRequest, reserved: int) -> None:
        """Count an attempt that somebody broke off, who may do that himself."""
        name, usage = way.upstream.name, way.upstream.reading(request, reserved=reserved)
        if request.allowance is None or not request.allowance.broke_off(name, usage):
            self._meter.charge(name, usage)

    # --- beginnings that a vendor refuses ---------------------------------------------------------

    def _remember(self, errand: Errand, completion: Completion) -> None:
        """Note the rounds that the filter refused: they are left out from now on, else each step
        is asked twice.
        """
        if errand.spoilt and completion.finish is not FinishReason.CONTENT_FILTER:
            logger.warning(
                "%s: %d messages are left out, a content filter refuses them",
                self.name,
                len(errand.spoilt),
            )
            self._spoilt.add(errand.spoilt)
