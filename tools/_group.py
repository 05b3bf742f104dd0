"""Group actions for admins, each approved by an owner of the bot. Needs TOOLS_GROUP=1."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.core.group_admin import Chair, GroupAct, Mute, Pin, Recall, SetCard, Topic
from bot.core.person_lookup import find_person
from bot.core.ports import Members
from bot.core.run_ids import place_of
from frostagent.text.visible_text import visible_text
from frostagent.types.errors import InvalidArguments
from frostagent.types.tools import ToolContext, tool

MONTH = 30 * 86_400 - 60  # seconds: QQ's limit for mutes
MAX_CARD = 60  # bytes that QQ accepts
SUBMITTED = (
    "submitted: the OneBot server does not say whether QQ did it. Say that, not that it is done"
)
NOTHING_QUOTED = "the question quotes no message: ask that it be quoted"


@tool(needs=(Chair, Topic), side_effects="external", trusted_result=True, stays_here=True)
async def mute_member(
    context: ToolContext, who: str, seconds: Annotated[int, Field(ge=0, le=MONTH)]
) -> str:
    """Keep a member of this group from speaking for a while, only when an admin asks for it. The
    owner is asked first by itself.

    Args:
        who: The number behind the name, as #2.
        seconds: For how long; 0 lets him speak again.
    """
    return await do(context, Mute(person(who, context), seconds))


@tool(needs=(Chair, Topic), side_effects="external", trusted_result=True, stays_here=True)
async def set_card(context: ToolContext, who: str, card: str) -> str:
    """Change the name a member has in this group, only when an admin asks for it. The owner is
    asked first by itself.

    Args:
        who: The number behind the name, as #2.
        card: The new name; empty takes it away.
    """
    name = " ".join(visible_text(card).split())
    if len(name.encode("utf-8", "replace")) > MAX_CARD:
        raise InvalidArguments(f"card: at most {MAX_CARD} bytes, 20 Chinese characters")
    return await do(context, SetCard(person(who, context), name))


@tool(needs=(Chair, Topic), side_effects="external", trusted_result=True, stays_here=True)
async def recall_message(context: ToolContext) -> str:
    """Take back the message that the question quotes, only when an admin asks for it. The owner is
    asked first by itself.
    """
    return await do(context, Recall(quoted(context)))


@tool(needs=(Chair, Topic), side_effects="external", trusted_result=True, stays_here=True)
async def pin_message(context: ToolContext) -> str:
    """Keep the message that the question quotes among those of note (精华), only when an admin asks
    for it. The owner is asked first by itself.
    """
    return await do(context, Pin(quoted(context)))


async def do(context: ToolContext, act: GroupAct) -> str:
    """Perform the action. Raises what the chair raises, Suspend before an approval."""
    return "done" if await context.port(Chair).act(context, act) else SUBMITTED


def person(who: str, context: ToolContext) -> int:
    """The account with this number in this group. Raises InvalidArguments."""
    user_id = find_person(who, context.port(Members), place_of(context))
    if user_id is None:
        problem = f"who: nobody has the number {who[:40]!r} here; see the names, as #2"
        raise InvalidArguments(problem, fields=(problem,))
    return user_id


def quoted(context: ToolContext) -> str:
    """The id of the message that the question quotes. Raises InvalidArguments if none."""
    if not (message_id := context.port(Topic).message_id):
        raise InvalidArguments(NOTHING_QUOTED, fields=(NOTHING_QUOTED,))
    return message_id


ALL = (mute_member, pin_message, recall_message, set_card)
