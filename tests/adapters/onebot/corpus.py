"""Frames as OneBot servers send them: ours (`tests/data/onebot`), and the shared ones where they lie beside us."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

OURS = Path(__file__).parents[2] / "data" / "onebot"
SHARED = Path(__file__).parents[4] / "shared" / "onebot" / "events"


@dataclass(frozen=True, slots=True)
class Capture:
    """One case: `name` is its category, two underscores and its own name; `frames` are as they come over the wire."""

    name: str
    frames: tuple[str, ...]

    @property
    def category(self) -> str:
        return self.name.partition("__")[0]

    @property
    def content(self) -> Any:
        """The only frame, read."""
        (frame,) = self.frames
        return json.loads(frame)


@cache
def ours() -> dict[str, Capture]:
    """The cases of our own making, by name."""
    found = {}
    for file in sorted(OURS.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            name = f"{file.stem}__{row['name']}"
            found[name] = Capture(name, tuple(_frames(row)))
    return found


@cache
def shared() -> tuple[Capture, ...]:
    """The shared cases; none where that folder is absent."""
    found = []
    for file in sorted(SHARED.glob("*.json")):
        content = json.loads(file.read_text("utf-8"))
        match content:
            case {"_kind": "raw_frame", "frame": frame}:
                row = {"raw": frame}
            case {"_kind": "sequence", "frames": frames}:
                row = {"sequence": [frame.get("event", frame) for frame in frames]}
            case _:
                row = {"frame": content}
        found.append(Capture(file.stem, tuple(_frames(row))))
    return tuple(found)


def captures() -> tuple[Capture, ...]:
    """Every case there is."""
    return (*ours().values(), *shared())


def _frames(row: dict[str, Any]) -> Iterator[str]:
    match row:
        case {"raw": frame}:
            yield frame
        case {"sequence": frames}:
            yield from (json.dumps(frame, ensure_ascii=False) for frame in frames)
        case _:
            yield json.dumps(row["frame"], ensure_ascii=False)


# --- features -------------------------------------------------------------------------------------


def features_of(capture: Capture) -> set[str]:
    """What a case shows, as lines of `features.txt`: the kinds of its frames, their fields and their segments."""
    found = {"several frames"} if len(capture.frames) > 1 else set()
    for frame in capture.frames:
        try:
            content = json.loads(frame)
        except ValueError:
            found.add("frame: not JSON")
            continue
        if isinstance(content, dict):
            found |= _features_of_frame(content)
        else:
            found.add(f"frame: {_kind(content)}")
    return found


def _features_of_frame(frame: dict[str, Any]) -> set[str]:
    post = frame.get("post_type")
    if post is None:
        return {f"answer: {frame.get('status')} {frame.get('retcode')}", *_fields("answer", frame)}
    types = [post, frame.get(f"{'message' if post == 'message_sent' else str(post).removesuffix('_event')}_type")]
    if post == "meta_event":
        types[1] = frame.get("meta_event_type")
    event = " ".join(str(part) for part in (*types, frame.get("sub_type")) if part is not None)
    message = frame.get("message")
    found = {f"event: {event}", *_fields(str(post), {key: frame[key] for key in frame if key != "message"})}
    if "message" in frame:
        found |= {f"message as {_kind(message)}", *_segments(message)}
    return found


def _segments(message: object) -> Iterator[str]:
    match message:
        case str(text):
            yield from (f"code [CQ:{name}]" for name in re.findall(r"\[CQ:(\w+)", text))
        case dict():
            yield from _segments([message])
        case list():
            for segment in message:
                kind, data = segment.get("type"), segment.get("data")
                yield f"segment {kind}: {_kind(data)}"
                yield from _fields(f"segment {kind}", data if isinstance(data, dict) else {}, deep=False)
        case _:
            pass


def _fields(where: str, content: dict[str, Any], *, deep: bool = True) -> Iterator[str]:
    for key, value in content.items():
        yield f"{where}.{key}: {_kind(value)}"
        inner = value[0] if isinstance(value, list) and value else value
        if deep and isinstance(inner, dict):
            yield from _fields(f"{where}.{key}", inner, deep=where == "answer")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "negative" if value < 0 else "number"
        case str(text):
            return "text" if text else "empty text"
        case []:
            return "empty list"
        case {}:
            return "object" if value else "empty object"
        case _:
            return type(value).__name__
