"""A journal at the baseline (revision 0015), as an older version wrote it: `ahead.txt` has a line for each entry of
ENTRIES, `rows.sql` the tables after all of them were stored, `run.json` is RUN.
"""

from __future__ import annotations

from pathlib import Path

from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender
from bot.core.journal import (
    Entry,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    RunResumed,
    RunSuspended,
    SendChanged,
    SendQueued,
    SendState,
    TurnClosed,
    TurnOpened,
    UsageAdded,
    WindowMoved,
)
from bot.core.segments import (
    Card,
    Contact,
    Dice,
    File,
    Forward,
    Keyboard,
    Link,
    Location,
    Markdown,
    Mention,
    Picture,
    Poke,
    Record,
    Rps,
    Segment,
    Sticker,
    Transfer,
    Unsupported,
    Video,
)
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from frostagent.types.runs import Asker, PendingCall, Spent, StepFinished, Stop, SuspendedRun, ToolFinished, ToolStarted
from frostagent.types.speech import Attachment, Face, MentionAll, Quote, Text
from frostagent.types.traits import Audience

HERE = Path(__file__).parent

NOW = 1_700_000_000.0
GROUP = Conversation(10001, "group", 4242)
PRIVATE = Conversation(10001, "private", 777, via_group=4242)

SEGMENTS: tuple[Segment, ...] = (
    Quote("-12345"),
    Mention(10001, "霜"),
    MentionAll(),
    Text('你好 "frost"\n\0\u2028🧊'),
    Face("178", "/斜眼笑"),
    Picture("a.png", "https://x.test/a?b=1&c=2", "[动画表情]", 1024, sticker=True),
    Sticker("1", "2", "3", "[早]", "https://x.test/s"),
    Record("a.amr", "https://x.test/r", "/tmp/a.amr", 7),
    Video("a.mp4", "https://x.test/v", "", 8),
    File("表格.xlsx", "f1", "", 9),
    Forward("7301234567890123456", "[]"),
    Card("json", '{"app":"com.x"}', "[卡片]"),
    Markdown("# 标题"),
    Keyboard(("是", "否")),
    Dice("6"),
    Rps("2"),
    Poke("poke", "1"),
    Contact("qq", "777"),
    Location("家", "路", "30.1", "120.2"),
    Link("music", "歌", "https://x.test/m", "词"),
    Transfer("onlinefile", "a", "b"),
    Unsupported("basket", '{"n":1}'),
)


def said(message_id: str, where: Conversation, *segments: Segment, ago: float = 10) -> MessageReceived:
    return MessageReceived(
        self_id=10001,
        time=NOW - ago,
        conversation=where,
        message_id=message_id,
        sender=Sender(777, "小雨", "群主", "owner"),
        segments=segments,
        sub_type="normal",
        message_seq="88",
        group_name="测试群",
    )


QUESTION = said("2", GROUP, Mention(10001), Text("天气？"))
SECRET = said("3", PRIVATE, Text("删掉它"))
ASKED = UserMessage("[提问]\n小雨(777): 天气？", ("data:image/png;base64,AA==",))
CALLING = AssistantMessage(
    "看看。",
    (ToolCall("c1", "get_weather", '{"city": "杭州"}', '{"s":1}'),),
    Reasoning("想", "https://x.test/v1", "m", "reasoning_content", "[1]"),
)
RESULT = ToolMessage("c1", "get_weather", "error: 晴 [TOOL_FAILED]", True, ("data:,",), "TOOL_FAILED")
ANSWER = AssistantMessage("晴。")
WIPING = ToolCall("c2", "wipe", "{}")

RUN = SuspendedRun(
    run_id="t2",
    conversation=str(PRIVATE),
    asker=Asker("777", "小雨", "owner", True, Audience.GROUP_ADMIN, Audience.EVERYONE),
    messages=(SystemMessage("是机器人"), UserMessage("删掉它")),
    message=AssistantMessage(tool_calls=(ToolCall("c1", "look", "{}"), WIPING)),
    answers=(ToolMessage("c1", "look", "seen"), PendingCall(WIPING, "真的？", NOW + 600, "d1", "{}", 3, NOW)),
    usage=Usage(10, 5, 3, 1, 0.25),
    steps=2,
    response_id="r1",
    spent=Spent(2, 15.5, 1),
)
"""A run that waits, as its state in the journal holds it."""

CALL = ToolCall("c1", "get_weather", "")

SAYING = SendMessage(GROUP, (Quote("2"), Text("晴。"), Attachment("image", "base64://AA==", "a.png")))

ENTRIES: tuple[Entry, ...] = (
    MessageObserved(said("1", GROUP, *SEGMENTS), overheard=True),
    MessageObserved(QUESTION, overheard=False),
    MessageObserved(said("4", GROUP, Text("recalled")), overheard=True),
    MessageOverheard(said("5", GROUP, Text("not for the bot"))),
    MessageErased(GROUP, "4"),
    TurnOpened(turn_id="t1", question=QUESTION, user=ASKED, at=NOW, retry_of="t0"),
    StepFinished(
        run_id="t1",
        step=1,
        completion=Completion(CALLING, FinishReason.TOOL_CALLS, Usage(10, 5, 3, 1, None), model="m@x.test"),
        seconds=0.5,
    ),
    ToolStarted(run_id="t1", step=1, call=CALL),
    ToolFinished(run_id="t1", step=1, call=CALL, result=RESULT, code="TOOL_FAILED", seconds=0.25),
    SendQueued(send_id="s1", turn_id="t1", action=SAYING, final=True, at=NOW, state=SendState.SENDING),
    SendChanged(send_id="s1", state=SendState.CONFIRMED, at=NOW + 1, message_id="99", reason=""),
    TurnClosed(
        turn_id="t1",
        stop=Stop.ANSWERED,
        round=(ASKED, CALLING, RESULT, ANSWER),
        usage=Usage(20, 10),
        steps=2,
        at=NOW + 2,
        error="",
    ),
    WindowMoved(GROUP, "t1", "t1", "早先说过天气。"),
    UsageAdded(turn_id="t1", model="m@x.test", usage=Usage(1, 2, 0, 0, 0.5), at=NOW + 3),
    MessageObserved(SECRET, overheard=False),
    TurnOpened(turn_id="t2", question=SECRET, user=UserMessage("删掉它"), at=NOW + 4),
    RunSuspended(turn_id="t2", state=(HERE / "run.json").read_text("utf-8"), expires=NOW + 600),
    TurnOpened(turn_id="t3", question=SECRET, user=UserMessage("又来"), at=NOW + 5),
    RunResumed(turn_id="t3"),
)
"""One of each kind at least, with all that can be said in a message, and what is left unfinished."""
