"""The one place where we talk HTTP to a model server, and where aiohttp's errors become ours.

One attempt, then a class that says what to do: waiting and trying again is decided in
`frostagent/models/failover.py`. Every deadline of an attempt is on one timer, and what counts for
them is the answer, not the bytes: comments and empty deltas keep a connection alive for ever if a
server wants that, and somebody is waiting. All times are in seconds.
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

import aiohttp
from msgspec.structs import replace

from frostagent.models.openai.answer_formats import AnswerForm, AnswerFormats, Kind
from frostagent.models.openai.dialects import choose_dialect, named_dialect
from frostagent.models.openai.endpoint import find_proxy, join_url
from frostagent.models.openai.errors import classify, clean_words
from frostagent.models.openai.history import Origin
from frostagent.models.openai.stream import AnswerReader
from frostagent.models.openai.streaming import InlineThoughts, StreamedText
from frostagent.models.openai.wire import known_names, read_answer, read_usage, write_request
from frostagent.text.masking import Mask
from frostagent.types.errors import EMPTY_ANSWER, ModelError, ModelStalled, ModelTransport
from frostagent.types.messages import Completion, ModelRequest, TextDiscarded, Usage
from frostagent.words import changed, words_in_force

logger = logging.getLogger(__name__)

UNEXPLAINED = (
    "it never says why its answers end: they are taken as whole, and one that was cut cannot be "
    "told"
)


FAREWELL = 0.25  # after [DONE] for the end of the body: with it the connection can be used again


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Deadlines of one attempt in seconds (vendors.md section 9).

    `first_token` runs from the request to the first piece of the answer, thoughts included; 0 is no
    such deadline. From then on `idle` runs between bytes, `silence` between pieces of the answer,
    however much a server keeps the connection alive; `total` over everything. `closing` is how long
    a finished answer waits, in all, for its usage and the end of the stream.
    """

    connect: float = 10.0
    first_token: float = 60.0
    idle: float = 90.0
    silence: float = 180.0
    total: float = 600.0
    closing: float = 3.0


class Deadline:
    """The deadlines of one attempt, from now on. `timer` is entered around all of it."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeouts = timeouts
        self._start = self._loop.time()
        self._end = self._start + timeouts.total
        self._first_by = self._start + (timeouts.first_token or math.inf)
        self._closed_by = self._gone_by = math.inf
        self._pieces = 0
        self._latest = self._start
        self.first_token: float | None = None  # seconds from the start, of a streamed answer
        self.timer = asyncio.timeout_at(min(self._first_by, self._end))

    def hear(self, reader: AnswerReader) -> None:
        """Bytes came and were read."""
        if reader.pieces != self._pieces:
            self._pieces, self._latest = reader.pieces, self._loop.time()
            if self.first_token is None and reader.is_stream:
                self.first_token = self._latest - self._start

    def go_on(self, reader: AnswerReader) -> None:
        """Wait for more than was heard, but not long once the answer is there."""
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
        """Whether it is over because no answer began; one that is over by the time for everything
        is so as well.
        """
        return self.timer.expired() and not self._pieces

    def explain(self) -> str:
        """Which deadline it was that passed."""
        now, timeouts, words = self._loop.time(), self._timeouts, words_in_force()
        if now >= self._end:
            return words.too_long.format(seconds=f"{timeouts.total:g}")
        if not self._pieces:
            return words.not_begun.format(seconds=f"{timeouts.first_token:g}")
        return words.answer_stopped.format(seconds=f"{now - self._latest:.3g}")


class Endings:
    """Good for one server and model. It is believed to be one that never says why after two streams
    in a row.

    From the first on that does, it is one that does as a rule: what comes without was cut, and is
    not believed again.
    """

    def __init__(self, name: str) -> None:
        """`name` is for the log."""
        self._name = name
        self._explains: bool | None = None

    @property
    def go_unexplained(self) -> bool:
        """Whether a stream that does not say why it ended is taken as whole."""
        return self._explains is False

    def doubts(self, reader: AnswerReader) -> bool:
        """Whether this stream should be asked for once more, because nothing is known of others."""
        return self._explains is None and reader.is_unexplained

    def learn(self, reader: AnswerReader) -> None:
        """Take note of how a stream ended, one that was asked for once more where it was in
        doubt.
        """
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
SECRET = 8  # characters; shorter keys are words such as EMPTY that local servers are given
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
"""Which of the library's words explain a broken line, the first that fits."""


def make_session() -> aiohttp.ClientSession:
    """A session for all models of this process; the caller closes it. Must be called with a loop
    running.

    It follows no proxy of its own accord: each model looks its proxy up once, and servers near us
    need none.
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
    """The names of the models that a service lists, in alphabetical order; none if it lists none
    within that time.

    Not every service does, so a failure is no error: asking a model tells what is wrong.
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
    """Whether a terminal can show it: a service may write anything."""
    return bool(text.strip()) and text.isprintable() and len(text) <= MAX_NAME


@dataclass(frozen=True, slots=True)
class _Heard:
    """A server's answer to a request as it was sent, in this form if it was to be JSON; the seconds
    until it began, and what of it was told already.
    """

    reader: AnswerReader
    request: ModelRequest
    form: AnswerForm | None
    first_token: float | None
    streamed: StreamedText | None


class OpenAIModel:
    """A `ChatModel` over any server that speaks `/chat/completions`."""

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
        """`base_url` may end in a slash, /v1 or the whole path; `api_key` may be empty, `dialect`
        is found if empty.

        `now` is in seconds since 1970, `new_id` names calls that came without an id.
        `inline_thoughts` and `answer_formats` are what is known of the server from before. Raises
        ValueError if the base URL is none, or the dialect unknown.
        """
        self._key = "".join(api_key.split())
        url = join_url(base_url)
        self._url = (
            url.with_user(None) if self._key else url
        )  # aiohttp takes one authority, not two
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
        self._inline_thoughts = inline_thoughts or InlineThoughts(model)
        self._answer_formats = answer_formats or AnswerFormats()
        self._headers = {"Content-Type": "application/json", "Accept": ACCEPTED}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"

    @property
    def name(self) -> str:
        """Model and host, for logs."""
        return self._origin.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer, whole and finished, in one attempt. Raises ModelError, which repeats none of our
        secrets.
        """
        try:
            return await self._complete(request)
        except ModelError as error:
            error.args = (changed(error.args[0] if error.args else "", self._mask),)
            error.code = self._mask(error.code)
            raise

    async def _complete(self, request: ModelRequest) -> Completion:
        """One attempt.

        A stream that ends with its marker and without a reason is asked for once more: a server
        that never gives one is known by that, and believed from then on. Where it does as a rule,
        it was cut.
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
        """The server's answer.

        A server too old for `stream_options` is asked once more without, and never again with
        (2.19); so is one that refuses a form of asking for JSON, in the next form.
        """
        form, refused = None, list[Kind]()
        while True:
            counted = self._stream_options  # as it was when we asked: requests run side by side
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
            streamed = StreamedText(
                reader,
                request.on_delta,
                names=known_names(request),
                is_marked=self._dialect.leaks,
                inline=self._inline_thoughts,
            )
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
        ) as error:  # OSError holds TimeoutError and ssl.SSLError
            if not (reader.is_complete or reader.is_done):
                raise self._broken(reader, deadline, error) from error
            reader.end()
        return _Heard(reader, request, form, deadline.first_token, streamed)

    def _broken(
        self, reader: AnswerReader, deadline: Deadline, error: BaseException
    ) -> ModelTransport:
        """The line broke, or a deadline passed, before the answer was whole."""
        kind = ModelStalled if deadline.has_no_answer else ModelTransport
        reason = deadline.explain() if deadline.timer.expired() else _explain(error)
        told = words_in_force().broken.format(name=self.name, reason=reason)
        broken = kind(changed(told, clean_words))
        broken.took = _taken(reader) or broken.took
        return broken

    async def _read_refusal(self, response: aiohttp.ClientResponse) -> ModelError:
        """The error a status and its body are; a body that does not come is none."""
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
    """The usage of an answer that is none in the end; None where it had not begun."""
    if not reader.has_begun:
        return None
    if not reader.usage:
        return Usage()
    usage = read_usage(reader.usage)
    if usage.completion or not reader.is_stream:
        return usage
    return replace(usage, completion=reader.pieces)  # of a stream each is about a token


def _explain(error: BaseException) -> str:
    """The failure of the line and what to check, and the library's own words, unless they may
    quote the body.
    """
    table = words_in_force()
    reason = getattr(table, next(name for kind, name in REASONS if isinstance(error, kind)))
    words = "" if isinstance(error, aiohttp.ClientPayloadError) else str(error)
    return table.in_its_words.format(reason=reason, words=words or type(error).__name__)
