"""Builds the objects of a bot from its settings, top to bottom. `bot/app.py` opens and closes them.

Every stateful object that others use (lifetimes, pages, terminal commands, other bots of a cluster,
tests) is a field of `App`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aiohttp import ClientSession

from adapters.fetching.lazy import LazyWeb
from adapters.fetching.limits import FetchLimits
from adapters.media.attachments import (
    FETCHING_FILE,
    MAX_FILE_BYTES,
    PictureSight,
    ReceivedDocuments,
    Transcribe,
    VoiceEar,
)
from adapters.media.decoder_process import DecoderProcess
from adapters.media.folder import MAX_BASE64, DraftFiles, MediaFolder
from adapters.media.reader_process import ReaderProcess
from adapters.metrics.metrics import Metrics
from adapters.onebot.accounts import Account
from adapters.onebot.transport import MOST_INLINE, AnyTransport
from adapters.storage.files import free_at
from adapters.storage.store import SqlStore
from adapters.storage.url import file_of, read_url
from adapters.web.file_offers import FileOffers
from adapters.words.word_file import WordFile, compile_pattern
from bot.approvals.decision import Approvers, Say
from bot.approvals.drafts import DraftApprovals
from bot.approvals.join_requests import Applicants, JoinRequests, JoinRequestStore
from bot.approvals.new_groups import NewGroups
from bot.approvals.registry import PendingDecisions
from bot.approvals.tool_calls import ToolApprovals
from bot.budget.commands import limit_command, usage_command
from bot.budget.errands import Errands
from bot.budget.limits import LIMITS, Cap, DayLimits, OwnLimits
from bot.budget.meter import CountedCalls, CountedSpeech, Meter
from bot.budget.spending import Spending
from bot.budget.trial_account import TrialAccount
from bot.budget.turn_budget import TurnBudget
from bot.chat.active_conversations import ActiveConversations
from bot.chat.active_turn import ActiveTurns
from bot.chat.active_work import ActiveWork
from bot.chat.attachment_opener import AttachmentOpener
from bot.chat.backfill import (
    Catchup,
    DeafnessWatch,
    ExpiredEvents,
    HeldLanes,
    LateMessages,
    ReconnectQueue,
)
from bot.chat.chime_in import CHIME, ChimeIn
from bot.chat.coalescer import Coalescer
from bot.chat.context_builder import (
    ContextBuilder,
    PromptContext,
    history_room_of,
    longest_head,
    longest_head_of_all,
)
from bot.chat.deduplicator import Deduplicator, SeenMessages
from bot.chat.dispatcher import ConnectedHandler, Dispatcher
from bot.chat.group_admin import GroupAdmin
from bot.chat.group_probe import BotDetection, GroupProbe
from bot.chat.lanes import Lanes, Order
from bot.chat.message_log import MessageLog, SelfMessages
from bot.chat.mute_handler import MuteHandler
from bot.chat.mutes import Mutes
from bot.chat.perception import LOOKING, DescribedSight, Forwards, Perception, Senses
from bot.chat.pokes import POKED, AnsweredPokes, Pokes
from bot.chat.question_queue import DeferredQuestions, QuestionQueue, Quotes
from bot.chat.rate_limiter import RateLimiter
from bot.chat.startup import Recoverer
from bot.chat.steering import Steering
from bot.chat.stop_handler import StopHandler
from bot.chat.suspended import SuspendedTurns
from bot.chat.tasks import Facts, Resume, Work, due_of, person_of
from bot.chat.turn import Turns
from bot.chat.turn_journal import TurnJournal
from bot.chat.unconfirmed import UnconfirmedChecker
from bot.chat.wake_classifier import BlockedWordFilter, WakeClassifier
from bot.chat.way import JudgedStage, LaneWay, MessageWay, Stage
from bot.chat_models import ChatModels, Wrap
from bot.commands.commands import Commands
from bot.commands.context import ContextSize, context_command, measure_context
from bot.commands.digest import digest_command
from bot.commands.errors import Failures, errors_command
from bot.commands.forget import forget_command
from bot.commands.groups import groups_command, mode_commands
from bot.commands.help import stop_command, with_help
from bot.commands.me import me_command
from bot.commands.model import model_command
from bot.commands.persona import persona_command
from bot.commands.reset import reset_command
from bot.commands.status import StatusReader
from bot.commands.why import why_command
from bot.configured_tools import (
    build_ports,
    build_toolset,
    can_read_pages,
    search_account,
    search_hosts,
)
from bot.core.command import Command
from bot.core.conversation import Conversation
from bot.core.documents import Document
from bot.core.events import MemberChanged, MessageReceived
from bot.core.group_admin import Chair
from bot.core.language import Language
from bot.core.memories import Notebook
from bot.core.other_bots import ALONE, Announcer, OtherBots
from bot.core.ports import (
    ChatLog,
    JournalObserver,
    Looking,
    Members,
    PictureReader,
    Store,
    TurnFollower,
    VoiceListener,
    Web,
)
from bot.core.server_clock import ServerClock
from bot.jobs.changes import JobChanges
from bot.jobs.commands import reminders_command
from bot.jobs.reminders import FEEDS_OFFERED, OFFERED, JobBook
from bot.jobs.scheduler import Scheduler
from bot.mcp_servers import McpServers
from bot.memory.attachments import Attachments
from bot.memory.chat_log import StoredChatLog
from bot.memory.drafts import FORGOTTEN, Drafts
from bot.memory.extraction import OPEN_TALK, PICKED_WITHIN, Extraction, OpenTalks
from bot.memory.forgetting import Forgetting
from bot.memory.history import History
from bot.memory.journal_observers import ContentLog, ObservedStore, shown_first
from bot.memory.modes import MODE, Mode, Modes, mode_of_new_groups
from bot.memory.newest import Newest
from bot.memory.persona_files import PersonaFiles
from bot.memory.personas import PERSONA_TEXTS, Personas
from bot.memory.recorder import Recorder
from bot.memory.remembering import Remembering
from bot.memory.speakers import Speakers
from bot.memory.summaries import SUMMED_UP_WITHIN, Summaries
from bot.outbox.delivery import Delivery, Postbox
from bot.outbox.gestures import Gestures
from bot.outbox.outbox import Outbox, Screen
from bot.outbox.owner_alerts import Owner, RunFailureAlerts, StartupAlerts
from bot.outbox.sender import Sender
from bot.outbox.sends import SendJournal
from bot.outbox.shadow import Shadow
from bot.policy.wake import Rules, Verdict
from bot.prompt.stored_rounds import tell_round
from bot.quiet.commands import quiet_commands
from bot.quiet.quiet_hours import QUIET, QuietHours
from bot.quiet.rule import read_rule
from bot.recap import DAILY_RECAP, DailyRecaps, Recaps, recap_command
from bot.runtime import reloading
from bot.runtime.observers import LogObserver, Observers
from bot.runtime.reloading import Reload
from bot.runtime.tool_discovery import Discovered
from bot.runtime.version import user_agent
from bot.settings_store import PERSONA, AnySetting, SettingsStore
from bot.subagents import SubagentRegistry
from bot.welcome import FAREWELL, WELCOME, Greetings, Templates, greeting_commands
from config.settings import Settings
from frostagent.engine.budget import Limits
from frostagent.engine.call_executor import CallExecutor
from frostagent.engine.engine import Engine
from frostagent.engine.toolset import Toolset
from frostagent.models.openai.transcription import Transcription
from frostagent.text.masking import Mask
from frostagent.types.messages import Message, ModelRequest
from frostagent.types.ports import Approver, Clock, Ids, Observer, ShadowMode
from frostagent.types.runs import Terms
from frostagent.types.suspension import Decision
from frostagent.types.traits import Rate
from tools.get_game_version.games import Games
from tools.read_page import read_page
from tools.read_page.pages import Pages
from tools.search_web.search import WebSearch

if TYPE_CHECKING:  # only with BOT_LINKS
    from bot.links import LinkSummaries, LinkSwitch

CARRIED = MOST_INLINE // 4 * 3  # bytes of a file that a broker carries
DESCRIBING = 25.0  # seconds to describe all images of a question
LONGEST_FIRST_TOKEN = 3600.0  # seconds; the maximum, for LLM_FIRST_TOKEN=0
MAX_LOGGED = 200  # characters of a line in lookups
KEPT_SETTINGS = (
    *(LIMITS, PERSONA, PERSONA_TEXTS, QUIET, MODE, POKED, OPEN_TALK),
    *(WELCOME, FAREWELL, DAILY_RECAP, CHIME, OFFERED, FEEDS_OFFERED),
)
"""What `SettingsStore` keeps across restarts."""
PAGE_BYTES = 5 * 2**20  # of a web page
SIDE_BY_SIDE = 3  # people answered at once in a group with BOT_SCOPE=member


class Connections(Protocol):
    """The connected accounts, for pages and commands."""

    @property
    def reconnects(self) -> int: ...

    @property
    def refused(self) -> str: ...

    def accounts(self) -> tuple[Account, ...]: ...


@dataclass(frozen=True, slots=True)
class App:
    # the edge
    journal: SqlStore
    transport: AnyTransport
    peers: Connections
    others: OtherBots
    offers: FileOffers | None
    metrics: Metrics
    clock: Clock
    # models, tools, and what tools can use
    models: ChatModels
    errands: Errands
    toolset: Toolset
    ports: Mapping[type, object]
    decoder: DecoderProcess
    reader: ReaderProcess
    web_clients: Sequence[LazyWeb]
    servers: McpServers
    senses: Senses
    reloads: Mapping[str, Reload]
    # memory
    store: Store
    newest: Newest
    spending: Spending
    personas: Personas
    history: History
    summaries: Summaries
    extraction: Extraction | None
    prompt_head: Callable[[Conversation], ModelRequest]
    settings_store: SettingsStore
    quiet_hours: QuietHours
    modes: Modes
    forgetting: Forgetting
    # outbox
    outbox: Outbox
    gestures: Gestures
    owner: Owner
    shadow: Shadow
    # what owners decide
    decisions: PendingDecisions
    # the way of a message
    dispatcher: Dispatcher
    deduplicator: Deduplicator
    seen: SeenMessages
    active_conversations: ActiveConversations
    message_log: MessageLog
    rate_limiter: RateLimiter
    lanes: Lanes[Work]
    lane_way: LaneWay
    context_builder: ContextBuilder
    active_work: ActiveWork
    greetings: Greetings
    # recovery
    recoverer: Recoverer
    catchup: Catchup
    deafness: DeafnessWatch
    unconfirmed_checker: UnconfirmedChecker
    group_probe: GroupProbe
    # jobs
    job_book: JobBook
    scheduler: Scheduler
    daily_recaps: DailyRecaps
    # commands
    commands: Commands
    failures: Failures
    status: StatusReader


def build_app(
    settings: Settings,
    *,
    found: Discovered,
    wrap: Wrap | None,
    account: TrialAccount | None,
    journal: SqlStore,
    session: ClientSession,
    transport: AnyTransport,
    peers: Connections,
    announcer: Announcer,
    others: OtherBots,
    offers: FileOffers | None,
    metrics: Metrics,
    followers: Sequence[TurnFollower],
    is_watched: bool,
    terminal: Say | None,
    alerts: StartupAlerts,
    mask: Mask,
    clock: Clock,
    ids: Ids,
) -> App:
    """Build a bot; nothing of it is open yet. `wrap` may wrap each port. The `account` pays for a
    bot on trial.

    `announcer` announces to the other bots of a cluster, `others` queries them. `is_watched`: there
    may be a console. The `terminal` is asked instead of the owners about calls that need an
    approval. `alerts` keeps messages to owners until they can be sent. Raises ConfigError for a
    file that cannot be used.
    """
    language = owners_language(settings)
    owners = settings.bot_owners
    books = journal.books

    # --- the journal, and daily limits
    # ---------------------------------------------------------------

    journaled = wrap(journal) if wrap else journal
    kept: tuple[AnySetting, ...] = KEPT_SETTINGS
    if settings.bot_links != "off":
        from bot.links import LINK_SETTINGS

        kept += LINK_SETTINGS
    settings_store = SettingsStore(
        kept,
        store=journaled,
        choices=books,
        clock=clock,
        announcer=announcer,
    )
    own_limits = OwnLimits(settings=settings_store, clock=clock)
    day_limits = DayLimits(
        Cap(settings.bot_day_cost_user, settings.bot_day_tokens_user),
        Cap(settings.bot_day_cost_group, settings.bot_day_tokens_group),
        Cap(settings.bot_day_cost_all, settings.bot_day_tokens_all),
    )
    if announcer is ALONE:
        spending = Spending(
            day_limits,
            own=own_limits,
            book=books,
            owners=owners,
            clock=clock,
            tell=alerts.tell,
        )
    else:
        # for clusters only
        from adapters.storage.day_totals import counting
        from bot.budget.shared_spending import SharedSpending

        spending = shared = SharedSpending(
            day_limits,
            own=own_limits,
            book=books,
            owners=owners,
            clock=clock,
            tell=alerts.tell,
            announcer=announcer,
        )
        journal.write_by(counting(shared, clock.now))  # the journal adds up the usage of all bots
    newest, job_changes = Newest(), JobChanges()
    journal_observers: list[JournalObserver] = [metrics, job_changes]
    if settings.log_content:
        journal_observers.append(ContentLog())
    journal_observers += followers
    if is_watched:
        journal_observers.append(newest)
    journal_observers.append(spending)
    if account is not None:
        journal_observers.append(account)
    store: Store = ObservedStore(journaled, journal_observers)

    # --- models, tools, and what tools can use ----------------------------------------------------

    meter = Meter(
        store,
        spending=spending,
        clock=clock,
        ids=ids,
        count=metrics.asked,
        account=account,
    )
    models = ChatModels(
        settings,
        session=session,
        wrap=wrap,
        meter=meter,
        clock=clock,
        ids=ids,
        tell=alerts.tell,
    )
    errands = Errands(model=models.cheap, store=store, spending=spending, clock=clock, ids=ids)
    agent = user_agent(settings.tools_contact)
    web = LazyWeb(clock=clock, user_agent=agent, base_urls=settings.tools_mirrors)
    # Clients for URLs from outside: received pictures and voices are small and urgent, documents
    # and sent files may be large.
    received = LazyWeb(
        clock=clock, user_agent=agent, base_urls=settings.tools_mirrors, foreign=True
    )
    received_documents = LazyWeb(
        clock=clock,
        user_agent=agent,
        base_urls=settings.tools_mirrors,
        foreign=True,
        limits=FetchLimits(
            request_seconds=FETCHING_FILE, total_seconds=FETCHING_FILE, body_bytes=MAX_FILE_BYTES
        ),
    )
    sent = sent_media_client(settings, clock=clock)
    media = build_media_folder(settings, client=sent)
    decoder = DecoderProcess()
    games = Games(clock=clock, file=settings.games_file)
    games.check()
    words = None if settings.words_file is None else WordFile(settings.words_file)
    toolset = build_toolset(settings, found.tools, clock=clock)
    subagents = SubagentRegistry(settings, model_at=models.at, toolset=toolset, clock=clock)

    def tools_changed() -> None:
        subagents.refresh()
        metrics.know_tools(tool.name for tool in toolset.list())

    servers = McpServers(
        settings,
        toolset=toolset,
        owners=owners,
        masks=(mask,),
        clock=clock,
        ids=ids,
        on_change=tools_changed,
        notify=alerts.tell,
    )
    # Its address may be a private one, which nothing else is fetched from.
    search_client = LazyWeb(clock=clock, user_agent=agent, base_urls=search_hosts(settings))
    search = build_search(settings, web=search_client, meter=meter, clock=clock)
    pages_client = page_client(settings, clock=clock)
    reader = ReaderProcess()
    pages = Pages(web=pages_client, documents=reader, clock=clock)
    common_ports = build_ports(
        settings,
        subagents=subagents.subagents,
        media=media,
        web=web,
        games=games,
        search=search,
        pages=pages,
        clock=clock,
    )
    transcribe: Transcribe | None = None
    if settings.stt_base_url:
        dictation = Transcription(
            session=session,
            base_url=settings.stt_base_url,
            api_key=settings.stt_api_key.get_secret_value(),
            model=settings.stt_model,
        )
        price = models.price(settings.stt_model, settings.stt_base_url)
        transcribe = CountedSpeech(
            dictation, name=dictation.name, price=price, meter=meter, clock=clock
        )
    wire = wrap(transport) if wrap else transport

    # --- media that is received
    # -----------------------------------------------------------------------

    # Images go to the main model if it is known to see them, else LLM_VISION_MODEL describes them,
    # else they are ignored.
    sight: PictureReader | None = None
    ear: VoiceListener | None = None
    looking = LOOKING
    if models.main_sees or models.vision is not None:
        sight = PictureSight(
            web=received, ask=transport.get_image, decode=decoder.decode, tell=alerts.tell
        )
    if sight is not None and models.vision is not None and not models.main_sees:
        looking = DESCRIBING
        sight = DescribedSight(sight, model=models.vision, store=store, clock=clock)
    if transcribe is not None:
        ear = VoiceEar(web=received, ask=transport.get_record, transcribe=transcribe)
    documents = ReceivedDocuments(
        web=received_documents, ask=transport.get_file, documents=reader, clock=clock
    )
    senses = Senses(sight, ear, documents, looking)

    # --- memory -----------------------------------------------------------------------------------

    persona_files = PersonaFiles(settings, models.named, compile_pattern)
    personas = Personas(persona_files.cast(), settings=settings_store)
    personas.follow_day_limits(own_limits.set_filed)
    attachments = Attachments(store=store, kinds=senses.kinds)
    speakers = Speakers(store=store)
    first_token = settings.llm_first_token or LONGEST_FIRST_TOKEN
    remembering: Remembering | None = None
    extraction: Extraction | None = None
    if settings.bot_memory:
        remembering = Remembering(
            memories=journal.memories,
            speakers=speakers,
            store=store,
            clock=clock,
            ids=ids,
            language=language,
        )
        extraction = Extraction(
            model=models.cheap,
            remembering=remembering,
            speakers=speakers,
            store=store,
            clock=clock,
            open_talks=OpenTalks(settings=settings_store, clock=clock),
            is_spent=spending.is_spent,
            patience=PICKED_WITHIN + first_token,
        )
        # from here on, extraction sees what is written
        store = shown_first(store, extraction)
    summaries = Summaries(
        model=models.cheap,
        store=store,
        clock=clock,
        one_by_one=settings.llm_parallel == 1,
        continues=settings.cheap_models == settings.main_models,
        is_spent=spending.is_spent,
        patience=SUMMED_UP_WITHIN + first_token,
    )
    history_room = history_room_of(
        models.main,
        lambda: longest_head_of_all(personas.cast, toolset),
        version=lambda: toolset.version,
        most=settings.bot_history_tokens,
    )

    def tell_stored_round(
        where: Conversation, messages: tuple[Message, ...]
    ) -> tuple[Message, ...]:
        return tell_round(personas.of(where).names, where, messages)

    history = History(
        store=store,
        room=history_room,
        told=tell_stored_round,
        begin_summary=summaries.begin,
        stop_summary=summaries.stop,
        speakers=speakers,
        by_member=settings.bot_scope == "member",
        attachments=attachments,
    )
    prompt_context = PromptContext(history=history, speakers=speakers, remembering=remembering)

    def prompt_head(where: Conversation) -> ModelRequest:
        return longest_head(personas.of(where), toolset)

    modes = Modes(
        settings=settings_store,
        choices=books,
        usual=mode_of_new_groups(
            settings.bot_new_group,
            has_owners=bool(owners),
            has_listed_groups=bool(settings.bot_groups),
        ),
        # Owners who listed no groups are told of new ones.
        told=bool(owners) and not settings.bot_groups,
    )
    perception = Perception(transport=wire, history=history, senses=senses)

    # --- the way out ------------------------------------------------------------------------------

    send_journal = SendJournal(store=store, clock=clock, ids=ids)
    mutes = Mutes(clock=clock)
    sender = Sender(
        transport=wire,
        journal=send_journal,
        clock=clock,
        ids=ids,
        rate=settings.bot_send_rate,
        burst=settings.bot_send_burst,
        mutes=mutes,
    )
    owner = Owner(
        owners=owners,
        sender=sender,
        clock=clock,
        mask=mask,
        quiet=owners.quiet,
        language=language,
        announcer=announcer,
    )
    sender.unreachable.follow(owner.tell_of_unreachable)
    screen: Screen | None = None
    if words is not None:
        screen = Screen(words=words, owner=owner, owners=owners)
    live = ActiveTurns(store=store, clock=clock)
    shadow = Shadow(
        modes=modes,
        drafts=Drafts(
            store=store,
            choices=books,
            clock=clock,
            shelf=DraftFiles(settings.media_dir, journal.scope.suffix),
            forgotten=FORGOTTEN.format(language),
        ),
        journal=send_journal,
        sender=sender,
        owner=owner,
        asked=live.question_of,
        clock=clock,
        language=language,
    )
    outbox = Outbox(
        journal=send_journal,
        sender=sender,
        report_loss=owner.tell_of_send,
        screen=screen,
        shadow=shadow,
    )
    gestures = Gestures(transport=wire, clock=clock, unseen=shadow.is_active_in)
    postbox = Postbox(outbox=outbox, history=history, clock=clock)
    # An owner's question is answered in a shadow group too.
    open_postbox = Postbox(outbox=outbox, history=history, clock=clock, openly=True)

    # --- the engine, and the ports of a run in a chat ---------------------------------------------

    approvers = Approvers(owners, terminal, language)
    ports: dict[type, object] = {
        **common_ports,
        Members: speakers,
        Approver: approvers,
        ShadowMode: shadow,
        Looking: AttachmentOpener(
            prompt_context=prompt_context,
            forwards=Forwards(wire),
            senses=senses,
            owners=owners,
            language_of=lambda where: personas.of(where).language,
        ),
        ChatLog: StoredChatLog(
            store=store,
            members=speakers,
            render=lambda message: prompt_context.line(message, limit=MAX_LOGGED),
            owners=owners,
            clock=clock,
        ),
    }
    if remembering is not None:
        ports[Notebook] = remembering
    if settings.tools_group:
        ports[Chair] = GroupAdmin(wire, name=speakers.name, screen=outbox.screen, language=language)
    failures = Failures(clock=clock, mask=mask)
    run_observers: list[Observer] = [
        Recorder(store=store, clock=clock),
        LogObserver(),
        RunFailureAlerts(owner, mask=mask),
        failures,
        metrics,
        *followers,
    ]
    engine = Engine(
        model=models.main,
        toolset=toolset,
        clock=clock,
        observer=Observers(run_observers),
        # Steps are journalled; a call with side effects waits for that.
        executor=CallExecutor(toolset, max_calls=settings.tools_max_calls, recorded=store.commit),
        max_steps=settings.bot_max_steps,
    )

    # --- turns ------------------------------------------------------------------------------------

    def due(work: Work) -> float:
        return due_of(work, muted_until=mutes.until)

    # People take turns; BOT_SCOPE=member answers several at once.
    order = Order(person_of, due, SIDE_BY_SIDE if settings.bot_scope == "member" else 1)
    lanes = Lanes[Work](clock=clock, order=order, max_waiting=settings.bot_lane)
    server_clock = ServerClock(clock)
    turn_budget = TurnBudget(
        spending,
        limits=Limits(settings.bot_run_requests, settings.bot_run_tokens, settings.bot_max_sends),
        cheap=(
            None
            if settings.llm_cheap_model in {"", settings.llm_model}
            else models.named(settings.llm_cheap_model)
        ),
        tools=toolset.list,
    )
    subagents.subagents.leaner = turn_budget.leaner
    delivery = Delivery(
        outbox=outbox,
        history=history,
        clock=clock,
        paced=settings.bot_pace,
        name=lambda where: personas.of(where).name,
        language=language,
    )
    turn_journal = TurnJournal(store, history, clock, spending=spending)

    def resume(
        where: Conversation,
        turn_id: str,
        decisions: Mapping[str, Decision],
        question: MessageReceived,
        at_latest: float,
    ) -> bool:
        return lanes.put(where, Resume(turn_id, decisions, question, at_latest))

    approvals = ToolApprovals(
        approvers=approvers,
        resume=resume,
        postbox=postbox,
        reply_postbox=open_postbox,
        server_clock=server_clock,
        clock=clock,
    )
    suspensions = SuspendedTurns(
        store=store,
        approvals=approvals,
        turn_journal=turn_journal,
        history=history,
    )

    def look_at_jobs() -> None:
        scheduler.look()

    job_book = JobBook(
        jobs=journal.jobs,
        changes=job_changes,
        store=store,
        settings=settings_store,
        owners=owners,
        zone=settings.tz,
        clock=clock,
        look=look_at_jobs,
        web=received,
    )
    link_switch: LinkSwitch | None = None
    if settings.bot_links != "off":
        from bot.links import LinkSwitch

        link_switch = LinkSwitch(settings_store)

    def reads_links(where: Conversation, terms: Terms) -> bool:
        if link_switch is None or not link_switch.is_on(where):
            return False
        usable = toolset.usable(frozenset({Pages}), terms)
        return any(tool.name == read_page.name for tool in usable)

    context_builder = ContextBuilder(
        perception=perception,
        prompt_context=prompt_context,
        delivery=delivery,
        personas=personas,
        owners=owners,
        ports=ports,
        turn_budget=turn_budget,
        ids=ids,
        withheld=servers.withheld,
        on_demand=job_book.on_demand if settings.bot_reminders else lambda _: {},
        cites=settings.has_web,
        reads_links=reads_links if link_switch is not None else None,
    )
    turns = Turns(
        engine=engine,
        context_builder=context_builder,
        delivery=delivery,
        suspensions=suspensions,
        approvals=approvals,
        store=store,
        history=history,
        turn_journal=turn_journal,
        live=live,
        gestures=gestures,
        shadow=shadow,
    )

    rules = build_rules(settings)
    quiet_hours = QuietHours(
        rule_of=lambda where: personas.rules(where, rules).quiet,
        settings=settings_store,
        clock=clock,
    )

    # --- what owners decide -----------------------------------------------------------------------

    groups = NewGroups(
        modes=modes,
        approvers=approvers,
        postbox=postbox,
        server_clock=server_clock,
        clock=clock,
    )
    join_request_store = JoinRequestStore(store=store, choices=books, clock=clock)
    join_requests = JoinRequests(
        # Requests of blocked people get no answer.
        accept=lambda user_id: "none" if user_id in settings.bot_block else settings.bot_accept,
        owners=owners,
        transport=wire,
        request_store=join_request_store,
        postbox=postbox,
        server_clock=server_clock,
        clock=clock,
        applicants=Applicants(
            blocked=settings.bot_block,
            asks_owners=settings.bot_applicants == "ask",
            asks_admins=settings.tools_group,
            rules_of=lambda group: personas.house(group).join,
            may_act=lambda group: (
                modes.of(group) is Mode.LIVE
                and (not settings.bot_groups or group.session_id in settings.bot_groups)
            ),
            may_speak=lambda group: not (mutes.holds_in(group) or quiet_hours.holds_in(group)),
        ),
        language=language,
    )
    decisions = PendingDecisions(
        calls=approvals,
        join_requests=join_requests,
        drafts=DraftApprovals(
            drafts=shadow.drafts,
            outbox=outbox,
            store=store,
            history=history,
            postbox=postbox,
            server_clock=server_clock,
            clock=clock,
            language=language,
        ),
        groups=groups,
        owners=frozenset(owners),
        history=history,
        look_up=perception.quoted_there,
        server_clock=server_clock,
        is_finishing=lambda: lanes.finishing,
        postbox=postbox,
        language=language,
    )

    # --- from a message to a question that waits --------------------------------------------------

    seen = SeenMessages(clock=clock)
    bot_detection = BotDetection()
    reconnect_queue = ReconnectQueue(lanes=lanes, unconfirmed=outbox.unconfirmed, clock=clock)
    active_conversations = ActiveConversations(arrive=reconnect_queue.take, clock=clock)
    wake_classifier = WakeClassifier(
        rules=rules,
        history=history,
        seen=seen,
        server_clock=server_clock,
        mutes=mutes,
        modes=modes,
        quiet_hours=quiet_hours,
        outbox=outbox,
        owner=owner,
        blocked_words=BlockedWordFilter(words, history.known, speakers.name),
        accounts=active_conversations.accounts,
        bot_detection=bot_detection,
        clock=clock,
        ids=ids,
        local=personas.rules,
    )
    message_log = MessageLog(
        store=store,
        history=history,
        active_conversations=active_conversations,
        ends=wake_classifier.end,
    )
    rate_limiter = RateLimiter(rules, spending, postbox, gestures, clock)
    coalescer = Coalescer(
        lanes=lanes,
        message_log=message_log,
        rate_limiter=rate_limiter,
        clock=clock,
        debounce=settings.bot_debounce,
    )
    question_queue = QuestionQueue(
        lanes=lanes,
        coalescer=coalescer,
        seen=seen,
        server_clock=server_clock,
        active_conversations=active_conversations,
        rate_limiter=rate_limiter,
        message_log=message_log,
        turn_journal=turn_journal,
    )
    deferred = DeferredQuestions(
        wake_classifier=wake_classifier,
        coalescer=coalescer,
        question_queue=question_queue,
        lanes=lanes,
        clock=clock,
    )
    links: LinkSummaries | None = None
    link_commands: list[Command] = []
    if link_switch is not None:
        from bot.links import LinkSummaries, links_command

        async def read_link(url: str) -> tuple[str, Document]:
            page = await pages.read(url, run_id=f"link-{ids.trace()}")
            return page.url, page.document

        if settings.bot_links == "auto" and can_read_pages(settings, toolset):
            links = LinkSummaries(
                sites=settings.bot_links_sites,
                a_day=settings.bot_links_day,
                switch=link_switch,
                may_begin=wake_classifier.may_begin,
                listens_to=wake_classifier.listens_to,
                stops=wake_classifier.stops,
                words=words,
                known=history.known,
                read=read_link,
                errands=errands,
                settings=settings_store,
                persona=personas.of,
                postbox=postbox,
                clock=clock,
                language=language,
                count=metrics.linked,
            )
        link_commands.append(links_command(link_switch, links))
    recaps = Recaps(errands, store, speakers.name)
    active_work = ActiveWork(
        live=live,
        turns=turns,
        suspensions=suspensions,
        deferred=deferred,
        lanes=lanes,
        question_queue=question_queue,
        message_log=message_log,
        history=history,
        store=store,
        outbox=outbox,
        shadow=shadow,
        postbox=postbox,
        approvals=approvals,
        clock=clock,
        links=links,
        recaps=recaps,
    )
    mute_handler = MuteHandler(
        mutes=mutes, server_clock=server_clock, lanes=lanes, active_work=active_work
    )

    # --- a group's life ---------------------------------------------------------------------------

    def filed_greetings(where: Conversation) -> Templates:
        house = personas.house(where)
        return Templates(house.welcome, house.farewell)

    greetings = Greetings(
        filed=filed_greetings,
        settings=settings_store,
        may_speak=wake_classifier.may_begin,
        look_up=wire.get_member,
        name_of=speakers.name,
        group_name=active_conversations.group_name,
        by_ours=server_clock.by_ours,
        accounts=active_conversations.accounts,
        persona=personas.of,
        errands=errands,
        postbox=postbox,
        clock=clock,
        count=metrics.greeted,
        language=language,
    )

    chime_in: ChimeIn | None = None
    if settings.bot_chime_in:
        chime_in = ChimeIn(
            wake_classifier=wake_classifier,
            mutes=mutes,
            message_log=message_log,
            question_queue=question_queue,
            errands=errands,
            settings=settings_store,
            store=store,
            name_of=lambda where: personas.of(where).name,
            spoke=outbox.spoke,
            clock=clock,
            count=metrics.chimed,
        )

    # --- jobs -------------------------------------------------------------------------------------

    def connected_accounts() -> list[int]:
        found = (account.self_id for account in peers.accounts())
        return [account for account in found if journal.scope.has(account)]

    def chat_language(where: Conversation) -> Language:
        return Language.ENGLISH if personas.of(where).language == "en" else language

    daily_recaps = DailyRecaps(
        usual=settings.bot_recap,
        filed=lambda where: personas.house(where).recap,
        settings=settings_store,
        schedule=job_book.schedule_recap,
        heard=active_conversations.heard,
        may_speak=wake_classifier.may_begin,
        language=chat_language,
        clock=clock,
    )
    scheduler = Scheduler(
        jobs=journal.jobs,
        changes=job_changes,
        store=store,
        postbox=postbox,
        outbox=outbox,
        lanes=lanes,
        history=history,
        transport=wire,
        mutes=mutes,
        modes=modes,
        quiet_hours=quiet_hours,
        accounts=connected_accounts,
        restored_at=journal.restored_at,
        group_name=active_conversations.group_name,
        blocked=settings.bot_block,
        owners=owners,
        clock=clock,
        web=received,
        errands=errands,
        recaps=recaps,
        daily_recaps=daily_recaps,
        count=metrics.fired,
    )

    def end_jobs(event: MemberChanged) -> None:
        # Their server's time is in whole seconds.
        left = server_clock.by_ours(event.time + 1.0, event.self_id)
        scheduler.left(event.conversation, event.user_id, at=left)

    # --- commands ---------------------------------------------------------------------------------

    forgetting = Forgetting(
        journal.erasing,
        history,
        cancel_questions=active_work.forget,
        cancel_join_requests=join_request_store.forget,
        now=clock.now,
        then=(shadow.forget,) if extraction is None else (extraction.forget, shadow.forget),
        announcer=announcer,
    )
    forgetting.follow(sender.forget)
    forgetting.follow(job_changes.forget)
    forgetting.follow(owner.forget)
    status = StatusReader(
        count_pending=decisions.count,
        free_space=lambda: free_at(data_folder(settings)),
        others=others,
        number=journal.scope.number,
    )

    async def measure(where: Conversation) -> ContextSize:
        return await measure_context(
            history,
            where,
            head=prompt_head(where),
            room=history_room(),
            servers=servers.tokens_in(where),
        )

    commands = Commands(
        with_help(
            (
                stop_command(),
                usage_command(books, spending),
                limit_command(spending, speakers, owners),
                recap_command(recaps, daily_recaps, store.put),
                context_command(measure),
                why_command(
                    books,
                    has_fallbacks=bool(settings.llm_fallbacks),
                    looked=chime_in.looked if chime_in else None,
                    explain_job=job_book.explain,
                    explain_link=None if links is None else links.explain,
                ),
                me_command(journal.memories),
                forget_command(forgetting, speakers),
                reset_command(store, history),
                persona_command(personas),
                *quiet_commands(quiet_hours),
                *greeting_commands(greetings, store.put),
                *link_commands,
                reminders_command(job_book),
                model_command(models.upstreams, clock.monotonic),
                groups_command(books, modes),
                *mode_commands(modes, shadow.lift),
                digest_command(books, status.everywhere),
                errors_command(failures),
            ),
            found.commands,
        ),
        postbox=open_postbox,
        history=history,
        owners=owners,
        hears=wake_classifier.admits_command,
        commanders=wake_classifier.commanders,
        lets=rate_limiter.admit_command,
        clock=clock,
    )

    # --- the way of a message, and of what else comes ---------------------------------------------

    deduplicator = Deduplicator(
        seen=seen,
        server_clock=server_clock,
        meet=lambda message: groups.meet(message, wake_classifier.calls, owner.tell),
    )
    self_messages = SelfMessages(history, outbox)
    stop_handler = StopHandler(
        active_work=active_work,
        server_clock=server_clock,
        message_log=message_log,
        history=history,
        gestures=gestures,
        rules=rules,
        local=personas.rules,
    )
    steering = Steering(
        live=live,
        message_log=message_log,
        question_queue=question_queue,
        history=history,
        prompt_context=prompt_context,
        stops=wake_classifier.stops,
        owners=rules.owners,
        is_on=settings.bot_steer,
        reads_links=link_switch is not None,
    )
    read_along: tuple[JudgedStage, ...] = ()
    if chime_in is not None:
        read_along = (JudgedStage(chime_in.note, answers=True),)
    posted: tuple[JudgedStage, ...] = ()
    if links is not None:

        def note_link(message: MessageReceived, verdict: Verdict, facts: Facts) -> bool:
            if not (facts.is_missed or facts.is_earlier):
                links.note(message, verdict)
            return False

        posted = (JudgedStage(note_link, answers=True),)
    admins_decide: tuple[Stage, ...] = ()
    if settings.tools_group and settings.bot_applicants == "ask":
        admins_decide = (Stage(join_requests.take_admin_reply, erases=True),)
    message_way = MessageWay(
        deduplicator=deduplicator,
        active_conversations=active_conversations,
        wake_classifier=wake_classifier,
        message_log=message_log,
        stages=(
            Stage(self_messages.claim, erases=True),  # our own file, reported as a person's?
            Stage(decisions.take_reply, erases=True),  # an owner's decision?
            *admins_decide,  # an admin's, about an applicant?
            Stage(stop_handler.take, answers=True),  # a request to stop?
            Stage(commands.start_command, answers=True, erases=True),  # answered without a model?
        ),
        judged_stages=(
            *read_along,  # does it belong to a batch after which to chime in?
            JudgedStage(steering.take, answers=True),  # part of what is being answered?
            *posted,  # has it a link to sum up?
            JudgedStage(question_queue.receive),  # a question, overheard, or ignored
        ),
    )
    lane_way = LaneWay(
        decisions=decisions,
        wake_classifier=wake_classifier,
        rate_limiter=rate_limiter,
        message_log=message_log,
        question_queue=question_queue,
        quotes=Quotes(
            perception=perception,
            deferred=deferred,
            question_queue=question_queue,
            message_log=message_log,
            lanes=lanes,
        ),
        turns=turns,
        active_work=active_work,
        outbox=outbox,
    )
    late_messages = LateMessages(
        seen=seen,
        server_clock=server_clock,
        active_conversations=active_conversations,
        way=message_way,
        deferred=deferred,
        history=history,
        clock=clock,
    )
    deafness = DeafnessWatch(
        transport=wire, active_conversations=active_conversations, owner=owner, clock=clock
    )
    dispatcher = Dispatcher(
        way=ExpiredEvents(
            way=message_way,
            late_messages=late_messages,
            seen=seen,
            wake_classifier=wake_classifier,
            rate_limiter=rate_limiter,
            owner=owner,
        ),
        message_log=message_log,
        seen=seen,
        history=history,
        active_work=active_work,
        mute_handler=mute_handler,
        active_conversations=active_conversations,
        on_connected=ConnectedHandler(
            mutes=mutes,
            owner=owner,
            outbox=outbox,
            gestures=gestures,
            active_conversations=active_conversations,
            deferred=deferred,
            deafness=deafness,
            greetings=greetings,
            then=scheduler.look,
        ),
        pokes=Pokes(
            wake_classifier,
            postbox,
            AnsweredPokes(settings_store),
            clock,
            errands=errands,
            persona=personas.of,
            name_of=speakers.name,
            mode=settings.bot_poke,
            language=language,
        ),
        join_requests=join_requests,
        self_messages=self_messages,
        unreachable=outbox.unreachable,
        deafness=deafness,
        greetings=greetings,
        left=end_jobs,
    )

    # --- what an earlier process left, and what was missed ----------------------------------------

    recoverer = Recoverer(
        store=store,
        history=history,
        context_builder=context_builder,
        model=models.main,
        seen=seen,
        rate_limiter=rate_limiter,
        late_messages=late_messages,
        suspensions=suspensions,
        turn_journal=turn_journal,
        outbox=outbox,
        toolset=toolset,
        clock=clock,
    )
    catchup = Catchup(
        transport=wire,
        reconnect_queue=reconnect_queue,
        late_messages=late_messages,
        held=HeldLanes(lanes=lanes, seen=seen, deferred=deferred, question_queue=question_queue),
        lanes=lanes,
        outbox=outbox,
        store=store,
        clock=clock,
    )
    unconfirmed_checker = UnconfirmedChecker(
        transport=wire,
        outbox=outbox,
        store=store,
        history=history,
        clock=clock,
        settled=[metrics.settled, newest.settled, *(one.settled for one in followers)],
    )
    group_probe = GroupProbe(
        transport=wire,
        take_mute=mute_handler.take,
        learn_member=mute_handler.learn,
        mutes=mutes,
        bot_detection=bot_detection,
        active_conversations=active_conversations,
        clock=clock,
    )

    # --- what `reload` reads again ----------------------------------------------------------------

    reloads: dict[str, Reload] = persona_files.reloads(personas)
    if settings.games_file is not None:
        reloads[reloading.GAMES.fill()] = games.reload
    if settings.subagents_file is not None:
        reloads[reloading.SUBAGENTS.fill()] = subagents.reload
    if settings.mcp_file is not None:
        reloads[reloading.SERVERS.fill()] = servers.reload
    if words is not None:
        reloads[reloading.WORDS.fill()] = words.reload

    return App(
        journal=journal,
        transport=transport,
        peers=peers,
        others=others,
        offers=offers,
        metrics=metrics,
        clock=clock,
        models=models,
        errands=errands,
        toolset=toolset,
        ports=common_ports,
        decoder=decoder,
        reader=reader,
        web_clients=(web, received, received_documents, sent, search_client, pages_client),
        servers=servers,
        senses=senses,
        reloads=reloads,
        store=store,
        newest=newest,
        spending=spending,
        personas=personas,
        history=history,
        summaries=summaries,
        extraction=extraction,
        prompt_head=prompt_head,
        settings_store=settings_store,
        quiet_hours=quiet_hours,
        modes=modes,
        forgetting=forgetting,
        outbox=outbox,
        gestures=gestures,
        owner=owner,
        shadow=shadow,
        decisions=decisions,
        dispatcher=dispatcher,
        deduplicator=deduplicator,
        seen=seen,
        active_conversations=active_conversations,
        message_log=message_log,
        rate_limiter=rate_limiter,
        lanes=lanes,
        lane_way=lane_way,
        context_builder=context_builder,
        active_work=active_work,
        greetings=greetings,
        recoverer=recoverer,
        catchup=catchup,
        deafness=deafness,
        unconfirmed_checker=unconfirmed_checker,
        group_probe=group_probe,
        job_book=job_book,
        scheduler=scheduler,
        daily_recaps=daily_recaps,
        commands=commands,
        failures=failures,
        status=status,
    )


# --- parts that commands of the terminal build by themselves --------------------------------------


def build_rules(settings: Settings) -> Rules:
    return Rules(
        names=(settings.bot_name, *settings.bot_aliases),
        owners=settings.bot_owners,
        groups=settings.bot_groups,
        users=settings.bot_users,
        blocked=settings.bot_block,
        prefixes=settings.bot_prefixes,
        at_all=settings.bot_at_all,
        robots=settings.bot_robots,
        chance=settings.bot_chance,
        chime_in=settings.bot_chime_in,
        stale=settings.bot_stale,
        loop=settings.bot_loop,
        user_rate=Rate(*settings.bot_user_rate) if settings.bot_user_rate else None,
        group_rate=Rate(*settings.bot_group_rate) if settings.bot_group_rate else None,
        quiet=read_rule(settings.bot_quiet, settings.bot_quiet_mode),
    )


def owners_language(settings: Settings) -> Language:
    """The language of messages to owners: English if BOT_LANGUAGE says so."""
    return Language.ENGLISH if settings.bot_language == "en" else Language.CHINESE


def data_folder(settings: Settings) -> Path:
    """The journal's folder, or the media folder if the journal is on a database server."""
    file = file_of(read_url(settings.store_url.get_secret_value()))
    return settings.media_dir if file is None else file.parent


def build_search(settings: Settings, *, web: Web, meter: Meter, clock: Clock) -> WebSearch:
    """Search with the account of the settings, metered if it costs anything."""
    account, pay = search_account(settings), None
    if settings.search_price and (service := account.service) is not None:
        price = settings.search_price / 1000
        pay = CountedCalls(f"{service.kind} search", price=price, meter=meter, clock=clock)
    return WebSearch(account, web=web, clock=clock, pay=pay)


def page_client(settings: Settings, *, clock: Clock) -> LazyWeb:
    """The client for pages of the web, whose urls a model or a member names."""
    return LazyWeb(
        clock=clock,
        user_agent=user_agent(settings.tools_contact),
        base_urls=settings.tools_mirrors,
        limits=FetchLimits(
            request_seconds=10.0, total_seconds=20.0, body_bytes=PAGE_BYTES, redirects=4
        ),
        foreign=True,
    )


def sent_media_client(settings: Settings, *, clock: Clock) -> LazyWeb:
    """The client for files that the bot sends by URL."""
    return LazyWeb(
        clock=clock,
        user_agent=user_agent(settings.tools_contact),
        base_urls=settings.tools_mirrors,
        limits=FetchLimits(
            request_seconds=60.0, total_seconds=60.0, body_bytes=largest_file(settings)
        ),
        foreign=True,
    )


def build_media_folder(settings: Settings, *, client: Web) -> MediaFolder:
    """The files that the bot sends: from MEDIA_DIR, and from URLs fetched by the `client`."""
    return MediaFolder(
        settings.media_dir,
        web=client if settings.media_urls == "fetch" else None,
        mode=settings.media_send,
        max_bytes=largest_file(settings),
    )


def largest_file(settings: Settings) -> int:
    """Size in bytes of the largest file that can be sent."""
    return CARRIED if settings.has_broker and not settings.media_url else MAX_BASE64
