"""`/why`: how an answer came about, or why there was none."""

from __future__ import annotations

from collections.abc import Callable

from bot.commands.reasons import (
    CALLED_BY,
    NOTHING,
    deciding,
    deciding_denial,
    deciding_end,
    end_of,
    words_of,
)
from bot.core.command import AWAY, Answering, Asked, Command, at_time, command, money, tokens
from bot.core.conversation import NOWHERE, Conversation
from bot.core.language import CATALOGUE, Bilingual, Language, Phrase, bilingual, text_in
from bot.core.query_results import JournalQueries, Publication, Story, StoryCall
from frostagent.types.runs import Asker

WAITS = Phrase(
    "还没轮到，已经等了 {seconds:.0f} 秒", "not its turn yet, waiting for {seconds:.0f} s"
)
ASKS = Phrase(
    "在等主人答复，最多再等 {seconds:.0f} 秒", "waits for an owner, {seconds:.0f} s at most"
)
UNSAID = Phrase(
    "最后的话没有发：前面已经说过，或者用了词表里的词",
    "its last sentences were not sent: said before, or on a list",
)
LOSS = Phrase("没发出去：{reason}", "not sent: {reason}")
UNKNOWN = Phrase(
    "这条消息我没有记录：可能是命令的回复、打招呼的话、我来之前说的、"
    "不理会的人发的（BOT_BLOCK、BOT_USERS、BOT_ROBOTS），或者已经清掉了。",
    "I have no record of that message: it answered a command, is a greeting, is from before I"
    " joined, is from a sender I do not listen to (BOT_BLOCK, BOT_USERS, BOT_ROBOTS), or has been"
    " cleared.",
)
NO_TURN = Phrase(
    "这里我还没答过什么。引用一条消息再问，就说它为什么没有回答。",
    "I have answered nothing here yet. Quote a message to see why it was not answered.",
)
OVERHEARD = Phrase(
    "没有回答：没有人叫我（没有 @、引用我、叫我的名字，也没用前缀）",
    "not answered: I was not called (no mention, no quote of me, no name, no prefix)",
)
GONE = Phrase(
    "没有交给模型：是命令、对申请的答复，或者已经撤回",
    "not for a model: a command, a reply to a request, or recalled since",
)
TOOLS = Phrase("工具", "tools")
TOKENS = Phrase("token", "tokens")
CACHED = Phrase("缓存", "cached")
SHADOWED = Phrase("影子：留作草稿 {kept}", "shadow: kept as draft {kept}")
SENT = Phrase("发出 {sends} 条", "{sends} sent")
FAILED = Phrase("，没发出去 {failed} 条", ", {failed} not")
RUN = Phrase("编号", "run")
LOOKED = Phrase(
    "看过要不要主动开口：{number} 分（满分 10），没有开口（BOT_CHIME_IN）",
    "read along, {number} of 10 for chiming in: I did not (BOT_CHIME_IN)",
)
AN_OWNER = Phrase("主人", "an owner")
CHANGED = Phrase("D{number}：{by} 改了再发的", "D{number}: changed and published by {by}")
PUBLISHED = Phrase("D{number}：{by} 发的", "D{number}: published by {by}")
NOT_RECORDED = Phrase("没有记下为什么被唤醒", "what woke me was not recorded")
WEAK = Phrase("（不确定是在叫我）", " (perhaps not meant for me)")
WOKEN = Phrase("唤醒：{reason}{weak}", "woken: {reason}{weak}")
NOT_ANSWERED = Phrase("没有回答：{reason}", "not answered: {reason}")
DECIDED = Phrase("由此决定：{what}", "decided by: {what}")
UNTIL = Phrase("，到 {time}", ", until {time}")
TOOK = Phrase(
    "等了 {waited:.1f} 秒，用了 {took:.1f} 秒，{steps} 步，{ended}",
    "waited {waited:.1f} s, took {took:.1f} s, {steps} steps, {ended}",
)
TOOK_ONE_STEP = Phrase(TOOK.zh, "waited {waited:.1f} s, took {took:.1f} s, {steps} step, {ended}")
CATALOGUE.register(__name__, globals())
SHOWN = 5  # calls of one answer


def why_command(
    books: JournalQueries,
    *,
    has_fallbacks: bool = True,
    looked: Callable[[Conversation, str], float | None] | None = None,
    explain_job: Answering | None = None,
    explain_link: Callable[[Asked], str] | None = None,
) -> Command:
    """About the quoted answer or question; without a quote, about the last answer here. `looked`
    gives the number of a line that was considered for chiming in, `explain_job` the text about a
    message of a job, `explain_link` that about a link or its summary.
    """

    @command(
        "why", "为什么", about=("刚才为什么这么答，或没答", "why I answered like that, or did not")
    )
    async def why(asked: Asked) -> str:
        of_job = await explain_job(asked) if explain_job is not None else ""
        story = await books.story(asked.where, asked.quoted)
        if story is None:
            return of_job or AWAY.format(asked.language)
        if of_job and not story.turn_id:  # no model was asked
            return of_job
        about_link = explain_link(asked) if explain_link is not None and asked.quoted else ""
        if not story.is_known:
            if about_link:
                return about_link
            return (UNKNOWN if asked.quoted else NO_TURN).format(asked.language)
        lines = explain_turn(asked, story, has_fallbacks=has_fallbacks)
        if of_job:
            lines.insert(0, of_job)
        if looked and not story.turn_id:
            number = looked(asked.where, asked.quoted)
            told = "" if number is None else f"{number:g}"
            lines += [LOOKED.format(asked.language, number=told)] if told else []
        if about_link and not story.turn_id:
            lines.append(about_link)
        return "\n".join(lines)

    return why


class Explanations:
    """Fits `WakeExplainer`: the same words for the console."""

    def __init__(self, now: Callable[[], float], *, has_fallbacks: bool = True) -> None:
        self._now = now
        self._has_fallbacks = has_fallbacks

    def story(self, story: Story, *, chinese: bool) -> list[str]:
        """The story for an owner."""
        return explain_turn(self._asked(chinese=chinese), story, has_fallbacks=self._has_fallbacks)

    def reason(self, reason: str, *, chinese: bool) -> str:
        """The reason that woke the bot, or kept it silent."""
        return text_in(_language(chinese), words_of(reason))

    def ending(self, stop: str, *, chinese: bool) -> str:
        """How a run ended."""
        return text_in(_language(chinese), end_of(stop))

    def setting(self, reason: str, *, chinese: bool) -> str:
        """What decides that reason."""
        return text_in(_language(chinese), deciding(reason))

    def _asked(self, *, chinese: bool) -> Asked:
        owner = Asker("0", is_owner=True)
        return Asked(
            where=NOWHERE, asker=owner, words=(), quoted="", now=self._now(), chinese=chinese
        )


def explain_turn(asked: Asked, story: Story, *, has_fallbacks: bool = True) -> list[str]:
    """The story in a few lines; failures of services only for owners. `has_fallbacks`:
    LLM_FALLBACKS is set.
    """
    lines = _verdict(asked, story)
    if story.waits:
        lines.append(WAITS.format(asked.language, seconds=max(0.0, asked.now - story.taken)))
    if not story.turn_id:
        return lines
    waited = max(0.0, story.opened - story.taken) if story.taken else 0.0
    took = max(0.0, (story.closed or asked.now) - story.opened)
    ended: str = end_of(story.stop)
    if story.expires:
        ended = ASKS.format(asked.language, seconds=max(0.0, story.expires - asked.now))
    lines.append(
        (TOOK_ONE_STEP if story.steps == 1 else TOOK).format(
            asked.language, waited=waited, took=took, steps=story.steps, ended=ended
        )
    )
    lines += _of_end(asked, story, has_fallbacks=has_fallbacks)
    if story.calls:
        shown = ", ".join(map(_call, story.calls[:SHOWN]))
        more = len(story.calls) - SHOWN
        lines.append(f"{TOOLS.format(asked.language)}: {shown}{f' +{more}' if more > 0 else ''}")
    denials = [deciding_denial(call.name, call.denied) for call in story.calls]
    lines += [_decided(asked, one) for one in dict.fromkeys(filter(None, denials))]
    if story.usage.requests:
        used, cached = story.usage.prompt + story.usage.completion, story.usage.cached
        lines.append(
            f"{', '.join(story.models)} · {tokens(used)} {TOKENS.format(asked.language)} "
            f"({CACHED.format(asked.language)} {tokens(cached)}) · {money(story.usage)}"
        )
    if story.unsaid:
        lines.append(UNSAID.format(asked.language))
    if story.drafts:
        kept = ", ".join(f"D{number}" for number in story.drafts)
        lines.append(SHADOWED.format(asked.language, kept=kept))
    if asked.asker.is_owner:
        lines += [_published(asked, one) for one in story.published]
    sent = SENT.format(asked.language, sends=story.sends)
    failed = FAILED.format(asked.language, failed=story.failed)
    lines.append(
        f"{sent}{failed if story.failed else ''} · {RUN.format(asked.language)} {story.turn_id}"
    )
    if story.loss and asked.asker.is_owner:
        lines.append(LOSS.format(asked.language, reason=story.loss[:200]))
    if story.error and asked.asker.is_owner:
        lines.append(story.error[:200])
    return lines


def _published(asked: Asked, one: Publication) -> str:
    by = one.by or AN_OWNER.format(asked.language)
    if one.changed:
        return CHANGED.format(asked.language, number=one.number, by=by)
    return PUBLISHED.format(asked.language, number=one.number, by=by)


def _verdict(asked: Asked, story: Story) -> list[str]:
    """What woke the bot or kept it silent, and what decides that."""
    if not story.turn_id and (story.wakes is None or (story.wakes and story.is_gone)):
        why, decided = (GONE, NOTHING) if story.is_gone else (OVERHEARD, bilingual(CALLED_BY))
        return [why.format(asked.language), _decided(asked, decided)]
    if story.wakes is None:
        return [NOT_RECORDED.format(asked.language)]
    reason, decided = text_in(asked.language, words_of(story.reason)), deciding(story.reason)
    if story.wakes:
        weak = WEAK.format(asked.language) if story.weak else ""
        line = WOKEN.format(asked.language, reason=reason, weak=weak)
        return [line] if decided == NOTHING else [line, _decided(asked, decided)]
    if story.until:
        reason += UNTIL.format(asked.language, time=at_time(story.until, asked.now))
    line = NOT_ANSWERED.format(asked.language, reason=reason)
    return [line, _decided(asked, decided)]


def _of_end(asked: Asked, story: Story, *, has_fallbacks: bool) -> list[str]:
    """What decides how the run ended, unless another line already says so."""
    if story.wakes is False:
        return []
    decided = deciding_end(
        story.stop,
        story.error,
        is_owner=asked.asker.is_owner,
        has_fallbacks=has_fallbacks,
    )
    return [] if decided is None else [_decided(asked, decided)]


def _decided(asked: Asked, decided: Bilingual) -> str:
    return DECIDED.format(asked.language, what=decided)


def _language(chinese: bool) -> Language:
    return Language.CHINESE if chinese else Language.ENGLISH


def _call(call: StoryCall) -> str:
    mark = "" if call.code == "ok" else f" {call.code or '…'}"
    return f"{call.name} {call.seconds:.1f}s{mark}"
