"""A ChatModel over ChatModels: what is done about each class of error, and who is asked next.

An adapter's client makes one attempt and classifies; each class has its one action here, in
`Failover._react`. No class can loop: a change of the request is made once, an upstream fails only
so often, and all waits share one patience. Somebody in a chat hears nothing meanwhile: whoever
stalls is not asked again, and after a while nobody who failed is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from cachetools import LRUCache
from msgspec.structs import replace

from bot.domain.chat import Completion, FinishReason, ModelRequest
from bot.domain.errors import (
    BadHistory,
    ContentFiltered,
    ContextOverflow,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelStalled,
    ModelTransport,
    ToolsUnsupported,
    ToolUseFailed,
)
from bot.domain.masking import Quoting, for_the_log
from bot.domain.ports import Clock, Ids
from bot.models.attempts import Errand, Way
from bot.models.upstreams import Line, Upstream
from bot.policy.repairs import (
    asking_again,
    beginning_with,
    dropping,
    earlier_rounds,
    has_pictures,
    latest_round,
    plain,
    without_pictures,
)

logger = logging.getLogger(__name__)

ATTEMPTS = 4  # failures of one upstream, for one request
PATIENCE = 60.0  # seconds; a vendor that asks for more is not waited for: a person is
SLOW = 20.0  # seconds; who fails after that is not asked again while there is another
LONG_ENOUGH = 150.0  # seconds from the question on; whoever has failed is not asked again then
STALLS = 3  # upstreams, for one request, that are waited for in vain
LONGEST_REST = 3600.0  # seconds; who asks for more has a clock of its own, or will be asked in vain once an hour
SMALLEST_WINDOW = 1024  # tokens; a smaller number in a refusal is the limit of something else
CALLED_AGAIN = 2  # times that a model may repeat a tool call that could not be read
BAD_PICTURE = "invalid_image"  # codes that begin so mean that picture, not pictures
SPOILT = 32  # beginnings of transcripts that are known to be refused

KEY_REFUSED = "模型 {name} 的第 {number} 个密钥不能用了，已改用其他密钥或备用模型，请检查密钥和余额 ({kind}: {reason})"
NOT_FOUND = (
    "模型 {name} 不存在或未开通，已改用备用模型，请检查模型名称和接口地址 ({kind}: {reason})"
)
MAX_REASON = 200  # characters of an error that somebody reads on a phone


def nobody(text: str) -> None:
    """There is no owner to tell, so the log has to do."""
    logger.warning("%s", for_the_log(text))


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
        tell: Callable[[str], None] = nobody,
        attempts: int = ATTEMPTS,
        patience: float = PATIENCE,
    ) -> None:
        """`vision` are asked, in order, where the request has pictures; empty: the same as for any
        other.

        `tell` reaches the owner: what only they can mend, where the request could go on by another
        way; else the error that gets out tells it.
        """
        self._upstreams = tuple(upstreams)
        self._vision = tuple(vision)
        self._clock = clock
        self._ids = ids
        self._tell = tell
        self._attempts = attempts
        self._patience = patience
        self._spoilt: LRUCache[int, int] = LRUCache(SPOILT)

    @property
    def name(self) -> str:
        """Whom it asks first."""
        return self._upstreams[0].name

    def first(self, request: ModelRequest) -> Upstream:
        """Who would be asked first."""
        return self._order(request)[0]

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer, whoever does. Raises the last ModelError."""
        errand = Errand(
            self._without_spoilt(request),
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
        return self._vision if self._vision and has_pictures(request) else self._upstreams

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
            with upstream.breaker.asking(), line.breaker.asking():
                completion = await line.model.complete(request)
        except ModelError as error:
            way.hear(*said)
            logger.info(
                "%s: %s (status %s, code %s)",
                upstream.name,
                error.kind,
                error.status,
                error.code or "-",
            )
            logger.debug(
                "%s: %s", upstream.name, error
            )  # the vendor's words, who may repeat what people said
            errand.error = error
            self._react(
                errand, way, error, request=request, seconds=self._clock.monotonic() - started
            )
            return None
        way.hear(*said)
        upstream.breaker.succeed()
        line.breaker.succeed()
        upstream.learn(request, completion)
        if completion.finish is FinishReason.CONTENT_FILTER and self._clean(errand):
            errand.error = ContentFiltered(completion.refusal or "the vendor filtered the answer")
            return None
        self._remember(errand, completion)
        if upstream is not errand.upstreams[0]:
            logger.info("%s answered instead of %s", upstream.name, errand.upstreams[0].name)
        return (
            completion
            if completion.endpoint == upstream.name
            else replace(completion, endpoint=upstream.name)
        )

    # --- what is done about what -----------------------------------------------------------------------

    def _react(
        self, errand: Errand, way: Way, error: ModelError, *, request: ModelRequest, seconds: float
    ) -> None:
        """The one action of each class (vendors.md section 7); where it leaves nothing to be done,
        the next upstream.
        """
        upstream, line, now = way.upstream, way.line, self._clock.monotonic()
        going_on = True
        match error:
            case ModelAuth() | ModelBilling():
                line.breaker.fail(now)
                errand.closed.add(line)
                self._report(errand, way, error, KEY_REFUSED)
            case ModelNotFound():
                upstream.breaker.fail(now, at_once=True)
                errand.closed.add(upstream)
                self._report(errand, way, error, NOT_FOUND)
            case ModelRateLimited():
                going_on = self._postpone(errand, upstream, line, error.retry_after)
            case ModelStalled():
                upstream.breaker.fail(now, at_once=True)
                going_on = False
                errand.stalls += 1
                if errand.stalls >= STALLS:
                    errand.closed.update(errand.upstreams)
            case ModelOverloaded() | ModelTransport():
                upstream.breaker.fail(now, at_once=seconds >= SLOW)
                after = error.retry_after if isinstance(error, ModelOverloaded) else None
                going_on = self._postpone(errand, upstream, upstream, after)
            case ContextOverflow():
                if error.limit and error.limit >= SMALLEST_WINDOW:
                    upstream.learn_window(error.limit, now)
                going_on = errand.shorten(upstream)
            case ContentFiltered():
                if not self._clean(errand):
                    errand.closed.update(errand.upstreams)
            case ToolsUnsupported():
                upstream.refuse_tools(now)
                going_on = bool(request.tools)
            case ImagesUnsupported() if error.code.startswith(BAD_PICTURE):
                going_on = errand.change(without_pictures)
            case ImagesUnsupported():
                upstream.refuse_pictures(now)
                going_on = has_pictures(request)
            case ToolUseFailed():
                going_on = errand.change(asking_again, times=CALLED_AGAIN)
            case BadHistory():
                going_on = errand.change(plain) or errand.change(latest_round)
            case _:
                going_on = False
        if not going_on:
            errand.closed.add(upstream)

    def _postpone(
        self, errand: Errand, upstream: Upstream, busy: Upstream | Line, after: float | None
    ) -> bool:
        """Come back later; False where that was done often or long enough."""
        errand.failures[upstream] += 1
        failures, now = errand.failures[upstream], self._clock.monotonic()
        errand.not_before[busy] = now + 2.0 ** (failures - 1) * (0.75 + self._ids.jitter() / 2)
        if after is not None:
            busy.busy_until = max(busy.busy_until, now + min(after, LONGEST_REST))
        return (
            failures < self._attempts + len(upstream.lines) - 1 and now - errand.began < LONG_ENOUGH
        )

    def _clean(self, errand: Errand) -> bool:
        """After a content filter: once without pictures, then once without the earlier rounds."""
        if errand.change(without_pictures):
            return True
        spoilt = earlier_rounds(errand.request)
        if not errand.change(latest_round):
            return False
        errand.spoilt = spoilt
        return True

    def _report(self, errand: Errand, way: Way, error: ModelError, line: str) -> None:
        if errand.choose(self._clock.monotonic()) is None:
            return  # the error gets out, and whoever gets it tells the owner
        name, number = way.upstream.name, way.upstream.lines.index(way.line) + 1
        reason = str(error)[:MAX_REASON]
        self._tell(Quoting(line.format(name=name, number=number, kind=error.kind, reason=reason)))

    # --- beginnings that a vendor refuses --------------------------------------------------------------

    def _remember(self, errand: Errand, completion: Completion) -> None:
        """What was left out is what the filter refused: it is left out from now on, else each step
        is asked twice.
        """
        if errand.spoilt and completion.finish is not FinishReason.CONTENT_FILTER:
            logger.warning(
                "%s: %d messages are left out, a content filter refuses them",
                self.name,
                len(errand.spoilt),
            )
            self._spoilt[hash(errand.spoilt)] = len(errand.spoilt)

    def _without_spoilt(self, request: ModelRequest) -> ModelRequest:
        if not self._spoilt:
            return request
        for beginning in beginning_with(request, sorted(set(self._spoilt.values()), reverse=True)):
            if hash(beginning) in self._spoilt:
                return dropping(request, beginning)
        return request
