"""`/why`: how an answer came about, or why there was none."""

from __future__ import annotations

from collections.abc import Callable

from bot.commands.money import money, tokens
from bot.commands.phrases import AWAY
from bot.domain.books import Books, Publication, Story, StoryCall
from bot.domain.command import Asked, Command, command
from bot.domain.events import Conversation
from bot.domain.run import Asker

REASONS = {
    "private": ("私聊", "written in private"),
    "mention": ("被 @", "mentioned"),
    "quote": ("引用了我的话", "quoted me"),
    "name": ("叫了我的名字", "called by name"),
    "prefix": ("用了前缀", "began with a prefix"),
    "all": ("@全体成员", "everybody was mentioned"),
    "chance": ("随机插话", "joined in by chance"),
    "retry": ("上次中断，补答", "asked again after a crash"),
    "the bot is muted there": ("我在这里被禁言了", "I am muted here"),
    "the bot and the sender answer each other for ever": (
        "和对方互相回复太多次，先停十分钟",
        "we answered each other too often: ten minutes of rest",
    ),
    "its words are on the operator's list": ("用了词表里的词", "its words are on a list"),
    "somebody there told the bot to be silent": ("被 /禁声 了", "silenced by /mute"),
    "no owner has let the bot speak there": (
        "主人还没让我在这里说话",
        "no owner lets me speak here",
    ),
    "it is quiet there now": ("现在要安静", "it is quiet here now"),
    "nobody came to it in time": ("轮到它时已经太久了", "its turn came too late"),
    "its turn was stopped before anybody read it": (
        "还没看到就被叫停了",
        "stopped before I read it",
    ),
    "it was stopped before anybody came to it": ("还没轮到就被叫停了", "stopped before its turn"),
    "what goes on is not the sender's to stop": (
        "叫停的人没有权限停下它",
        "whoever said stop may not stop that",
    ),
    "too many questions were waiting": ("排队的问题太多了", "too many questions were waiting"),
    "its sender asks too often": ("问得太快了", "its sender asks too often"),
    "too many questions of that group": ("这会儿群里问得太多", "too many questions of that group"),
    "what may be spent in a day is spent": ("今天的额度用完了", "nothing is left for today"),
    "the sender is a robot": ("对方是机器人", "the sender is a robot"),
    "the sender is not on the list": ("对方不在名单上", "the sender is not on the list"),
    "it was answered, or was old, when it was found": (
        "重连时找到的，已经回答过或太旧",
        "found after a reconnect, answered or too old",
    ),
}
SETTINGS = {
    "chance": "BOT_CHANCE",
    "prefix": "BOT_PREFIXES",
    "all": "BOT_AT_ALL",
    "name": "BOT_NAME, BOT_ALIASES",
    "the bot and the sender answer each other for ever": "BOT_LOOP",
    "its words are on the operator's list": "WORDS_FILE",
    "somebody there told the bot to be silent": "/mute, /unmute",
    "it is quiet there now": "BOT_QUIET, /quiet",
    "nobody came to it in time": "BOT_STALE",
    "too many questions were waiting": "BOT_LANE",
    "its sender asks too often": "BOT_USER_RATE",
    "too many questions of that group": "BOT_GROUP_RATE",
    "what may be spent in a day is spent": "BOT_DAY_COST_…, BOT_DAY_TOKENS_…",
    "the sender is a robot": "BOT_ROBOTS",
    "the sender is not on the list": "BOT_USERS",
    "the sender is blocked": "BOT_BLOCK",
    "the group is not on the list": "BOT_GROUPS",
}
"""What decides each reason, where people set that."""

STOPS = {
    "answered": ("回答了", "answered"),
    "silent": ("选择不说话", "chose to stay silent"),
    "stopped": ("被叫停", "was stopped"),
    "denied": ("没有得到允许", "was not allowed"),
    "failed": ("失败了", "failed"),
    "out_of_budget": ("预算用完了", "ran out of budget"),
    "interrupted": ("被重启打断", "was interrupted by a restart"),
    "": ("还在进行", "goes on"),
}
WAITS = (
    "还没轮到，已经等了 {seconds:.0f} 秒",
    "its turn has not come, it waits for {seconds:.0f} s",
)
ASKS = (
    "在等主人答复，最多再等 {seconds:.0f} 秒",
    "waits for an owner's word, {seconds:.0f} s at most",
)
UNSAID = (
    "最后的话没有发：前面已经说过，或者用了词表里的词",
    "its last words were not sent: said before, or on a list",
)
NOWHERE = Conversation(0, "private", 0)
UNKNOWN = (
    (
        "这条消息我没有记录：可能是命令的回复、我来之前说的、不理会的人发的（BOT_BLOCK、BOT_USERS、"
        "BOT_ROBOTS），或者已经清掉了。"
    ),
    (
        "I have no record of that message: the answer to a command, said before I came, or by "
        "somebody I do not listen to (BOT_BLOCK, BOT_USERS, BOT_ROBOTS), or cleared since."
    ),
)
NOTHING = (
    "这里我还没答过什么。引用一条消息再问，就说它为什么没有回答。",
    "I have answered nothing here yet. Quote a message to hear why it was not answered.",
)
OVERHEARD = (
    "没有回答：没有人叫我（没有 @、引用我、叫我的名字，也没用前缀）",
    "not answered: nobody called me (no mention, no quote of mine, not my name, no prefix)",
)
GONE = (
    "没有交给模型：是命令、对申请的答复，或者已经撤回",
    "not for a model: a command, a word on a request, or recalled since",
)
SHOWN = 5  # calls of one answer


def why_command(books: Books) -> Command:
    """Of what is quoted, an answer or a question; of the last answer here where nothing is."""

    @command("why", "为什么", about=("刚才为什么这么答，或没答", "how the last answer came about"))
    async def why(asked: Asked) -> str:
        story = await books.story(asked.where, asked.quoted)
        if story is None:
            return asked.either(*AWAY)
        if not story.is_known:
            return asked.either(*(UNKNOWN if asked.quoted else NOTHING))
        return "\n".join(tell(asked, story))

    return why


class Explanations:
    """Fits `Explaining`: the same words, for whoever looks in another place."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def story(self, story: Story, *, chinese: bool) -> list[str]:
        """As an owner reads it."""
        return tell(self._asked(chinese=chinese), story)

    def reason(self, reason: str, *, chinese: bool) -> str:
        """The reason that woke the bot, or kept it silent."""
        return REASONS.get(reason, (reason, reason))[0 if chinese else 1]

    def ending(self, stop: str, *, chinese: bool) -> str:
        """How a run ended."""
        return STOPS.get(stop, (stop, stop))[0 if chinese else 1]

    def setting(self, reason: str) -> str:
        """The setting that decides it."""
        return SETTINGS.get(reason, "")

    def _asked(self, *, chinese: bool) -> Asked:
        owner = Asker(0, is_owner=True)
        return Asked(
            where=NOWHERE, asker=owner, words=(), quoted="", now=self._now(), chinese=chinese
        )


def tell(asked: Asked, story: Story) -> list[str]:
    """The story in a few lines; failures of services only to owners."""
    lines = [_verdict(asked, story)]
    if story.waits:
        lines.append(asked.either(*WAITS).format(seconds=max(0.0, asked.now - story.taken)))
    if not story.turn_id:
        return lines
    waited = max(0.0, story.opened - story.taken) if story.taken else 0.0
    took = max(0.0, (story.closed or asked.now) - story.opened)
    ended = asked.either(*STOPS.get(story.stop, (story.stop, story.stop)))
    if story.expires:
        ended = asked.either(*ASKS).format(seconds=max(0.0, story.expires - asked.now))
    lines.append(
        asked.either(
            f"等了 {waited:.1f} 秒，用了 {took:.1f} 秒，{story.steps} 步，{ended}",
            f"waited {waited:.1f} s, took {took:.1f} s, {story.steps} steps, {ended}",
        )
    )
    if story.calls:
        shown = ", ".join(map(_call, story.calls[:SHOWN]))
        more = len(story.calls) - SHOWN
        lines.append(f"{asked.either('工具', 'tools')}: {shown}{f' +{more}' if more > 0 else ''}")
    if story.usage.requests:
        used, cached = story.usage.prompt + story.usage.completion, story.usage.cached
        lines.append(
            f"{', '.join(story.models)} · {tokens(used)} token "
            f"({asked.either('缓存', 'cached')} {tokens(cached)}) · {money(story.usage)}"
        )
    if story.unsaid:
        lines.append(asked.either(*UNSAID))
    if story.drafts:
        kept = ", ".join(f"D{number}" for number in story.drafts)
        lines.append(asked.either(f"影子：留作草稿 {kept}", f"shadow: kept as draft {kept}"))
    if asked.asker.is_owner:
        lines += [_published(asked, one) for one in story.published]
    sent = asked.either(f"发出 {story.sends} 条", f"{story.sends} sent")
    failed = asked.either(f"，没发出去 {story.failed} 条", f", {story.failed} not")
    lines.append(
        f"{sent}{failed if story.failed else ''} · {asked.either('编号', 'run')} {story.turn_id}"
    )
    if story.error and asked.asker.is_owner:
        lines.append(story.error[:200])
    return lines


def _published(asked: Asked, one: Publication) -> str:
    by = one.by or asked.either("主人", "an owner")
    if one.changed:
        return asked.either(
            f"D{one.number}：{by} 改了再发的", f"D{one.number}: changed and published by {by}"
        )
    return asked.either(f"D{one.number}：{by} 发的", f"D{one.number}: published by {by}")


def _verdict(asked: Asked, story: Story) -> str:
    reason = asked.either(*REASONS.get(story.reason, (story.reason, story.reason)))
    if not story.turn_id and (story.wakes is None or (story.wakes and story.is_gone)):
        return asked.either(*(GONE if story.is_gone else OVERHEARD))
    if story.wakes is None:
        return asked.either("没有记下为什么被唤醒", "what woke me was not written down")
    if story.wakes:
        weak = (
            asked.either("（不确定是在叫我）", " (perhaps not meant for me)") if story.weak else ""
        )
        return asked.either(f"唤醒：{reason}{weak}", f"woken: {reason}{weak}")
    return asked.either(f"没有回答：{reason}", f"not answered: {reason}")


def _call(call: StoryCall) -> str:
    mark = "" if call.code == "ok" else f" {call.code or '…'}"
    return f"{call.name} {call.seconds:.1f}s{mark}"
