"""The beginning of a run: its persona, what the model reads of its conversation, whose authority
counts, and its budget. People have numbers in prompts, whose language is the conversation's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from bot.budget.limits import LimitLevel
from bot.budget.turn_budget import TurnBudget, shorten_history, shows_pictures
from bot.chat.perception import Perception
from bot.chat.suspended import SuspendedTurn
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, quote_in
from bot.core.group_admin import Chair, Topic
from bot.core.jobs import Reminders, Subscriptions
from bot.core.journal import AttachmentNamed, OpenTurn
from bot.core.language import Language
from bot.core.segments import Forward, Mention, Segment
from bot.core.task_context import current_run, early_payer
from bot.core.urls import KnownUrls, links_in
from bot.memory.history import History
from bot.memory.personas import Cast, Persona, Personas
from bot.memory.remembering import NOTHING_RECALLED, Recalled, Remembering
from bot.memory.speakers import Speakers
from bot.memory.window import Window
from bot.outbox.delivery import Delivery
from bot.outbox.layout import strip_markdown
from bot.outbox.turn_speaker import TurnSpeaker
from bot.policy.fallback_replies import language_of
from bot.policy.permissions import acts_as_owner, asker_of, highest_authority
from bot.policy.silence import keeps_silent
from bot.policy.wake import CALLED, Wake
from bot.prompt.answer_cleanup import clean_message
from bot.prompt.citations import READ, cite
from bot.prompt.compose import (
    NO_TALK,
    Forwarded,
    OverheardTalk,
    Question,
    addition_line,
    links_in_question,
    missing_words,
    now_facts,
    now_line,
    opened_line,
    system_prompt,
    transcript,
    user_message,
    with_pictures,
    without_summary,
)
from bot.prompt.echo_detection import PromptEcho, example_rounds, repeated_answer
from bot.prompt.frame_removal import FrameRemover
from bot.prompt.participants import Participants, speakers_in
from bot.prompt.prompt_language import WORDINGS, choose_wording
from bot.prompt.render import MAX_TEXT, View, line, plain
from bot.prompt.summary import outside_tools_in
from bot.prompt.wording import Wording
from frostagent.engine.authority import lowest_authority
from frostagent.engine.budget import NOTHING_SPENT
from frostagent.engine.engine import Run
from frostagent.engine.toolset import Toolset
from frostagent.models.compaction import history_room
from frostagent.models.failover import Failover
from frostagent.models.tokens import estimate, estimate_text
from frostagent.types.errors import Lack
from frostagent.types.messages import Message, ModelRequest, UserMessage
from frostagent.types.ports import Ids, Speaker
from frostagent.types.runs import Asker, Spent, Terms
from frostagent.types.speech import Quote
from frostagent.types.traits import Audience


def longest_head(persona: Persona, toolset: Toolset) -> ModelRequest:
    """The longest system prompt of a persona, over all languages, with all tools."""
    longest = max(WORDINGS, key=lambda words: estimate_text(words.rules))
    system = system_prompt(persona.prompt, name=persona.name, words=longest)
    return ModelRequest((system, *persona.examples), toolset.all_definitions())


def longest_head_of_all(cast: Cast, toolset: Toolset) -> ModelRequest:
    """`longest_head` over all personas."""
    every = (cast.usual, *cast.others.values())
    return max((longest_head(who, toolset) for who in every), key=estimate)


def history_room_of(
    model: Failover,
    head: Callable[[], ModelRequest],
    *,
    version: Callable[[], int] = int,
    most: int,
) -> Callable[[], float]:
    """A function that returns the estimated tokens of history that fit in the next prompt after the
    head: `most`, or less if the model's window is small. The head is made again when its `version`
    changes.
    """
    measured, first = version(), head()
    size = estimate(first)

    def room() -> float:
        nonlocal measured, first, size
        if measured != (now := version()):
            measured, first = now, head()
            size = estimate(first)
        upstream = model.first(first)
        return history_room(most, window=upstream.window, scale=upstream.scale.factor, around=size)

    return room


LOOK_UPS = 8  # quotes in overheard messages that are looked up in the store


class PromptContext:
    """Renders questions and the messages overheard before them, once the history is loaded."""

    def __init__(
        self, *, history: History, speakers: Speakers, remembering: Remembering | None = None
    ) -> None:
        """Without `remembering` no facts are recalled."""
        self.history = history
        self._speakers = speakers
        self._remembering = remembering

    async def remember(
        self, question: Question, *, is_retry: bool
    ) -> tuple[Question, OverheardTalk, Recalled]:
        """Load the history; returns the question as it is rendered, the messages overheard before
        it, and the facts about it. Repeats if the history was dropped meanwhile, as by an erasure.
        """
        where, reader = question.message.conversation, question.message.sender.user_id
        while True:
            age = self.history.times_let_go
            await self.history.load(where)
            talk = NO_TALK if is_retry else self.take_talk(where, reader)
            named, recalled = self.named(question), NOTHING_RECALLED
            if not is_retry:
                recalled = await self.recalled(question.message)
            talk = await self.with_replies(named, talk)
            if age == self.history.times_let_go:
                break
        if not is_retry:  # the journal counts all overheard messages as read until the turn opens
            talk = self.with_more(talk, where, reader)
        return named, talk, recalled

    def is_at_hand(self, where: Conversation) -> bool:
        """Whether people's numbers there are loaded."""
        return where in self._speakers

    def take_talk(self, where: Conversation, reader: int) -> OverheardTalk:
        """Take the messages overheard since the last run for the run of this person that begins."""
        unread = self.history.unread(where)
        if unread.is_read:
            return NO_TALK
        missed = unread.missed
        heard = self.history.take_overheard(where, reader)
        self._meet(*heard)
        return OverheardTalk([self._named(message) for message in heard], missed)

    def with_more(self, talk: OverheardTalk, where: Conversation, reader: int) -> OverheardTalk:
        """Add messages overheard meanwhile."""
        more = self.take_talk(where, reader)
        return replace(talk, messages=(*talk.messages, *more.messages)) if more.messages else talk

    async def with_replies(self, question: Question, talk: OverheardTalk) -> OverheardTalk:
        """Add the messages quoted in it, as far as they are known."""
        if not (talk.messages or question.lines):
            return talk
        where = question.message.conversation
        replies = {one.message_id: one for one in (*talk.messages, *question.lines)}
        quoted = [quote for one in (*talk.messages, *question.lines) for quote in quotes(one)]
        if not quoted:
            return talk
        unknown = [id_ for id_ in dict.fromkeys(quoted) if id_ and id_ not in replies]
        for place, message_id in enumerate(reversed(unknown)):
            found = self.history.known(where, message_id)
            if found is None and place < LOOK_UPS:
                found = await self.history.find(where, message_id)
            if found is not None:
                replies[message_id] = self._named(found)
        return replace(talk, replies={id_: replies[id_] for id_ in quoted if id_ in replies})

    async def recalled(self, message: MessageReceived) -> Recalled:
        if self._remembering is None:
            return NOTHING_RECALLED
        asked = partial(plain, message.segments, View(), self_id=message.self_id)
        where, asker = message.conversation, message.sender.user_id
        return await self._remembering.recalled(where, asker, asked)

    def named(self, question: Question) -> Question:
        """The question with the last seen names of mentioned people, and short names of
        attachments.
        """
        self._meet(*question.lines, question.message)
        message = self._named(question.message)
        if not (question.quoted or question.lines or question.forwarded.lines):
            return question if message is question.message else replace(question, message=message)
        return replace(
            question,
            message=message,
            quoted=question.quoted and self._named(question.quoted),
            lines=tuple(map(self._named, question.lines)),
            forwarded=self._within(question.message, question.forwarded),
        )

    def _within(self, message: MessageReceived, forwarded: Forwarded) -> Forwarded:
        """A forward with short names of its attachments."""
        if not forwarded.lines:
            return forwarded
        things = self.history.things
        lines = (
            replace(passed, message=things.named(passed.message, within=message))
            for passed in forwarded.lines
        )
        return replace(forwarded, lines=tuple(lines))

    def find(self, where: Conversation, handle: str) -> AttachmentNamed | None:
        return self.history.things.find(where, handle)

    def opened(self, message: MessageReceived, forwarded: Forwarded, *, language: str = "") -> str:
        """An opened attachment and forwarded messages, rendered."""
        view = self.view(message.conversation, language=language)
        return opened_line(message, self._within(message, forwarded), view)

    def lacking(
        self, where: Conversation, segment: Segment, lack: Lack, *, language: str = ""
    ) -> str:
        """The words for an attachment that cannot be opened."""
        return missing_words(segment, lack, self.view(where, language=language).words)

    def view(
        self,
        where: Conversation,
        said: Callable[[], str] = str,
        *,
        language: str = "",
        rounds: Sequence[Message] | None = None,
    ) -> View:
        """How a prompt is rendered after these `rounds` (default: the history's): in the chosen
        `language`, else the language of the rounds, else that of the words that `said` returns,
        called only if needed.
        """
        rounds = self.history.messages(where) if rounds is None else rounds
        words = choose_wording(rounds, "" if language or rounds else said(), chosen=language)
        return View(words, lambda user_id: self._speakers.number(where, user_id))

    def render(self, question: Question, talk: OverheardTalk, view: View) -> UserMessage:
        """The question and the messages overheard before it, as one user message."""
        where = question.message.conversation
        for message in (*talk.replies.values(), *filter(None, [question.quoted])):
            if not self._speakers.name(where, message.sender.user_id):  # last seen long ago
                self._meet(message)
        return user_message(question, view, talk, day=self.history.window(where).day)

    def addition(
        self, message: MessageReceived, view: View | None, *, quoted: MessageReceived | None
    ) -> UserMessage:
        """A line added to a running question, which has no `view` yet while it is prepared."""
        self._meet(message)
        view = view or self.view(message.conversation)
        return addition_line(self._named(message), view, quoted=quoted and self._named(quoted))

    def line(self, message: MessageReceived, *, limit: int = MAX_TEXT) -> str:
        return line(self._named(message), self.view(message.conversation), limit=limit)

    def voices(
        self, where: Conversation, rounds: Sequence[Message], summary: str
    ) -> frozenset[int]:
        """The people who speak in earlier rounds of the prompt."""
        return speakers_in(
            rounds, lambda number: self._speakers.user_id(where, number), summary=summary
        )

    def _meet(self, *messages: MessageReceived) -> None:
        for message in messages:
            sender = message.sender
            if not message.is_own:
                name = sender.card or sender.nickname
                self._speakers.meet(message.conversation, sender.user_id, name)

    def _named(self, message: MessageReceived) -> MessageReceived:
        message = self.history.things.named(message)
        for segment in message.segments:
            if isinstance(segment, Mention) and segment.user_id != message.self_id:
                break
        else:
            return message  # the usual case
        segments = tuple([self._name(message, one) for one in message.segments])
        return message if segments == message.segments else replace(message, segments=segments)

    def _name(self, message: MessageReceived, segment: Segment) -> Segment:
        if not isinstance(segment, Mention) or segment.user_id == message.self_id:
            return segment
        seen = self._speakers.name(message.conversation, segment.user_id)
        return replace(segment, name=seen) if seen else segment


def words_of(question: Question, talk: OverheardTalk, names: Iterable[str] = ()) -> str:
    """The new words of a prompt, for detecting its language: without the bot's `names`, which have
    none.
    """
    said = (*talk.messages, *question.lines, question.message)
    words = "\n".join(plain(one.segments, View(), self_id=one.self_id) for one in said)
    called = "|".join(map(re.escape, filter(None, names)))
    return re.sub(called, "", words, flags=re.IGNORECASE) if called else words


def quotes(message: MessageReceived) -> Iterable[str]:
    return (one.message_id for one in message.segments if isinstance(one, Quote))


class Turn(Struct, frozen=True):
    """A question being answered. `user` is its form for the model, followed by the line `now`; it
    `sees` pictures if any model does. `before` is the number of messages before the rounds.
    """

    question: Question
    user: UserMessage
    run: Run
    speaker: TurnSpeaker
    view: View
    wake: Wake = CALLED
    recalled: tuple[str, ...] = ()
    sees: bool = True
    before: int = 1
    now: str = ""

    @property
    def message(self) -> MessageReceived:
        return self.question.message

    @property
    def words(self) -> Wording:
        return self.view.words


class ContextBuilder:
    """Builds turns from messages, with budgets by `turn_budget`. `cites`: the web can be read, so
    answers name their sources, and no unknown url.
    """

    def __init__(
        self,
        *,
        perception: Perception,
        prompt_context: PromptContext,
        delivery: Delivery,
        personas: Personas,
        owners: frozenset[int],
        ports: Mapping[type, object],
        turn_budget: TurnBudget,
        ids: Ids,
        withheld: Callable[[Conversation], frozenset[str]] = lambda _: frozenset(),
        on_demand: Callable[[Question], Mapping[type, object]] = lambda _: {},
        cites: bool = False,
        reads_links: Callable[[Conversation, Terms], bool] | None = None,
    ) -> None:
        """`on_demand` are the ports of tools that only some questions want. If it `cites`, urls in
        answers are checked. `reads_links` says whether the model is to read the links that a
        question is about; None if BOT_LINKS is off.
        """
        self._cites = cites
        self._reads_links = reads_links
        self._perception = perception
        self._prompt_context = prompt_context
        self._history = prompt_context.history
        self._delivery = delivery
        self._personas = personas
        self._owners = owners
        self._ports = ports
        self._turn_budget = turn_budget
        self._ids = ids
        self._withheld = withheld
        self._on_demand = on_demand

    async def begin(
        self,
        message: MessageReceived,
        retry: OpenTurn | None,
        *,
        lines: tuple[MessageReceived, ...] = (),
        wake: Wake = CALLED,
    ) -> Turn:
        """A new turn; a `retry` gives the model the same words as the turn it repeats. The run of a
        weak `wake` may end without words.
        """
        where, run_id = message.conversation, self._ids.trace()
        payer = wake.payer(message.sender.user_id)
        current_run.set(run_id)  # for the rest of this lane's task
        question = Question(message, lines=retry.lines if retry else lines)
        if not retry:
            early = early_payer.set((where, payer))
            try:
                question = await self._perception.perceive(message, lines)
            finally:
                early_payer.reset(early)
        question, talk, recalled = await self._prompt_context.remember(
            question, is_retry=retry is not None
        )
        who = self._personas.of(where)
        rung = self._turn_budget.spending.rung(where, payer)
        if self._reads_links is not None:
            question = self._with_links(question, who, rung)
        told = (
            partial(str, retry.user.text) if retry else partial(words_of, question, talk, who.names)
        )
        window = self._history.window(where)
        rounds, summary = window.messages, window.summary
        view = self._prompt_context.view(where, told, language=who.language, rounds=rounds)
        user = retry.user if retry else self._prompt_context.render(question, talk, view)
        asker = asker_of(
            question.message,
            owners=self._owners,
            lines=question.lines,
            quoted=question.quoted,
            forwarded=question.forwarded.lines,
            overheard=(*talk.messages, *talk.replies.values()),
            earlier=lambda: self._prompt_context.voices(where, rounds, summary) | recalled.authors,
        )
        if retry and not is_alone(message, retry.user):
            # Other people's words in it are not known any more.
            asker = replace(asker, authority=Audience.EVERYONE)
        return self._turn(
            question,
            user,
            asker,
            run_id=run_id,
            view=view,
            wake=wake,
            who=who,
            window=window,
            rung=rung,
            recalled=recalled.lines,
        )

    def _with_links(self, question: Question, who: Persona, rung: LimitLevel) -> Question:
        """The question with the links that it may be about, if the model can read them."""
        where, links = question.message.conversation, links_in_question(question)
        can_read = (
            bool(links)
            and rung < LimitLevel.BARE
            and self._reads_links is not None
            and self._reads_links(where, self._terms(where, who))
        )
        return replace(question, links=links) if can_read else question

    def go_on(self, turn_id: str, waiting: SuspendedTurn) -> Turn:
        """A suspended turn with its former authority at most, and its usage and words so far; the
        history must be loaded.
        """
        message, before = waiting.question, waiting.run.asker
        where = message.conversation
        current_run.set(turn_id)
        who = self._personas.of(where)
        window = self._history.window(where)
        rounds, summary = window.messages, window.summary
        earlier = partial(self._prompt_context.voices, where, rounds, summary)
        asker = asker_of(message, owners=self._owners, earlier=earlier)
        asker = replace(
            asker,
            authority=before.authority,
            overheard=lowest_authority((before.overheard, asker.overheard)),
            voices=before.voices,
            read=before.read,
        )
        turn = self._turn(
            Question(message),
            waiting.user,
            asker,
            run_id=turn_id,
            view=self._prompt_context.view(
                where, partial(str, waiting.user.text), language=who.language, rounds=rounds
            ),
            who=who,
            window=window,
            rung=self._turn_budget.spending.rung_of(turn_id),
            spent=spent_by(waiting),
        )
        turn.speaker.said += waiting.said
        turn.speaker.heard.update(waiting.heard)
        return turn

    def _ports_of(
        self, question: Question, speaker: TurnSpeaker, urls: KnownUrls | None
    ) -> dict[type, object]:
        message = question.message
        ports = {**self._ports, Speaker: speaker, **self._on_demand(question)}
        if urls is not None:
            ports[KnownUrls] = urls
        if Chair in ports and message.conversation.is_group:
            ports[Topic] = Topic(quote_in(message))
        if Reminders in ports or Subscriptions in ports:
            ports[Language] = language_of(message)
        return ports

    def _terms(self, where: Conversation, who: Persona) -> Terms:
        """The available tools: equal in all runs of a conversation, so that their prompts begin
        alike.
        """
        return Terms(
            who.denied,
            self._personas.audiences(where),
            highest_authority(where, self._owners),
            self._withheld(where),
        )

    async def seeing(self, turn: Turn) -> Run:
        """The run with the current time and the pictures of its question, which are not stored in
        the journal or the history.
        """
        run = turn.run
        pictures = await self._perception.look(turn.question) if turn.sees else ()
        has_links = bool(turn.question.links)
        now = now_line(turn.now, turn.words, turn.recalled, has_links=has_links)
        shown = with_pictures(run.transcript, pictures, words=turn.words, now=now)
        return replace(run, transcript=shown)

    def _turn(
        self,
        question: Question,
        user: UserMessage,
        asker: Asker,
        *,
        run_id: str,
        view: View,
        who: Persona,
        window: Window,
        rung: LimitLevel,
        spent: Spent = NOTHING_SPENT,
        wake: Wake = CALLED,
        recalled: tuple[str, ...] = (),
    ) -> Turn:
        message, where = question.message, question.message.conversation
        sees = self._perception.sees and shows_pictures(rung)
        words, summary = view.words, window.summary
        rounds = shorten_history(rung, window.messages)
        before = 1 + len(who.examples)
        system = system_prompt(who.prompt, name=who.name, words=words, sees=sees)
        quotes_page = self._reads_links is not None and names_page(question.quoted)
        if summary or quotes_page:
            brought = (*outside_tools_in(summary), *((READ,) if quotes_page else ()))
            asker = replace(asker, read=tuple(dict.fromkeys((*asker.read, *brought))))
        read = transcript(system, rounds, user, words=words, summary=summary, examples=who.examples)
        # A summary of pages says what they say: no url is known by it.
        naming = without_summary(read, words) if outside_tools_in(summary) else read
        told = replace(message, group_name="") if acts_as_owner(asker) else message
        doubts = doubts_of(told, view, read, rounds)
        silence = partial(keeps_silent, asked=doubts.asked, weak=wake.weak)
        frames = FrameRemover(who.names, number=where.platform_id, people=Participants.of(read))
        counted = window.counted()
        counted = replace(counted, place=before + counted.place)
        budget = self._turn_budget.budget(run_id, spent)
        speaker = TurnSpeaker(self._delivery, run_id, asker, where, frames, budget)
        speaker.question = message.message_id if message.has_identity else ""

        def has_spoken() -> bool:
            return bool(speaker.said)

        named = (one.text for one in naming if isinstance(one, UserMessage))
        urls = KnownUrls(named) if self._cites else None
        run = Run(
            id=run_id,
            conversation=str(where),
            asker=asker,
            transcript=read,
            counted=counted,
            asked=tuple(one.message_id for one in question.said if one.has_identity),
            ports=self._ports_of(question, speaker, urls),
            heard=has_spoken,
            tidy=partial(
                clean_message, frames, question=doubts.asked, now=doubts.now, is_silence=silence
            ),
            cite=partial(cite, transcript=naming, urls=urls, heard=has_spoken, shown=strip_markdown)
            if urls
            else None,
            doubts=lambda text: doubts.has(text) or frames.may_be_anothers(text),
            silence=silence,
            examples=example_rounds(words),
            share=budget.share(),
            may_be_silent=wake.weak,
            model=who.model,
            temperature=who.temperature,
            terms=self._terms(where, who),
            leaner=self._turn_budget.leaner,
            words=words.engine[language_of(message)],
        )
        now = doubts.now
        return Turn(question, user, run, speaker, view, wake, recalled, sees, before, now)


def doubts_of(
    message: MessageReceived, view: View, read: Sequence[Message], rounds: Sequence[Message]
) -> PromptEcho:
    """Recognizes answers to this question that may only echo the prompt."""
    return PromptEcho(
        read,
        asked=plain(message.segments, view, self_id=message.self_id),
        now=now_facts(message, view),
        day=view.date(message.time),
        place=message.group_name,
        twice=repeated_answer(rounds),
    )


def names_page(quoted: MessageReceived | None) -> bool:
    """Whether it is the bot's own message with a URL: then what a page says may be in it, which the
    rounds of the prompt need not show (`bot/links.py`).
    """
    return quoted is not None and quoted.is_own and any(links_in(quoted.segments))


def is_alone(message: MessageReceived, user: UserMessage) -> bool:
    """Whether the rendered text contains only this message's words."""
    passes_on = any(isinstance(segment, Quote | Forward) for segment in message.segments)
    return user.sources == (message.message_id,) and not passes_on


def spent_by(waiting: SuspendedTurn) -> Spent:
    """The budget used by a suspended run; older versions stored less of it."""
    spent, usage = waiting.run.spent, waiting.run.usage
    return Spent(
        requests=max(spent.requests, waiting.run.steps),
        tokens=max(spent.tokens, usage.prompt + usage.completion),
        sends=max(spent.sends, len(waiting.said)),
    )
