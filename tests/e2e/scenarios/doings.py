"""What people do in a scenario, and what happens to the bot: each verb of a script, and speaking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

from adapters.simulator import actions
from adapters.simulator.faults import parse_fault
from adapters.simulator.world import Person, event_of
from tests.e2e.scenarios import servers
from tests.e2e.scenarios.parts import Written, segments_of
from tests.e2e.scenarios.stage import GROUP, SECOND, Stage

Doing: TypeAlias = Callable[[Stage, Any], Awaitable[None]]

LAGRANGE = frozenset({"set_msg_emoji_like", "set_input_status"})  # what it does not know


async def say(stage: Stage, name: str, written: Written) -> None:
    """Somebody says something: words, parts, or a mapping with `say` and more."""
    told: Mapping[str, Any] = written if isinstance(written, dict) and "say" in written else {"say": written}
    segments = segments_of(told["say"], world=stage.world, labels=stage.labels)
    if (label := told.get("quote")) is not None:
        quoted = label if isinstance(label, int) else stage.labels[label]
        segments = [{"type": "reply", "data": {"id": str(quoted)}}, *segments]
    user_id = stage.number(name)
    stage.see(name, str(told["say"]) + (f"  ↩ {label}" if label is not None else ""))
    if told.get("private"):
        message_id = await stage.simulator.say_private(segments, user_id=user_id)
    else:
        group_id = SECOND if told.get("group") == 2 else GROUP
        message_id = await stage.simulator.say(segments, user_id=user_id, group_id=group_id)
    if "id" in told:
        stage.labels[told["id"]] = message_id


async def do(stage: Stage, verb: str, value: Any) -> None:
    """Something that happens and is not said."""
    stage.see("*", f"{verb} {value if value is not True else ''}".rstrip())
    await DOINGS[verb](stage, value)


async def recall(stage: Stage, told: str | Mapping[str, str]) -> None:
    """By its author, or by who is named: `{label: name}`."""
    for label, name in (told if isinstance(told, Mapping) else {told: ""}).items():
        operator = stage.number(name) if name else None
        await stage.simulator.incidents.recall(stage.labels[label], operator_id=operator)


async def mute(stage: Stage, seconds: float) -> None:
    await stage.simulator.incidents.mute(seconds)


async def lift(stage: Stage, _: Any) -> None:
    await stage.simulator.incidents.lift()


async def mute_all(stage: Stage, _: Any) -> None:
    await stage.simulator.incidents.mute_all()


async def lift_all(stage: Stage, _: Any) -> None:
    await stage.simulator.incidents.lift_all()


async def poke(stage: Stage, told: str | Mapping[str, str]) -> None:
    """Of the bot by somebody; with `{name: name}` of somebody else."""
    for name, target in (told if isinstance(told, Mapping) else {told: ""}).items():
        other = stage.number(target) if target else None
        await stage.simulator.incidents.poke(user_id=stage.number(name), target_id=other, group_id=GROUP)


async def type_to_bot(stage: Stage, name: str) -> None:
    await stage.simulator.incidents.type(user_id=stage.number(name))


async def react(stage: Stage, told: Mapping[str, str]) -> None:
    for name, label in told.items():
        number = stage.number(name)
        await stage.simulator.incidents.react(stage.labels[label], "76", user_id=number)


async def robot(stage: Stage, told: Mapping[str, int]) -> None:
    for name, times in told.items():
        stage.simulator.robots.invite(name, times=times)


async def restart(stage: Stage, pause: Any) -> None:
    await stage.close()
    if pause is not True:
        await stage.loop.pass_time(pause)
    await stage.open()


async def write(stage: Stage, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = stage.files / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


async def reload(stage: Stage, lines: list[str]) -> None:
    """Read the files again; the outcome has these words in this order."""
    told = "\n".join((await stage.reload()).lines)
    for words in lines:
        assert words in told, f"{words!r} was not told of the reload: {told}"


async def drop(stage: Stage, _: Any) -> None:
    await stage.simulator.sockets.drop()


async def back(stage: Stage, _: Any) -> None:
    stage.simulator.sockets.come_back()


async def fault(stage: Stage, line: str) -> None:
    stage.simulator.faults.put(parse_fault(line))


async def report(stage: Stage, wanted: bool) -> None:
    """Whether the server reports the account's own messages."""
    stage.world.reports_self = wanted


async def other_ids(stage: Stage, wanted: bool) -> None:
    """Whether a history tells messages under other ids than their events."""
    stage.world.renumbers = wanted


async def server(stage: Stage, name: str) -> None:
    """Another OneBot server: NapCat, Lagrange, or one that nobody knows."""
    stage.world.app_name = {"NapCat": "NapCat.Onebot", "Lagrange": "Lagrange.OneBot", "unknown": "Some.Onebot"}[name]
    stage.world.unsupported = set(LAGRANGE if name == "Lagrange" else {"set_group_reaction"})


async def rename(stage: Stage, names: Mapping[str, str]) -> None:
    for old, new in names.items():
        person = stage.group.members[stage.number(old)]
        renamed = Person(person.user_id, person.nickname, card=new, role=person.role)
        stage.group.members[person.user_id] = renamed


async def befriend(stage: Stage, told: Mapping[str, str]) -> None:
    for name, comment in told.items():
        await stage.simulator.incidents.befriend(stage.group.members[stage.number(name)], comment)


async def invite(stage: Stage, told: Mapping[str, int]) -> None:
    for name, group_id in told.items():
        await stage.simulator.incidents.invite(stage.group.members[stage.number(name)], group_id)


async def apply(stage: Stage, told: Mapping[str, str]) -> None:
    for name, comment in told.items():
        await stage.simulator.incidents.apply(stage.group.members[stage.number(name)], comment)


async def enter(stage: Stage, told: str | list[str] | Mapping[str, float]) -> None:
    """People join the group; with `{name: seconds}` the server tells that so much later."""
    names = [told] if isinstance(told, str) else told
    for name in names:
        ago = names[name] if isinstance(names, Mapping) else 0.0
        await stage.simulator.incidents.enter(stage.person(name), ago=ago)


async def leave(stage: Stage, told: str | Mapping[str, str | float]) -> None:
    """Somebody leaves the group; with `{name: kick}` they are removed; with `{name: seconds}` the notice comes that
    late, and they are back.
    """
    for name, how in (told if isinstance(told, Mapping) else {told: ""}).items():
        ago = 0.0 if isinstance(how, str) else how
        await stage.simulator.incidents.leave(stage.number(name), kicked=how == "kick", ago=ago)


async def stand_still(stage: Stage, seconds: Any) -> None:
    stage.loop.stand_still(seconds)


async def lapse(stage: Stage, _: Any) -> None:
    actions.lapse(stage.world)


async def late(stage: Stage, told: Mapping[str, Any]) -> None:
    """The server tells only now what somebody said some time ago: `{name: words, ago: seconds}`."""
    ago = told["ago"]
    for name in told.keys() - {"ago"}:
        segments = segments_of(told[name], world=stage.world, labels=stage.labels)
        stored = stage.world.post(segments, author=stage.number(name), group_id=GROUP)
        event = event_of(stage.world, stored)
        await stage.simulator.push({**event, "time": event["time"] - ago})


async def feed(stage: Stage, told: Mapping[str, Any]) -> None:
    """A feed has these entries now, the latest first, by their titles or `{title: text}`; without any it is none."""
    for name, titles in told.items():
        entries = [one if isinstance(one, dict) else {one: ""} for one in titles or ()]
        items = "".join(
            f"<item><title>{title}</title><guid>{title}</guid><link>https://a.test/{number}</link>"
            f"<description>{escape(text)}</description></item>"
            for number, one in enumerate(entries)
            for title, text in one.items()
        )
        whole = f'<?xml version="1.0"?><rss version="2.0"><channel><title>{name}</title>{items}</channel></rss>'
        stage.world.contents[f"{name}.xml"] = whole.encode() if titles is not None else b"<html>gone</html>"


async def join(stage: Stage, _: Any) -> None:
    """The bot is told that it joined the group, as after it had been removed."""
    world = stage.world
    notice = {"notice_type": "group_increase", "sub_type": "approve", "group_id": GROUP, "operator_id": 0}
    about = {"post_type": "notice", "self_id": world.self_id, "time": int(world.now())}
    await stage.simulator.push({**about, **notice, "user_id": world.self_id})


async def become_friend(stage: Stage, name: str) -> None:
    """Somebody is a friend of the bot from now on."""
    about = {"post_type": "notice", "self_id": stage.world.self_id, "time": int(stage.world.now())}
    await stage.simulator.push({**about, "notice_type": "friend_add", "user_id": stage.number(name)})


async def promote(stage: Stage, roles: Mapping[str, Any]) -> None:
    """Give people, and the bot, a role in the group."""
    for name, role in roles.items():
        number = stage.world.self_id if name == "bot" else stage.number(name)
        stage.group.members[number] = replace(stage.group.members[number], role=role)


async def away(_: Stage, name: str) -> None:
    """A server breaks off and cannot be reached."""
    await servers.leave(name)


async def there(_: Stage, name: str) -> None:
    """A server can be reached again."""
    servers.AWAY.discard(name)


DOINGS: Mapping[str, Doing] = {
    "away": away,
    "there": there,
    "recall": recall,
    "mute": mute,
    "lift": lift,
    "mute_all": mute_all,
    "lift_all": lift_all,
    "poke": poke,
    "type": type_to_bot,
    "react": react,
    "robot": robot,
    "restart": restart,
    "write": write,
    "reload": reload,
    "drop": drop,
    "back": back,
    "fault": fault,
    "report": report,
    "server": server,
    "other_ids": other_ids,
    "rename": rename,
    "promote": promote,
    "befriend": befriend,
    "invite": invite,
    "join": join,
    "apply": apply,
    "enter": enter,
    "feed": feed,
    "leave": leave,
    "become_friend": become_friend,
    "lapse": lapse,
    "late": late,
    "stand_still": stand_still,
}
"""The verbs of a script, each with what it does."""
