"""Owners' replies to approval requests: one lets its run go on.

A reply is taken before any lane sees it and never reaches the model. Only replies of owners count,
in private or in the group where the request was made; the first one decides. A reply older than the
request, or one found later in a history, decides nothing. In a terminal chat the terminal stands in
for the owners.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from bot.conversation.approval.approvals import Approvers
from bot.conversation.approval.owner_replies import Meant
from bot.conversation.approval.requests import Requests
from bot.conversation.intake.server_clock import ServerClock
from bot.core.events import MessageReceived
from bot.core.settlement import Settled
from bot.outbox.delivery import Postbox
from bot.policy.approval import (
    AGAIN,
    ALLOWED,
    BUSY,
    DENIED,
    DONE,
    EXPIRED,
    UNKNOWN,
    WORD_OF,
    Answer,
    answer_in,
    mentions_the_bot,
    message_words,
    number_in,
    quote_in,
    read_answer,
    waiting_line,
    without_blanks,
)
from bot.policy.fallback_replies import is_quoted
from bot.prompt.render import account
from frostagent.text.language import Language
from frostagent.types.ports import Clock
from frostagent.types.suspension import Allow, Deny

logger = logging.getLogger(__name__)

YOU = ("你", "you")
SAID_NO = "the owner said no"


class ApprovalReplies:
    """Takes replies to approval requests."""

    def __init__(
        self,
        *,
        approvers: Approvers,
        requests: Requests,
        postbox: Postbox,
        server_clock: ServerClock,
        clock: Clock,
    ) -> None:
        self._approvers = approvers
        self._tongue = approvers.tongue
        self._requests = requests
        self._postbox = postbox
        self._server_clock = server_clock
        self._clock = clock

    def take_reply(self, message: MessageReceived, quoted: MessageReceived | None) -> bool:
        """Fits `ReplyHandler`: an answer to a request, which it names or quotes."""
        if (answer := answer_in(message)) is None:
            return False
        number = answer.number
        if number is None and quoted is not None:
            number = self._number_of(quoted)
        return number is not None and self._is_settled(message, answer, number)

    def meant_by(self, message: MessageReceived) -> list[Meant]:
        """Fits `ReplyHandler`: in private all that the owner was asked by this account. In a group
        those asked there, if the owner speaks to the bot: their own, and if they quote something,
        others' too, but nobody knows that they mean these.
        """
        answer, here, owner = answer_in(message), message.conversation, message.sender.user_id
        if answer is None or answer.number is not None:
            return []
        if here.is_group and not mentions_the_bot(message):
            return []
        word, has_quote = WORD_OF[answer.allows][self._tongue], bool(quote_in(message))
        return [
            Meant(
                name=f"A{request.number}",
                example=f"{word} A{request.number}",
                take=partial(self._is_settled, message, answer, request.number),
                is_sure=not here.is_group or request.asker == owner,
            )
            for request in self._requests.open.values()
            if (
                request.where == here and (has_quote or request.asker == owner)
                if here.is_group
                else owner in request.asked and request.where.platform_id == here.platform_id
            )
        ]

    def _is_settled(self, message: MessageReceived, answer: Answer, number: int) -> bool:
        quote = message.message_id if is_quoted(message) else ""
        reply = partial(self._postbox.post, message.conversation, quote=quote)
        return self._decide(answer, number, message=message, reply=reply)

    def answer(self, line: str) -> bool:
        """Whether this line of the terminal that is asked is an answer to a request; then it is
        done with.
        """
        answer = read_answer(line)
        if self._approvers.terminal is None or answer is None or answer.number is None:
            return False
        return self._decide(answer, answer.number, reply=self._approvers.terminal)

    def _number_of(self, quoted: MessageReceived) -> int | None:
        """The request that a message of ours asks about; None for one that only looks like that."""
        text = message_words(quoted)
        if number := number_in(text):
            request = self._requests.open.get(number)
            is_it = request is None or without_blanks(text).startswith(without_blanks(request.text))
            return number if is_it else None
        said = without_blanks(text)
        notices = (
            (waiting_line([one], tongue=each), one)
            for one in self._requests.open
            for each in Language
        )
        return next((one for line, one in notices if said == without_blanks(line)), None)

    def _decide(
        self,
        answer: Answer,
        number: int,
        *,
        message: MessageReceived | None = None,
        reply: Callable[[str], object],
    ) -> bool:
        """Take the answer; False where it is talk: a group is no place for requests that were asked
        elsewhere.

        `message` is what says it, None in the terminal.
        """
        here = message.conversation if message else None
        request, past = self._requests.open.get(number), self._requests.past.get(number)
        asked_in = request.where if request else past.where if past else None
        if here is not None and here.is_group and here != asked_in:
            return False
        if message and request and self._server_clock.is_older(message, request.since):
            reply(AGAIN[self._tongue].format(number=number))
        elif message and request is None and self._server_clock.is_missed(message):
            logger.info("A%d: an answer that was missed decides nothing", number)
        else:
            by = account(message.sender) if message else YOU[self._tongue]
            reply(self.settle(number, answer, by=by).words)
        return True

    def settle(self, number: int, answer: Answer, *, by: str) -> Settled:
        """Let the first word decide, whoever brings it; `by` is who, as others read it."""
        request, past = self._requests.open.get(number), self._requests.past.get(number)
        if request is None:
            unknown = Settled("unknown", UNKNOWN[self._tongue].format(number=number))
            return Settled("over", past.words) if past else unknown
        if self._clock.now() >= request.expires:
            self._requests.end(request, "expired")
            return Settled("late", EXPIRED[self._tongue].format(number=number))
        word = (ALLOWED if answer.allows else DENIED)[self._tongue]
        reason = f"{SAID_NO}: {answer.reason}" if answer.reason else SAID_NO
        decision = Allow() if answer.allows else Deny(reason)
        if not self._requests.decide(
            request, decision, "allowed" if answer.allows else "denied", by=by
        ):
            return Settled("busy", BUSY[self._tongue].format(number=number))
        logger.info("A%d of run %s: %s by %s", number, request.run_id, decision.type, by)
        return Settled("done", DONE[self._tongue].format(number=number, word=word))
