"""`send_message`: sends a message during a run.

Small models write its arguments almost as the schema says. Unambiguous variants are accepted: null
for an omitted field, one part for a list of it, and JSON text of either. Anything else is an error.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, assert_never

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bot.core.engine_words import SENT
from bot.core.errors import AlreadySaid
from bot.core.person_lookup import has_number, read_person, read_place
from frostagent.text.lenient_json import loads
from frostagent.types.errors import InvalidArguments, MediaError, ToolFailed
from frostagent.types.ports import Media, Speaker
from frostagent.types.results import ToolResult
from frostagent.types.speech import (
    Attachment,
    Confirmed,
    Drafted,
    Mention,
    MentionAll,
    Queued,
    Quote,
    Receipt,
    Refused,
    SendSegment,
    Text,
    Unknown,
)
from frostagent.types.tools import ToolContext, tool

MAX_MEDIA = 9  # a person would not send more at once

# Characters of all sources in one call: a frame of 50 MiB (onebot.md 1.2) minus the rest of the
# message. Base64 turns three bytes into four characters, so that is 37 MiB of files.
MAX_SOURCES = 50 * 2**20 - 2**19

FETCHING = 120  # seconds for the media of one call, which leaves enough time to send them

NOT_AGAIN = (
    "not sent, since {why}: people have it. Go on, and end with what is new, or with an empty "
    "answer."
)

KEPT_BACK = (
    "not sent: the bot's owner sees it first, as draft D{number}, and nobody in the chat has read "
    "it. Do not repeat it; go on as you would."
)

REQUIRED: dict[str, tuple[str, ...]] = {
    "plain": ("text",),
    "image": ("path", "url"),
    "record": ("path", "url"),
    "video": ("path", "url"),
    "file": ("path", "url"),
    "mention_user": ("mention_user_id",),
    "quote": (),
}


class MessagePart(BaseModel):
    """One part of a message; which fields it needs depends on its type."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    type: Literal["plain", "image", "record", "video", "file", "mention_user", "quote"] = Field(
        description="plain: text. image, record (voice), video, file: a medium. "
        "mention_user: @somebody. quote: reply to a message."
    )
    text: str = Field("", description="For plain: the text, as people shall read it.")
    path: str = Field("", description="For media: a file in the media folder. Wins over url.")
    url: str = Field("", description="For media: a public http(s) address.")
    mention_user_id: str = Field(
        "",
        description="For mention_user: the number behind the name, 2 for 小明#2; all only if an "
        "admin asks for it.",
    )
    message_id: str = Field(
        "", description="For quote: the id of a message; leave it out to quote the question."
    )

    @model_validator(mode="before")
    @classmethod
    def fix(cls, fields: Any) -> Any:
        """The fields with a value; type `text`, the usual name elsewhere, becomes `plain`."""
        if not isinstance(fields, dict):
            return fields
        given = {name: value for name, value in fields.items() if value is not None}
        return given | {"type": "plain"} if given.get("type") == "text" else given

    @model_validator(mode="after")
    def has_what_its_type_needs(self) -> MessagePart:
        """Raises ValueError with the missing field."""
        needed = REQUIRED[self.type]
        if needed and not any(getattr(self, name).strip() for name in needed):
            raise ValueError(f"type {self.type} needs {' or '.join(needed)}")
        if (
            self.type == "mention_user"
            and not self.mentions_all
            and not has_number(self.mention_user_id)
        ):
            raise ValueError("mention_user_id must be the number behind a name, as 2 for 小明#2")
        return self

    @property
    def mentions_all(self) -> bool:
        """Whether it mentions everyone; only the word "all" does."""
        return self.mention_user_id.strip().lower() == "all"


def read_messages(value: object) -> object:
    """The parts as a list, also from one part, JSON text or null. Raises ValueError."""
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError:
            raise ValueError("must be a list of parts, not a text") from None
    match value:
        case None:
            return []
        case dict():
            return [value]
        case _:
            return value


def read_session(value: object) -> object:
    """Null means this session."""
    return "" if value is None else value


def read_last(value: object) -> object:
    """Null means not the last."""
    return False if value is None else value


@tool(
    needs=(Speaker, Media),
    timeout=300,
    side_effects="external",
    trusted_result=True,
    stays_here=True,
)
async def send_message(
    context: ToolContext,
    messages: Annotated[list[MessagePart], BeforeValidator(read_messages)],
    session: Annotated[str, BeforeValidator(read_session)] = "",
    last: Annotated[bool, BeforeValidator(read_last)] = False,
) -> ToolResult:
    """Say something in the chat right now, before your final answer: text, pictures, voice, video,
    files, mentions.

    One call is one QQ message with its parts in the given order and a quote first, except that QQ
    shows record, video and file only as messages of their own. What you say this way is delivered;
    do not repeat it in your final answer.

    Args:
        messages: The parts, in order. At least one.
        session: Leave out to speak in this conversation. Another one only if the bot's owner asks
            for it: private:#2 for somebody of this conversation, group: with its number as he said
            it, or platform_id:message_type:session_id; it is sent once he has allowed it.
        last: True where this says all there is to say: it is your answer, and you end here.
    """
    if not messages:
        raise InvalidArguments("messages: at least one part is needed", fields=("messages: empty",))
    if sum(part.type in ("image", "record", "video", "file") for part in messages) > MAX_MEDIA:
        raise InvalidArguments(
            f"messages: at most {MAX_MEDIA} media in one call; send the rest in another"
        )
    try:
        async with asyncio.timeout(FETCHING):
            segments = await read_parts(messages, context)
    except TimeoutError:
        problem = (
            f"messages: its media could not be fetched in {FETCHING} s, nothing was sent; send "
            "fewer or smaller ones"
        )
        raise InvalidArguments(problem, fields=(problem,)) from None
    if all(isinstance(segment, Quote) for segment in segments):
        raise InvalidArguments("messages: a quote alone says nothing; add a plain part")
    try:
        receipts = await context.port(Speaker).say(
            segments, session=read_place(session, context), allowed=context.allowed
        )
    except AlreadySaid as repeated:
        told = NOT_AGAIN.format(why=repeated)
    else:
        told = tell(receipts)
    # The asker does not see what was sent elsewhere.
    return ToolResult(told, terminate=last and not session.strip())


async def read_parts(messages: list[MessagePart], context: ToolContext) -> tuple[SendSegment, ...]:
    """The parts as segments. Raises InvalidArguments, also for too large media in total."""
    segments: list[SendSegment] = []
    size = 0
    for index, part in enumerate(messages):
        segment = await read_part(part, index, context)
        size += len(segment.source) if isinstance(segment, Attachment) else 0
        if size > MAX_SOURCES:
            problem = (
                f"messages.{index}: the files of one call may have 37 MiB together; send this one "
                "in another call"
            )
            raise InvalidArguments(problem, fields=(problem,))
        segments.append(segment)
    return tuple(segments)


async def read_part(part: MessagePart, index: int, context: ToolContext) -> SendSegment:
    """A part as a segment. Raises InvalidArguments for a bad path, URL or person."""
    match part.type:
        case "plain":
            return Text(part.text)
        case "mention_user":
            if part.mentions_all:
                return MentionAll()
            who = read_person(part.mention_user_id, context, field=f"messages.{index}")
            return Mention(str(who))
        case "quote":
            return Quote(part.message_id.strip())
        case "image" | "record" | "video" | "file":
            try:
                return await context.port(Media).attach(part.type, path=part.path, url=part.url)
            except MediaError as error:
                problem = f"messages.{index}: {error}"
                raise InvalidArguments(problem, fields=(problem,)) from error
        case _:
            assert_never(part.type)


def tell(receipts: tuple[Receipt, ...]) -> str:
    """The outcome as text for the model. Raises ToolFailed if QQ refused the message."""
    ids: list[str] = []
    for number, receipt in enumerate(receipts, 1):
        match receipt:
            case Confirmed(message_id=message_id):
                ids.append(message_id)
            case Refused(reason=reason):
                before = f" (the {number - 1} before it arrived)" if number > 1 else ""
                raise ToolFailed(
                    f"message {number} and what follows it was not delivered{before}: {reason!r}."
                )
            case Unknown():
                return (
                    f"message {number} may have been delivered: QQ did not answer. Do not repeat "
                    "it, "
                    "and do not say that it failed. What follows it was not sent."
                )
            case Queued():
                return (
                    "queued: QQ is not reachable at the moment, it will be delivered once it is. "
                    "Do not repeat it."
                )
            case Drafted(number=draft):
                return KEPT_BACK.format(number=draft)
            case _:
                assert_never(receipt)
    if not receipts:
        raise ToolFailed("nothing was sent: the message was blank.")
    known = ", ".join(filter(None, ids))
    return f"{SENT} (message_id: {known})" if known else SENT
