"""The state of one model at one host, with one or more keys: its health and its limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from cachetools import LRUCache
from msgspec.structs import replace

from frostagent.models import compaction
from frostagent.models.prices import Price
from frostagent.models.request_repairs import (
    calls_as_words,
    request_beginnings,
    without_messages,
    without_pictures,
    without_vendor_fields,
)
from frostagent.models.tokens import Scale, estimate, estimate_answer
from frostagent.types.messages import Completion, Message, ModelRequest, Usage
from frostagent.types.ports import ChatModel

NOTHING_TO_TRY = nullcontext()


@dataclass(slots=True, kw_only=True)
class Breaker:
    """A circuit breaker: opens after `threshold` failures in a row, then lets one probe through.

    `rest` is in seconds and doubles with each opening in a row, up to `longest`. Times are
    monotonic. Requests run within `asking`, followed by `succeed` or `fail` if the outcome is
    conclusive. While it is not closed, all requests are probes, even those without an alternative.
    """

    threshold: int = 3
    rest: float = 30.0
    longest: float = 600.0
    _failures: int = 0
    _openings: int = 0
    _until: float | None = None  # None: closed
    _probes: int = 0

    def allows(self, now: float) -> bool:
        """Whether to ask: closed, or rested and without another probe."""
        return self._until is None or (now >= self._until and not self._probes)

    def left(self, now: float) -> float:
        """The remaining rest in seconds."""
        return 0.0 if self._until is None else max(0.0, self._until - now)

    def asking(self) -> AbstractContextManager[None]:
        """Mark a request; while not closed, it is a probe."""
        return NOTHING_TO_TRY if self._until is None else self._probing()

    @contextmanager
    def _probing(self) -> Iterator[None]:
        self._probes += 1
        try:
            yield
        finally:
            self._probes -= 1

    def succeed(self) -> None:
        """Close, and forget all failures."""
        self._failures = self._openings = 0
        self._until = None

    def fail(self, now: float, *, at_once: bool = False) -> None:
        """Count a failure; `at_once` opens in any case. Ignored during a rest."""
        if self._until is not None and now < self._until:
            return
        self._failures += 1
        if at_once or self._openings or self._failures >= self.threshold:
            self._until = now + min(self.longest, self.rest * 2.0 ** min(self._openings, 16))
            self._openings += 1
            self._failures = 0


KEY_REST = 600.0  # seconds that a refused key rests while there is an alternative;
LONGEST_KEY_REST = 3600.0  # doubles each time, up to this
BLIND = 3600.0  # seconds without pictures after a model refused one
TOOLLESS = 3600.0  # seconds without tools after a refusal; servers restart with other models
# seconds that earlier calls are sent as text after only that was accepted. Users lose nothing, and
# each retry costs a refused request in the middle of an answer.
PLAIN_SPOKEN = 86_400.0
SPOILT = 32  # refused beginnings of transcripts, kept until a restart
REFUSED_PICTURES = 128  # refused pictures, kept until a restart
KINDS_OF_PICTURES = 16
# seconds that a window named in a refusal is believed: gateways route requests elsewhere.
NARROW = 3600.0
SUSPICION = 3600.0  # seconds within which a server must fail again for the same reason

# One in this many answers corrects the estimate: the correction is costly, and most answers agree.
TELLING = 8


class _Busy:
    """Something that can ask for a pause: `busy_until`, in monotonic seconds."""

    def __init__(self) -> None:
        self.busy_until = 0.0

    def hear(self, said: float) -> None:
        """It answered, even with a refusal: clear the pause known when it was asked."""
        if self.busy_until == said:  # else another request has set it meanwhile
            self.busy_until = 0.0


class RefusedBeginnings:
    """Beginnings of transcripts that a vendor refused. Later requests omit them, to avoid asking
    twice at each step.
    """

    def __init__(self) -> None:
        self._lengths: LRUCache[int, int] = LRUCache(SPOILT)

    def add(self, beginning: tuple[Message, ...]) -> None:
        """Omit this from now on."""
        self._lengths[hash(beginning)] = len(beginning)

    def left_out_of(self, request: ModelRequest) -> ModelRequest:
        """The request without the longest known refused beginning."""
        if not self._lengths:
            return request
        lengths = sorted(set(self._lengths.values()), reverse=True)
        for beginning in request_beginnings(request, lengths):
            if hash(beginning) in self._lengths:
                return without_messages(request, beginning)
        return request


class RefusedPictures:
    """Pictures that a model refused: broken ones until a restart, others for `BLIND` seconds,
    together with those of the same media type and at least that size.
    """

    def __init__(self) -> None:
        self._alone: LRUCache[int, float] = LRUCache(REFUSED_PICTURES)  # until when
        self._alike: LRUCache[str, tuple[int, float]] = LRUCache(KINDS_OF_PICTURES)

    def add(self, pictures: Iterable[str], until: float = math.inf) -> None:
        """Refuse only these pictures."""
        for picture in pictures:
            self._alone[hash(picture)] = until

    def add_alike(self, pictures: Iterable[str], now: float) -> None:
        """Refuse these and, if it is only one, pictures like it."""
        refused = tuple(pictures)
        self.add(refused, now + BLIND)
        if len(refused) != 1:
            return
        media_type, size = _media_type(refused[0]), len(refused[0])
        smallest, until = self._alike.get(media_type, (size, 0.0))
        self._alike[media_type] = min(smallest, size) if now < until else size, now + BLIND

    def leave_out(self, request: ModelRequest, now: float) -> ModelRequest:
        """The request without the pictures known to be refused."""
        if not self._alone and not self._alike:
            return request

        def is_refused(picture: str) -> bool:
            smallest, until = self._alike.get(_media_type(picture), (0, 0.0))
            if now < until and len(picture) >= smallest:
                return True
            return now < self._alone.get(hash(picture), 0.0)

        return without_pictures(request, is_refused) or request


def _media_type(picture: str) -> str:
    return picture.partition(";")[0].partition(",")[0][:64]


class ModelLine(_Busy):
    """One key: its client, its breaker, and until when it is busy."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__()
        self.model = model
        self.breaker = Breaker(threshold=1, rest=KEY_REST, longest=LONGEST_KEY_REST)


class Upstream(_Busy):
    """The state of one model at one host, shared by all requests."""

    def __init__(
        self, *models: ChatModel, window: int | None = None, price: Price | None = None
    ) -> None:
        """One client per key, in order. `window` is in tokens; None, like `price`, if unknown."""
        super().__init__()
        self._price = price
        self.lines = tuple(map(ModelLine, models))
        self.name = models[0].name
        self.window = window
        self._known_window = window
        self._narrow_until = 0.0
        self.breaker = Breaker()
        self.scale = Scale()
        self._counted = 0  # answers that reported their tokens
        self._toolless_until = 0.0
        self._blind_until = 0.0
        self._vendorless_until = 0.0
        self._plain_until = 0.0
        self.in_vain = 0  # requests in a row that were rejected in every form
        self.suspected: dict[str, float] = {}  # forms that may have helped, and when
        self.refused_pictures = RefusedPictures()
        self.refused_beginnings = RefusedBeginnings()

    @property
    def is_priced(self) -> bool:
        return self._price is not None

    def cooldown(self, now: float) -> float:
        """The seconds until it, or one of its keys, may be asked; 0 if now."""
        keys = min(max(line.breaker.left(now), line.busy_until - now) for line in self.lines)
        return max(self.breaker.left(now), self.busy_until - now, keys, 0.0)

    def fit(self, request: ModelRequest, now: float) -> ModelRequest:
        """The request without what the model is known to refuse, and within its window.

        Some servers silently drop the beginning of a prompt that is too long.
        """
        if now >= self._narrow_until:
            self.window = self._known_window
        if request.tools and now < self._toolless_until:
            request = replace(request, tools=())
        request = self.refused_beginnings.left_out_of(request)
        if now < self._blind_until:
            request = without_pictures(request) or request
        else:
            request = self.refused_pictures.leave_out(request, now)
        if self.window is not None:
            request = compaction.shrink_request(request, to=self._room(self.window)) or request
        if now < self._plain_until:  # last: only results that are not yet text can be shortened
            return calls_as_words(request) or request
        if now < self._vendorless_until:
            return without_vendor_fields(request) or request
        return request

    def shrink(self, request: ModelRequest) -> ModelRequest | None:
        """Shrink a request that was too long to half, or to the window if that is less."""
        half = estimate(request) / 2
        return compaction.shrink_request(
            request, to=half if self.window is None else min(half, self._room(self.window))
        )

    def _room(self, window: int) -> float:
        return compaction.prompt_room(window) / self.scale.factor

    def learn_window(self, limit: int, now: float) -> None:
        """Learn the context window, in tokens."""
        self.window = min(limit, self.window or limit)
        self._narrow_until = now + NARROW

    def refuse_tools(self, now: float) -> None:
        """Send no tools for a while."""
        self._toolless_until = now + TOOLLESS

    def refuse_pictures(self, now: float) -> None:
        """Send no pictures for a while; the cause may have been that picture alone."""
        self._blind_until = now + BLIND

    def refuse_own_fields(self, now: float) -> None:
        """Send no vendor-specific fields for a while."""
        self._vendorless_until = now + PLAIN_SPOKEN

    def refuse_calls(self, now: float) -> None:
        """Send calls as text for a while."""
        self._plain_until = now + PLAIN_SPOKEN

    def suspect(self, form: str, *, began: float, now: float) -> bool:
        """Whether the form helped a failing server: it did so before, and the server has failed
        again without it since. The first time may be a server that recovered.
        """
        before = self.suspected.get(form, -math.inf)
        if before > began:  # a concurrent request, in the same trouble
            return False
        self.suspected[form] = now
        return now - before <= SUSPICION

    def counted(
        self, request: ModelRequest, completion: Completion, *, reserved: int = 0
    ) -> Completion:
        """The answer with its usage, estimated if missing, and its cost if known."""
        usage = completion.usage
        if usage is None or not usage.prompt or not usage.completion or completion.asked_twice:
            usage = self._completed(request, completion)
        usage = self._priced(usage)
        if reserved:
            usage = replace(usage, reserved=reserved)
        return completion if usage is completion.usage else replace(completion, usage=usage)

    def _completed(self, request: ModelRequest, completion: Completion) -> Usage:
        said = round(estimate_answer(completion.message))
        if completion.usage is None:
            usage = self.reading(request, answer=said)
        else:
            usage = self._corrected(completion.usage, request, said)
        if completion.asked_twice:
            usage = self._priced(usage) + self.reading(request, answer=said)
        return usage

    def taken(
        self, told: Usage, request: ModelRequest, *, answer: int = 0, reserved: int = 0
    ) -> Usage:
        """The usage of a failed request: as reported, else estimated with an `answer` in tokens."""
        if told == Usage():
            return self.reading(request, answer=answer, reserved=reserved)
        told = self._corrected(told, request, told.completion)
        return self._priced(replace(told, reserved=reserved))

    def _corrected(self, told: Usage, request: ModelRequest, said: int) -> Usage:
        """Estimate counts reported as 0: reading a prompt is never free."""
        if told.prompt and (told.completion or not said):
            return told
        prompt = told.prompt or self.measure(request)
        return replace(told, prompt=prompt, completion=told.completion or said)

    def reading(self, request: ModelRequest, *, answer: int = 0, reserved: int = 0) -> Usage:
        """The usage of an aborted request (vendors charge for what they read), or of a planned one
        with an `answer` in tokens.
        """
        prompt = self.measure(request)
        return self._priced(Usage(prompt=prompt, completion=answer, reserved=reserved))

    def _priced(self, usage: Usage) -> Usage:
        if self._price is None or usage.cost is not None:
            return usage
        return replace(usage, cost=self._price.of(usage))

    def measure(self, request: ModelRequest) -> int:
        """The request's tokens as this model counts them, estimated."""
        return self.scale.correct(estimate(request))

    def learn(self, request: ModelRequest, completion: Completion) -> None:
        """Correct the estimate by an answer's usage: the first one, then one in `TELLING`."""
        if completion.usage is None:
            return
        if self._counted % TELLING == 0:
            self.scale.learn(estimate(request), completion.usage.prompt)
        self._counted += 1
