"""Friend requests, group invites and requests to join a group of the bot's, each with a number such
as `R3`. Owners decide, and their decision is sent to QQ. The rules of GROUPS_FILE may decide about
people who ask to join a group, and so may the group's admins there.

Requests survive a restart as settings of their conversations. A decision is recorded before it is
sent, so that it is never sent twice; if the process ends in between, owners are informed that the
outcome is unknown.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import count
from typing import TypeAlias

from cachetools import LRUCache
from msgspec import Struct
from msgspec.structs import replace

from bot.approvals.decision import (
    ALLOWED,
    DENIED,
    WORD_OF,
    Candidate,
    Choice,
    Reply,
    ReplyQueue,
    outcome,
    private_words,
    read_answer,
    without_blanks,
    words_in,
)
from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import MessageReceived, Requested, message_words, quote_in
from bot.core.group_admin import Accept, JoinRequest
from bot.core.journal import Audited, PlaceSet
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.ports import Store, Transport
from bot.core.query_results import Choices
from bot.core.server_clock import ServerClock
from bot.core.settlement import Settled
from bot.outbox.delivery import Postbox
from bot.policy.join_rules import JoinRule, decide
from bot.prompt.render import INNER_QUOTES
from frostagent.engine.authority import in_one_line
from frostagent.types.ports import Clock

logger = logging.getLogger(__name__)

SETTING = "petition"
APPLICANT = "applicant"  # the setting for people who ask to join a group
SETTINGS = (SETTING, APPLICANT)
DAYS = 7  # after which a request expires: QQ forgets older ones
MAX_OPEN = 20
MAX_OPEN_EACH = 3  # invites of one person, so that owners are not flooded
MAX_PAST = 200  # answered requests whose flags are remembered: some servers repeat them
LOOK = 2.0  # seconds between two attempts to read the requests

MAX_COMMENT = 80  # characters

FRIEND = Phrase(
    "#R{number} {who} 想加机器人为好友", "#R{number} {who} wants to be the bot's friend"
)
INVITE = Phrase(
    "#R{number} {who} 邀请机器人进群 {group}", "#R{number} {who} invites the bot into group {group}"
)
SAYING = Phrase("{line}：「{said}」", "{line}: 「{said}」")
APPLY = Phrase(
    "#R{number} {who} 申请加入群 {group}", "#R{number} {who} wants to join the group {group}"
)
APPLY_HERE = Phrase("#R{number} {who} 申请入群", "#R{number} {who} wants to join this group")
HOW_HERE = Phrase(
    "群管理员回复「同意 R{number}」或「拒绝 R{number} 理由」。",
    'Admins of the group: answer "approve R{number}" or "deny R{number} reason".',
)
HOW = Phrase(
    "回复「同意 R{number}」或「拒绝 R{number} 理由」，也可以引用这条回复；{days} 天内有效。",
    'Answer "approve R{number}" or "deny R{number} reason", or quote this, within {days} days.',
)
DONE = Phrase("R{number} {word}。", "R{number} is {word}.")
YES, NO = Phrase("同意", "yes"), Phrase("拒绝", "no")
SUBMITTED = Phrase(
    "R{number} 已提交（{word}）：这个 OneBot 端不会说 QQ 办成没有，要确认请在 QQ 里看一下。",
    "R{number} is submitted ({word}): this OneBot server does not say whether QQ did it; "
    "look in QQ to be sure.",
)
EXPIRED = Phrase("R{number} 过期了，没有处理。", "R{number} has expired, nothing was done.")
UNKNOWN = Phrase(
    "没有编号为 R{number} 的申请，可能已经过期或处理过了。",
    "There is no request R{number}; it may have expired or be settled.",
)
AGAIN = Phrase(
    "这条回复比 R{number} 的申请早，没有算数；R{number} 还在等，要回复请再发一次。",
    "That answer is older than the request R{number} and is void; R{number} still waits: "
    "please answer once more.",
)
REFUSED = Phrase(
    "R{number} 没有办成，QQ 没有接受：{why}", "R{number} could not be done, QQ refused it: {why}"
)
UNANSWERED = Phrase(
    "R{number} 办成没有，QQ 没有回答；请在 QQ 里看一下，不会再试。",
    "QQ did not answer whether R{number} was done; look in QQ, it is not tried again.",
)
OFFLINE = Phrase(
    "机器人现在没有连上 QQ，R{number} 还在等，请过一会儿再回复一次。",
    "The bot is not connected to QQ now, R{number} still waits: answer again in a while.",
)
BUSY = Phrase(
    "现在记不下来，R{number} 还在等，请过一会儿再回复一次。",
    "That cannot be written down now, R{number} still waits: answer again in a while.",
)
CATALOGUE.register(__name__, globals())
LINES = {"friend": FRIEND, "invite": INVITE, "apply": APPLY}

ANSWER = re.compile(
    r"\s*(?P<word>同意|拒绝|approve|deny)\s*[#＃]?\s*[rRｒＲ]\s*(?P<number>[0-9０-９]{1,9})(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
NUMBERED = re.compile(r"#R([0-9]{1,9}) ")


# --- pending requests -----------------------------------------------------------------------------


class JoinRequestStore:
    """Numbers and stores the open requests, which survive restarts; one per conversation."""

    def __init__(self, *, store: Store, choices: Choices, clock: Clock) -> None:
        self._store = store
        self._choices = choices
        self._clock = clock
        self._numbers = count(1)
        self._past: LRUCache[tuple[int, str], None] = LRUCache(MAX_PAST)
        self.open: dict[int, JoinRequest] = {}

    async def restore(self) -> tuple[JoinRequest, ...] | None:
        """Load the requests of an earlier process. Returns, and closes, those whose decision may
        not have been sent; None if they cannot be read yet.
        """
        stored = [(name, await self._choices.settings(name)) for name in SETTINGS]
        kept = [
            (name, where, value)
            for name, values in stored
            if values is not None
            for where, value in values.items()
        ]
        if any(values is None for _, values in stored):
            return None
        doubtful = []
        for name, where, value in kept:
            request = _read(value)
            if request is None or self.is_over(request):
                await self._store.commit(PlaceSet(where, name, ""))
            elif request.answered:
                doubtful.append(request)
                await self.end(request)
            else:
                self.open[request.number] = request
        self._numbers = count(max(self.open, default=0) + 1)
        return tuple(doubtful)

    def is_known(self, request: JoinRequest) -> bool:
        """Whether the request is already open or answered: some servers repeat requests."""
        before = self._before(request)
        is_open = before is not None and before.flag == request.flag
        return is_open or (request.account, request.flag) in self._past

    def has_room(self, request: JoinRequest) -> bool:
        """Whether the limits in total and per person allow one more."""
        before = self._before(request)
        others = [
            each
            for each in self.open.values()
            if each is not before and _name(each) == _name(request)
        ]
        theirs = [each for each in others if each.user_id == request.user_id]
        return len(others) < MAX_OPEN and len(theirs) < MAX_OPEN_EACH

    async def add(self, request: JoinRequest) -> JoinRequest:
        """Open the request; it replaces an earlier one of its conversation. Returns it with its
        number.
        """
        if (before := self._before(request)) is not None:
            del self.open[before.number]
        request = replace(request, number=next(self._numbers))
        self.open[request.number] = request
        await self._write(request, codec.write(request))
        return request

    async def answer(self, request: JoinRequest) -> bool:
        """Record that an answer is about to be sent. False if the journal cannot be written now."""
        return await self._write(request, codec.write(replace(request, answered=True)))

    async def wait(self, request: JoinRequest) -> None:
        """Record that no answer was sent: the request stays open."""
        if request.number in self.open:  # else the person was erased meanwhile
            await self._write(request, codec.write(request))

    async def end(self, request: JoinRequest, *, again: bool = False) -> None:
        """Close the request. With `again`, when nothing was decided, it may be asked again."""
        self.open.pop(request.number, None)
        if not again:
            self._past[request.account, request.flag] = None
        await self._write(request, "")

    def forget(self, note: SubjectErased) -> None:
        """Drop the requests of an erased person or group."""
        for one in tuple(self.open.values()):
            if one.user_id == note.user or 0 != one.group_id == note.group:
                del self.open[one.number]

    def is_over(self, request: JoinRequest) -> bool:
        return self._clock.now() >= request.since + DAYS * 86_400

    def _before(self, request: JoinRequest) -> JoinRequest | None:
        same = (
            each
            for each in self.open.values()
            if each.where == request.where and _name(each) == _name(request)
        )
        return next(same, None)

    def note(self, request: JoinRequest, *, by: str, outcome: str) -> None:
        """Record in the audit log what was decided about an applicant; only that log names them."""
        group = Conversation(request.account, "group", request.group_id)
        audited = Audited(
            at=self._clock.now(),
            login="",
            address=by,
            action="applicant",
            object=str(group),
            outcome=outcome,
        )
        self._store.put(audited)

    async def _write(self, request: JoinRequest, value: str) -> bool:
        return await self._store.commit(PlaceSet(request.where, _name(request), value))


def _name(request: JoinRequest) -> str:
    """The setting that stores the request. Applicants have their own, with its own limit."""
    return APPLICANT if request.kind == "apply" else SETTING


def _read(value: str) -> JoinRequest | None:
    """None if the stored format is no longer readable."""
    try:
        request: JoinRequest = codec.read(JoinRequest, value)
    except codec.Unreadable:
        return None
    return request


# --- asking and answering -------------------------------------------------------------------------

_Tell: TypeAlias = Callable[[Settled], object]


class Applicants(Struct, frozen=True, kw_only=True):
    """How requests to join a group are decided. `rules_of` gives a group's rules; if one fits, it
    decides. Otherwise owners are asked if `asks_owners`, and then also the group's admins, in the
    group, if `asks_admins`. `may_act` says whether the bot does anything in a group, `may_speak`
    whether it may speak there unasked.
    """

    blocked: Collection[int] = ()
    asks_owners: bool = False
    asks_admins: bool = False
    rules_of: Callable[[Conversation], Iterable[JoinRule]] = lambda _: ()
    may_act: Callable[[Conversation], bool] = lambda _: True
    may_speak: Callable[[Conversation], bool] = lambda _: True


LEFT_ALONE = Applicants()


class JoinRequests:
    """The `DecisionHandler` of join requests; `run` is its task. `accept` returns how to treat a
    person's request without asking.
    """

    def __init__(
        self,
        *,
        accept: Callable[[int], Accept],
        owners: frozenset[int],
        transport: Transport,
        request_store: JoinRequestStore,
        postbox: Postbox,
        server_clock: ServerClock,
        clock: Clock,
        applicants: Applicants = LEFT_ALONE,
        language: Language = Language.CHINESE,
    ) -> None:
        self._applicants = applicants
        self._language = language
        self._accept = accept
        self._owners = owners
        self._transport = transport
        self._request_store = request_store
        self._postbox = postbox
        self._server_clock = server_clock
        self._clock = clock
        self._queue = ReplyQueue("requests and answers to them")

    @property
    def open(self) -> Collection[JoinRequest]:
        return self._request_store.open.values()

    async def run(self) -> None:
        """Load the requests of an earlier process, then handle new ones and replies."""
        while (doubtful := await self._request_store.restore()) is None:
            await self._clock.sleep(LOOK)
        for request in doubtful:
            told = UNANSWERED.format(self._language, number=request.number)
            self._tell(request.account, f"{request_line(request, language=self._language)}\n{told}")
        await self._queue.run()

    # --- new requests -------------------------------------------------------------------------

    def receive(self, event: Requested) -> None:
        """Queue a request. Never waits."""
        applies = event.kind == "group" and event.sub_type != "invite"
        request = JoinRequest(
            account=event.self_id,
            kind="friend" if event.kind == "friend" else "apply" if applies else "invite",
            user_id=event.user_id,
            group_id=event.group_id,
            comment=event.comment,
            flag=event.flag,
            since=self._clock.now(),
        )
        if applies:
            self._queue.put(partial(self._judge_applicant, request))
        elif self._accept(event.user_id) == "none":
            logger.info("%s of %d is left alone", request.kind, event.user_id)
        else:
            self._queue.put(partial(self._ask, request))

    def joined(self, group: Conversation, user_id: int) -> None:
        """Close the request of a person who has joined the group, whether or not the bot let them
        in.
        """
        if any(self._is_theirs(one, group, user_id) for one in self.open):
            self._queue.put(partial(self._end_joined, group, user_id))

    async def _end_joined(self, group: Conversation, user_id: int) -> None:
        for one in tuple(self.open):
            if self._is_theirs(one, group, user_id):
                await self._request_store.end(one)
                self._request_store.note(one, by="QQ", outcome=f"joined R{one.number}")

    @staticmethod
    def _is_theirs(request: JoinRequest, group: Conversation, user_id: int) -> bool:
        theirs = (request.account, request.group_id, request.user_id)
        return request.kind == "apply" and theirs == (group.platform_id, group.session_id, user_id)

    async def _judge_applicant(self, request: JoinRequest) -> None:
        """Decide by the group's rules; if none fits, ask."""
        group, who = Conversation(request.account, "group", request.group_id), request.user_id
        applicants, store = self._applicants, self._request_store
        if who in applicants.blocked or store.is_known(request) or not applicants.may_act(group):
            return
        if (decided := decide(applicants.rules_of(group), request.comment)) is not None:
            choice: Choice = "approve" if decided.rule.accepts else "deny"
            settled = await self._answer(
                request, Reply(choice, words=decided.rule.reason), by=f"rule {decided.number}"
            )
            if settled.kind not in ("busy", "offline"):
                return
            await store.end(request, again=True)  # nothing was sent: ask
        asks_here = applicants.asks_admins and applicants.may_speak(group)
        if not applicants.asks_owners or not (self._owners or asks_here):
            logger.info("%d wants to join %s: left to its admins", who, group)
        elif not store.has_room(request):
            logger.warning("%d wants to join %s and is left alone: too many wait", who, group)
        else:
            request = await store.add(request)
            self._tell(request.account, request_text(request, days=DAYS, language=self._language))
            if asks_here:
                self._postbox.remark(group, request_here(request, language=self._language))

    def take_admin_reply(self, message: MessageReceived) -> bool:
        """Handle the message if it is a group admin's decision, by number, about an applicant of
        that group. Returns whether it was.
        """
        where, sender = message.conversation, message.sender
        if not where.is_group or not self.open or message.is_own:
            return False
        if sender.role not in ("owner", "admin") and sender.user_id not in self._owners:
            return False
        reply = None if (words := words_in(message)) is None else read_join_answer(words)
        if reply is None or reply.number is None:
            return False
        request = self._request_store.open.get(reply.number)
        asked_there = request is not None and (
            request.kind == "apply"
            and (request.account, request.group_id) == (where.platform_id, where.session_id)
        )
        return asked_there and self.accept(message, reply.number, reply)

    async def _ask(self, request: JoinRequest) -> None:
        who, kind = request.user_id, request.kind
        if self._request_store.is_known(request):
            return
        if self._accept(who) == "friends" and kind == "friend":
            settled = await self._answer(request, Reply("approve"), by="BOT_ACCEPT")
            logger.info("%d: %s", who, settled.words)
        elif not self._owners:
            logger.warning("%s of %d is left alone: BOT_OWNERS is empty", kind, who)
        elif not self._request_store.has_room(request):
            logger.warning("%s of %d is left alone: too many wait", kind, who)
        else:
            request = await self._request_store.add(request)
            self._tell(request.account, request_text(request, days=DAYS, language=self._language))

    def _tell(self, account: int, line: str) -> None:
        for owner in sorted(self._owners):
            if not self._postbox.post(Conversation(account, "private", owner), line):
                logger.warning("owner %d has too much to read: %s", owner, line)

    # --- replies ------------------------------------------------------------------------------

    def read_reply(self, message: MessageReceived) -> Reply | None:
        return None if (words := private_words(message)) is None else read_join_answer(words)

    def find_number(self, quoted: MessageReceived) -> int | None:
        return number_of(self._request_store.open, message_words(quoted))

    def list_candidates(self, message: MessageReceived, reply: Reply) -> list[Candidate]:
        """All open requests of this account if the reply quotes a message, else none: a reply
        without a quote may be meant for the model, and must not let a stranger in.
        """
        if not quote_in(message):
            return []
        word = WORD_OF[reply.choice].format(self._language)
        return [
            Candidate(request.number, f"R{request.number}", f"{word} R{request.number}")
            for request in self.open
            if request.account == message.conversation.platform_id
        ]

    def accept(self, message: MessageReceived, number: int, reply: Reply) -> bool:
        """Queue the reply. One that is older than the request decides nothing."""

        def tell(settled: Settled) -> None:
            self._postbox.post(message.conversation, settled.words)

        by = str(message.sender.user_id)
        self._queue.put(partial(self._settle, number, reply, tell, by=by, message=message))
        return True

    async def settle(self, number: int, reply: Reply, *, by: str) -> Settled:
        """Apply a decision from the console, after those already queued. `by` names who made it."""
        settled: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()

        def tell(one: Settled) -> None:
            if not settled.done():  # the caller may have left
                settled.set_result(one)

        if not self._queue.put(partial(self._settle, number, reply, tell, by=by)):
            return outcome("busy", BUSY, self._language, number=number)
        return await settled

    async def _settle(
        self,
        number: int,
        reply: Reply,
        tell: _Tell,
        *,
        by: str,
        message: MessageReceived | None = None,
    ) -> None:
        request = self._request_store.open.get(number)
        if request is None:
            tell(outcome("unknown", UNKNOWN, self._language, number=number))
        elif message is not None and self._server_clock.is_older(message, request.since):
            tell(outcome("again", AGAIN, self._language, number=number))
        elif self._request_store.is_over(request):
            await self._request_store.end(request)
            tell(outcome("late", EXPIRED, self._language, number=number))
        else:
            logger.info("R%d: %s by %s", number, reply.choice == "approve", by)
            tell(await self._answer(request, reply, by=by))

    async def _answer(self, request: JoinRequest, reply: Reply, *, by: str) -> Settled:
        """Send the decision to QQ. The request stays open if nothing was sent."""
        number, language = request.number, self._language
        allows = reply.choice == "approve"
        if not await self._request_store.answer(request):
            return outcome("busy", BUSY, language, number=number)
        try:
            is_certain = await self._transport.admit(request, granted=allows, reason=reply.words)
        except NotConnected:
            await self._request_store.wait(request)
            return outcome("offline", OFFLINE, language, number=number)
        except ActionRefused as error:
            why = in_one_line(error.wording, 80) or "?"
            settled = outcome("refused", REFUSED, language, number=number, why=why)
        except ActionUnanswered:
            settled = outcome("unanswered", UNANSWERED, language, number=number)
        else:
            if is_certain:
                line, word = DONE, ALLOWED if allows else DENIED
            else:
                line, word = SUBMITTED, YES if allows else NO
            settled = outcome("done", line, language, number=number, word=word)
        await self._request_store.end(request)
        if request.kind == "apply":
            who, group, rule = request.user_id, request.group_id, by.startswith("rule ")
            decided = "accepted" if allows else "refused"
            logger.info("%d, who wants to join %d, is %s by %s", who, group, decided, by)
            self._request_store.note(
                request,
                by=by if rule else "chat",
                outcome=" ".join(filter(None, (decided, f"R{number}" if number else ""))),
            )
        return settled


# --- reading replies, and wording: pure -----------------------------------------------------------


def request_line(request: JoinRequest, *, language: Language = Language.CHINESE) -> str:
    """The line that describes the request to an owner, without how to answer."""
    words = LINES[request.kind]
    who, group = request.user_id, request.group_id
    line = words.format(language, number=request.number, who=who, group=group)
    return _with_comment(line, request, language)


def _with_comment(line: str, request: JoinRequest, language: Language) -> str:
    said = in_one_line(request.comment, MAX_COMMENT).translate(INNER_QUOTES)
    return SAYING.format(language, line=line, said=said) if said else line


def request_text(request: JoinRequest, *, days: int, language: Language = Language.CHINESE) -> str:
    return (
        f"{request_line(request, language=language)}\n"
        f"{HOW.format(language, number=request.number, days=days)}"
    )


def request_here(request: JoinRequest, *, language: Language = Language.CHINESE) -> str:
    """The same line for the group's admins, shown in the group."""
    line = APPLY_HERE.format(language, number=request.number, who=request.user_id)
    how = HOW_HERE.format(language, number=request.number)
    return f"{_with_comment(line, request, language)}\n{how}"


def read_join_answer(text: str) -> Reply | None:
    """`同意 R3`, or `同意` without a number; None for anything else."""
    if (found := ANSWER.fullmatch(text)) is None:
        answer = read_answer(text)
        return answer if answer is not None and answer.number is None else None
    plain = read_answer(found["word"] + (f" {found['rest']}" if found["rest"].strip() else ""))
    return plain and Reply(plain.choice, int(found["number"]), plain.words)


def number_of(requests: dict[int, JoinRequest], text: str) -> int | None:
    """The number of the open request that this line of the bot asks about, if any."""
    found = NUMBERED.match(text)
    request = requests.get(int(found[1])) if found else None
    lines = (
        tuple(without_blanks(request_line(request, language=language)) for language in Language)
        if request
        else ("",)
    )
    if found is None or not without_blanks(text).startswith(lines):
        return None
    return int(found[1])
