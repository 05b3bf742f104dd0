"""A ChatModel over other ChatModels: chooses whom to ask next, and counts each attempt.

A client makes one attempt and classifies its error. `ErrorReactions` has one action for each class,
and `PendingRequest` records what was tried. No class can loop: each form of a request is tried
once, an upstream fails a limited number of times, and all waits share one limit. Because a person
is waiting, an upstream that stalls is not asked again, and after a while none that failed is.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Protocol, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from frostagent.models.request_repairs import (
    calls_as_words,
    earlier_rounds,
    has_pictures,
    latest_round,
    pictures_of,
    question_in_words,
    with_call_error,
    without_pictures,
    without_vendor_fields,
)
from frostagent.models.upstreams import BLIND, ModelLine, RefusedBeginnings, Upstream
from frostagent.text.masking import Quoting, text_for_log
from frostagent.types.errors import (
    EMPTY_ANSWER,
    BadHistory,
    ContentFiltered,
    ContextOverflow,
    DaySpent,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
    ModelStalled,
    ModelTransport,
    ToolsUnsupported,
    ToolUseFailed,
)
from frostagent.types.messages import (
    Allowance,
    Attempt,
    Completion,
    FinishReason,
    Message,
    ModelRequest,
    TextDiscarded,
    Usage,
)
from frostagent.types.ports import Clock, Ids
from frostagent.words import changed, words_in_force

logger = logging.getLogger(__name__)

BRIEF = 1.5  # seconds worth waiting for an upstream although another is free
# seconds to wait for a healthy upstream if all free ones are unhealthy
LONG = 20.0

MOST_IN_VAIN = 3  # rejected requests in a row after which no other forms are tried

Change = Callable[[ModelRequest], ModelRequest | None]
"""Returns a request that may be accepted instead, or None."""


class RequestForm(Enum):
    """Forms to try after a model rejected a request; each omits more."""

    WITHOUT_THESE_PICTURES = auto()
    WITHOUT_PICTURES = auto()
    WITHOUT_OWN_FIELDS = auto()
    CALLS_IN_WORDS = auto()
    QUESTION_ALONE = auto()

    def change(self, request: ModelRequest) -> ModelRequest | None:
        """The request in this form; None if unchanged."""
        match self:
            case RequestForm.WITHOUT_THESE_PICTURES | RequestForm.WITHOUT_PICTURES:
                return without_pictures(request)
            case RequestForm.WITHOUT_OWN_FIELDS:
                return without_vendor_fields(request)
            case RequestForm.CALLS_IN_WORDS:
                return calls_as_words(request)
            case RequestForm.QUESTION_ALONE:
                return question_in_words(request)
            case _:
                assert_never(self)


class Route(Struct, frozen=True):
    """An upstream, a key, and the wait in seconds. `trusted` if both are healthy."""

    upstream: Upstream
    line: ModelLine
    wait: float
    trusted: bool

    def hear(self, upstream_said: float, line_said: float) -> None:
        """They answered: clear the waits that they had asked for."""
        self.upstream.hear(upstream_said)
        self.line.hear(line_said)


class PendingRequest(Struct):
    """One request in progress, and what was tried. `patience` limits all waits, in seconds.

    `began` is on the monotonic clock; `stalls` counts stalled upstreams. `too_long` has upstreams
    that need a shorter request. `current_forms` has the form for each upstream that rejected the
    request, `rejected` what each was sent before; other upstreams get the original. `doubted` has
    forms tried only because a server failed. `reported` has error texts already logged.
    """

    request: ModelRequest
    upstreams: Sequence[Upstream]
    patience: float = math.inf
    began: float = 0.0
    stalls: int = 0
    error: ModelError | None = None
    waited: float = 0.0
    failures: defaultdict[Upstream, int] = field(default_factory=lambda: defaultdict(int))
    closed: set[Upstream | ModelLine] = set()
    not_before: dict[Upstream | ModelLine, float] = {}
    too_long: set[Upstream] = set()
    times_changed: defaultdict[Change, int] = field(default_factory=lambda: defaultdict(int))
    spoilt: tuple[Message, ...] = ()
    current_forms: dict[Upstream, RequestForm] = {}
    doubted: dict[Upstream, RequestForm] = {}
    rejected: defaultdict[Upstream, list[ModelRequest]] = field(
        default_factory=lambda: defaultdict(list)
    )
    reported: set[str] = set()

    def change(self, change: Change, *, times: int = 1) -> bool:
        """Replace the request, at most `times` times; whether it changed."""
        changed = change(self.request) if self.times_changed[change] < times else None
        if changed is None or changed == self.request:
            return False
        self.times_changed[change] += 1
        self.request = changed
        return True

    def shorten(self, upstream: Upstream) -> bool:
        """Shorten the request for that upstream, once; whether that is possible."""
        shorter = upstream.shrink(self.request)
        if upstream in self.too_long or shorter is None or shorter == self.request:
            return False
        self.too_long.add(upstream)
        return True

    def try_next_form(
        self, upstream: Upstream, sent: ModelRequest, now: float, *forms: RequestForm
    ) -> bool:
        """Use the next of these forms that the upstream has not rejected; whether there is one. An
        upstream that rejects everything gets no more forms.
        """
        rejected, begun = self.rejected[upstream], self.current_forms.get(upstream)
        if begun is None and upstream.in_vain >= MOST_IN_VAIN:
            return False
        rejected.append(sent)
        for form in forms:
            if begun is not None and form.value <= begun.value:
                continue
            self.current_forms[upstream] = form
            if self.request_for(upstream, now) not in rejected:
                return True
        if begun is None:
            self.current_forms.pop(upstream, None)
        else:
            self.current_forms[upstream] = begun
            upstream.in_vain += 1
        return False

    def doubt(
        self, upstream: Upstream, sent: ModelRequest, now: float, *forms: RequestForm
    ) -> None:
        """Try the next form after a server error. The cause may be another one, so an answer does
        not prove that the form helped.
        """
        if self.try_next_form(upstream, sent, now, *forms):
            self.doubted[upstream] = self.current_forms[upstream]

    def remember(self, upstream: Upstream, now: float) -> RequestForm | None:
        """Record that the upstream answered, and in which form, so that later requests start with
        it. Returns the form, or None.
        """
        form, upstream.in_vain = self.current_forms.get(upstream), 0
        if form is None:
            self._clear_suspicions(upstream, now)
            return None
        if self.doubted.get(upstream) is form and not upstream.suspect(
            form.name, began=self.began, now=now
        ):
            return form
        match form:
            case RequestForm.WITHOUT_THESE_PICTURES:
                pictures = tuple(pictures_of(self.rejected[upstream][-1]))
                until = math.inf if len(pictures) == 1 else now + BLIND  # one of several is broken
                upstream.refused_pictures.add(pictures, until)
            case RequestForm.WITHOUT_PICTURES:
                upstream.refused_pictures.add_alike(pictures_of(self.rejected[upstream][-1]), now)
            case RequestForm.WITHOUT_OWN_FIELDS:
                upstream.refuse_own_fields(now)
            case RequestForm.CALLS_IN_WORDS:
                upstream.refuse_calls(now)
            case RequestForm.QUESTION_ALONE:
                self._remember_question(upstream, now)
            case _:
                assert_never(form)
        return form

    def _clear_suspicions(self, upstream: Upstream, now: float) -> None:
        """Clear suspected forms: the upstream accepted the request without them."""
        if upstream.suspected:
            taken = self.request_for(upstream, now)
            for form in RequestForm:
                if form.name in upstream.suspected and form.change(taken) is not None:
                    del upstream.suspected[form.name]

    def _remember_question(self, upstream: Upstream, now: float) -> None:
        """Remember that calls and pictures fail in general, unless the history may be the cause."""
        if earlier := earlier_rounds(self.request):
            upstream.refused_beginnings.add(earlier)
            return
        upstream.refuse_calls(now)
        if has_pictures(self.request):
            upstream.refused_pictures.add_alike(pictures_of(self.request), now)

    def clean(self) -> bool:
        """After a content filter: retry without pictures, then without earlier rounds."""
        if self.change(without_pictures):
            return True
        spoilt = earlier_rounds(self.request)
        if not self.change(latest_round):
            return False
        self.spoilt = spoilt
        return True

    def request_for(self, upstream: Upstream, now: float) -> ModelRequest:
        """The request in the form that upstream is known to accept."""
        shorter = upstream.shrink(self.request) if upstream in self.too_long else None
        request = upstream.fit(shorter or self.request, now)
        form = self.current_forms.get(upstream)
        return (form and form.change(request)) or request

    def choose(self, now: float) -> Route | None:
        """The first route that is free, else the one free soonest. Unhealthy ones come only if no
        healthy one is worth waiting for.
        """
        ways = [way for upstream in self.upstreams if (way := self._way(upstream, now))]
        if len(ways) < 2:
            return ways[0] if ways else None
        longest = min(LONG, self.patience - self.waited)
        ways = [way for way in ways if way.trusted and way.wait <= longest] or ways
        return next((way for way in ways if way.wait <= BRIEF), min(ways, key=lambda way: way.wait))

    def _way(self, upstream: Upstream, now: float) -> Route | None:
        lines = upstream.lines
        if self.closed:
            lines = (
                ()
                if upstream in self.closed
                else tuple(line for line in lines if line not in self.closed)
            )
        if not lines:
            return None
        line = lines[0]
        if len(lines) > 1:
            line = min(
                lines,
                key=lambda one: (not one.breaker.allows(now), self._ready(upstream, one, now)),
            )
        trusted = line.breaker.allows(now) and upstream.breaker.allows(now)
        return Route(upstream, line, self._ready(upstream, line, now) - now, trusted)

    def _ready(self, upstream: Upstream, line: ModelLine, now: float) -> float:
        """When they may be asked, in monotonic seconds."""
        ours = self.not_before
        return max(
            now, upstream.busy_until, line.busy_until, ours.get(upstream, now), ours.get(line, now)
        )


ATTEMPTS = 4  # failures of one upstream for one request
SLOW = 20.0  # seconds; an upstream that fails this slowly is retried last
LONG_ENOUGH = 150.0  # seconds since the question after which failed upstreams are not retried
STALLS = 3  # stalled upstreams for one request
# seconds; a longer wait is a wrong clock, or costs one refused request an hour
LONGEST_REST = 3600.0
SMALLEST_WINDOW = 1024  # tokens; a smaller number in a refusal is another limit
CALLED_AGAIN = 2  # retries for an unreadable tool call
BAD_PICTURE = "invalid_image"  # prefix of codes for a broken picture
KIND_OF_PICTURE = "image_kind"  # prefix of codes for an unsupported format or size
UNEXPLAINED = 500  # a status that some servers use for any error, even in the request
TRIED_AS_IT_IS = 2  # attempts before the request is changed for such a server
OF_PICTURES = re.compile(
    r"image|picture|vision|\bmedia|\bmime|multi-?modal|图片|图像|多模态|视觉", re.IGNORECASE
)
TOO_LARGE = 413

ANY_CAUSE = (RequestForm.WITHOUT_PICTURES, RequestForm.CALLS_IN_WORDS, RequestForm.QUESTION_ALONE)
HISTORY = (RequestForm.WITHOUT_OWN_FIELDS, RequestForm.CALLS_IN_WORDS, RequestForm.QUESTION_ALONE)

MAX_REASON = 200  # characters of an error shown to people


def no_owner(line: str) -> None:
    """Without an owner to alert, log the line."""
    logger.warning("%s", text_for_log(line))


class ErrorReactions:
    """Changes the request, or excludes upstreams from it. `tell` alerts the owner."""

    def __init__(
        self, *, clock: Clock, ids: Ids, tell: Callable[[str], None], attempts: int
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._tell = tell
        self._attempts = attempts

    def react(
        self,
        errand: PendingRequest,
        way: Route,
        error: ModelError,
        *,
        request: ModelRequest,
        seconds: float,
    ) -> None:
        """The action for each class of error (vendors.md section 7), else the next upstream."""
        upstream, line, now = way.upstream, way.line, self._clock.monotonic()
        going_on = True
        match error:
            case ModelAuth() | ModelBilling():
                line.breaker.fail(now)
                errand.closed.add(line)
                self._report(errand, way, error, words_in_force().key_refused)
            case ModelNotFound():
                upstream.breaker.fail(now, at_once=True)
                errand.closed.add(upstream)
                self._report(errand, way, error, words_in_force().model_not_found)
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
                if error.code == EMPTY_ANSWER:  # ask the next model first
                    errand.not_before[upstream] = max(errand.not_before[upstream], now + 2 * BRIEF)
                if isinstance(error, ModelOverloaded):
                    self._doubt_request(errand, upstream, request, error)
            case ContextOverflow():
                if error.limit and error.limit >= SMALLEST_WINDOW:
                    upstream.learn_window(error.limit, now)
                going_on = (
                    error.status == TOO_LARGE
                    and errand.try_next_form(upstream, request, now, RequestForm.WITHOUT_PICTURES)
                ) or errand.shorten(upstream)
            case ContentFiltered():
                if not errand.clean():
                    errand.closed.update(errand.upstreams)
            case ToolsUnsupported():
                upstream.refuse_tools(now)
                going_on = bool(request.tools) or errand.try_next_form(
                    upstream, request, now, RequestForm.CALLS_IN_WORDS
                )
            case ImagesUnsupported() if error.code.startswith(BAD_PICTURE):
                going_on = errand.try_next_form(
                    upstream, request, now, RequestForm.WITHOUT_THESE_PICTURES, *ANY_CAUSE[1:]
                )
            case ImagesUnsupported() if error.code.startswith(KIND_OF_PICTURE):
                going_on = errand.try_next_form(upstream, request, now, *ANY_CAUSE)
            case ImagesUnsupported() if has_pictures(request) and not request.about_pictures:
                upstream.refuse_pictures(now)
            case ImagesUnsupported():
                going_on = errand.try_next_form(upstream, request, now, *ANY_CAUSE[1:])
            case ToolUseFailed():
                going_on = errand.change(with_call_error, times=CALLED_AGAIN)
            case BadHistory():
                going_on = errand.try_next_form(upstream, request, now, *HISTORY)
            case ModelRejected() if error.status is not None and error.took is None:
                going_on = errand.try_next_form(upstream, request, now, *ANY_CAUSE)
            case _:
                going_on = False
        if not going_on:
            errand.closed.add(upstream)

    def _doubt_request(
        self,
        errand: PendingRequest,
        upstream: Upstream,
        request: ModelRequest,
        error: ModelOverloaded,
    ) -> None:
        """Some servers report an error of their own for a problem with the request."""
        now = self._clock.monotonic()
        if error.status in {None, UNEXPLAINED} and OF_PICTURES.search(str(error)):
            errand.try_next_form(upstream, request, now, RequestForm.WITHOUT_PICTURES)
        elif error.status == UNEXPLAINED and errand.failures[upstream] >= TRIED_AS_IT_IS:
            errand.doubt(upstream, request, now, *ANY_CAUSE[:2])

    def _postpone(
        self,
        errand: PendingRequest,
        upstream: Upstream,
        busy: Upstream | ModelLine,
        after: float | None,
    ) -> bool:
        """Retry later. False after too many failures, or too long."""
        errand.failures[upstream] += 1
        failures, now = errand.failures[upstream], self._clock.monotonic()
        errand.not_before[busy] = now + 2.0 ** (failures - 1) * (0.75 + self._ids.jitter() / 2)
        if after is not None:
            busy.busy_until = max(busy.busy_until, now + min(after, LONGEST_REST))
        return (
            failures < self._attempts + len(upstream.lines) - 1 and now - errand.began < LONG_ENOUGH
        )

    def _report(self, errand: PendingRequest, way: Route, error: ModelError, line: str) -> None:
        if errand.choose(self._clock.monotonic()) is None:
            return  # the error is raised, and its receiver alerts the owner
        name, number = way.upstream.name, way.upstream.lines.index(way.line) + 1
        reason = " ".join(str(error).split())[:MAX_REASON]
        told = line.format(name=name, number=number, kind=error.kind, reason=reason)
        self._tell(changed(told, Quoting))


PATIENCE = 60.0  # seconds; a longer requested wait is not honoured, because a person is waiting
ANSWER = 300  # tokens reserved for an answer


class UsageMeter(Protocol):
    """Counts requests and their usage for billing."""

    async def reserve(
        self, model: str, estimate: Callable[[], Usage], allowance: Allowance | None = None
    ) -> int:
        """Reserve a request's usage before it is sent. Returns the reservation's number, 0 for
        none. Raises DaySpent.
        """
        ...

    def release(self, number: int) -> None:
        """Cancel a reservation: the request used nothing."""
        ...

    def charge(self, model: str, usage: Usage, allowance: Allowance | None = None) -> None:
        """Charge for a request whose answer is discarded."""
        ...

    def count(self, attempt: Attempt) -> None:
        """Count a finished attempt."""
        ...


class Failover:
    """Asks upstreams in order until one answers. Any other end is one ModelError.

    Retry-After is honoured up to `patience` seconds over all waits of a request; otherwise waits
    are about 1, 2, 4 s. Answers are passed on whole, so retries repeat nothing.
    """

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        *,
        clock: Clock,
        ids: Ids,
        vision: Sequence[Upstream] = (),
        tell: Callable[[str], None] = no_owner,
        meter: UsageMeter | None = None,
        attempts: int = ATTEMPTS,
        patience: float = PATIENCE,
    ) -> None:
        """`vision` upstreams are asked for requests with pictures; if empty, the usual ones are.

        `tell` alerts the owner to problems only they can fix, if the request continues elsewhere;
        otherwise the raised error reports them. `meter` counts every attempt and its usage.
        """
        self._upstreams = tuple(upstreams)
        self._vision = tuple(vision)
        self._clock = clock
        self._reactions = ErrorReactions(clock=clock, ids=ids, tell=tell, attempts=attempts)
        self._meter = meter
        self._patience = patience
        self._spoilt = RefusedBeginnings()

    @property
    def name(self) -> str:
        """The name of the first upstream."""
        return self._upstreams[0].name

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """All upstreams, in order; those for pictures last."""
        return (*self._upstreams, *self._vision)

    def first(self, request: ModelRequest) -> Upstream:
        """The upstream that would be asked first."""
        return self._order(request)[0]

    def estimate(self, request: ModelRequest) -> tuple[str, Usage]:
        """The upstream that would be asked first, and the usage to reserve."""
        upstream = self.first(request)
        fitting = upstream.fit(request, self._clock.monotonic())
        return upstream.name, upstream.reading(fitting, answer=ANSWER)

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer with any upstream. Raises the last ModelError; DaySpent at once."""
        errand = PendingRequest(
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
            if errand.error is not None and request.on_delta is not None:
                request.on_delta(TextDiscarded())
            if completion := await self._ask(errand, way):
                return completion
        if errand.error is None:
            raise RuntimeError("there is nobody to ask")
        raise errand.error

    def _order(self, request: ModelRequest) -> tuple[Upstream, ...]:
        """The upstreams in order; those that gave an empty answer come last."""
        asked = self._vision if self._vision and has_pictures(request) else self._upstreams
        if not request.passed_over:
            return asked
        return tuple(sorted(asked, key=lambda upstream: upstream.name in request.passed_over))

    async def _wait(self, errand: PendingRequest, way: Route) -> bool:
        """Wait until the route is free; False if that is too long. The first try is made anyway."""
        if way.wait <= 0 or (errand.error is None and way.wait > self._patience):
            return True
        if errand.waited + way.wait > self._patience:
            return False
        errand.waited += way.wait
        logger.info("%s: asking in %.1f s", way.upstream.name, way.wait)
        await self._clock.sleep(way.wait)
        return True

    async def _ask(self, errand: PendingRequest, way: Route) -> Completion | None:
        """Make one attempt; None to try again."""
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
                # the vendor's text may repeat what users said
                logger.debug("%s: %s", upstream.name, words)
            errand.error = error
            seconds = self._clock.monotonic() - started
            self._reactions.react(errand, way, error, request=request, seconds=seconds)
            return None
        way.hear(*said)
        upstream.breaker.succeed()
        line.breaker.succeed()
        if completion.finish is FinishReason.CONTENT_FILTER and errand.clean():
            if completion.usage:  # the answer is discarded
                self._charge(upstream.name, completion.usage, request.allowance)
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

    async def _attempt(self, way: Route, request: ModelRequest) -> Completion:
        """The answer with its cost. The attempt is counted in any case."""
        upstream = way.upstream
        estimate = partial(upstream.reading, request, answer=ANSWER)
        meter, reserved = self._meter, 0
        if meter is not None:
            reserved = await meter.reserve(upstream.name, estimate, request.allowance)
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
                self._release(reserved)
            else:
                answer = 0 if isinstance(error, ModelStalled) else ANSWER
                usage = upstream.taken(error.took, request, answer=answer, reserved=reserved)
                if error.asked_twice:
                    usage = replace(usage + estimate(), reserved=reserved)
                self._charge(upstream.name, usage, request.allowance)
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
                self._release(reserved)
            seconds = self._clock.monotonic() - started
            if meter is not None:
                meter.count(Attempt(upstream.name, outcome, seconds, completion, status))

    def _break_off(self, way: Route, request: ModelRequest, reserved: int) -> None:
        """Count an attempt that was aborted from outside, unless the caller does."""
        name, usage = way.upstream.name, way.upstream.reading(request, reserved=reserved)
        if request.allowance is None or not request.allowance.record_broken_off(name, usage):
            self._charge(name, usage)

    def _release(self, number: int) -> None:
        if number and self._meter is not None:
            self._meter.release(number)

    def _charge(self, name: str, usage: Usage, allowance: Allowance | None = None) -> None:
        if self._meter is not None:
            self._meter.charge(name, usage, allowance)

    # --- history that a vendor refuses ------------------------------------------------------------

    def _remember(self, errand: PendingRequest, completion: Completion) -> None:
        """From now on, omit the rounds that the filter refused, to avoid asking twice."""
        if errand.spoilt and completion.finish is not FinishReason.CONTENT_FILTER:
            logger.warning(
                "%s: %d messages are left out, a content filter refuses them",
                self.name,
                len(errand.spoilt),
            )
            self._spoilt.add(errand.spoilt)
