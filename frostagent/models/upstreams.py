"""One model at one place, asked by one or more keys: how well it is, and what it has turned out not
to take.
"""

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
    """Opens after `threshold` failures in a row and rests; then one probe decides whether it closes
    again.

    `rest` is in seconds; it doubles with each opening in a row, up to `longest`. Times are the
    clock's monotonic ones. Whoever asks does so within `asking`, and says `succeed` or `fail` if
    that told anything; while it is not closed, all who ask are probes, also those who had nobody
    else to ask.
    """

    threshold: int = 3
    rest: float = 30.0
    longest: float = 600.0
    _failures: int = 0
    _openings: int = 0
    _until: float | None = None  # None: closed
    _probes: int = 0

    def allows(self, now: float) -> bool:
        """Whether it may be asked: closed, or its rest is over and nobody else is trying it."""
        return self._until is None or (now >= self._until and not self._probes)

    def left(self, now: float) -> float:
        """How many seconds it still rests."""
        return 0.0 if self._until is None else max(0.0, self._until - now)

    def asking(self) -> AbstractContextManager[None]:
        """Somebody asks; where it is not closed, that is a probe."""
        return NOTHING_TO_TRY if self._until is None else self._probing()

    @contextmanager
    def _probing(self) -> Iterator[None]:
        self._probes += 1
        try:
            yield
        finally:
            self._probes -= 1

    def succeed(self) -> None:
        """It works: closed, and all is forgotten."""
        self._failures = self._openings = 0
        self._until = None

    def fail(self, now: float, *, at_once: bool = False) -> None:
        """It does not work; `at_once` opens it whatever came before. While it rests nothing is
        news.
        """
        if self._until is not None and now < self._until:
            return
        self._failures += 1
        if at_once or self._openings or self._failures >= self.threshold:
            self._until = now + min(self.longest, self.rest * 2.0 ** min(self._openings, 16))
            self._openings += 1
            self._failures = 0


KEY_REST = 600.0  # seconds that a refused key is left alone while there is another way; then it is
LONGEST_KEY_REST = 3600.0  # tried again, and rests longer each time, up to this
BLIND = 3600.0  # seconds that a model is not shown pictures after it refused one
TOOLLESS = 3600.0  # nor offered tools after it refused them: servers are started anew with others
# seconds that a model is told earlier calls as text after only that was taken: people lose nothing
# by it, and each time it is tried again costs a refused request in the middle of an answer.
PLAIN_SPOKEN = 86_400.0
SPOILT = 32  # beginnings of transcripts that are known to be refused, until a restart
REFUSED_PICTURES = 128  # pictures that are known to be refused, until a restart
KINDS_OF_PICTURES = 16
# Gateways pass requests on to others: a window that a refusal named counts for so many seconds.
NARROW = 3600.0
SUSPICION = 3600.0  # seconds in which a server that broke has to break again over the same

# Answers of which one corrects our estimate: it costs more than most of what a message costs, and
# all tell much the same.
TELLING = 8


class _Busy:
    """Who may say until when not to be asked: `busy_until`, in monotonic seconds."""

    def __init__(self) -> None:
        self.busy_until = 0.0

    def hear(self, said: float) -> None:
        """It answered: any answer, also a refusal, is a newer word than what it had said when it
        was asked.
        """
        if self.busy_until == said:  # else it was said meanwhile, to somebody else
            self.busy_until = 0.0


class RefusedBeginnings:
    """Beginnings of transcripts that were refused: they are left out of later requests, else each
    step would be asked twice.
    """

    def __init__(self) -> None:
        self._lengths: LRUCache[int, int] = LRUCache(SPOILT)

    def add(self, beginning: tuple[Message, ...]) -> None:
        """Leave it out from now on."""
        self._lengths[hash(beginning)] = len(beginning)

    def left_out_of(self, request: ModelRequest) -> ModelRequest:
        """The request without the longest of them that it begins with."""
        if not self._lengths:
            return request
        lengths = sorted(set(self._lengths.values()), reverse=True)
        for beginning in request_beginnings(request, lengths):
            if hash(beginning) in self._lengths:
                return without_messages(request, beginning)
        return request


class RefusedPictures:
    """Pictures that a model refused: broken ones until a restart; others for `BLIND` seconds, and
    with them those of the same media type that are as large or larger.
    """

    def __init__(self) -> None:
        self._alone: LRUCache[int, float] = LRUCache(REFUSED_PICTURES)  # until when
        self._alike: LRUCache[str, tuple[int, float]] = LRUCache(KINDS_OF_PICTURES)

    def add(self, pictures: Iterable[str], until: float = math.inf) -> None:
        """These are refused, and that says nothing of others."""
        for picture in pictures:
            self._alone[hash(picture)] = until

    def add_alike(self, pictures: Iterable[str], now: float) -> None:
        """These are refused, for all we know because of what they are; of several in one request
        one of them may be the cause, or their number.
        """
        refused = tuple(pictures)
        self.add(refused, now + BLIND)
        if len(refused) != 1:
            return
        media_type, size = _media_type(refused[0]), len(refused[0])
        smallest, until = self._alike.get(media_type, (size, 0.0))
        self._alike[media_type] = min(smallest, size) if now < until else size, now + BLIND

    def leave_out(self, request: ModelRequest, now: float) -> ModelRequest:
        """The request without those it is known to be refused for."""
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
    """One key: the client that uses it, whether it was refused, and until when it is too busy."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__()
        self.model = model
        self.breaker = Breaker(threshold=1, rest=KEY_REST, longest=LONGEST_KEY_REST)


class Upstream(_Busy):
    """All we know of one model at one place; shared by everybody who asks it, so that all learn at
    once.
    """

    def __init__(
        self, *models: ChatModel, window: int | None = None, price: Price | None = None
    ) -> None:
        """One client for each key, in order. `window` is in tokens; it and `price` are None where
        nobody knows.
        """
        super().__init__()
        self._price = price
        self.lines = tuple(map(ModelLine, models))
        self.name = models[0].name
        self.window = window
        self._known_window = window
        self._narrow_until = 0.0
        self.breaker = Breaker()
        self.scale = Scale()
        self._counted = 0  # answers that said how many tokens they took
        self._toolless_until = 0.0
        self._blind_until = 0.0
        self._vendorless_until = 0.0
        self._plain_until = 0.0
        self.in_vain = 0  # requests in a row that it rejected in every form
        self.suspected: dict[str, float] = {}  # forms that may have helped a broken server; when
        self.refused_pictures = RefusedPictures()
        self.refused_beginnings = RefusedBeginnings()

    @property
    def is_priced(self) -> bool:
        """Whether its price is known."""
        return self._price is not None

    def cooldown(self, now: float) -> float:
        """For how many more seconds it is left alone: itself, or every key of it; 0 where it is
        asked.
        """
        keys = min(max(line.breaker.left(now), line.busy_until - now) for line in self.lines)
        return max(self.breaker.left(now), self.busy_until - now, keys, 0.0)

    def fit(self, request: ModelRequest, now: float) -> ModelRequest:
        """The request without what this model is known not to take, and no longer than its window.

        Some servers say nothing of what is too long, and leave out its beginning.
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
        if now < self._plain_until:  # last: only results that are no text yet can be shortened
            return calls_as_words(request) or request
        if now < self._vendorless_until:
            return without_vendor_fields(request) or request
        return request

    def shrink(self, request: ModelRequest) -> ModelRequest | None:
        """A request that turned out to be too long, made shorter: to half of it, or less where its
        window is small.
        """
        half = estimate(request) / 2
        return compaction.shrink_request(
            request, to=half if self.window is None else min(half, self._room(self.window))
        )

    def _room(self, window: int) -> float:
        return compaction.prompt_room(window) / self.scale.factor

    def learn_window(self, limit: int, now: float) -> None:
        """It said how much it takes, in tokens."""
        self.window = min(limit, self.window or limit)
        self._narrow_until = now + NARROW

    def refuse_tools(self, now: float) -> None:
        """It takes no tools, for all we know."""
        self._toolless_until = now + TOOLLESS

    def refuse_pictures(self, now: float) -> None:
        """It takes no pictures, for all we know: not for long, as it may have been that picture
        alone.
        """
        self._blind_until = now + BLIND

    def refuse_own_fields(self, now: float) -> None:
        """It takes no history with fields of one vendor, for all we know."""
        self._vendorless_until = now + PLAIN_SPOKEN

    def refuse_calls(self, now: float) -> None:
        """It takes no history with calls, for all we know: they are told as text."""
        self._plain_until = now + PLAIN_SPOKEN

    def suspect(self, form: str, *, began: float, now: float) -> bool:
        """It broke over a request that began then, and answered it in this form. Whether that form
        helped: it did so before, and since then it broke again over a request as it was. Once may
        have been a server that came back.
        """
        before = self.suspected.get(form, -math.inf)
        if before > began:  # a request beside this one, in the same trouble
            return False
        self.suspected[form] = now
        return now - before <= SUSPICION

    def counted(
        self, request: ModelRequest, completion: Completion, *, reserved: int = 0
    ) -> Completion:
        """The answer with what it took, estimated if the vendor does not say, or says that what
        was read took nothing; and what that cost, if its price is known.
        """
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
        """The usage of a request that failed: as told, else as estimated with an `answer` of so
        many tokens.
        """
        if told == Usage():
            return self.reading(request, answer=answer, reserved=reserved)
        told = self._corrected(told, request, told.completion)
        return self._priced(replace(told, reserved=reserved))

    def _corrected(self, told: Usage, request: ModelRequest, said: int) -> Usage:
        """What was read is never free, whatever the vendor says."""
        if told.prompt and (told.completion or not said):
            return told
        prompt = told.prompt or self.measure(request)
        return replace(told, prompt=prompt, completion=told.completion or said)

    def reading(self, request: ModelRequest, *, answer: int = 0, reserved: int = 0) -> Usage:
        """The usage of a request whose answer nobody waited for: vendors charge for what they have
        read; with an `answer` of so many tokens, of one that is to be made.
        """
        prompt = self.measure(request)
        return self._priced(Usage(prompt=prompt, completion=answer, reserved=reserved))

    def _priced(self, usage: Usage) -> Usage:
        if self._price is None or usage.cost is not None:
            return usage
        return replace(usage, cost=self._price.of(usage))

    def measure(self, request: ModelRequest) -> int:
        """The tokens of the request as this model counts them, for all we know."""
        return self.scale.correct(estimate(request))

    def learn(self, request: ModelRequest, completion: Completion) -> None:
        """It answered: what it counted corrects how we count; the first answer, then one of
        `TELLING`.
        """
        if completion.usage is None:
            return
        if self._counted % TELLING == 0:
            self.scale.learn(estimate(request), completion.usage.prompt)
        self._counted += 1
