"""What holds in every scenario, whatever its script looks at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from adapters.simulator.call import SentMessage
from frostagent.types.messages import AssistantMessage, ModelRequest, ToolMessage
from tests.e2e.scenarios.model import as_text
from tests.e2e.scenarios.parts import quoted_in, text_of

FRAME = re.compile(
    r"\[(?:提问|群聊记录|引用 |转发内容|此刻|系统记录|此前对话摘要|Question|Group log)|^[^\s:#]+#\d+: ",
    re.MULTILINE,
)


ERROR = re.compile(
    r"retcode|Traceback|Errno|\bHTTP\b|\b[A-Z]\w+(?:Error|Exception)\b|\[(?:MODEL|MEDIA|TRANSPORT)_[A-Z_]+\]"
)


def broken_by(requests: list[ModelRequest], sent: list[SentMessage], people: Iterable[int]) -> Iterator[str]:
    """Complaints, a line each; no model is told the QQ number of any of these people."""
    numbers = re.compile("|".join(map(str, people)))
    for number, request in enumerate(requests, 1):
        yield from unpaired(number, request)
        if found := numbers.search(as_text(request.messages)):
            yield f"request {number} tells a QQ number: {found[0]}"
        if found := ERROR.search(as_text([one for one in request.messages if not isinstance(one, AssistantMessage)])):
            yield f"request {number} tells the words of an error: {found[0]}"
    for message in sent:
        if found := FRAME.search(text_of(message)):
            yield f"the frame of the prompt was sent: {found[0]!r} in {text_of(message)!r}"
    answers = Counter((quoted_in(message), text_of(message)) for message in sent if quoted_in(message))
    yield from (f"said {times} times to one question: {text!r}" for (_, text), times in answers.items() if times > 1)


def unpaired(number: int, request: ModelRequest) -> Iterator[str]:
    """Calls without results right behind them, and results without calls."""
    owed: list[str] = []
    for message in request.messages:
        if isinstance(message, ToolMessage):
            if not owed or owed.pop(0) != message.call_id:
                yield f"request {number} has a result of no call: {message.call_id}"
            continue
        if owed:
            yield f"request {number} has calls without results: {owed}"
        owed = [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
    if owed:
        yield f"request {number} ends with calls without results: {owed}"
