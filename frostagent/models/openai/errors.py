"""Classifies refusals: whatever a vendor says becomes one error class, which decides what to do
(section 7).

The knowledge is in `SIGNS` and `STATUSES`, tried in order. Text is checked before the status,
because vendors report billing as 429, 400 or 403, and the caller's mistakes as 500.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from frostagent.text.lazy_regex import lazy_regex
from frostagent.types.errors import (
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
    ToolsUnsupported,
    ToolUseFailed,
)


@dataclass(frozen=True, slots=True)
class Sign:
    """A pattern and its error class, unless `unless` matches, too.

    The text starts with the codes, as `<code>`. `code` marks the error if the vendor's own code
    does not (llama.cpp repeats the status there).
    """

    error: type[ModelError]
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    code: str = ""

    def fits(self, text: str) -> bool:
        return bool(self.pattern.search(text)) and not (self.unless and self.unless.search(text))


def _sign(error: type[ModelError], *alternatives: str, unless: str = "", code: str = "") -> Sign:
    pattern = lazy_regex("|".join(alternatives), re.IGNORECASE | re.DOTALL)
    return Sign(error, pattern, lazy_regex(unless, re.IGNORECASE) if unless else None, code)


# Four-digit codes are Zhipu's, 20012 is SiliconFlow's; CamelCase names are Volcengine's and
# DashScope's.
SIGNS = (
    # Gemini's quota per minute, which reads like billing.
    _sign(ModelRateLimited, r"current quota.*retry in [\d.]+ ?s"),
    _sign(ToolUseFailed, r"<tool_use_failed>", r"tool call validation failed"),
    _sign(
        ModelBilling,
        r"<insufficient_quota>", r"<exceeded_current_quota_error>", r"<Arrearage>",
        r"<AccountOverdueError>",
        r"<1113>", r"<1304>", r"<130[89]>", r"<1310>",
        r"insufficient (account )?(balance|credits?|funds)",
        r"exceeded (your )?current quota", r"credit balance is too low", r"overdue balance",
        r"requires more credits",
        r"out of credits", r"\b[TR]PD\b", r"(tokens|requests) per day",
        r"balance is (insufficient|not enough|too low)",
        r"<billing_\w+>", r"<FreeTierOnly>|free tier of the model has been exhausted",
        r"<SetLimitExceeded>",
        r"(used all available|monthly included|prepayment) credits", r"key limit exceeded",
        r"payment required",
        r"spend(ing)? limits?\b.{0,40}(reached|exceeded)",
        r"(reached|exceeded).{0,40}\b(spend|spending|usage) limits?",
        r"余额不足", r"欠费", r"使用上限", r"今日调用次数", r"账户已停用",
        r"额度(已)?(用尽|不足|耗尽)",
    ),
    _sign(
        ContentFiltered,
        r"data_?inspection_?failed", r"<1301>", r"<content_filter>",
        r"<ResponsibleAIPolicyViolation>",
        r"content[_ ]policy[_ ]violation", r"content management policy",
        r"Sensitive(Content|Text|Image)Detected",
        r"inappropriate content", r"content exists risk", r"敏感内容",
    ),
    _sign(
        ToolsUnsupported,
        r"does not support (tools|function call)", r"requires --enable-auto-tool-choice",
        r"tools param requires --jinja", r"function calling is not (enabled|supported)",
        r"endpoints found that support tool use",
        r"\btool(s|s? calling)`? is not supported (with|by) this model",
    ),
    _sign(  # the format or size of this picture, and so of similar ones
        ImagesUnsupported,
        r"\b(mime|media)[ _-]?types?\b.{0,60}"
        r"(not (supported|allowed|accepted)|unsupported|invalid)",
        r"(unsupported|invalid|disallowed) (mime|media)[ _-]?type",
        r"(unsupported|invalid|disallowed) (image|picture) (format|type|size|dimension)",
        r"\b(image|picture) (format|type|size|dimensions?|resolution)\b.{0,60}"
        r"(not (supported|allowed|accepted|valid)|unsupported|invalid)",
        r"\b(image|picture)s?\b.{0,60}"
        r"(exceeds?|too (large|big|small)|(larger|greater|bigger) than)",
        r"(image|picture)s? must be (in )?(one of|at (most|least)|smaller|less|a |png|jpe?g)",
        r"(图片|图像|图像文件)的?(文件)?(格式|类型|后缀|编码).{0,20}(不支持|不被支持|不正确|错误|有误|无效|仅)",
        r"不支持.{0,16}(图片|图像)的?(格式|类型)|不支持的(图片|图像)",
        r"(图片|图像).{0,20}(过大|太大|过小|太小|超过|超出|超限|尺寸|分辨率|像素|体积)",
        unless=r"context (length|window)|\btokens?\b|^<(40[1-4]|429|50[2-4]|529)>|rate.?limit|"
        r"too many requests|throttl|quota|per (minute|hour|day)",
        code="image_kind",
    ),
    _sign(
        ImagesUnsupported,
        # llama.cpp only locates a part that it rejects; ours are text and pictures
        r"unknown variant `image_url`", r"unsupported content\[\]\.type", r"not a VLM", r"mmproj",
        r"image input is not supported", r"(does not|doesn't) support (image|vision)",
        r"endpoints found that support image",
        r"image_url is only supported by", r"at most 0 image", r"not a multimodal model",
        r"(image|vision|multi-?modal)( input| content| data|_url)?s? (is|are) "
        r"not (supported|enabled|allowed|available)",
        r"(does not|doesn't|cannot|can't|can not) (accept|take) "
        r"(image|picture|vision|multi-?modal)\w* ?(input|content)?s?\b(?! [\w./-]*\d)",
        r"text[- ]only model", r"(only|just) (accepts|supports|takes) text",
        r"不支持(输入|识别|理解|处理|传入|上传)?(图片|图像|视觉|多模态|识图)",
        r"(图片|图像|视觉|多模态)(输入|理解|识别|能力)?(不支持|不被支持|未开通|未启用)",
        unless=r"^<(429|50[2-4]|529)>",
    ),
    _sign(  # this picture, not all
        ImagesUnsupported,
        r"<invalid_image_\w+>", r"unsupported image", r"cannot make GET request", r"invalid image",
        r"failed to (load|decode|process|read|parse|open|download|fetch) (the )?(input )?image",
        r"(could not|cannot|can't|can not|unable to|error while) "
        r"(load|decode|process|read|pars|open|identify|download|fetch)\w* (the |this |your )?"
        r"(input |provided )?(image|picture)",
        r"(image|picture)( data| file| content)?\b.{0,40}"
        r"(corrupt|truncated|malformed|not (a )?valid|"
        r"(could not|cannot) be (decoded|processed|read|loaded|parsed|opened))",
        r"(图片|图像)的?(数据|内容|文件)?.{0,10}(解析|解码|下载|读取|加载|处理|识别).{0,6}(失败|错误|异常|出错)",
        r"(解析|解码|下载|读取|加载|处理)(输入)?(图片|图像).{0,6}(失败|错误|异常|出错)|(无法|不能)(解析|解码|读取|识别|处理)(图片|图像)",
        r"(图片|图像)(数据|文件)?(已)?(损坏|无效|不完整)",
        code="invalid_image",
    ),
    _sign(
        BadHistory,
        r"reasoning_content", r"thought_signature", r"insufficient tool messages", r"<1214>",
        r"must be followed by tool messages",
        r"must be a response to a prece+ding message with 'tool_calls'",
        r"roles must alternate", r"duplicate value for 'tool_call_id'",
        r"<invalid_request_message_order>",
        r"unexpected role '?\w+'? after role", r"expected last role",
        r"same number of function calls and responses",
        r"tool call id (was|has to be)", r"tool_call_id\b.{0,40}not found",
        r"ids were found without `tool_result`",
        r"unexpected `tool_use_id`", r"first message must use the .?user",
        r"must have non-empty content",
        r"content blocks must be non-empty", r"with role 'assistant' must not be empty",
        r"assistant message prefill",
        r"(text )?content (is|was|must not be|cannot be|can't be|may not be) (empty|blank|null)",
        r"\bmessages?\b.{0,60}(must not|cannot|can not|may not|should not) be (empty|blank|null)",
        r"(messages?|content)\b.{0,80}expected (one of )?(a |an )?(string|array|list|object)\b"
        r".{0,40}\b(null|none|nil)\b",
        r"expected (one of )?(a |an )?(string|array|list|object)\b.{0,40}\b(null|none|nil)\b.{0,80}"
        r"(messages?|content)\b",
        r"^\W*(<\w*>)* ?expected a string,? (but )?(got|found|received) (null|none|nil)",
        r"(must|should|needs? to) (have|contain|include) (either |one of )?\W?content\W* or "
        r"\W?tool_calls",
        r"either \W?content\W* or \W?tool_calls\W* (must|should|is|are)",
        r"角色.{0,10}交替|交替.{0,10}角色",
        r"(消息|内容|content|messages?)\W{0,3}不(能|可|允许)(以)?为空",
        r"tool_calls?.{0,30}(没有|缺少|缺失|未找到)", r"(没有|缺少|缺失|未找到).{0,16}tool_calls?",
        r"roles? .{0,30}\b(must|should) (be )?alternat", r"alternat\w* .{0,30}\broles?\b",
        r"function call turn comes immediately after", r"number of function response parts",
        r"tool call result does not follow", r"system message must be (at the beginning|the first)",
    ),
    # More than a minute's quota: waiting does not help.
    _sign(ContextOverflow, r"request too large.*tokens per min"),
    _sign(
        ContextOverflow,
        r"maximum context length", r"context[_ ]length[_ ]exceeded",
        r"exceeds the (available )?context (size|window)",
        r"exceeded (max )?context length", r"<exceed_context_size_error>", r"prompt is too long",
        r"exceed context limit", r"range of input length should be",
        r"must be less than max_seq_len",
        r"exceeded model token limit", r"model max length exceeded", r"<1261>", r"prompt 超长",
        r"prompt exceeds max length", r"input token count.*exceeds", r"maximum prompt length is \d",
        r"reduce the length of the messages", r"total length of all messages is too long",
        r"too_many_prompt_tokens",
        r"(tokens|characters)_too_long",
        r"(token|length|context|prompt|input).{0,60}exceeds the limit of \d",
        r"context window exceeds limit",
        r"token limit reached", r"token too long", r"<model_context_window_exceeded>",
        unless=r"rate.?limit|too many requests|throttl",
    ),
    _sign(
        ModelNotFound,
        r"<model_?not_?found>", r"<ModelNotOpen>", r"<InvalidEndpointOrModel", r"<1211>",
        r"<20012>", r"模型不存在",
        r"\bmodel\b.{0,120}(does not exist|not found)", r"model not exist", r"not a valid model",
        r"supported API model names", r"<invalid_model>", r"<model_decommissioned>",
        r"\b(invalid|unknown|no such) model( name| id)?\b(?! \w)",
    ),
    _sign(ModelOverloaded, r"<1305>", r"<1312>", r"overloaded", r"访问量过大", r"速率限制"),
    _sign(ModelRateLimited, r"<130[23]>", r"rate.?limit", r"too many requests", r"throttl"),
    _sign(
        ModelAuth,
        r"<100[0-4]>", r"<invalid_api_key>", r"<authentication_?error>",
        r"(invalid|incorrect) api key",
        r"api key not valid",
    ),
    # after the row for invalid keys: some texts say both
    _sign(ModelBilling, r"<403>.*(quota|balance|credit|billing|额度)"),
    # llama.cpp reports the caller's mistake as 500.
    _sign(ModelRejected, r"cannot use both json_schema and grammar"),
)  # fmt: skip


SPARED = frozenset({"response_format", "stream_options"})
"""Optional parameters of a request: the error must name the refused one."""

MAX_MESSAGE = 500  # characters, as ModelError promises
MAX_CODE = 64  # characters
MAX_SEARCHED = 4000  # characters of a body that are searched


STATUSES: Mapping[int, type[ModelError]] = {
    401: ModelAuth,
    402: ModelBilling,
    403: ModelAuth,
    404: ModelNotFound,
    408: ModelOverloaded,
    409: ModelOverloaded,
    413: ContextOverflow,
    429: ModelRateLimited,
}

LIMITS = lazy_regex(
    r"(?:context length (?:is|of)|prompt length is|max_seq_len \(|max length:|"
    r"length should be \[\d+,|limit of|token limit:|available context size \(|> )\s*(\d[\d,]{2,})",
    re.IGNORECASE,
)
SPAN = (
    r"(?:(\d{1,9})\s*h(?:ours?)?\s*)?(?:(\d{1,9})\s*m(?!s)(?:in\w*)?\s*)?"
    r"(?:(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|秒))?"
)
WAIT = lazy_regex(
    rf"(?:again|retry)\s+(?:after|in)\s+{SPAN}|()()(\d{{1,9}})\s*(秒)钟?[之以]?后", re.IGNORECASE
)
DURATION = lazy_regex(SPAN, re.IGNORECASE)  # 6m0s, the format of OpenAI and similar services
# Larger values are a time, in seconds or milliseconds since 1970.
EPOCH, EPOCH_MS = 1e9, 1e12
RESETS = ("requests", "tokens")
SECRETS = lazy_regex(
    r"\b((?:sk|ak|pk|rk|gsk|xai|org|proj|user)[-_])[\w-]{4,}|"
    r"(Bearer\s+)[^\s\"',]+|\b(AIza)[\w-]{20,}|\b(eyJ)[\w.-]{20,}"
)
USERINFO = lazy_regex(r"(?<=://)[^/@\s]+@")
TITLE = lazy_regex(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class Complaint:
    """A vendor's error, extracted from any format."""

    words: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    status: int | None = None
    limit: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return ("".join(f"<{code}>" for code in self.codes) + " " + " ".join(self.words))[
            :MAX_SEARCHED
        ]


def classify(
    status: int | None, body: object, headers: Mapping[str, str] | None = None, *, now: float = 0.0
) -> ModelError:
    """The error class for a refusal. `status` is None for an error inside a 200; `now` is in
    seconds since 1970.
    """
    complaint = read_complaint(body)
    head = {name.lower(): value for name, value in (headers or {}).items()}
    if status is None:
        status = complaint.status
    if status is not None and 300 <= status < 400:
        complaint.words.append(
            f"redirected to {head.get('location', 'nowhere')}: use that as base URL"
        )
    text = complaint.text if status is None else f"<{status}>{complaint.text}"
    sign = next((sign for sign in SIGNS if sign.fits(text)), None)
    kind = sign.error if sign else _by_status(status)
    message = clean_words(" ".join(complaint.words)) or f"HTTP {status} without a word"
    code = clean_words(complaint.codes[0])[:MAX_CODE] if complaint.codes else ""
    if sign and not code.startswith(sign.code):
        code = sign.code
    if issubclass(kind, ModelRateLimited | ModelOverloaded):
        wait = read_wait({**complaint.headers, **head}, message, now=now)
        return kind(message, status=status, code=code, retry_after=wait)
    if issubclass(kind, ContextOverflow):
        return kind(
            message, status=status, code=code, limit=complaint.limit or _read_limit(complaint.text)
        )
    return kind(message, status=status, code=code)


def _by_status(status: int | None) -> type[ModelError]:
    if status is None or status < 300 or status >= 500:
        return ModelOverloaded
    return STATUSES.get(status, ModelRejected)


def has_complaint(body: object) -> bool:
    """Whether a body without choices describes an error."""
    return bool(read_complaint(body).words)


def read_complaint(body: object) -> Complaint:
    """Extract the error from a body: the first of a list, `error`, `detail`, `message`, codes, and
    what a gateway quotes. Never raises.
    """
    complaint = Complaint()
    for node in _nodes(_open(body) if isinstance(body, bytes) else body):
        _collect(node, complaint)
    return complaint


def _nodes(body: object) -> Iterator[dict[str, Any]]:
    """The objects that may contain text, outermost first. A bare string counts as a message."""
    match body:
        case str(text):
            yield {"message": text}
        case [first, *_]:
            yield from _nodes(first)
        case dict():
            yield body
            for key in ("error", "errors", "detail", "innererror", "metadata", "raw", "base_resp"):
                if (inner := body.get(key)) and isinstance(inner, str | list | dict):
                    yield from _nodes(_unwrap(inner))
        case _:
            pass


def _unwrap(inner: object) -> object:
    """Parse JSON that a gateway quotes in a string (OpenRouter's metadata.raw)."""
    if isinstance(inner, str) and inner.lstrip().startswith("{"):
        try:
            return orjson.loads(inner)
        except orjson.JSONDecodeError:
            return inner
    return inner


def _collect(node: Mapping[str, Any], complaint: Complaint) -> None:
    for key in ("message", "msg", "status_msg"):
        if (words := node.get(key)) and isinstance(words, str) and words not in complaint.words:
            where = node.get("loc")  # FastAPI's list of wrong fields
            place = ".".join(map(str, where)) + ": " if isinstance(where, list) else ""
            if (named := str(node.get("param"))).partition(".")[0] in SPARED and named not in words:
                place += f"{named}: "
            complaint.words.append(place + words)
    for key in ("code", "type", "status", "status_code"):
        value = node.get(key)
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            continue
        if key != "status_code":
            complaint.codes.append(str(value))
        if complaint.status is None and str(value).isdecimal() and 400 <= int(value) < 600:
            complaint.status = int(value)
    if isinstance(window := node.get("n_ctx"), int):
        complaint.limit = window
    if isinstance(quoted := node.get("headers"), dict):
        complaint.headers.update({str(name).lower(): str(value) for name, value in quoted.items()})


def _open(body: bytes) -> object:
    """JSON, or the text, or the title of a web page."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body.decode("utf-8", "replace")
    if not text.lstrip().startswith("<"):
        return text
    text = text[
        :MAX_SEARCHED
    ]  # also for speed: both patterns take quadratic time for unclosed tags
    title = TITLE.search(text)
    return "web page: " + (title[1] if title else re.sub(r"<[^>]*>", " ", text))


def _read_limit(text: str) -> int | None:
    found = LIMITS.search(text)
    return int(found[1].replace(",", "")) if found else None


def read_wait(headers: Mapping[str, str], message: str, *, now: float) -> float | None:
    """The wait in seconds that the vendor asks for, more than 0, or None: from headers (names in
    lower case), then from the text.

    Zero and past times are ignored in favour of other sources.
    """
    return next(
        (wait for wait in _waits(headers, message, now) if wait is not None and wait > 0), None
    )


def _waits(headers: Mapping[str, str], message: str, now: float) -> Iterator[float | None]:
    if milliseconds := _number(headers.get("retry-after-ms")):
        yield milliseconds / 1000
    yield _wait_in(headers.get("retry-after", ""), now)
    reset = headers.get("x-ratelimit-reset", "")
    # A small number is a wait for some vendors, something else for others.
    if (number := _number(reset)) is None or number > EPOCH:
        yield _wait_in(reset, now)
    if found := WAIT.search(message):
        yield _seconds(
            found[1] or found[5], found[2] or found[6], found[3] or found[7], found[4] or found[8]
        )
    for what in RESETS:  # time until a full quota: use it only if the quota is empty
        if headers.get(f"x-ratelimit-remaining-{what}") == "0":
            yield _wait_in(headers.get(f"x-ratelimit-reset-{what}", ""), now)


def _wait_in(text: str, now: float) -> float | None:
    """The seconds in a header's value: a number, a Unix time, a duration, or a date."""
    if (number := _number(text)) is not None:
        moment = number / 1000 if number > EPOCH_MS else number
        return moment - now if number > EPOCH else number
    if (found := DURATION.fullmatch(text.strip())) and any(found.groups()):
        return _seconds(*found.groups())
    return _seconds_until(text, now)


def _seconds(
    hours: str | None, minutes: str | None, seconds: str | None, unit: str | None
) -> float:
    part = float(seconds or 0) / (1000 if (unit or "").lower() == "ms" else 1)
    return 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0) + part


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _seconds_until(text: str, now: float) -> float | None:
    """Seconds until an HTTP or ISO 8601 date; UTC without a zone."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, OverflowError):
            continue
    return None


def clean_words(text: str) -> str:
    """The text on one line, with keys and URL credentials masked, cut to ModelError's limit."""
    text = USERINFO.sub("***@", " ".join(text.split()))
    text = SECRETS.sub(lambda found: "".join(part or "" for part in found.groups()) + "***", text)
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
