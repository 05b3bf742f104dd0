"""Tools of MCP servers, over stdio or streamable HTTP. Needs the extra `mcp`.

    files = MCPServer("files", command="npx", args=["-y", "some-server", "."])
    async with Agent(model=model, tools=[files]) as agent:
        print((await agent.run("Which files are there?")).output)

Servers are not trusted. Their output is tainted, their annotations can only make a tool stricter,
and they get no access to the model (sampling), the user (elicitation) or folders (roots). A server
cannot block its user: connecting, listing and calling have deadlines, its output is capped, and
while it is away its tools are unavailable.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self, TypeAlias
from weakref import WeakMethod

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.message import SessionMessage
from msgspec.structs import replace

from frostagent.clock import RandomIds, SystemClock
from frostagent.engine.external_tools import our_name, whole_schema
from frostagent.engine.server_tools import connected
from frostagent.mcp_list import (
    check_arguments,
    check_name,
    clean_description,
    clean_schema,
    digest_of,
    reason_for,
    usable_entries,
)
from frostagent.mcp_stdio import MOST_VALUES, has_too_many_values, open_program
from frostagent.text.masking import Mask, one_line, server_secrets
from frostagent.text.visible_text import visible_text
from frostagent.types.arguments import Shape
from frostagent.types.errors import ConfigError, Problem, ToolFailed, ToolUnavailable
from frostagent.types.ports import Clock, Ids
from frostagent.types.results import SHOWN_KINDS, Image, ToolResult, shorten
from frostagent.types.tools import Declarations, Tool, ToolContext, fields_of
from frostagent.types.traits import Audience, Permission, SideEffects

__all__ = ["MCPServer", "ServerState", "Trust", "connected"]

logger = logging.getLogger(__name__)
# The SDK logs each malformed line with a traceback, and its HTTP client logs whole URLs.
logging.getLogger("mcp").setLevel(logging.CRITICAL)
for name in ("httpx2", "httpcore2"):
    logging.getLogger(name).setLevel(logging.WARNING)

Trust: TypeAlias = Literal["ask", "read", "full"]
"""How far a server's tools are trusted. "ask": each call needs an approval. "read": they only read,
and run freely. "full": they run freely, whatever they do.
"""

CONNECTING = 30.0  # seconds to connect and to list the tools
CALLING = 60.0  # seconds per call
CHECKING = 30.0  # seconds between two checks of a server over HTTP
COMING_BACK = 5.0  # seconds a call waits for a server that has lost its session
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts to connect

MOST_TOOLS = 200
MOST_PAGES = 50
MOST_REASONS = 20  # skipped tools whose reasons are listed
LONGEST_RESULT = 100_000  # characters
MOST_READ = 2 * LONGEST_RESULT  # characters that are examined before cutting
MOST_BLOCKS = 200
MOST_PICTURES = 4
LARGEST_PICTURE = 4 * 2**20  # bytes
LARGEST_EVENT = 8 * 2**20  # bytes of one event or body over HTTP
END_OF_EVENT = re.compile(rb"(?:\r\n|\n|\r){2}")
STDERR_LINES = 20
MOST_MESSAGES, WINDOW = 2_000, 10.0  # messages that answer no request, within WINDOW seconds
LATE = 5.0  # seconds that the SDK waits longer than this module, which notifies the server
RELIST_PAUSE, LONGEST_RELIST_PAUSE = 1.0, 60.0  # seconds between two listings of tools that change
MOST_PROGRESS = 100  # progress reports of a call that are passed on

SESSION_GONE = "Session terminated"  # the SDK's error text for HTTP 404 within a session
LEGACY_PING = "2025-11-25"


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server's state. `reason` is empty while it is connected.

    `error` is the last error, even if it is over. `skipped` has one line for each tool that is not
    offered. `changed` names the tools that differ from the first connection.
    """

    reason: str
    error: str = ""
    tools: tuple[Tool, ...] = ()
    skipped: tuple[str, ...] = ()
    version: str = ""
    calls: int = 0
    failures: int = 0
    changed: tuple[str, ...] = ()


class MCPServer:
    """An MCP server and the connection to it. `command`, `args`, `env` and `cwd` start a program
    that speaks over stdio; `url` and `headers` name a server over HTTP.

    `tools` selects tools by name; empty means all. They are named `name_tool`. `timeout` is in
    seconds for a call. The connection lasts as long as `run` (see `connected`).

    Below "full" trust, tool descriptions count as text from outside: all of them with "ask", new
    and changed ones with "read". A changed tool is then trusted as with "ask", and approvals for
    its earlier version no longer apply.

    Raises ConfigError unless either a command or a URL is given.
    """

    def __init__(
        self,
        name: str,
        *,
        command: str = "",
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str = "",
        url: str = "",
        headers: Mapping[str, str] | None = None,
        tools: Sequence[str] = (),
        trust: Trust = "ask",
        audience: Audience = Audience.EVERYONE,
        timeout: float = CALLING,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        if bool(command) == bool(url):
            raise ConfigError(
                Problem(
                    f"MCP server {name}",
                    "needs either a command or a url",
                    "Give the command that starts it, or the url where it listens.",
                )
            )
        self.name = name
        self.secrets = server_secrets(env=env, headers=headers, texts=(url, *args))
        self._mask = Mask(self.secrets)
        self._subscribers: list[WeakMethod[Callable[[], None]]] = []
        self._command = command
        self._args = list(args)
        self._env = dict(env or {})
        self._cwd = cwd
        self._url = url
        self._headers = dict(headers or {})
        self._wanted = frozenset(tools)
        self._trust = trust
        self._audience = audience
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._client: Client | None = None
        self._offers: dict[str, Tool] = {}
        self._skipped: tuple[str, ...] = ()
        self._dropped: list[str] = []  # entries of the list that the SDK never saw
        self._digests: Mapping[str, str] = {}  # of each tool's description
        self._first: Mapping[str, str] | None = None  # those of the first list
        self._changed: dict[str, None] = {}
        self._reason, self._why_lost = "is not connected yet", ""
        self._error = self._version = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._calls = self._failures = 0
        self._runs = self._open_calls = 0
        self._changes_over = False  # from one run that keeps it connected to the next

    # --- tools ------------------------------------------------------------------------------------

    @property
    def state(self) -> ServerState:
        return ServerState(
            reason=self._reason,
            error=self._error,
            tools=self.offered(),
            skipped=self._skipped,
            version=self._version,
            calls=self._calls,
            failures=self._failures,
            changed=tuple(self._changed),
        )

    def offered(self) -> tuple[Tool, ...]:
        """Its tools, as last listed. They are unavailable while the server is away."""
        return tuple(self._offers.values())

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call this method after each change of the tools. Its object is held weakly."""
        self._subscribers = [each for each in self._subscribers if each() is not None]
        self._subscribers.append(WeakMethod(changed))

    # --- connection -------------------------------------------------------------------------------

    async def first_try(self) -> None:
        """Return once the first attempt to connect has succeeded or failed."""
        self._enter_loop()
        await self._tried.wait()

    async def run(self) -> None:
        """Stay connected until cancelled, with retries at most a minute apart. If this is entered
        twice, the second goes on when the first is cancelled; the first then waits for the calls
        in progress, which may belong to another run.
        """
        self._enter_loop()
        self._runs += 1
        try:
            async with self._turn:
                await self._stay_connected()
        finally:
            self._runs -= 1
            self._tried.clear()  # the next run must wait for its own first attempt
            if not self._runs:
                self._changes_over = False
                self._be_away()

    def _enter_loop(self) -> None:
        """Create the events anew for a new event loop: a script may run several loops in turn."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        self._loop = loop
        self._turn = asyncio.Lock()
        self._tried = asyncio.Event()
        self._back = asyncio.Event()
        self._lost = asyncio.Event()
        self._relist = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    async def _stay_connected(self) -> None:
        """One task per connection, to tell our cancellation from one that the SDK leaks."""
        pause = FIRST_PAUSE
        while True:
            began = self._clock.monotonic()
            try:
                async with asyncio.TaskGroup() as group:
                    connection = group.create_task(self._hold_connection())
                    try:
                        await asyncio.wait({connection})
                    except asyncio.CancelledError:
                        if self._runs > 1 and self._client is not None:
                            await self._finish_calls()
                        raise
            finally:
                self._be_away()
                self._back.clear()
            self._changes_over = False
            reason = "it broke off" if connection.cancelled() else connection.result()
            is_known, self._error = reason == self._error, reason
            self._reason = f"cannot be reached: {reason}"
            self._tried.set()
            level = logging.DEBUG if is_known else logging.WARNING
            logger.log(level, "MCP server %s %s", self.name, self._reason)
            if self._clock.monotonic() - began > LONGEST_PAUSE:  # it worked in between
                pause = FIRST_PAUSE
            await self._clock.sleep(pause * (0.5 + self._ids.jitter()))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _be_away(self) -> None:
        self._client = None
        if not self._changes_over:
            self._reason = "is not connected"

    async def _finish_calls(self) -> None:
        """Return once those under way have ended; others wait for the next connection, for which
        its tools stay available.
        """
        self._changes_over, self._client = True, None
        self._back.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                await self._idle.wait()

    async def _hold_connection(self) -> str:
        """Connect. Returns why that failed or ended."""
        was_connected = False
        try:
            async with self._connected() as client:
                was_connected = True
                await self._watch(client)
        except TimeoutError:
            if not was_connected:
                return f"it did not answer within {CONNECTING:g} s"
        except Exception as error:  # noqa: BLE001  # an untrusted program can cause anything
            return self._why_lost or self._describe_error(error)
        return self._why_lost or "it has closed the connection"

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        self._lost.clear()
        self._why_lost = ""
        client = Client(
            self._transport(),
            read_timeout_seconds=self._timeout + LATE,
            message_handler=self._notice,
            client_info=types.Implementation(name="frostagent", version="1"),
            cache=None,
        )
        self._version = ""
        async with asyncio.timeout(CONNECTING) as deadline, client:
            self._version = client.protocol_version
            await self._list(client)
            deadline.reschedule(None)
            self._client, self._reason, self._changes_over = client, "", False
            self._tried.set()
            self._back.set()
            logger.info("MCP server %s offers %d tools", self.name, len(self._offers))
            try:
                yield client
            finally:
                self._be_away()

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        async with self._streams() as (incoming, outgoing):
            yield WatchedStream(incoming, self._end, self._keep_usable, self._clock), outgoing

    def _end(self, why: str) -> None:
        """The connection is lost; `why` is empty if the server has closed it."""
        self._why_lost = why
        self._lost.set()

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[Any]:
        if self._url:
            timeout = httpx2.Timeout(CONNECTING, read=max(self._timeout, CHECKING) + CONNECTING)
            async with (
                httpx2.AsyncClient(
                    headers={"Accept-Encoding": "identity", **self._headers},
                    timeout=timeout,
                    event_hooks={"response": [bound_body]},
                ) as http,
                streamable_http_client(
                    self._url, http_client=http, max_sse_event_size=LARGEST_EVENT
                ) as streams,
            ):
                yield streams
            return
        self._stderr.clear()
        async with open_program(
            self._command, self._args, env=self._env, cwd=self._cwd, complain=self._take_complaints
        ) as streams:
            yield streams

    def _take_complaints(self, said: str) -> None:
        for line in said.splitlines()[-STDERR_LINES:]:
            if words := one_line(visible_text(line), 300):
                self._stderr.append(words)

    async def _watch(self, client: Client) -> None:
        """Return once the connection is lost. Meanwhile, list the tools again when they change."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._follow_changes(client)),
                group.create_task(self._list_again(client)),
            ]
            while not self._lost.is_set():
                try:
                    async with asyncio.timeout(CHECKING):
                        await self._lost.wait()
                except TimeoutError:
                    await self._check(client)
            for task in tasks:
                task.cancel()

    async def _check(self, client: Client) -> None:
        if client.protocol_version > LEGACY_PING:
            return  # such a connection lasts only one request
        try:
            async with asyncio.timeout(CONNECTING):
                await client.session.send_ping()
        except (TimeoutError, MCPError, httpx2.HTTPError) as error:
            if not (isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND):
                self._lost.set()

    async def _follow_changes(self, client: Client) -> None:
        """Subscribe to changes of the tools, for servers that notify only subscribers."""
        while True:
            with suppress(SubscriptionLost, TimeoutError):
                try:
                    async with client.listen(tools_list_changed=True) as changes:
                        self._relist.set()  # the tools may have changed meanwhile
                        async for _ in changes:
                            self._relist.set()
                except (ListenNotSupportedError, MCPError):
                    return
            await self._clock.sleep(CHECKING)

    async def _notice(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._relist.set()

    async def _list_again(self, client: Client) -> None:
        pause = RELIST_PAUSE
        while True:
            pause = min(2 * pause, LONGEST_RELIST_PAUSE) if self._relist.is_set() else RELIST_PAUSE
            await self._relist.wait()
            self._relist.clear()
            try:
                async with asyncio.timeout(CONNECTING):
                    await self._list(client)
            except (TimeoutError, MCPError, ValueError) as error:
                self._error = self._describe_error(error)
                logger.warning("MCP server %s: its tools are as before: %s", self.name, self._error)
            await self._clock.sleep(pause)

    def _keep_usable(self, received: SessionMessage) -> None:
        """Drop entries from a page of tools that would make the SDK refuse the whole list."""
        message = received.message
        if not (self._version and isinstance(message, types.JSONRPCResponse)):
            return
        page = message.result
        if isinstance(page.get("tools"), list) and "content" not in page:
            page["tools"], dropped = usable_entries(page, self._version, self._wanted)
            self._dropped += dropped

    async def _list(self, client: Client) -> None:
        self._dropped.clear()
        listed: list[types.Tool] = []
        cursor: str | None = None
        cursors = set[str]()
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            cursor = page.next_cursor
            if not cursor or cursor in cursors or len(listed) > MOST_TOOLS:
                break
            cursors.add(cursor)
        offers, digests, skipped = dict[str, Tool](), dict[str, str](), list(self._dropped)
        if cursor and len(listed) <= MOST_TOOLS:
            skipped.append("its list has no end: what came so far is used")
        for each in listed:
            if len(offers) == MOST_TOOLS:
                skipped.append(f"it has more than {MOST_TOOLS} tools: the others are left out")
                break
            await self._clock.sleep(0)  # a long list must not block the event loop
            try:
                digest = digest_of(each)
                made = self._tool(each, digest)
            except (ValueError, TypeError, RecursionError) as error:
                skipped.append(reason_for(each.name, error))
                continue
            if made.name in offers:
                skipped.append(reason_for(each.name, f"there is another {made.name}"))
                continue
            offers[made.name], digests[made.name] = made, digest
        known = {each.name for each in listed}
        skipped += [
            reason_for(name, "it has no such tool")
            for name in sorted(self._wanted - known)
            if not any(line.startswith(f"{name}: ") for line in self._dropped)
        ]
        self._take_over(offers, digests, skipped)

    def _take_over(
        self, offers: dict[str, Tool], digests: Mapping[str, str], skipped: Sequence[str]
    ) -> None:
        """Offer these tools. An unchanged one keeps its object, and so prompts their prefix."""
        if self._first is None:
            self._first = digests
        for name, made in offers.items():
            if self._first.get(name, digests[name]) != digests[name]:
                self._changed[name] = None
            if (before := self._offers.get(name)) is None:
                continue
            if self._digests[name] != digests[name]:
                logger.warning("MCP server %s describes %s differently now", self.name, name)
            elif before.untrusted_description == made.untrusted_description:
                offers[name] = before
        told = [self._mask(line) for line in skipped[:MOST_REASONS]]
        if more := len(skipped) - len(told):
            told.append(f"and {more} more are left out")
        for line in set(told).difference(self._skipped):
            logger.warning("MCP server %s: %s", self.name, line)
        self._offers, self._digests, self._skipped = offers, digests, tuple(told)
        for subscriber in self._subscribers:
            if (changed := subscriber()) is not None:
                changed()

    def _tool(self, listed: types.Tool, digest: str) -> Tool:
        """Convert a tool of the server. Raises ValueError, TypeError, RecursionError."""
        check_name(listed.name)
        cleaned = clean_schema(whole_schema(listed.input_schema, listed.name))
        schema = json.loads(self._mask(json.dumps(cleaned)))
        said = listed.description or listed.title or listed.name

        async def execute(context: ToolContext, **arguments: Any) -> ToolResult:
            return await self._call(listed.name, context, arguments)

        name = f"{self.name}_{listed.name}"
        first = digest if self._first is None else self._first.get(our_name(name))
        trust = self._trust if self._trust == "full" or first in {digest, None} else "ask"
        declared: Declarations = {
            "timeout": self._timeout,
            "audience": self._audience,
            "type": "mcp",
            "available": lambda: self._reason,
            **rights(trust, listed.annotations),
        }
        return Tool(
            name=our_name(name),
            description=clean_description(self._mask(said)) or listed.name,
            parameters=schema,
            shape=Shape.of(schema),
            check=partial(check_arguments, schema),
            function=execute,
            wants_context=True,
            origin=f"{self.name}/{listed.name}",
            server=self.name,
            revision="" if trust == "full" else digest,
            untrusted_description=trust != "full" and (trust == "ask" or first is None),
            **fields_of(**declared),
        )

    # --- calls ------------------------------------------------------------------------------------

    async def _call(self, name: str, context: ToolContext, arguments: dict[str, Any]) -> ToolResult:
        self._calls += 1
        try:
            result = await self._ask(name, context, arguments)
        except BaseException:
            self._failures += 1
            raise
        self._failures += result.is_error
        return result

    async def _ask(self, name: str, context: ToolContext, arguments: dict[str, Any]) -> ToolResult:
        left = MOST_PROGRESS

        async def report(progress: float, total: float | None, message: str | None) -> None:
            nonlocal left
            if left:
                left -= 1
                words = self._mask(one_line(visible_text((message or "")[:1000]), 200))
                context.progress(words, progress=progress, total=total)

        for is_last in (False, True):
            if self._client is None and not self._error:
                await self._until_back()  # the run that kept it connected has ended
            client = self._client
            if client is None:
                raise ToolUnavailable(f"the server {self.name} {self._reason}. Do without it.")
            try:
                with self._under_way():
                    told = await client.call_tool(name, arguments, self._timeout + LATE, report)
                result = result_of(told)
                return replace(result, content=self._mask(result.content))
            except MCPError as error:
                if error.message == SESSION_GONE and not is_last:  # the server did not run the call
                    self._back.clear()
                    self._client = None
                    self._lost.set()
                    await self._until_back()
                    continue
                if error.code == types.CONNECTION_CLOSED:
                    self._lost.set()
                raise self._failed("says", self._describe_error(error, error.message)) from None
            except (httpx2.HTTPError, OSError) as error:
                self._lost.set()
                raise self._failed(
                    "cannot be reached any more", self._describe_error(error)
                ) from None
            except (ValueError, RuntimeError) as error:
                raise self._failed("gave no proper result", self._describe_error(error)) from None
        raise AssertionError("the second try returns or raises")

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        self._open_calls += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._open_calls -= 1
            if not self._open_calls:
                self._idle.set()

    def _failed(self, what: str, why: str) -> ToolFailed:
        self._error = why
        return ToolFailed(f"the server {self.name} {what}: {why}")

    async def _until_back(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(COMING_BACK):
                await self._back.wait()

    def _describe_error(self, error: BaseException, words: str = "") -> str:
        """The error without secrets; with the last line of stderr if not connected."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        told = one_line(self._mask(visible_text(words or f"{error}" or type(error).__name__)), 200)
        if words or not self._stderr or self._client is not None:
            return told
        return one_line(f"{told} ({self._mask(self._stderr[-1])})", 300)


class WatchedStream:
    """A transport stream that reports its end, and shows each message to `look` first. It ends
    itself if more than MOST_MESSAGES unrequested messages arrive within WINDOW seconds: each takes
    time, and each request of the server takes a task.
    """

    def __init__(
        self,
        stream: Any,
        ended: Callable[[str], None],
        look: Callable[[SessionMessage], None],
        clock: Clock,
    ) -> None:
        self._stream = stream
        self._ended = ended
        self._look = look
        self._clock = clock
        self._since, self._unasked = clock.monotonic(), 0

    def _seen(self, received: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(received, SessionMessage):
            self._look(received)
            if isinstance(received.message, types.JSONRPCResponse | types.JSONRPCError):
                return received
        if (now := self._clock.monotonic()) - self._since > WINDOW:
            self._since, self._unasked = now, 0
        self._unasked += 1
        if self._unasked > MOST_MESSAGES:
            self._ended(f"it sent more than {MOST_MESSAGES} messages within {WINDOW:g} s")
            raise anyio.EndOfStream
        return received

    async def receive(self) -> SessionMessage | Exception:
        """The next message. Raises anyio's errors at the end of the stream."""
        try:
            received: SessionMessage | Exception = await self._stream.receive()
        except Exception:
            self._ended("")
            raise
        return self._seen(received)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            received: SessionMessage | Exception = await self._stream.__anext__()
        except Exception:
            self._ended("")
            raise
        return self._seen(received)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> bool | None:
        answer: bool | None = await self._stream.__aexit__(*exception)
        return answer

    def __getattr__(self, name: str) -> Any:  # such as `last_context`
        return getattr(self._stream, name)


async def bound_body(response: httpx2.Response) -> None:
    """An HTTP response hook. Raises DecodingError for a compressed response, and replaces the body
    by a BoundedBody.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.DecodingError("it answers compressed, though it was asked not to")
    kind = response.headers.get("content-type", "").lower()
    is_stream = kind.startswith("text/event-stream")
    response.stream = BoundedBody(response.stream, is_stream=is_stream)


class BoundedBody(httpx2.AsyncByteStream):
    """A body in pieces: whole events of a stream, else the whole body. Raises DecodingError for a
    piece that is larger than LARGEST_EVENT or takes too long to parse.
    """

    def __init__(self, body: Any, *, is_stream: bool) -> None:
        self._body = body
        self._is_stream = is_stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held, looked = bytearray(), 0
        async for chunk in self._body:
            held += chunk
            if len(held) > LARGEST_EVENT:
                raise httpx2.DecodingError(f"it answers with more than {LARGEST_EVENT} bytes")
            if not self._is_stream:
                continue
            if ends := [end.end() for end in END_OF_EVENT.finditer(held, looked)]:
                yield self._checked(held[: ends[-1]])
                del held[: ends[-1]]
            looked = max(0, len(held) - 3)  # an end may be parted
        if held:
            yield self._checked(held)

    def _checked(self, piece: bytearray) -> bytes:
        if has_too_many_values(piece):
            raise httpx2.DecodingError(f"it answers with more than {MOST_VALUES} values at once")
        return bytes(piece)

    async def aclose(self) -> None:
        await self._body.aclose()


def rights(trust: Trust, hints: types.ToolAnnotations | None) -> Declarations:
    """A tool's permissions. The server's hints can only make them stricter."""
    writes = hints is not None and (hints.read_only_hint is False or bool(hints.destructive_hint))
    match trust:
        case "full":
            effects = SideEffects.EXTERNAL
        case "read" if not writes:
            effects = SideEffects.READ
        case _:
            return {"permission": Permission.REQUIRE_APPROVAL, "side_effects": SideEffects.EXTERNAL}
    return {"permission": Permission.ALLOW, "side_effects": effects}


def result_of(told: types.CallToolResult) -> ToolResult:
    """A server's result as text and pictures, with a note for each part that has neither."""
    words, images = list[str](), list[Image]()
    for block in told.content[:MOST_BLOCKS]:
        match block:
            case types.TextContent(text=text):
                words.append(text[:MOST_READ])
            case types.ImageContent(data=data, mime_type=kind) if len(images) < MOST_PICTURES:
                image = picture_of(data, kind)
                if image is None:
                    words.append(f"(a picture, {one_line(kind, 40)}: it cannot be shown)")
                else:
                    images.append(image)
            case types.ResourceLink(uri=uri, name=name):
                words.append(f"({name}: {uri})")
            case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
                words.append(text[:MOST_READ])
            case types.EmbeddedResource(resource=resource):
                words.append(f"({resource.uri}: it is no text)")
            case _:
                words.append(f"(something of the kind {block.type}: it cannot be shown)")
    if not words and not images and told.structured_content is not None:
        words.append(json.dumps(told.structured_content, ensure_ascii=False))
    text = shorten(visible_text("\n".join(words)[:MOST_READ]), LONGEST_RESULT)
    return ToolResult(text, tuple(images), is_error=told.is_error, tainted=True)


def picture_of(data: str, kind: str) -> Image | None:
    """The picture, or None if models cannot read it or it is too large."""
    name = kind.removeprefix("image/").lower()
    if name not in SHOWN_KINDS or len(data) * 3 // 4 > LARGEST_PICTURE:
        return None
    try:
        return Image.of(base64.b64decode(data, validate=True), kind=name)
    except binascii.Error:
        return None
