"""Records a real model's answers to a file, and replays them in tests without a network.

async with connect(url, "deepseek-v4-flash", key) as real:
    with RecordingModel(real, "weather.jsonl", secrets=[key]) as model:
        await Agent(model=model, tools=[get_weather]).run("How is the weather in Beijing?")

with ReplayModel("weather.jsonl") as model:
    reply = await Agent(model=model, tools=[get_weather]).run("How is the weather in Beijing?")
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

from frostagent.testing.scripted_model import stream_words
from frostagent.text.masking import KEYS, MASK, Mask
from frostagent.types import errors
from frostagent.types.errors import ModelError
from frostagent.types.messages import AssistantMessage, Completion, Message, ModelRequest
from frostagent.types.ports import ChatModel

M = TypeVar("M", bound=Message)

SHOWN = 60  # characters shown around the first difference in a text
DIFFERENCES = 5  # differences shown for one request
DETAILS = ("status", "code", "retry_after", "limit")  # of an error


class RecordingModel:
    """Forwards requests to another model and records each exchange, including each ModelError. Fits
    `ChatModel`.

    Use it as a context manager: it writes the file at the end of the block, one JSON line for each
    exchange, replacing an older one. A block that fails leaves the file unchanged. `secrets`, and
    anything that looks like a key or a token, are written as `***`. Addresses and headers are not
    recorded.
    """

    def __init__(
        self, model: ChatModel, path: str | os.PathLike[str], *, secrets: Iterable[str] = ()
    ) -> None:
        self._model = model
        self._path = Path(path)
        self._hide = _hiding(secrets)
        self._lines: list[dict[str, Any]] = []

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """The model's answer. Raises what the model raises."""
        line = {"request": self._hide(_plain(request))}
        try:
            completion = await self._model.complete(request)
        except ModelError as error:
            told = {name: value for name in DETAILS if (value := getattr(error, name, None))}
            failed = {"type": type(error).__name__, "message": str(error), **told}
            self._lines.append({**line, "error": self._hide(failed)})
            raise
        said = replace(completion, message=_placeless(completion.message), endpoint="")
        self._lines.append({**line, "answer": self._hide(_told(said))})
        return completion

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self._lines)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(text, "utf-8", newline="\n")


class ReplayModel:
    """Answers from a recording. Each exchange is used once, equal ones in their order. Fits
    `ChatModel`, and keeps every request in `requests`.

    Raises AssertionError for a request that was not recorded, with the differences, and, as a
    context manager, if exchanges were left. `secrets` are hidden as in the recording. Raises
    OSError for a file that cannot be read, ValueError for one that is not a recording.
    """

    name = "replay"

    def __init__(self, path: str | os.PathLike[str], *, secrets: Iterable[str] = ()) -> None:
        self._path = Path(path)
        self._hide = _hiding(secrets)
        lines = self._path.read_text("utf-8").splitlines()
        self._left = [self._read(number, line) for number, line in enumerate(lines, 1)]
        self.requests: list[ModelRequest] = []

    def _read(self, number: int, line: str) -> tuple[Any, Completion | ModelError]:
        try:
            exchange = json.loads(line)
            if "error" in exchange:
                return exchange["request"], _error_of(exchange["error"])
            return exchange["request"], msgspec.convert(exchange["answer"], Completion)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{self._path}, line {number}: no recorded exchange ({error})"
            ) from None

    async def complete(self, request: ModelRequest) -> Completion:
        """The recorded answer, streamed if `on_delta` is set. Raises the recorded error."""
        self.requests.append(request)
        asked = self._hide(_plain(request))
        place = next((at for at, (recorded, _) in enumerate(self._left) if recorded == asked), None)
        if place is None:
            raise AssertionError(self._unlike(asked))
        _, answer = self._left.pop(place)
        if isinstance(answer, ModelError):
            raise answer
        if request.on_delta is not None:
            await stream_words(answer.message, request.on_delta)
        return answer

    def _unlike(self, asked: Any) -> str:
        told = f"request {len(self.requests)} is not in {self._path}"
        if not self._left:
            return f"{told}: all that was recorded is answered. Record it again."
        found = list(islice(_differences(self._left[0][0], asked, "request"), DIFFERENCES))
        return "\n  ".join([f"{told}; the next one there differs in:", *found, "Record it again."])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._left:
            raise AssertionError(
                f"{len(self._left)} exchanges of {self._path} were never asked for"
            )


def _plain(request: ModelRequest) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "messages": [_told(_placeless(message)) for message in request.messages],
        "tools": {tool.name: msgspec.to_builtins(tool) for tool in request.tools},
        "temperature": request.temperature,
        "answer_schema": request.answer_schema,
    }
    said: dict[str, Any] = json.loads(json.dumps({name: one for name, one in asked.items() if one}))
    return said


def _placeless(message: M) -> M:
    """The message without its reasoning's endpoint, which differs between runs."""
    if isinstance(message, AssistantMessage) and message.reasoning is not None:
        return replace(message, reasoning=replace(message.reasoning, endpoint=""))
    return message


def _told(value: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct as JSON, without empty ones."""
    told = {
        name: one for name, one in msgspec.to_builtins(value).items() if one not in ("", [], False)
    }
    return {name: one for name, one in told.items() if one is not None}


def _hiding(secrets: Iterable[str]) -> Callable[[Any], Any]:
    """A function that hides these, and what looks like a secret, in all texts of a value."""
    mask = Mask(secrets)

    def hide(value: Any) -> Any:
        match value:
            case str():
                return KEYS.sub(lambda found: f"{found['before'] or ''}{MASK}", mask(value))
            case Mapping():
                return {hide(name): hide(one) for name, one in value.items()}
            case list() | tuple():
                return [hide(one) for one in value]
            case _:
                return value

    return hide


def _error_of(told: dict[str, Any]) -> ModelError:
    kind = getattr(errors, told["type"])
    if not issubclass(kind, ModelError):
        raise TypeError(f"{told['type']} is no error of a model")
    details = {name: told[name] for name in DETAILS if name in told}
    error: ModelError = kind(told["message"], **details)
    return error


def _differences(recorded: Any, now: Any, path: str) -> Iterator[str]:
    """One line for each difference."""
    match recorded, now:
        case {"type": str() as one}, {"type": str() as other} if one != other:
            yield f"{path}: recorded {_shown(recorded)}, now {_shown(now)}"
        case dict(), dict():
            for name in [*recorded, *(name for name in now if name not in recorded)]:
                where = f"{path}.{name}"
                if name not in now:
                    yield f"{where}: recorded {_shown(recorded[name])}, now missing"
                elif name not in recorded:
                    yield f"{where}: not recorded, now {_shown(now[name])}"
                else:
                    yield from _differences(recorded[name], now[name], where)
        case list(), list():
            if len(recorded) != len(now):
                yield f"{path}: {len(recorded)} recorded, now {len(now)}"
            for index, (one, other) in enumerate(zip(recorded, now, strict=False)):
                yield from _differences(one, other, f"{path}[{index}]")
        case str(), str() if recorded != now:
            alike = takewhile(lambda pair: pair[0] == pair[1], zip(recorded, now, strict=False))
            begin = max(0, sum(1 for _ in alike) - SHOWN // 3)
            yield f"{path}: recorded {_shown(recorded, begin)}, now {_shown(now, begin)}"
        case _ if recorded != now:
            yield f"{path}: recorded {_shown(recorded)}, now {_shown(now)}"
        case _:
            pass


def _shown(value: Any, begin: int = 0) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    end = begin + SHOWN
    cut = f"{'…' if begin else ''}{text[begin:end]}{'…' if len(text) > end else ''}"
    return repr(cut) if isinstance(value, str) else cut
