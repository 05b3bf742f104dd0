"""The only module that talks HTTP to model servers, and converts aiohttp's errors.

It makes one attempt and classifies the error; `frostagent/models/failover.py` decides on retries.
One timer enforces all deadlines of an attempt. They measure the answer, not bytes: a server can
keep a connection alive with comments and empty deltas, while a person waits. All times are in
seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import aiohttp
from msgspec.structs import replace

from frostagent.models.openai.answer_formats import AnswerForm, AnswerFormats, Kind
from frostagent.models.openai.dialects import choose_dialect, named_dialect
from frostagent.models.openai.endpoint import find_proxy, join_url
from frostagent.models.openai.errors import classify, clean_words
from frostagent.models.openai.history import Origin
from frostagent.models.openai.stream import AnswerReader
from frostagent.models.openai.wire import known_names, read_answer, read_usage, write_request
from frostagent.text.masking import Mask
from frostagent.types.errors import EMPTY_ANSWER, ModelError, ModelStalled, ModelTransport
from frostagent.types.messages import Completion, ModelRequest, OnDelta, TextDiscarded, Usage
from frostagent.words import changed, words_in_force

if TYPE_CHECKING:
    from frostagent.models.openai.streaming import InlineThoughts, StreamedText

logger = logging.getLogger(__name__)

UNEXPLAINED = (
    "it never says why its answers end: they are taken as whole, and one that was cut cannot be "
    "told"
)


FAREWELL = 0.25  # after [DONE], to read the end of the body, so that the connection can be reused


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Deadlines of one attempt, in seconds (vendors.md section 9).

        connect(url, model, key, timeouts=Timeouts(first_token=20.0))

    `first_token` is from the request to the first piece of the answer or reasoning (0: no limit).
    Then `idle` limits the time between bytes, and `silence` between pieces of the answer, whatever
    keeps the connection alive. `total` limits everything. `closing` is how long a finished answer
    may wait for its usage and the end of the stream.
    """

    connect: float = 10.0
    first_token: float = 60.0
    idle: float = 90.0
    silence: float = 180.0
    total: float = 600.0
    closing: float = 3.0


class Deadline:
    """The deadlines of one attempt, starting now. Enter `timer` around the attempt."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeouts = timeouts
        self._start = self._loop.time()
        self._end = self._start + timeouts.total
        self._first_by = self._start + (timeouts.first_token or math.inf)
        self._closed_by = self._gone_by = math.inf
        self._pieces = 0
        self._latest = self._start
        self.first_token: float | None = None  # seconds from the start, for a streamed answer
        self.timer = asyncio.timeout_at(min(self._first_by, self._end))

    def hear(self, reader: AnswerReader) -> None:
        """Note that bytes were read."""
        if reader.pieces != self._pieces:
            self._pieces, self._latest = reader.pieces, self._loop.time()
            if self.first_token is None and reader.is_stream:
                self.first_token = self._latest - self._start

    def go_on(self, reader: AnswerReader) -> None:
        """Extend the deadline for the next bytes; only briefly if the answer is complete."""
        now = self._loop.time()
        if reader.is_complete:
            self._closed_by = min(self._closed_by, now + self._timeouts.closing)
        if reader.is_done:
            self._gone_by = min(self._gone_by, now + FAREWELL)
        if self._pieces:
            silent = min(now + self._timeouts.idle, self._latest + self._timeouts.silence)
        else:
            silent = self._first_by
        self.timer.reschedule(min(silent, self._closed_by, self._gone_by, self._end))

    @property
    def has_no_answer(self) -> bool:
        """Whether time ran out before an answer began, even if it was the total time."""
        return self.timer.expired() and not self._pieces

    def explain(self) -> str:
        """A message about the deadline that has passed."""
        now, timeouts, words = self._loop.time(), self._timeouts, words_in_force()
        if now >= self._end:
            return words.too_long.format(seconds=f"{timeouts.total:g}")
        if not self._pieces:
            return words.not_begun.format(seconds=f"{timeouts.first_token:g}")
        return words.answer_stopped.format(seconds=f"{now - self._latest:.3g}")


class Endings:
    """How one server and model end their streams.

    After two streams in a row without a reason, the server is assumed never to give one. After the
    first stream with a reason, streams without one count as cut off, for good.
    """

    def __init__(self, name: str) -> None:
        """`name` is for the log."""
        self._name = name
        self._explains: bool | None = None

    @property
    def go_unexplained(self) -> bool:
        """Whether a stream without a reason counts as complete."""
        return self._explains is False

    def doubts(self, reader: AnswerReader) -> bool:
        """Whether to request this stream again, because nothing is known of others."""
        return self._explains is None and reader.is_unexplained

    def learn(self, reader: AnswerReader) -> None:
        """Learn from a stream's end. In doubt, it must have been requested twice."""
        if self._explains:
            return
        if reader.is_explained:
            self._explains = True
        elif self.doubts(reader):
            self._explains = False
            logger.warning("%s: %s", self._name, UNEXPLAINED)


MODELS_PATH = "/models"
MAX_LIST = 8 * 2**20  # bytes of a list of models; the longest known has 0.6 MB
MAX_NAME = 200  # characters
MAX_ANSWER = 20 * 2**20  # bytes; more than any model writes
MAX_REFUSAL = 64 * 2**10  # bytes of an error page that are read
LARGE_REQUEST = 2**20  # bytes; aiohttp wants larger bodies as a file, to send them in pieces
SECRET = 8  # characters; shorter keys are placeholders for local servers, such as EMPTY
ACCEPTED = "text/event-stream, application/json"
REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "name_not_found"),
    (aiohttp.ClientProxyConnectionError, "proxy_unreachable"),
    (aiohttp.ClientHttpProxyError, "proxy_refused"),
    (aiohttp.ClientConnectorCertificateError, "certificate"),
    (aiohttp.ClientSSLError, "no_tls"),
    (aiohttp.ConnectionTimeoutError, "not_in_time"),
    (aiohttp.ClientConnectorError, "unreachable"),
    (aiohttp.ServerDisconnectedError, "hung_up"),
    (aiohttp.ClientPayloadError, "cut_off"),
    (BaseException, "connection_failed"),
)
"""The texts for connection errors, by class; the first match counts."""


def make_session() -> aiohttp.ClientSession:
    """A session for all models of the process. The caller closes it. Needs a running loop.

    It uses no proxy by itself: each model finds its own, and local servers need none.
    """
    connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=30)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "FrostAgent"},
    )


async def list_models(
    session: aiohttp.ClientSession, *, base_url: str, api_key: str, seconds: float
) -> tuple[str, ...]:
    """The names of a service's models, sorted; empty if it lists none within that time.

    Not every service lists them, so a failure is not an error: a request shows what is wrong.
    """
    try:
        url = join_url(base_url, path=MODELS_PATH)
        headers = {"Accept": "application/json"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        async with (
            asyncio.timeout(seconds),
            session.get(
                url, headers=headers, proxy=find_proxy(url), allow_redirects=False
            ) as response,
        ):
            if response.status != 200:
                return ()
            body = await response.content.read(MAX_LIST)
            while not response.content.at_eof() and len(body) < MAX_LIST:
                body += await response.content.read(MAX_LIST - len(body))
        found = json.loads(body)
    except (aiohttp.ClientError, OSError, ValueError, RecursionError):
        return ()
    rows = found.get("data") if isinstance(found, dict) else found
    names = (
        (row.get("id") for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()
    )
    good = {name for name in names if isinstance(name, str) and _is_name(name)}
    return tuple(sorted(good, key=str.casefold))


def _is_name(text: str) -> bool:
    """Whether a name is safe to print: services may return anything."""
    return bool(text.strip()) and text.isprintable() and len(text) <= MAX_NAME


@dataclass(frozen=True, slots=True)
class _Heard:
    """A server's response in this form, and what of it was streamed. Times are in seconds."""

    reader: AnswerReader
    request: ModelRequest
    form: AnswerForm | None
    first_token: float | None
    streamed: StreamedText | None


class OpenAIModel:
    """A `ChatModel` over any server that implements `/chat/completions`."""

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        base_url: str,
        api_key: str,
        model: str,
        timeouts: Timeouts | None = None,
        dialect: str = "",
        now: Callable[[], float] = time.time,  # noqa: TID251  # the library needs no Clock
        new_id: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex[:24]}",
        inline_thoughts: InlineThoughts | None = None,
        answer_formats: AnswerFormats | None = None,
    ) -> None:
        """`base_url` may end in a slash, /v1 or the whole path. `api_key` may be empty; an empty
        `dialect` is detected.

        `now` returns seconds since 1970, `new_id` an id for calls without one. `inline_thoughts`
        and `answer_formats` are earlier knowledge of the server. Raises ValueError for an invalid
        URL or an unknown dialect.
        """
        self._key = "".join(api_key.split())
        url = join_url(base_url)
        self._url = url.with_user(None) if self._key else url  # aiohttp accepts only one authority
        self._session = session
        self._timeouts = timeouts or Timeouts()
        self._connecting = aiohttp.ClientTimeout(total=None, connect=self._timeouts.connect)
        self._origin = Origin(endpoint=self._url.host_port_subcomponent or "", model=model)
        self._dialect = named_dialect(dialect) if dialect else choose_dialect(url.host or "", model)
        self._proxy = find_proxy(url)
        secrets = (self._key, url.user or "", url.password or "", *url.query.values())
        self._mask = Mask(secret for secret in secrets if len(secret) >= SECRET)
        self._now = now
        self._new_id = new_id
        self._stream_options = True
        self._endings = Endings(self.name)
        self._inline_thoughts = inline_thoughts
        self._answer_formats = answer_formats or AnswerFormats()
        self._headers = {"Content-Type": "application/json", "Accept": ACCEPTED}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"

    @property
    def name(self) -> str:
        """Model and host, for logs."""
        return self._origin.name

    async def complete(self, request: ModelRequest) -> Completion:
        """The whole answer, in one attempt. Raises ModelError, which contains no secrets."""
        try:
            return await self._complete(request)
        except ModelError as error:
            error.args = (changed(error.args[0] if error.args else "", self._mask),)
            error.code = self._mask(error.code)
            raise

    async def _complete(self, request: ModelRequest) -> Completion:
        """One attempt.

        A stream with an end marker but no reason is requested once more: a server that never gives
        reasons is recognised and then trusted. For other servers, such a stream was cut off.
        """
        heard = first = await self._ask(request)
        again = self._endings.doubts(heard.reader) and request.may_be_made_again()
        try:
            if again:
                if request.on_delta is not None:
                    request.on_delta(TextDiscarded())
                heard = await self._ask(request)
            self._endings.learn(heard.reader)
            answer = heard.reader.finish(unexplained=self._endings.go_unexplained)
            said = read_answer(
                answer,
                request=heard.request,
                origin=self._origin,
                dialect=self._dialect,
                new_id=self._new_id,
                first_token=heard.first_token,
            )
            if heard.streamed is not None:
                said = heard.streamed.finish(said, answer)
            if heard.form is not None:
                said = heard.form.read(said)
        except ModelError as error:
            reader = heard.reader
            if isinstance(error, ModelTransport) and reader.is_done and not reader.pieces:
                error.code = error.code or EMPTY_ANSWER
            if heard is not first:
                error.took = error.took or _taken(reader)
            error.asked_twice = again and error.took is not None
            error.took = error.took or _taken(first.reader)
            raise
        return replace(said, asked_twice=True) if again else said

    async def _ask(self, request: ModelRequest) -> _Heard:
        """The server's response.

        If the server refuses `stream_options` (2.19) or a form of asking for JSON, the request is
        repeated without it, or in the next form.
        """
        form, refused = None, list[Kind]()
        while True:
            counted = self._stream_options  # as sent: requests run concurrently
            if (schema := request.answer_schema) is not None:
                form = self._answer_formats.choose(self._dialect, schema, besides=refused)
            try:
                return await self._post(request, form, stream_options=counted)
            except ModelError as error:
                if counted and error.status in {400, 422} and "stream_options" in str(error):
                    self._stream_options = False
                elif form is not None and self._answer_formats.refuses(form, error):
                    refused.append(form.kind)
                else:
                    raise
                if not request.may_be_made_again():
                    raise

    async def _post(
        self, request: ModelRequest, form: AnswerForm | None, *, stream_options: bool
    ) -> _Heard:
        if form is not None:
            request = form.shape(request)
        body = write_request(
            request,
            origin=self._origin,
            dialect=self._dialect,
            stream_options=stream_options,
            response_format=None if form is None else form.response_format,
        )
        reader = AnswerReader()
        streamed = None
        if request.on_delta is not None:
            streamed = self._stream_to(request.on_delta, request, reader)
        deadline = Deadline(self._timeouts)
        asking = self._session.post(
            self._url,
            data=body if len(body) < LARGE_REQUEST else BytesIO(body),
            headers=self._headers,
            proxy=self._proxy,
            allow_redirects=False,
            timeout=self._connecting,
        )
        try:
            async with deadline.timer, asking as response:
                if not 200 <= response.status < 300:
                    raise await self._read_refusal(response)
                content = response.content
                while chunk := await content.readany():
                    if content.total_bytes > MAX_ANSWER:
                        raise ModelTransport(
                            f"{self.name}: the answer is larger than {MAX_ANSWER >> 20} MiB"
                        )
                    reader.feed(chunk)
                    deadline.hear(reader)
                    if streamed is not None:
                        streamed.read()
                    if content.at_eof():
                        break
                    deadline.go_on(reader)
            reader.end()
        except ModelError as error:
            error.took = _taken(reader)
            raise
        except (
            aiohttp.ClientError,
            OSError,
        ) as error:  # OSError includes TimeoutError and ssl.SSLError
            if not (reader.is_complete or reader.is_done):
                raise self._broken(reader, deadline, error) from error
            reader.end()
        return _Heard(reader, request, form, deadline.first_token, streamed)

    def _stream_to(
        self, on_delta: OnDelta, request: ModelRequest, reader: AnswerReader
    ) -> StreamedText:
        from frostagent.models.openai import streaming  # noqa: PLC0415  # 20 ms, and few stream

        self._inline_thoughts = self._inline_thoughts or streaming.InlineThoughts(
            self._origin.model
        )
        return streaming.StreamedText(
            reader,
            on_delta,
            names=known_names(request),
            is_marked=self._dialect.leaks,
            inline=self._inline_thoughts,
        )

    def _broken(
        self, reader: AnswerReader, deadline: Deadline, error: BaseException
    ) -> ModelTransport:
        """The error for a broken connection or a passed deadline."""
        kind = ModelStalled if deadline.has_no_answer else ModelTransport
        reason = deadline.explain() if deadline.timer.expired() else _explain(error)
        told = words_in_force().broken.format(name=self.name, reason=reason)
        broken = kind(changed(told, clean_words))
        broken.took = _taken(reader) or broken.took
        return broken

    async def _read_refusal(self, response: aiohttp.ClientResponse) -> ModelError:
        """The error from a status and its body; a body that cannot be read counts as empty."""
        body = b""
        with contextlib.suppress(aiohttp.ClientError, OSError):
            async with asyncio.timeout(self._timeouts.closing):
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > MAX_REFUSAL:
                        break
        text = self._mask(body.decode("utf-8", "replace"))
        return classify(response.status, text.encode(), response.headers, now=self._now())


def _taken(reader: AnswerReader) -> Usage | None:
    """The usage of a failed answer; None if it had not begun."""
    if not reader.has_begun:
        return None
    if not reader.usage:
        return Usage()
    usage = read_usage(reader.usage)
    if usage.completion or not reader.is_stream:
        return usage
    return replace(usage, completion=reader.pieces)  # each piece of a stream is about a token


def _explain(error: BaseException) -> str:
    """The cause of a connection failure and what to check, without quoting the body."""
    table = words_in_force()
    reason = getattr(table, next(name for kind, name in REASONS if isinstance(error, kind)))
    words = "" if isinstance(error, aiohttp.ClientPayloadError) else str(error)
    return table.in_its_words.format(reason=reason, words=words or type(error).__name__)
