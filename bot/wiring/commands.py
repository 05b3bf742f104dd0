"""The commands of the chat, put together."""

from __future__ import annotations

import logging
from functools import partial

from adapters.storage.store import SqlStore
from bot.commands.commands import Commands
from bot.commands.context import ContextSize, context_command
from bot.commands.digest import Stands, digest_command
from bot.commands.errors import Failures, errors_command
from bot.commands.forget import forget_command
from bot.commands.groups import groups_command, mode_commands
from bot.commands.help import help_command, stop_command
from bot.commands.limit import limit_command
from bot.commands.me import me_command
from bot.commands.model import model_command
from bot.commands.mute import mute_command, unmute_command
from bot.commands.persona import persona_command
from bot.commands.quiet import quiet_command
from bot.commands.reset import reset_command
from bot.commands.usage import usage_command
from bot.commands.why import why_command
from bot.conversation.interruptions.erasure_cancel import ErasureCancel
from bot.domain.events import Conversation
from bot.domain.model_messages import UserMessage
from bot.domain.query_results import Eraser
from bot.memory.forgetting import Forgetting
from bot.memory.spending import Spending
from bot.policy.tokens import estimate, estimate_messages, estimate_text
from bot.wiring.conversation import Answering, Asking, Ground
from bot.wiring.keeping import Keeping
from bot.wiring.resources import Resources
from config.settings import Settings

logger = logging.getLogger(__name__)


def build_commands(
    settings: Settings,
    keeping: Keeping,
    journal: SqlStore,
    failures: Failures,
    means: Resources,
    spending: Spending,
    stands: Stands,
    on: Ground,
    asking: Asking,
    forgetting: Forgetting,
) -> Commands:
    """All of them, and an operator's own; what is ours keeps its names."""
    owners = settings.bot_owners
    history, books, models = keeping.history, journal.books, means.models
    quiet_hours = asking.verdicts.quiet_hours
    known = (
        stop_command(),
        usage_command(books, spending),
        limit_command(spending, history.speakers, owners),
        context_command(partial(measure, keeping)),
        why_command(books, has_fallbacks=bool(settings.llm_fallbacks)),
        me_command(journal.memories),
        forget_command(forgetting, history.speakers),
        reset_command(on.store, history),
        persona_command(keeping.personas),
        quiet_command(on.quiet_overrides, quiet_hours.is_hour, quiet_hours.end),
        mute_command(on.quiet_overrides),
        unmute_command(on.quiet_overrides, quiet_hours.is_hour),
        model_command(models.upstreams, on.clock.monotonic),
        groups_command(books, on.modes),
        *mode_commands(on.modes, on.shadow.lift),
        digest_command(books, stands),
        errors_command(failures),
    )
    ours = {name.casefold() for one in known for name in one.names} | {"help", "帮助"}
    others = [one for one in means.commands if ours.isdisjoint(map(str.casefold, one.names))]
    for one in means.commands:
        if one not in others:
            logger.warning("the command /%s of TOOLS_DIR has a name of ours", one.names[0])
    return Commands(
        (help_command((*known, *others)), *known, *others),
        postbox=on.openly,
        history=history,
        owners=owners,
        hears=asking.verdicts.hears,
        commanders=quiet_hours.commanders,
        lets=asking.rate_limiter.lets_type,
        clock=on.clock,
    )


def forgetting_of(
    keeping: Keeping, eraser: Eraser, on: Ground, asking: Asking, answering: Answering
) -> Forgetting:
    """The forgetting of a person or a group, by a command, on a page, or in another bot."""
    facts = () if keeping.extraction is None else (keeping.extraction.forget,)
    asked = ErasureCancel(
        lanes=on.lanes,
        live=on.live,
        deferred=asking.put_off,
        suspensions=answering.suspensions,
        store=on.store,
        postbox=on.postbox,
        put_back=asking.questions.put_back,
    )
    forgetting = Forgetting(
        eraser,
        keeping.history,
        asked=asked,
        waiting=on.register,
        now=on.clock.now,
        then=(*facts, on.shadow.forget),
        neighbours=on.neighbours,
    )
    forgetting.follow(on.outbox.forget)
    return forgetting


async def measure(keeping: Keeping, where: Conversation) -> ContextSize:
    """How much the next prompt of a conversation would hold, by its blocks."""
    history, around = keeping.history, keeping.around(where)
    await history.load(where)
    rounds = history.messages(where)
    system = estimate_messages(around.messages)
    return ContextSize(
        system=system,
        tools=estimate(around) - system,
        summary=estimate_text(history.summary(where)),
        rounds=estimate_messages(rounds),
        number=sum(isinstance(message, UserMessage) for message in rounds),
        overheard=len(history.unread(where)),
        room=keeping.room(),
    )
