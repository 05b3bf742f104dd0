from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from bot.chat.active_conversations import ActiveConversations
from bot.chat.coalescer import Coalescer, message_words, shows_something
from bot.chat.deduplicator import SeenMessages
from bot.chat.lanes import Lanes, Order
from bot.chat.message_log import MessageLog, judged
from bot.chat.question_queue import QuestionQueue
from bot.chat.rate_limiter import RateLimiter
from bot.chat.tasks import Facts, Resume, Task, Work, due_of, person_of
from bot.chat.turn_journal import TurnJournal
from bot.core.events import MessageReceived
from bot.core.journal import MessageObserved, MessageOverheard, MessageTakenUp
from bot.core.segments import Mention, Picture, Segment
from bot.core.server_clock import ServerClock
from bot.memory.history import History
from bot.outbox.delivery import Postbox
from bot.outbox.gestures import Gestures
from bot.policy.wake import NeedsQuoted, Observe, Rules, Silence, Verdict, Wake
from frostagent.types.speech import Quote, Text
from tests.bot.budget.till import unlimited
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import GROUP, RecordingStore, RecordingTransport, SteppedClock, said

BACK, BARE, BEHIND, MOST = 20.0, 30.0, 8.0, 10

PICTURE = (Picture(url="https://x.test/1"),)
BUSY = Resume("t1", {}, None)


def told(message: MessageReceived) -> str:
    return message_words(message) or "[图片]" * shows_something(message)


class Porch:
    """Where lines come in; `asked` is what was begun with, as the texts of each question's lines."""

    def __init__(self, debounce: float) -> None:
        self.clock = clock = SteppedClock()
        self.store = RecordingStore()
        self.history = History(store=self.store)
        self.lanes = Lanes[Work](clock=clock, order=Order(person_of, due_of))
        active_conversations = ActiveConversations(arrive=lambda _: None, clock=clock)
        self.seen = seen = SeenMessages(clock=clock)
        message_log = MessageLog(
            store=self.store, history=self.history, active_conversations=active_conversations, ends=lambda *_: 0.0
        )
        gestures = Gestures(transport=RecordingTransport(), clock=clock)
        outbox, _ = build_outbox(RecordingTransport(), self.store, clock)
        post = Postbox(outbox=outbox, history=self.history, clock=clock)
        self.rate_limiter = RateLimiter(Rules(), unlimited(), post, gestures, clock)
        coalescer = Coalescer(
            lanes=self.lanes,
            message_log=message_log,
            rate_limiter=self.rate_limiter,
            clock=clock,
            debounce=debounce,
        )
        self.questions = QuestionQueue(
            lanes=self.lanes,
            coalescer=coalescer,
            seen=seen,
            server_clock=ServerClock(clock),
            active_conversations=active_conversations,
            rate_limiter=self.rate_limiter,
            message_log=message_log,
            turn_journal=TurnJournal(self.store, self.history, clock, spending=unlimited()),
        )
        self.tasks: list[Task] = []
        self.gate = asyncio.Event()

    async def work(self, work: Work) -> None:
        if isinstance(work, Task):
            self.tasks.append(work)
        else:
            await self.gate.wait()

    def receive(self, message: MessageReceived, verdict: Verdict) -> None:
        facts = Facts(self.clock.now(), Rules(), is_earlier=self.seen.is_earlier(message))
        self.questions.receive(message, verdict, facts)

    def says(self, words: str | tuple[Segment, ...], *, at: bool = True, user: int = 777) -> MessageReceived:
        message = replace(said(words, at=at, user=user), time=self.clock.now())
        if at:
            self.receive(message, Wake("mention"))
        else:
            self.receive(message, Observe())
        return message

    async def asked(self, after: float = 0.0) -> list[list[str]]:
        await self.clock.advance(after)
        return [[told(line) for line in task.said] for task in self.tasks]

    async def busy(self) -> None:
        """The lane is about something else until the gate is open."""
        self.lanes.put(GROUP, BUSY)
        await self.clock.advance(0)

    def overheard(self) -> list[str]:
        taken = self.history.take_overheard(GROUP)
        return [told(message) for message in taken]


@asynccontextmanager
async def porch(debounce: float = 1.2) -> AsyncIterator[Porch]:
    made = Porch(debounce)
    async with asyncio.timeout(30), made.lanes.open(made.work):
        yield made


async def test_a_line_that_looks_finished_begins_at_once() -> None:
    async with porch() as house:
        house.says("明天下雨吗")
        assert await house.asked() == [["明天下雨吗"]]


async def test_lines_of_one_person_are_one_question_until_nothing_more_comes() -> None:
    async with porch() as house:
        house.says("帮我看看")
        assert await house.asked(1.1) == []
        house.says("这个", at=False)
        house.says("我也想知道", at=False, user=5)
        assert await house.asked(1.1) == []
        house.says("为什么会报错？", at=False)
        assert await house.asked(1.1) == []
        assert await house.asked(0.2) == [["帮我看看", "这个", "为什么会报错？"]]
        assert house.overheard() == ["我也想知道"]
        assert [one.overheard for one in house.store.entries if isinstance(one, MessageObserved)] == [0, 0, 1, 0]


async def test_nobody_waits_longer_than_five_seconds_or_for_more_than_ten_lines() -> None:
    async with porch() as house:
        house.says("嗯")
        for _ in range(4):
            assert await house.asked(1.1) == []
            house.says("那个", at=False)
        assert [len(lines) for lines in await house.asked(0.7)] == [5]
        house.says("嗯")
        for _ in range(9):
            house.says("那个", at=False)
        assert len((await house.asked())[1]) == 10


async def test_whoever_wants_it_to_wait_longer_than_that_has_it_wait_so_long() -> None:
    async with porch(debounce=8.0) as house:
        house.says("嗯")
        assert await house.asked(7.9) == []
        assert await house.asked(0.2) == [["嗯"]]


async def test_after_a_picture_he_has_more_time() -> None:
    async with porch() as house:
        house.says((Mention(10001), *PICTURE))
        assert await house.asked(2.4) == []
        assert await house.asked(0.2) == [["[图片]"]]


async def test_a_call_without_words_waits_for_the_next_line_of_the_same_person() -> None:
    async with porch() as house:
        house.says("")
        house.says("我也来", at=False, user=5)
        assert await house.asked(BARE - 1) == []
        house.says("明天下雨吗", at=False)
        assert await house.asked() == [["", "明天下雨吗"]]
        house.says("")
        assert len(await house.asked(BARE - 0.1)) == 1
        assert len(await house.asked(0.2)) == 2


async def test_a_call_without_words_behind_what_it_is_about_waits_all_the_same() -> None:
    async with porch() as house:
        house.says("明天会不会下雨", at=False)
        house.says("")
        assert await house.asked(BARE - 1) == []
        house.says("")
        assert await house.asked(0.9) == []
        assert await house.asked(0.2) == [["明天会不会下雨", "", ""]]
        house.says("周六去香山", at=False)
        house.says("")
        assert len(await house.asked(5)) == 1
        house.says("几点集合？", at=False)
        assert (await house.asked())[1] == ["周六去香山", "", "几点集合？"]


async def test_a_line_that_quotes_his_own_words_goes_on_with_them_and_one_that_quotes_anothers_does_not() -> None:
    async with porch() as house:
        theirs = replace(said("别人的", user=5, at=False), message_id="8")
        house.history.know(theirs)
        mine = house.says("帮我看看")
        house.says((Quote(mine.message_id), Text("北京")), at=False)
        house.says((Quote("8"), Text("是啊")), at=False)
        assert await house.asked(5) == [["帮我看看", "北京"]]


async def test_a_call_that_quotes_is_a_question() -> None:
    async with porch() as house:
        house.says((Mention(10001), Quote("7")))
        assert len(await house.asked()) == 1


async def test_his_last_lines_before_belong_to_a_question_and_nobody_else_reads_them() -> None:
    async with porch() as house:
        for words in ("太早", "一"):
            house.says(words, at=False)
            await house.clock.advance(2)
        house.says("别人的", at=False, user=5)
        house.says((Mention(5), *PICTURE), at=False)
        await house.clock.advance(BACK - 3)
        early, picture = house.says("二", at=False), house.says(PICTURE, at=False)
        house.says("这两个是什么？")
        assert await house.asked() == [["一", "二", "[图片]", "这两个是什么？"]]
        assert [one.message for one in house.store.entries if isinstance(one, MessageTakenUp)][1:] == [early, picture]
        assert house.overheard() == ["太早", "别人的", "[图片]"]


async def test_what_he_said_twenty_seconds_before_belongs_to_it_and_nothing_older() -> None:
    async with porch() as house:
        house.says("太早", at=False)
        await house.clock.advance(0.5)
        house.says("还行", at=False)
        await house.clock.advance(BACK)
        house.says("这个怎么说？")
        assert await house.asked() == [["还行", "这个怎么说？"]]


async def test_three_lines_before_a_question_belong_to_it_at_most() -> None:
    async with porch() as house:
        for words in ("一", "二", "三", "四"):
            house.says(words, at=False)
        house.says("这些是什么？")
        assert await house.asked() == [["二", "三", "四", "这些是什么？"]]
        assert house.overheard() == ["一"]


async def test_questions_of_one_person_that_wait_become_one_and_others_keep_theirs() -> None:
    async with porch() as house:
        await house.busy()
        house.says("第一个问题？")
        house.says("别人的问题？", user=5)
        house.says("第二个问题？")
        house.gate.set()
        assert await house.asked() == [["第一个问题？", "第二个问题？"], ["别人的问题？"]]


async def test_what_he_says_close_behind_a_question_that_waits_goes_with_it() -> None:
    async with porch() as house:
        await house.busy()
        house.says("去北京还是上海？")
        await house.clock.advance(BEHIND)
        house.says("坐高铁", at=False)
        house.says((Mention(5), *PICTURE), at=False)
        await house.clock.advance(BEHIND + 1)
        house.says("哈哈", at=False)
        house.gate.set()
        assert await house.asked() == [["去北京还是上海？", "坐高铁"]]
        assert house.overheard() == ["[图片]", "哈哈"]


async def test_what_was_said_before_a_question_that_waits_does_not_follow_it() -> None:
    async with porch() as house:
        await house.busy()
        missed = replace(said("之前的问题？"), time=house.clock.now())
        await house.clock.advance(5)
        house.says("之后的问题？")
        house.receive(missed, Wake("mention"))
        house.gate.set()
        assert await house.asked() == [["之后的问题？"], ["之前的问题？"]]


async def test_what_comes_again_behind_the_question_it_was_said_before_is_only_overheard() -> None:
    """Within one second, too: a reply is to quote the question."""
    async with porch() as house:
        await house.busy()
        before, question = (
            replace(said(words, at=at), time=house.clock.now(), message_seq=number)
            for words, at, number in (("闲话", False, "9"), ("问题？", True, "10"))
        )
        house.receive(question, Wake("mention"))
        house.receive(before, Observe())
        house.gate.set()
        assert await house.asked() == [["问题？"]]
        assert house.overheard() == ["闲话"]


async def test_a_quote_that_nobody_knows_stands_alone() -> None:
    async with porch() as house:
        await house.busy()
        house.says("第一个问题？")
        house.receive(said((Quote("7"),)), NeedsQuoted("7"))
        house.gate.set()
        assert await house.asked() == [["第一个问题？"], [""]]


async def test_of_very_many_questions_of_one_person_the_oldest_are_overheard_and_told_so() -> None:
    async with porch() as house:
        await house.busy()
        first = house.says("问题0？")
        aside = house.says("顺便", at=False)
        for number in range(1, MOST + 1):
            house.says(f"问题{number}？")
        house.gate.set()
        assert await house.asked() == [[f"问题{number}？" for number in range(1, MOST + 1)]]
        assert [one.message for one in house.store.entries if isinstance(one, MessageOverheard)] == [first, aside]
        assert house.rate_limiter.overflow == 1


async def test_without_debounce_nothing_waits() -> None:
    async with porch(0.0) as house:
        house.says("")
        assert await house.asked() == [[""]]


async def test_while_stopping_nothing_is_gathered() -> None:
    async with porch() as house:
        house.says("一", at=False)
        await house.lanes.finish(within=0)
        house.says("帮我看看")
        assert house.overheard() == ["一"]
        assert await house.asked(9) == []


async def test_a_recalled_line_leaves_its_question_and_what_is_left_is_asked() -> None:
    async with porch() as house:
        house.says("帮我看看")
        line = house.says("这个", at=False)
        [task] = house.lanes.at(GROUP)
        assert isinstance(task, Task)
        left = house.questions.without_recalled(task, line.__eq__)
        assert left is not None
        assert left.said == task.lines
        assert house.questions.without_recalled(left, line.__eq__) is left


async def test_where_nobody_calls_any_more_nothing_is_asked_and_the_rest_leaves_with_it() -> None:
    async with porch() as house:
        house.says("一", at=False)
        call = house.says("帮我看看")
        house.says("这个", at=False)
        [task] = house.lanes.at(GROUP)
        assert isinstance(task, Task)
        assert house.questions.without_recalled(task, call.__eq__) is None
        assert house.overheard() == []
        gone = [one.message for one in house.store.entries if isinstance(one, MessageTakenUp) and one.gone]
        assert gone == [task.lines[0], task.message]


@each_case("weak", [(True, False), (False, True), (True, True)])
async def test_of_questions_that_wait_together_the_strongest_call_counts(weak: tuple[bool, bool]) -> None:
    async with porch() as house:
        await house.busy()
        for is_weak in weak:
            house.receive(said("一个问题？"), Wake("name", weak=is_weak))
        house.gate.set()
        await house.asked()
        assert [task.wake.weak for task in house.tasks] == [all(weak)]


async def test_a_question_that_is_not_answered_belongs_to_no_other_one() -> None:
    async with porch(1.2) as at:
        at.lanes.put(GROUP, BUSY)
        at.says("北京的天气怎么样？")
        late = replace(said("上海的天气怎么样？"), time=at.clock.now())  # found later, in the same second
        verdict = Observe(Silence.LATE)
        at.receive(late, verdict)
        at.gate.set()
        assert await at.asked() == [["北京的天气怎么样？"]]
    assert MessageObserved(late, overheard=True, judged=judged(late, verdict)) in at.store.entries


async def test_a_question_that_was_let_be_is_not_looked_back_at() -> None:
    async with porch(1.2) as at:
        question = replace(said("北京的天气怎么样？"), time=at.clock.now())
        at.receive(question, Observe(Silence.LATE))
        at.says("上海的天气怎么样？")
        assert await at.asked() == [["上海的天气怎么样？"]]
