"""The `Transport` port over all connected OneBot accounts. Offers large media at URLs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeGuard, TypeVar

from msgspec.structs import replace

from adapters.onebot.fields import load
from adapters.onebot.protocol import (
    INLINE,
    NO_SUCH_ACTION,
    ActionReply,
    read_answered_message,
    read_forward,
    read_groups,
    read_history,
    read_kept_file,
    read_member,
    read_message_id,
    tells_of_failure,
    write_act,
    write_action,
    write_admission,
    write_gesture,
    write_id,
)
from adapters.onebot.segments import holds_url
from bot.core.actions import Gesture, SendMessage, SentSegment
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, ActionUnsupported
from bot.core.events import MessageReceived
from bot.core.group_admin import GroupAct, JoinRequest
from bot.core.ports import JoinedGroup, KeptFile, Member
from bot.core.segments import File, Forward
from frostagent.types.speech import Attachment

logger = logging.getLogger(__name__)

# Base64 characters. A broker's message has at most 8 MB in all (`adapters/broker`); without a
# broker, a large frame would delay all others of the account.
MOST_INLINE: Final = 8 * 2**20 - 2**16


class MediaOffer(Protocol):
    """A file offered at a URL; `asked` tells whether it was fetched."""

    @property
    def url(self) -> str: ...

    @property
    def asked(self) -> bool: ...


class MediaOffers(Protocol):
    """Serves a file, given as base64, at a secret URL while a block runs."""

    def offer(self, encoded: str, /) -> AbstractContextManager[MediaOffer]: ...


OutgoingMessage: TypeAlias = tuple[SendMessage, int]
"""A message to send, and the number of base64 characters that the server has to fetch."""


@contextmanager
def with_offered_media(action: SendMessage, offers: MediaOffers) -> Iterator[OutgoingMessage]:
    """Replace the message's inline media by URLs if together they are too large for a frame. Logs a
    failed send of which the server fetched nothing.
    """
    inline = [one.source for one in action.segments if _is_inline(one)]
    size = sum(map(len, inline))
    if size <= MOST_INLINE:
        yield action, 0
        return
    with ExitStack() as stack:
        offered = {
            source: stack.enter_context(offers.offer(source.removeprefix(INLINE)))
            for source in dict.fromkeys(inline)
        }
        segments = tuple(
            replace(one, source=offered[one.source].url) if _is_inline(one) else one
            for one in action.segments
        )
        try:
            yield replace(action, segments=segments), size
        except (ActionRefused, ActionUnanswered):
            if not all(one.asked for one in offered.values()):
                logger.warning(
                    "account %d: its OneBot server did not come for a file of %.1f MB: see that it "
                    "reaches MEDIA_URL",
                    action.conversation.platform_id,
                    size * 3 / 4 / 2**20,
                )
            raise


def _is_inline(segment: SentSegment) -> TypeGuard[Attachment]:
    return isinstance(segment, Attachment) and segment.source.startswith(INLINE)


NOT_FETCHED = 403
UNCHECKED = (
    "a url is not passed on to be fetched unchecked; attach what it leads to by the Media port"
)


Callee = TypeVar("Callee")
Callee_contra = TypeVar("Callee_contra", contravariant=True)
Callee_co = TypeVar("Callee_co", covariant=True)


class Directory(Protocol[Callee_co]):
    """Finds the connection for calls to an account, in this process or in another."""

    def caller(self, account: int) -> Callee_co:
        """Raises NotConnected."""
        ...

    def server(self, account: int) -> str: ...


class Caller(Protocol[Callee_contra]):
    async def make(
        self,
        callee: Callee_contra,
        action: str,
        params: Mapping[str, object],
        /,
        *,
        beside: int = 0,
    ) -> ActionReply:
        """Return the server's answer, allowing time to fetch `beside` bytes. Raises NotConnected,
        ActionRefused, ActionUnanswered.
        """
        ...


class OneBotTransport(Generic[Callee]):
    """Sends actions to the OneBot servers of their accounts."""

    def __init__(
        self,
        *,
        peers: Directory[Callee],
        calls: Caller[Callee],
        pass_urls: bool = False,
        offers: MediaOffers | None = None,
    ) -> None:
        """With `pass_urls`, servers may be given URLs, which they fetch without checking the
        address. With `offers` they fetch what is too large for a frame.
        """
        self._peers = peers
        self._calls = calls
        self._pass_urls = pass_urls
        self._offers = offers

    async def send(self, action: SendMessage) -> str:
        """Send one message. Returns the message id from QQ.

        Raises NotConnected, ActionRefused, ActionUnanswered (also if QQ did not confirm in time:
        such messages often arrive, onebot.md 2). A cancelled send may have been written.
        """
        if not self._pass_urls and holds_url(action.segments):
            raise ActionRefused("send_msg", retcode=NOT_FETCHED, wording=UNCHECKED)
        if self._offers is None:
            return await self._send(action)
        with with_offered_media(action, self._offers) as (light, beside):
            return await self._send(light, beside)

    async def _send(self, action: SendMessage, beside: int = 0) -> str:
        account = action.conversation.platform_id
        name, params = write_action(action, server=self._peers.server(account))
        callee = self._peers.caller(account)
        reply = await self._calls.make(callee, name, params, beside=beside)
        if reply.ok:
            return read_message_id(reply.data)
        raise _failure(name, reply)

    async def gesture(self, gesture: Gesture) -> None:
        """React to a message, or show that the bot is typing.

        Raises NotConnected, ActionRefused (ActionUnsupported if the server has no such action),
        ActionUnanswered.
        """
        account = gesture.conversation.platform_id
        action, params = write_gesture(gesture, server=self._peers.server(account))
        await self.call(account, action, params)

    async def act(self, group: Conversation, act: GroupAct) -> bool:
        """Run an action of group admins. Returns whether the server reports refusals by QQ.

        Raises NotConnected, ActionRefused (ActionUnsupported if the server has no such action),
        ActionUnanswered.
        """
        return await self._do(group.platform_id, *write_act(group, act))

    async def admit(self, request: JoinRequest, *, granted: bool, reason: str = "") -> bool:
        """Accept or refuse a friend request or an invitation. Returns whether the server reports
        refusals by QQ.

        Raises NotConnected, ActionRefused (also if the request has expired), ActionUnanswered.
        """
        action = write_admission(request, granted=granted, reason=reason)
        return await self._do(request.account, *action)

    async def _do(self, account: int, action: str, params: Mapping[str, object]) -> bool:
        await self.call(account, action, params)
        return tells_of_failure(self._peers.server(account), action)

    async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
        """Look up a message by id, including the bot's own; None if the server does not know it.
        Raises NotConnected, ActionUnanswered.
        """
        try:
            data = await self.call(account, "get_msg", {"message_id": write_id(message_id)})
        except ActionRefused:
            return None
        return read_answered_message(data, account=account)

    async def get_forward(self, account: int, forward: Forward) -> tuple[MessageReceived, ...]:
        """A merged forward's messages. Raises NotConnected, ActionRefused, ActionUnanswered."""
        if forward.content:
            with suppress(ValueError):
                return read_forward(load(forward.content), account=account)
        # NapCat reads either name, others `id`; as text, because the numbers exceed 2**53
        # (onebot.md 5, 6.16).
        data = await self.call(
            account, "get_forward_msg", {"id": forward.id, "message_id": forward.id}
        )
        return read_forward(data, account=account)

    async def get_history(
        self, conversation: Conversation, *, count: int = 20
    ) -> tuple[MessageReceived, ...]:
        """The latest messages there, oldest first, including the bot's own.

        Some servers refuse (onebot.md 5). Raises NotConnected, ActionRefused, ActionUnanswered.
        """
        kind, place = ("group", "group_id") if conversation.is_group else ("friend", "user_id")
        params = {
            place: conversation.session_id,
            "count": count,
            "message_seq": 0,
            "reverse_order": False,
        }
        account = conversation.platform_id
        data = await self.call(account, f"get_{kind}_msg_history", params)
        return read_history(data, conversation, server=self._peers.server(account))

    async def get_groups(self, account: int) -> tuple[JoinedGroup, ...]:
        """The account's groups. Raises NotConnected, ActionRefused, ActionUnanswered."""
        return read_groups(await self.call(account, "get_group_list", {}), account=account)

    async def get_member(self, group: Conversation, user_id: int) -> Member:
        """An uncached group member. Raises NotConnected, ActionRefused, ActionUnanswered."""
        params = {"group_id": group.session_id, "user_id": user_id, "no_cache": True}
        return read_member(await self.call(group.platform_id, "get_group_member_info", params))

    async def get_image(self, account: int, file: str) -> KeptFile:
        """A received image by `file` name. Raises NotConnected, ActionRefused, ActionUnanswered."""
        return read_kept_file(await self.call(account, "get_image", {"file": file}))

    async def get_record(self, account: int, file: str) -> KeptFile:
        """A received voice, as wav. Raises NotConnected, ActionRefused, ActionUnanswered."""
        params = {"file": file, "out_format": "wav"}
        return read_kept_file(await self.call(account, "get_record", params))

    async def get_file(self, conversation: Conversation, file: File) -> KeptFile:
        """The URL of a file sent there. Raises NotConnected, ActionRefused, ActionUnanswered."""
        kind, place = ("group", "group_id") if conversation.is_group else ("private", "user_id")
        params = {place: conversation.session_id, "file_id": file.id}
        if file.hash and not conversation.is_group:
            params["file_hash"] = file.hash  # Lagrange needs it
        account = conversation.platform_id
        return read_kept_file(await self.call(account, f"get_{kind}_file_url", params))

    async def call(self, account: int, action: str, params: Mapping[str, object]) -> Any:
        """Call any action by its wire name. Returns the `data` of its answer.

        Raises NotConnected, ActionRefused (ActionUnsupported if the server has no such action),
        ActionUnanswered.
        """
        reply = await self._calls.make(self._peers.caller(account), action, params)
        if not reply.ok:
            raise _failure(action, reply)
        return reply.data


def _failure(action: str, reply: ActionReply) -> ActionRefused | ActionUnanswered:
    if reply.may_be_done(action):
        return ActionUnanswered(f"{action}: QQ did not confirm in time ({reply.wording[:200]})")
    kind = ActionUnsupported if reply.retcode in NO_SUCH_ACTION else ActionRefused
    return kind(action, retcode=reply.retcode, wording=reply.wording)


AnyTransport: TypeAlias = OneBotTransport[Any]
"""Connections of this process or of gateways."""
