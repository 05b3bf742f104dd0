"""One request on its way through several models: what has become of it, what was tried, who is
next.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import assert_never

from msgspec import Struct, field

from frostagent.models.request_repairs import (
    calls_as_words,
    earlier_rounds,
    has_pictures,
    latest_round,
    pictures_of,
    question_in_words,
    without_pictures,
    without_vendor_fields,
)
from frostagent.models.upstreams import BLIND, ModelLine, Upstream
from frostagent.types.errors import ModelError
from frostagent.types.messages import Message, ModelRequest

BRIEF = 1.5  # seconds; so long somebody is waited for although another could be asked
# seconds; so long somebody who is well is waited for, where all who could be asked are not
LONG = 20.0

MOST_IN_VAIN = 3  # requests in a row; from then on, until it answers one, each is made once

Change = Callable[[ModelRequest], ModelRequest | None]
"""Makes a request that may be taken where the other was not, None where it cannot."""


class RequestForm(Enum):
    """A form of a request that a model may take after it rejected another one; each leaves more
    out.
    """

    WITHOUT_THESE_PICTURES = auto()
    WITHOUT_PICTURES = auto()
    WITHOUT_OWN_FIELDS = auto()
    CALLS_IN_WORDS = auto()
    QUESTION_ALONE = auto()

    def change(self, request: ModelRequest) -> ModelRequest | None:
        """The request in this form, None if that changes nothing."""
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
    """Whom to ask, by which key, and how long to wait before, in seconds; `trusted` if all is well
    there.
    """

    upstream: Upstream
    line: ModelLine
    wait: float
    trusted: bool

    def hear(self, upstream_said: float, line_said: float) -> None:
        """They answered, who had said until when not to be asked."""
        self.upstream.hear(upstream_said)
        self.line.hear(line_said)


class PendingRequest(Struct):
    """One request on its way: what has become of it, and what was tried; `patience` is for all
    waits, in seconds.

    `began` is when, by the monotonic clock; `stalls` counts those that were waited for in vain.
    `too_long` are those who said that the request is: it is made shorter for them alone.
    `current_forms` are those in which models that rejected the request are asked now, `rejected`
    what they were sent before: the next model gets the request as it was. `doubted` are forms that
    are tried for no better reason than that a server broke. `reported` are words of errors that
    stand in the log.
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
        """Go on with another request; whether there is one, and it was not made so often
        already.
        """
        changed = change(self.request) if self.times_changed[change] < times else None
        if changed is None or changed == self.request:
            return False
        self.times_changed[change] += 1
        self.request = changed
        return True

    def shorten(self, upstream: Upstream) -> bool:
        """Have the request made shorter for that upstream; whether it can be, and was not
        already.
        """
        shorter = upstream.shrink(self.request)
        if upstream in self.too_long or shorter is None or shorter == self.request:
            return False
        self.too_long.add(upstream)
        return True

    def try_next_form(
        self, upstream: Upstream, sent: ModelRequest, now: float, *forms: RequestForm
    ) -> bool:
        """Have the upstream, which rejected what it was `sent`, asked in the next of these forms;
        whether there is one that it did not reject yet. A model that rejects everything is not
        asked for each form again and again.
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
        """Have the upstream, which broke over what it was `sent`, asked in the next of these forms:
        it may have broken for another reason, so an answer is no proof that the form helped.
        """
        if self.try_next_form(upstream, sent, now, *forms):
            self.doubted[upstream] = self.current_forms[upstream]

    def remember(self, upstream: Upstream, now: float) -> RequestForm | None:
        """That upstream answered: what helped is done at once from now on. The form it was asked
        in, if there was one.
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
                until = math.inf if len(pictures) == 1 else now + BLIND  # of several one is broken
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
        """It took the request as it is, so no form that would have changed it is needed."""
        if upstream.suspected:
            taken = self.request_for(upstream, now)
            for form in RequestForm:
                if form.name in upstream.suspected and form.change(taken) is not None:
                    del upstream.suspected[form.name]

    def _remember_question(self, upstream: Upstream, now: float) -> None:
        """What was left out may go wrong in other conversations, too, unless it is this one's."""
        if earlier := earlier_rounds(self.request):
            upstream.refused_beginnings.add(earlier)
            return
        upstream.refuse_calls(now)
        if has_pictures(self.request):
            upstream.refused_pictures.add_alike(pictures_of(self.request), now)

    def clean(self) -> bool:
        """After a content filter: once without pictures, then once without the earlier rounds."""
        if self.change(without_pictures):
            return True
        spoilt = earlier_rounds(self.request)
        if not self.change(latest_round):
            return False
        self.spoilt = spoilt
        return True

    def request_for(self, upstream: Upstream, now: float) -> ModelRequest:
        """The request as that upstream takes it, for all we know."""
        shorter = upstream.shrink(self.request) if upstream in self.too_long else None
        request = upstream.fit(shorter or self.request, now)
        form = self.current_forms.get(upstream)
        return (form and form.change(request)) or request

    def choose(self, now: float) -> Route | None:
        """Whom to ask now: the first who can be asked at once, else whoever can be asked soonest.

        Who is not well is asked only where nobody who is can be waited for.
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
