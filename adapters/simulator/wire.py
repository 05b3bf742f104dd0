"""NapCat's frames, as plain dictionaries with its keys in its order (onebot.md 2 and 3)."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from frostagent.types.errors import BotError

Json: TypeAlias = dict[str, Any]

BAD_REQUEST = 1400  # an unreadable frame or parameter
NO_SUCH_ACTION = 1404
BAD_TOKEN = 1403
NOT_DONE = 1200  # the action ran and raised an error
SENDING = (
    "NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg "
    "ListenerName:NodeIKernelMsgListener/onMsgInfoListUpdate EventRet:"
)


class CallRefused(BotError):
    """A call that the simulated server refuses; `retcode` and `wording` are its answer."""

    def __init__(self, retcode: int, wording: str) -> None:
        self.retcode = retcode
        self.wording = wording
        super().__init__(f"{wording} ({retcode})")


def ok(data: Any, echo: Any) -> Json:
    """The reply to a successful call; `echo` is returned unchanged, whatever JSON it is."""
    return _envelope("ok", 0, data, "", echo)


def failed(retcode: int, wording: str, echo: Any) -> Json:
    """The reply to a failed call; the reason appears as `message` and as `wording`."""
    return _envelope("failed", retcode, None, wording, echo)


def unconfirmed(**returned: Any) -> str:
    """NapCat's text on a message that QQ did not confirm in time; `returned` is what QQ's kernel
    had returned by then.
    """
    return f"Timeout: {SENDING}\n{_as_napcat_prints(returned)}\n"


def rejected(result: int, reason: str) -> str:
    """NapCat's text on a message that QQ refused at once (NapNeko/NapCatQQ issues 600, 901)."""
    return (
        "EventChecker Failed: "
        f"{SENDING}\n{_as_napcat_prints({'result': result, 'errMsg': reason})}\n"
    )


def _as_napcat_prints(returned: Json) -> str:
    return json.dumps(returned, ensure_ascii=False, indent=4)


MUTED = unconfirmed(result=120, errMsg="禁言中")


def _envelope(status: str, retcode: int, data: Any, wording: str, echo: Any) -> Json:
    return {
        "status": status,
        "retcode": retcode,
        "data": data,
        "message": wording,
        "wording": wording,
        "echo": echo,
        "stream": "normal-action",
    }


def lifecycle(self_id: int, now: float) -> Json:
    """The first frame of every connection for events."""
    return _meta(self_id, now, "lifecycle", sub_type="connect")


def heartbeat(self_id: int, now: float, *, online: bool, interval: float) -> Json:
    """`interval` is in seconds, sent in milliseconds; a kicked account sends `online` false."""
    status = {"online": online, "good": True}
    return _meta(self_id, now, "heartbeat", status=status, interval=round(interval * 1000))


def _meta(self_id: int, now: float, kind: str, **fields: Any) -> Json:
    return {
        "time": int(now),
        "self_id": self_id,
        "post_type": "meta_event",
        "meta_event_type": kind,
        **fields,
    }


def notice(self_id: int, now: float, kind: str, **fields: Any) -> Json:
    """Any notice; fields of None are left out, such as `group_id` in private."""
    said = {name: value for name, value in fields.items() if value is not None}
    return {
        "time": int(now),
        "self_id": self_id,
        "post_type": "notice",
        "notice_type": kind,
        **said,
    }


def poke(self_id: int, now: float, *, user_id: int, target_id: int, group_id: int | None) -> Json:
    """`user_id` poked `target_id`; between friends NapCat has `sender_id` instead of a group."""
    where = {"sender_id": user_id} if group_id is None else {"group_id": group_id}
    verb = [
        {"col": "1", "nm": "", "type": "qq", "uid": f"u_{user_id}"},
        {"txt": "戳了戳", "type": "nor"},
        {"col": "1", "nm": "", "tp": "0", "type": "qq", "uid": f"u_{target_id}"},
        {"txt": "", "type": "nor"},
    ]
    fields = {
        "sub_type": "poke",
        "target_id": target_id,
        "user_id": user_id,
        **where,
        "raw_info": verb,
    }
    return notice(self_id, now, "notify", **fields)


def text(words: str) -> Json:
    return {"type": "text", "data": {"text": words}}


def mention(user_id: int | str) -> Json:
    """A mention of a person, or of everyone (`all`)."""
    return {"type": "at", "data": {"qq": str(user_id)}}


CODE = re.compile(r"\[CQ:([A-Za-z0-9_]+)((?:,[^\[\],=]+=[^\[\],]*)*)\]")


def format_cq(segments: list[Json]) -> str:
    """The segments as one string, trimmed as by NapCat."""
    return "".join(map(_write_segment, segments)).strip()


def _write_segment(segment: Json) -> str:
    data = segment["data"]
    if segment["type"] == "text":
        return _escape(str(data.get("text", "")))
    values = (
        f",{name}={_write_value(value)}" for name, value in data.items() if value not in (None, "")
    )
    return f"[CQ:{segment['type']}{''.join(values)}]"


def _write_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return _escape("[object Object]")  # JavaScript's rendering
        case list():
            return "&#44;".join(map(_write_value, value))
        case _:
            return _escape(str(value)).replace(",", "&#44;")


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("[", "&#91;").replace("]", "&#93;")


def parse_cq(text: str) -> list[Json]:
    """The segments of a string; incomplete codes stay text."""
    segments: list[Json] = []
    end = 0
    for match in CODE.finditer(text):
        segments += _text(text[end : match.start()])
        pairs = (pair.split("=", 1) for pair in match[2].split(",")[1:])
        segments.append(
            {"type": match[1], "data": {name: _unescape(value) for name, value in pairs}}
        )
        end = match.end()
    return segments + _text(text[end:])


def _text(text: str) -> list[Json]:
    return [{"type": "text", "data": {"text": _unescape(text)}}] if text else []


def _unescape(text: str) -> str:
    """Unescape with `&amp;` last: `&amp;#91;` is the text `&#91;`."""
    return (
        text.replace("&#44;", ",").replace("&#91;", "[").replace("&#93;", "]").replace("&amp;", "&")
    )
