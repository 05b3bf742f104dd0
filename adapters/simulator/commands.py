"""Lines that begin with `!`: what a person at the chat makes go wrong, and the answer to that."""

from __future__ import annotations

import re

from adapters.simulator import shared_media
from adapters.simulator.faults import ASKING, Fault, NoFault, parse_fault, parse_number, says_when
from adapters.simulator.incidents import MUTED_FOR
from adapters.simulator.server import ROBOT_ANSWERS, Simulator
from adapters.simulator.shared_media import Node, Nodes
from adapters.simulator.wire import NOT_DONE, CallRefused, Json, text
from adapters.simulator.world import Person
from bot.core.language import CATALOGUE, Bilingual, Language, Phrase, bilingual, text_in, text_of

THUMB = "76"
STRANGER = Person(29001, "路人")
DEEPEST = 9  # nested forwards
TALK = ("周六去爬山吗", "去，几点", "八点，山门口见")


async def act(simulator: Simulator, words: str) -> Bilingual | None:
    """Do it; the answer, None if the words mean something else. Raises CallRefused or NoFault if it
    cannot be done.
    """
    world = simulator.world
    group = world.group()
    user_id = next(number for number in group.members if number != world.self_id)
    match words.split():
        case ["poke"]:
            await simulator.incidents.poke(user_id=user_id, group_id=group.group_id)
            return POKED.fill()
        case ["typing"]:
            await simulator.incidents.type(user_id=user_id)
            return TYPING.fill()
        case ["takeback"]:
            await simulator.incidents.recall(_latest_own(simulator), operator_id=user_id)
            return RECALLED.fill()
        case ["react", *emoji] if len(emoji) < 2:
            latest, chosen = _latest_own(simulator), (*emoji, THUMB)[0]
            await simulator.incidents.react(latest, chosen, user_id=user_id)
            return REACTED.fill(emoji=chosen)
        case ["befriend", *said]:
            await simulator.incidents.befriend(STRANGER, " ".join(said))
            return ASKED.fill(who=STRANGER.user_id)
        case ["apply", *said]:
            await simulator.incidents.apply(STRANGER, " ".join(said))
            return ASKED.fill(who=STRANGER.user_id)
        case ["enter"]:
            await simulator.incidents.enter(STRANGER)
            return ENTERED.fill(who=STRANGER.nickname)
        case ["leave"]:
            await simulator.incidents.leave(STRANGER.user_id)
            return GONE.fill(who=STRANGER.nickname)
        case ["invite", number] if number.isdecimal():
            await simulator.incidents.invite(group.members[user_id], int(number))
            return INVITED.fill()
        case _ if (shared := share(simulator, words)) is not None:
            await simulator.say([shared], user_id=user_id)
            return SHARED.fill()
        case _:
            return None


def _latest_own(simulator: Simulator) -> int:
    """The id of the bot's latest message in the group. Raises NoFault if there is none."""
    group = simulator.world.group()
    own = [sent for sent in simulator.delivered if sent.group_id == group.group_id]
    if not own:
        raise NoFault(SAID_NOTHING.fill())
    return own[-1].message_id


def share(simulator: Simulator, words: str) -> Json | None:
    """The segment that these words share; None if they share nothing."""
    world = simulator.world
    match words.split(maxsplit=2):
        case ["forward", *depth] if len(depth) < 2:
            deep = min(DEEPEST, int(parse_number(depth[0]))) if depth else 1
            return shared_media.forward(world, talk(deep))
        case ["voice", *said] if said:
            return shared_media.voice(world, "voice.amr", " ".join(said).encode())
        case ["file", name, said]:
            return shared_media.file(world, name, said.encode())
        case ["card", title, *url]:
            return shared_media.card(title, url="".join(url))
        case _:
            return None


def talk(depth: int) -> Nodes:
    """Lines of two people, nested to this depth."""
    people = ((20001, "user1"), (20002, "user2"))
    lines = [Node(*people[index % 2], (text(line),)) for index, line in enumerate(TALK)]
    return [*lines, Node(*people[1], talk(depth - 1))] if depth > 1 else lines


MARK = "!"
AHEAD = re.compile(r"\+(\d{1,4})([smhd])")
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}

EXPLAINED = {
    Fault.TIMEOUT: Phrase(
        "消息送到了，但 NapCat 回答说 QQ 没有确认",
        "the message arrives, but NapCat answers that QQ did not confirm it",
    ),
    Fault.SILENCE: Phrase(
        "消息送到了，但一直没有回答",
        "the message arrives, and is never answered",
    ),
    Fault.LOST: Phrase(
        "消息没有送到，也一直没有回答",
        "the message does not arrive, and is never answered",
    ),
    Fault.REFUSE: Phrase(
        "被拒绝，原因写在 N 的位置；`code 100 原因` 换一个 retcode，\n"
        "                     `result 110 原因` 是 QQ 自己返回的",
        "refused, with the words in place of N; `code 100 WORDS` has another retcode,\n"
        "                     `result 110 WORDS` is what QQ itself returned",
    ),
    Fault.REFUSE_MENTION: Phrase(
        "消息里 @ 了人就被拒绝；也可以写 `refuse mention`",
        "refused if it mentions somebody; also `refuse mention`",
    ),
    Fault.REFUSE_QUOTE: Phrase(
        "消息引用了别的消息就被拒绝；也可以写 `refuse quote`",
        "refused if it quotes a message; also `refuse quote`",
    ),
    Fault.LATE_FORWARD: Phrase(
        "合并转发送到了，回答却和失败一样",
        "a merged forward arrives, and is answered like one that failed",
    ),
    Fault.NO_MESSAGE: Phrase(
        "机器人要的消息（例如被引用的）服务器上没有",
        "the server lacks a message that the bot asks for, such as a quoted one",
    ),
    Fault.MUTED: Phrase(
        "像被禁言那样拒绝，但没有通知（见 mute）",
        "refused as if muted, without a notice (see mute)",
    ),
    Fault.NOT_FRIEND: Phrase(
        "被拒绝：不是好友",
        "refused: not a friend",
    ),
    Fault.RISK: Phrase(
        "消息没有送到，回答和 timeout 一样：风控",
        "the message does not arrive, and is answered like timeout: risk control",
    ),
    Fault.TOO_LONG: Phrase(
        "被拒绝：太长",
        "refused: too long",
    ),
    Fault.BAD_MEDIA: Phrase(
        "被拒绝：取不到文件",
        "refused: the file cannot be fetched",
    ),
    Fault.NEXT_CONNECTION: Phrase(
        "消息送到了，连接断开，回答在下一次连接时才来",
        "the message arrives, the sockets close, and the answer comes on the next one",
    ),
    Fault.SLOW: Phrase(
        "消息送到了，N 秒后才回答；可以和上面的某一种一起用",
        "the message arrives, and is answered after N seconds; also with one of the above",
    ),
    Fault.DISORDER: Phrase(
        "任意调用的 N 个回答先扣住（最多 0.3 秒），再倒着送来",
        "N answers to calls of any kind are held (0.3 s at most), then come in reverse",
    ),
    Fault.DUPLICATE: Phrase(
        "一个事件送来两次",
        "an event comes twice",
    ),
    Fault.REPEAT: Phrase(
        "下次重连之后，最近 N 个事件再送一遍",
        "after the next reconnect the last N events come again",
    ),
    Fault.DEAF: Phrase(
        "一个事件没有送来，连接还在",
        "an event does not come, though the connection stays",
    ),
    Fault.RECALL: Phrase(
        "问题在收到 N 秒后被撤回；单独用：马上撤回上一条",
        "the question is recalled N seconds after it was heard; alone: the last one, now",
    ),
    Fault.RECONNECT: Phrase(
        "断开所有连接，N 秒后重新连接；单独用：马上",
        "every socket closes and is dialled again after N seconds; alone: now",
    ),
    Fault.DROP: Phrase(
        "断开所有连接，N 秒内连不上；单独用：马上",
        "every socket is cut, and none is accepted for N seconds; alone: now",
    ),
}
OTHERS = {
    "back": Phrase("drop 结束", "ends a drop"),
    "mute [SECONDS]": Phrase(
        "机器人在群里被禁言，并收到通知", "the bot is muted in the group, and gets the notice"
    ),
    "lift": Phrase("解除禁言", "the mute ends"),
    "muteall, liftall": Phrase("全员禁言；解除全员禁言", "the whole group is muted; the mute ends"),
    "offline, online": Phrase("账号被踢下线；重新登录", "the account is kicked; logged in again"),
    "deaf, hearing": Phrase(
        "心跳和回答照常，事件不来；事件又来了",
        "heartbeats and answers come, events do not; they come again",
    ),
    "takeback": Phrase(
        "管理员撤回机器人在群里的最近一条消息",
        "an admin recalls the bot's latest message in the group",
    ),
    "otherids on|off": Phrase(
        "历史里的消息编号是否和事件里的不同", "whether histories have other message ids than events"
    ),
    "otherquotes on|off": Phrase(
        "别人引用时，编号是否不存在", "whether people quote ids that do not exist"
    ),
    "selfreport on|off": Phrase(
        "机器人是否收到自己的消息（message_sent）",
        "whether the bot hears its own messages (message_sent)",
    ),
    "robot [TIMES]": Phrase(
        "另一个机器人进群，机器人在群里说话它就回答，这么多次",
        "another robot joins, and answers the bot in the group that often",
    ),
    "poke, typing": Phrase(
        "user1 在群里戳一戳机器人；在私聊里正在输入",
        "user1 pokes the bot in the group; is typing to it in private",
    ),
    "react [EMOJI]": Phrase(
        "user1 给机器人在群里的最近一条消息贴表情",
        "user1 reacts to the bot's latest message in the group",
    ),
    "forward [DEPTH]": Phrase(
        "user1 转发一段聊天，一层套一层，这么深", "user1 forwards a conversation, nested that deep"
    ),
    "voice WORDS": Phrase("user1 发一条语音", "user1 sends a voice message"),
    "file NAME WORDS": Phrase(
        "user1 发一个文件，内容是这些字", "user1 sends a file that contains these words"
    ),
    "befriend [WORDS]": Phrase(
        "陌生人申请加机器人为好友", "a stranger wants to be the bot's friend"
    ),
    "apply [WORDS]": Phrase("陌生人申请入群", "a stranger wants to join the group"),
    "enter, leave": Phrase("陌生人进群；退群", "a stranger joins the group; leaves it"),
    "invite GROUP": Phrase(
        "user1 邀请机器人进这个群号的群", "user1 invites the bot into a group of that number"
    ),
    "card TITLE [URL]": Phrase("user1 分享一张卡片", "user1 shares a card"),
    "time +AHEAD": Phrase(
        "时间往后拨：+30s、+5m、+1h、+2d", "moves the time forward: +30s, +5m, +1h, +2d"
    ),
    "faults": Phrase("现在准备了哪些故障", "what is armed"),
    "off": Phrase("取消所有准备好的故障", "disarm all"),
}
HEADING = Phrase(
    "!NAME [N] [next | always | N times | off] 让一件事出错，例如 `!slow 3 always`；"
    "next 可以不写。\n"
    "每个故障等到碰上为止；都针对发送的几个里，先准备的先用。",
    "!NAME [N] [next | always | N times | off] makes something go wrong, as in `!slow 3 always`;"
    " next may be left out.\n"
    "Each waits until it applies; of those that apply to a send, the first one armed goes first.",
)
AT_ONCE = Phrase("马上发生的：", "At once:")
ROW = Phrase("  {name} {what}", "  {name} {what}")
TRY_HELP = Phrase("{line}：{why}。看看 {mark}help", "{line}: {why}. Try {mark}help")
POKED = Phrase("戳了一下", "poked")
TYPING = Phrase("正在输入", "typing")
RECALLED = Phrase("撤回了", "recalled")
REACTED = Phrase("贴了表情 {emoji}", "reacted with {emoji}")
ASKED = Phrase("{who} 申请了", "{who} asked")
ENTERED = Phrase("{who} 进群了", "{who} joined")
GONE = Phrase("{who} 退群了", "{who} left")
NO_TRAVEL = Phrase("这里不能拨时间", "the time cannot be changed here")
LATER = Phrase("时间已经往后拨了 {ahead}", "it is {ahead} later now")
INVITED = Phrase("邀请了", "invited")
SHARED = Phrase("发出去了", "shared")
SAID_NOTHING = Phrase("机器人还没有说过话", "the bot has said nothing")
MAY_COME = Phrase("可以重新连接了", "sockets may come again")
MUTED = Phrase("禁言 {seconds} 秒", "muted for {seconds} s")
UNMUTED = Phrase("禁言解除了", "not muted any more")
ALL_MUTED = Phrase("全员禁言了", "everybody is muted")
NONE_MUTED = Phrase("全员禁言解除了", "nobody is muted any more")
ROBOT = Phrase("{name} 会回答 {times} 次", "{name} answers {times} times")
OFFLINE = Phrase("账号离线", "the account is offline")
ONLINE = Phrase("账号在线", "the account is online")
NO_EVENTS = Phrase("事件不来", "events do not come")
EVENTS = Phrase("事件会来", "events come")
OTHER_IDS = Phrase("历史里是另外的编号", "histories have other ids")
SAME_IDS = Phrase("历史里是同样的编号", "histories have the same ids")
OTHER_QUOTES = Phrase("引用里是另外的编号", "quotes have other ids")
SAME_QUOTES = Phrase("引用里是同样的编号", "quotes have the same ids")
REPORTED = Phrase("会收到自己的消息", "own messages are reported")
UNREPORTED = Phrase("不会收到自己的消息", "own messages are not reported")
DONE = Phrase("{fault}：已发生", "{fault}: done")
KEPT_AWAY = Phrase("不能连接", "sockets are kept away")
MUTED_IN = Phrase("在 {group} 被禁言", "muted in {group}")
NOTHING_ARMED = Phrase("什么故障都没有准备", "nothing is armed")
CATALOGUE.register(__name__, globals())


def help_text() -> Bilingual:
    """All that can be typed, a line each."""
    faults = (ROW.fill(name=f"{fault:<18}", what=what) for fault, what in EXPLAINED.items())
    others = (ROW.fill(name=f"{name:<18}", what=what) for name, what in OTHERS.items())
    return _lines(HEADING.fill(), *faults, AT_ONCE.fill(), *others)


def _lines(*lines: str) -> Bilingual:
    return Bilingual("\n".join(lines), "\n".join(text_in(Language.CHINESE, one) for one in lines))


async def obey(simulator: Simulator, line: str) -> Bilingual:
    """Do what a line that begins with `!` says; the answer to the person who typed it."""
    words = line.strip().removeprefix(MARK).strip()
    try:
        return await _obey(simulator, words)
    except (NoFault, CallRefused) as error:
        return TRY_HELP.fill(line=f"{MARK}{words}", why=text_of(error), mark=MARK)


async def _obey(simulator: Simulator, words: str) -> Bilingual:
    match words.lower().split():
        case [] | ["help"]:
            return help_text()
        case ["faults"]:
            return describe(simulator)
        case ["off"]:
            simulator.faults.disarm()
            return describe(simulator)
        case ["back"]:
            simulator.sockets.come_back()
            return MAY_COME.fill()
        case ["mute", *seconds] if len(seconds) < 2:
            lasting = parse_number(seconds[0]) if seconds else MUTED_FOR
            await simulator.incidents.mute(lasting)
            return MUTED.fill(seconds=f"{lasting:g}")
        case ["lift"]:
            await simulator.incidents.lift()
            return UNMUTED.fill()
        case ["muteall"]:
            await simulator.incidents.mute_all()
            return ALL_MUTED.fill()
        case ["liftall"]:
            await simulator.incidents.lift_all()
            return NONE_MUTED.fill()
        case ["robot", *times] if len(times) < 2:
            often = int(parse_number(times[0])) if times else ROBOT_ANSWERS
            robot = simulator.robots.invite(times=often)
            return ROBOT.fill(name=robot.name, times=often)
        case ["offline"]:
            await simulator.incidents.go_offline()
            return OFFLINE.fill()
        case ["online"]:
            await simulator.incidents.go_online()
            return ONLINE.fill()
        case ["deaf"]:
            simulator.world.is_deaf = True
            return NO_EVENTS.fill()
        case ["hearing"]:
            simulator.world.is_deaf = False
            return EVENTS.fill()
        case ["otherids", "on" | "off" as state]:
            simulator.world.renumbers = state == "on"
            return (OTHER_IDS if simulator.world.renumbers else SAME_IDS).fill()
        case ["otherquotes", "on" | "off" as state]:
            simulator.world.misquotes = state == "on"
            return (OTHER_QUOTES if simulator.world.misquotes else SAME_QUOTES).fill()
        case ["time", ahead] if found := AHEAD.fullmatch(ahead):
            if simulator.on_travel is None:
                raise CallRefused(NOT_DONE, NO_TRAVEL.fill())
            simulator.on_travel(int(found[1]) * UNITS[found[2]])
            return LATER.fill(ahead=found[1] + found[2])
        case ["selfreport", "on" | "off" as state]:
            simulator.world.reports_self = state == "on"
            return (REPORTED if simulator.world.reports_self else UNREPORTED).fill()
        case _:
            return await act(simulator, words) or await _arm(simulator, words)


async def _arm(simulator: Simulator, words: str) -> Bilingual:
    armed = parse_fault(words)
    if armed.fault in ASKING and not says_when(words):
        await simulator.incidents.strike(armed, simulator.last_said)
        return DONE.fill(fault=str(armed.fault))
    simulator.faults.put(armed)
    return bilingual(str(armed))


def describe(simulator: Simulator) -> Bilingual:
    """The armed faults, and every state that is not the usual one."""
    world = simulator.world
    states = {
        OFFLINE: not world.online,
        KEPT_AWAY: simulator.sockets.away,
        NO_EVENTS: world.is_deaf,
        OTHER_IDS: world.renumbers,
        OTHER_QUOTES: world.misquotes,
        REPORTED: world.reports_self,
    }
    muted = [MUTED_IN.fill(group=one) for one in world.groups if world.mutes.is_muted(one)]
    lines = [
        *map(str, simulator.faults.armed),
        *muted,
        *(state.fill() for state, holds in states.items() if holds),
    ]
    return _lines(*lines) if lines else NOTHING_ARMED.fill()
