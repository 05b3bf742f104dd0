"""Actions of group admins that a run requests: the `Chair` port. Rights are checked before an owner
is asked, and again before the action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import ActionUnanswered
from bot.core.events import Role, message_words
from bot.core.group_admin import GroupAct, Mute, Pin, Recall, SetCard
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.ports import Transport
from bot.core.run_ids import number_of, place_of
from bot.outbox.outbox import Screen
from bot.policy.permissions import WAIT
from frostagent.engine.authority import in_one_line
from frostagent.types.errors import BotError, InvalidArguments, ToolDenied, ToolFailed
from frostagent.types.speech import Text
from frostagent.types.suspension import Suspend
from frostagent.types.tools import ToolContext

RANKS: dict[Role, int] = {"unknown": 0, "member": 1, "admin": 2, "owner": 3}
NOT_ASKER = "only the group's admins and the bot's owner may have that done. Tell the asker so"
NOT_BOT = "the bot is no admin of this group, so QQ lets it do nothing of that. Say so"
NOT_ABOVE = "the bot's role is not above that person's, so QQ lets it do nothing to him. Say so"
NOT_EQUALS = "the asker's role is not above that person's. Tell the asker so"
NOT_ITSELF = "the bot does not mute itself"


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of the bot, of the asker, and of the affected person or the message's sender."""

    bot: Role
    asker: Role
    whose: Role
    is_owner: bool = False  # the asker is one of the bot's owners
    is_bots: bool = False  # the action affects the bot itself, or its own message
    is_askers: bool = False


def against(act: GroupAct, roles: Roles) -> str:
    """Why the action is not allowed; empty if it is."""
    bot, asker, whose = (RANKS[role] for role in (roles.bot, roles.asker, roles.whose))
    if not roles.is_owner and asker < RANKS["admin"]:
        return NOT_ASKER
    if isinstance(act, Mute) and roles.is_bots:
        return NOT_ITSELF
    if not roles.is_bots or isinstance(act, Pin):
        if bot < RANKS["admin"]:
            return NOT_BOT
        if isinstance(act, Mute | SetCard | Recall) and whose >= bot:
            return NOT_ABOVE
    lower = whose < asker or roles.is_owner or roles.is_askers or roles.is_bots
    return "" if lower or isinstance(act, Pin) else NOT_EQUALS


MAX_SHOWN = 200  # characters of a message shown in a request for approval
THERE = Phrase("群 {group}：{act}", "Group {group}: {act}")
NO_WORDS = Phrase("（不是文字）", "(no words)")
MUTE = Phrase("禁言 {who} {seconds} 秒", "mute {who} for {seconds} s")
UNMUTE = Phrase("解除 {who} 的禁言", "unmute {who}")
CARD = Phrase("把 {who} 的群名片改成「{card}」", "change the card of {who} to 「{card}」")
NO_CARD = Phrase("清除 {who} 的群名片", "remove the card of {who}")
RECALL = Phrase("撤回 {who} 的消息「{said}」", "recall {who}'s message 「{said}」")
PIN = Phrase("把 {who} 的消息设为精华「{said}」", "pin {who}'s message 「{said}」")
CATALOGUE.register(__name__, globals())
UNKNOWN = "that message is not one of this group, or QQ does not know it any more"
UNANSWERED = "QQ did not answer: it may have been done. Do not repeat it, and say so."
WITHHELD = "the operator does not want these words to be shown"
REFUSED = "it was not done: {error}. Say so."


class GroupAdmin:
    """Checks roles, and acts. `name` returns a person's name in the group; a new card passes the
    `screen` as if it were said.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        name: Callable[[Conversation, int], str],
        screen: Screen | None = None,
        language: Language = Language.CHINESE,
    ) -> None:
        self._language = language  # of questions to owners
        self._transport = transport
        self._name = name
        self._screen = screen

    async def permit(self, context: ToolContext, act: GroupAct) -> str:
        """Check rights, and return the action in words. Raises ToolDenied, InvalidArguments,
        ToolFailed.
        """
        where = place_of(context)
        try:
            whose, words = await self._whose(where, act)
            roles = await self._roles(context, whose)
        except ActionUnanswered as error:
            raise ToolFailed("QQ did not answer, so nothing was done. Say so.") from error
        except BotError as error:
            if isinstance(error, InvalidArguments):
                raise
            raise ToolFailed(REFUSED.format(error=error)) from error
        if why := against(act, roles):
            raise ToolDenied(why)
        if isinstance(act, SetCard) and self._screen is not None:
            said = (SendMessage(where, (Text(act.card),)),)
            if self._screen(said) != said:
                raise ToolDenied(WITHHELD)
        who = f"{in_one_line(self._name(where, whose), 24) or '?'}({whose})"
        act_told = told(act, who, words, language=self._language)
        return THERE.format(self._language, group=where.session_id, act=act_told)

    async def act(self, context: ToolContext, act: GroupAct) -> bool:
        """Carry out an approved action; False if the server cannot report a refusal by QQ. Raises
        Suspend, and as `permit` does.
        """
        asks = await self.permit(context, act)
        if not context.allowed:
            raise Suspend(asks, seconds=WAIT)
        where = place_of(context)
        try:
            return await self._transport.act(where, act)
        except ActionUnanswered as error:
            if await self._was_done(where, act):
                return True
            raise ToolFailed(UNANSWERED) from error
        except BotError as error:
            raise ToolFailed(REFUSED.format(error=error)) from error

    async def _was_done(self, where: Conversation, act: GroupAct) -> bool:
        """Whether QQ shows that an unconfirmed action was done: NapCat waits only one second for a
        recall (onebot.md 6). Other actions leave no trace.
        """
        if not isinstance(act, Recall):
            return False
        try:
            return await self._transport.get_message(where.platform_id, act.message_id) is None
        except BotError:
            return False

    async def _whose(self, where: Conversation, act: GroupAct) -> tuple[int, str]:
        """The affected person or the message's sender, and the words of the message."""
        if isinstance(act, Mute | SetCard):
            return act.user_id, ""
        message = await self._transport.get_message(where.platform_id, act.message_id)
        if message is None or message.conversation != where:
            raise InvalidArguments(UNKNOWN, fields=(UNKNOWN,))
        return message.sender.user_id, message_words(message)

    async def _roles(self, context: ToolContext, whose: int) -> Roles:
        where, asker = place_of(context), number_of(context.asker)
        role = {
            user_id: (await self._transport.get_member(where, user_id)).role
            for user_id in {where.platform_id, asker, whose}
        }
        return Roles(
            bot=role[where.platform_id],
            asker=role[asker],
            whose=role[whose],
            is_owner=context.asker.is_owner,
            is_bots=whose == where.platform_id,
            is_askers=whose == asker,
        )


def told(act: GroupAct, who: str, words: str, *, language: Language = Language.CHINESE) -> str:
    """The action in words; `who` is the affected person, `words` those of their message."""
    said = in_one_line(words, MAX_SHOWN) or NO_WORDS.format(language)
    match act:
        case Mute(seconds=0):
            return UNMUTE.format(language, who=who)
        case Mute(seconds=seconds):
            return MUTE.format(language, who=who, seconds=seconds)
        case SetCard(card=""):
            return NO_CARD.format(language, who=who)
        case SetCard(card=card):
            return CARD.format(language, who=who, card=card)
        case Recall():
            return RECALL.format(language, who=who, said=said)
        case Pin():
            return PIN.format(language, who=who, said=said)
        case _:
            assert_never(act)
