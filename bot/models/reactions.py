"""Reactions to the errors of models: one action for each class, and none that loops."""

from __future__ import annotations

import logging
import re

from bot.domain.chat import ModelRequest
from bot.domain.errors import (
    EMPTY_ANSWER,
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
    ModelRejected,
    ModelStalled,
    ModelTransport,
    ToolsUnsupported,
    ToolUseFailed,
)
from bot.domain.masking import Quoting, for_the_log
from bot.domain.ports import Clock, Ids
from bot.domain.tongue import Pair, Tell, Tongue, filled
from bot.models.attempts import BRIEF, Errand, RequestForm, Way
from bot.models.upstreams import ModelLine, Upstream
from bot.policy.repairs import asking_again, has_pictures

logger = logging.getLogger(__name__)

ATTEMPTS = 4  # failures of one upstream, for one request
SLOW = 20.0  # seconds; who fails after that is not asked again while there is another
LONG_ENOUGH = 150.0  # seconds from the question on; whoever has failed is not asked again then
STALLS = 3  # upstreams, for one request, that are waited for in vain
# seconds; who asks for more has a clock of its own, or will be asked in vain once an hour
LONGEST_REST = 3600.0
SMALLEST_WINDOW = 1024  # tokens; a smaller number in a refusal is the limit of something else
CALLED_AGAIN = 2  # times that a model may repeat a tool call that could not be read
BAD_PICTURE = "invalid_image"  # codes that begin so mean that picture, not pictures
KIND_OF_PICTURE = "image_kind"  # and so that picture's format or size
UNEXPLAINED = 500  # a status that some servers have for whatever is wrong, also with a request
TRIED_AS_IT_IS = 2  # times, before a server that says no more than that is asked otherwise
OF_PICTURES = re.compile(
    r"image|picture|vision|\bmedia|\bmime|multi-?modal|图片|图像|多模态|视觉", re.IGNORECASE
)
TOO_LARGE = 413

ANY_CAUSE = (RequestForm.WITHOUT_PICTURES, RequestForm.CALLS_IN_WORDS, RequestForm.QUESTION_ALONE)
HISTORY = (RequestForm.WITHOUT_OWN_FIELDS, RequestForm.CALLS_IN_WORDS, RequestForm.QUESTION_ALONE)

KEY_REFUSED = (
    (
        "模型 {name} 的第 {number} 个密钥不能用了，已改用其他密钥或备用模型，"
        "请检查密钥和余额 ({kind}: {reason})"
    ),
    (
        "Key {number} of the model {name} is refused; another key, or a model that stands in, is "
        "asked instead. Please look after the key and its balance ({kind}: {reason})"
    ),
)
NOT_FOUND = (
    "模型 {name} 不存在或未开通，已改用备用模型，请检查模型名称和接口地址 ({kind}: {reason})",
    (
        "There is no model {name}, or not for this account; one that stands in is asked instead. "
        "Please look after its name and address ({kind}: {reason})"
    ),
)
MAX_REASON = 200  # characters of an error that somebody reads on a phone


def nobody(line: Pair) -> None:
    """There is no owner to tell, so the log has to do."""
    logger.warning("%s", for_the_log(line[Tongue.ENGLISH]))


class Reactions:
    """Changes the errand, or closes whoever is not to be asked again for it; `tell` reaches the
    owner.
    """

    def __init__(self, *, clock: Clock, ids: Ids, tell: Tell, attempts: int) -> None:
        self._clock = clock
        self._ids = ids
        self._tell = tell
        self._attempts = attempts

    def react(
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
                if error.code == EMPTY_ANSWER:  # the next model is asked first
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
                going_on = errand.change(asking_again, times=CALLED_AGAIN)
            case BadHistory():
                going_on = errand.try_next_form(upstream, request, now, *HISTORY)
            case ModelRejected() if error.status is not None and error.took is None:
                going_on = errand.try_next_form(upstream, request, now, *ANY_CAUSE)
            case _:
                going_on = False
        if not going_on:
            errand.closed.add(upstream)

    def _doubt_request(
        self, errand: Errand, upstream: Upstream, request: ModelRequest, error: ModelOverloaded
    ) -> None:
        """Some servers call themselves broken for what is wrong with a request."""
        now = self._clock.monotonic()
        if error.status in {None, UNEXPLAINED} and OF_PICTURES.search(str(error)):
            errand.try_next_form(upstream, request, now, RequestForm.WITHOUT_PICTURES)
        elif error.status == UNEXPLAINED and errand.failures[upstream] >= TRIED_AS_IT_IS:
            errand.doubt(upstream, request, now, *ANY_CAUSE[:2])

    def _postpone(
        self, errand: Errand, upstream: Upstream, busy: Upstream | ModelLine, after: float | None
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

    def _report(self, errand: Errand, way: Way, error: ModelError, line: Pair) -> None:
        if errand.choose(self._clock.monotonic()) is None:
            return  # the error gets out, and whoever gets it tells the owner
        name, number = way.upstream.name, way.upstream.lines.index(way.line) + 1
        reason = " ".join(str(error).split())[:MAX_REASON]
        zh, en = filled(line, name=name, number=number, kind=error.kind, reason=reason)
        self._tell((Quoting(zh), Quoting(en)))
