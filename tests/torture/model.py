"""A scripted model behind HTTP: what it answers follows from the question alone, and every request is checked.

A question is `KIND#TOKEN`, or `KIND+EFFECT#TOKEN` where a tool with that effect is called first. What is said in a run
is `S:TOKEN`, an answer `A:TOKEN`, the words after tools `F:TOKEN`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from aiohttp import web

from adapters.offline.brain import DemoCall, Thought
from adapters.offline.server import DemoReply

Json: TypeAlias = dict[str, Any]

QUESTION = re.compile(r"([a-z]+)(?:\+([a-z]+))?#([a-z]+[0-9]+)")
MOMENT = re.compile(r"\n\[(?:此刻|Right now)\][^\n]*")  # behind a question, for its own run alone
GROUP, FRIEND = re.compile(r"「group (\d+)」"), re.compile(r"^friend(\d+)#\d+: ", re.MULTILINE)
EFFECTS = {"ring": "ring_bell", "strike": "strike_gong"}
NOTE = re.compile(r"(?:\A|\n\n)\[(?:系统记录|System note)\]\n[^\n]*\n\n")  # ends what was not answered before
NAMED = re.compile(r"user2#\d+")
LONG = "这一句已经说过了，最后不用再说一遍"
VERY_LONG = "\n\n".join(f"第 {number} 段：" + "说来话长，" * 60 for number in range(1, 9))  # a merged forward


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the model saw it: `conversation` is empty for a subagent's and a summary; `step` counts from 0.

    `effect` is the tool that is called beside everything else, or empty.
    """

    conversation: str
    kind: str
    token: str
    step: int
    messages: tuple[Json, ...]
    effect: str = ""

    @property
    def together(self) -> tuple[str, ...]:
        """The questions of one person that are asked together, in private, where nobody else speaks."""
        if ":private:" not in self.conversation:
            return ()
        last = next(message for message in reversed(self.messages) if message["role"] == "user")
        return tuple(token for *_, token in QUESTION.findall(behind_notes(last["content"])))


class ScriptedModel:
    """An OpenAI-compatible server; it lives as long as its `async with`.

    `on_ask` is waited for before a question is answered; `answer` says how, else its kind does. `asked` are all
    requests in order, `invalid` what is wrong with their transcripts; `bodies` are the requests as they came, byte for
    byte.
    """

    def __init__(
        self, on_ask: Callable[[Asked], Awaitable[None]], answer: Callable[[Asked], Thought] | None = None
    ) -> None:
        self.base_url = ""
        self.asked: list[Asked] = []
        self.invalid: list[str] = []
        self.bodies: list[bytes] = []
        self._on_ask = on_ask
        self._answer = answer or think
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        messages = json.loads(self.bodies[-1])["messages"]
        asked = read_request(messages)
        self.asked.append(asked)
        self.invalid += (f"a request for {asked.kind}#{asked.token}: {what}" for what in faults(messages))
        await self._on_ask(asked)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        try:
            await response.prepare(request)
            await response.write(
                b"".join(DemoReply(self._answer(asked), messages, created=0).events(include_usage=True))
            )
            await response.write_eof()
        except ConnectionResetError:
            pass  # who asked is dead
        return response


def read_request(messages: Sequence[Json]) -> Asked:
    """What is asked, from the last user message; how far its answer is, from what follows it."""
    users = [place for place, message in enumerate(messages) if message["role"] == "user"]
    # What was said into a run stands behind its question, which alone tells the moment.
    last = next((place for place in reversed(users) if MOMENT.search(messages[place]["content"])), users[-1])
    step = sum(message["role"] == "assistant" for message in messages[last:])
    words = behind_notes(messages[last]["content"])
    is_chat = MOMENT.search(words) is not None
    asked = QUESTION.findall(words) if is_chat else []
    shown = MOMENT.sub("", messages[last]["content"])
    messages = [*messages[:last], {**messages[last], "content": shown}, *messages[last + 1 :]]
    kind, effect, token = (asked or [("task", "", "none0")])[-1]
    return Asked(_conversation(words) if is_chat else "", kind, token, step, tuple(messages), effect)


def behind_notes(words: str) -> str:
    """What is asked now: questions that had no answer, and the notes on that, are told in the same message."""
    return NOTE.split(words)[-1]


def _conversation(words: str) -> str:
    """Where it was asked: of people a prompt has no account, but here their names say it."""
    if group := GROUP.search(words):
        return f"10001:group:{group[1]}"
    friend = FRIEND.search(words)
    return f"10001:private:{friend[1]}" if friend else "elsewhere"


def think(asked: Asked) -> Thought:
    """The answer to a question at its step: the tool with the effect comes first, and its answer after that."""
    if not asked.effect:
        return _think(asked)
    thought, call = _think(asked), DemoCall(EFFECTS[asked.effect], {"token": asked.token})
    return Thought(calls=(call, *thought.calls)) if asked.step == 0 else thought


def _think(asked: Asked) -> Thought:
    token = asked.token
    match asked.kind, asked.step:
        case "task", _:
            return Thought("C:done")
        case "refused", 0:
            named = NAMED.findall(str([message["content"] for message in asked.messages]))
            return Thought(f"A:{token}\n@{named[-1]}" if named else f"A:{token}")
        case "long", 0:
            return Thought(f"A:{token}\n\n{VERY_LONG}")
        case "tool", 0:
            return Thought(calls=(_say(f"S:{token}"),))
        case ("rounds", 0 | 1 as step):
            return Thought(calls=(_say(f"S:{token}-{step}"),))
        case (("pair" | "adrift"), 0):
            return Thought(calls=(_say(f"S:{token}-0"), _say(f"S:{token}-1")))
        case "same", step:
            said = f"S:{token} {LONG}"
            return Thought(said) if step else Thought(calls=(_say(said),))
        case "picture", 0:
            return Thought(calls=(_say(f"S:{token}", "demo.png"),))
        case "wait", 0:
            return Thought(calls=(_say(f"S:{token} {LONG}"), DemoCall("ask_first", {})))
        case "wait", _:
            return Thought(f"S:{token} {LONG}")
        case "ring", 0:
            return Thought(calls=(DemoCall(EFFECTS["ring"], {"token": token}),))
        case "strike", 0:
            return Thought(calls=(DemoCall(EFFECTS["strike"], {"token": token}),))
        case "remind", 0:
            return Thought(calls=(DemoCall("remind", {"action": "create", "words": f"R:{token}", "when": "+2s"}),))
        case "schedule", 0:
            later = {"action": "create", "words": f"later#r{token[1:]}", "when": "+2s", "kind": "run"}
            return Thought(calls=(DemoCall("remind", later),))
        case "helper", 0:
            return Thought(calls=(DemoCall("use_subagent", {"subagent_name": "Coder", "content": "make it"}),))
        case _, 0:
            return Thought(f"A:{token}")
        case _:
            return Thought(f"F:{token}")


def _say(text: str, *pictures: str) -> DemoCall:
    shown = [{"type": "image", "path": picture} for picture in pictures]
    return DemoCall("send_message", {"messages": [{"type": "plain", "text": text}, *shown]})


def faults(messages: Sequence[Json]) -> list[str]:
    """What is wrong with a transcript in the wire's form; nothing where it is valid.

    The first message after the system prompt is a user's, people and the model take turns, and each call is followed
    by exactly its result, in the order of the calls.
    """
    wrong: list[str] = []
    roles = [message["role"] for message in messages]
    if roles[:2] != ["system", "user"] or roles.count("system") != 1:
        wrong.append(f"it begins with {roles[:2]}")
    open_calls: list[str] = []
    for before, message in zip([None, *roles], messages, strict=False):
        role = message["role"]
        if role == "tool":
            if not open_calls or message["tool_call_id"] != open_calls.pop(0):
                wrong.append(f"the result {message['tool_call_id']} has no call, or is out of order")
            continue
        if open_calls:
            wrong.append(f"the calls {open_calls} have no result")
        if before == role:
            wrong.append(f"two messages of the {role} in a row")
        calls = message.get("tool_calls") or []
        open_calls = [call["id"] for call in calls]
        if role == "assistant" and not calls and not message["content"]:
            wrong.append("an assistant message that says nothing")
    if open_calls:
        wrong.append(f"the calls {open_calls} have no result")
    return wrong
