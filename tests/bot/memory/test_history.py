from __future__ import annotations

from msgspec import structs
from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.journal import ConversationReset, MemberNumbered, MessageErased, Remembered, Round
from bot.core.redaction import OwnWords
from bot.memory.history import MAX_CONVERSATIONS, MAX_KNOWN, MAX_OVERHEARD, History
from bot.memory.speakers import Speakers
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore, said


def add(history: History, text: str, *answer: Message, where: Conversation = GROUP) -> None:
    history.add_round(where, "t1", UserMessage(text), answer or (AssistantMessage("ok"),))


def users(history: History, where: Conversation = GROUP) -> list[str]:
    return [message.text for message in history.messages(where) if isinstance(message, UserMessage)]


# --- rounds ---------------------------------------------------------------------------------------


def test_a_round_is_remembered_as_it_was() -> None:
    history = History(store=RecordingStore())
    call = ToolCall("c0", "echo", '{"text": "a"}')
    answer: list[Message] = [AssistantMessage("", (call,)), ToolMessage("c0", "echo", "<a>"), AssistantMessage("done")]
    first = (UserMessage("one"), *answer)
    history.add_round(GROUP, "t1", UserMessage("one"), answer)
    answer.clear()
    add(history, "two")
    assert history.messages(GROUP) == (*first, UserMessage("two"), AssistantMessage("ok"))


def test_conversations_remember_apart_but_a_temporary_session_is_its_person() -> None:
    history = History(store=RecordingStore())
    add(history, "group")
    add(history, "private", where=structs.replace(PRIVATE, via_group=4242))
    assert users(history, GROUP) == ["group"]
    assert users(history, PRIVATE) == ["private"]
    assert history.messages(Conversation(20002, "group", 4242)) == ()


@each_case(("told", "kept_of_it"), [("a chart", ""), ("a chart of elsewhere", "a chart")])
def test_pictures_and_what_is_not_kept_are_for_their_run_alone(told: str, kept_of_it: str) -> None:
    history = History(store=RecordingStore())
    seen = ToolMessage("c", "look", told, images=("data:image/png;base64,AAAA",), kept=kept_of_it)
    call = AssistantMessage("", (ToolCall("c", "look", "{}"),))
    kept = history.add_round(GROUP, "t1", UserMessage("[图片]", images=("data:image/png;base64,AAAA",)), [call, seen])
    assert kept == (UserMessage("[图片]"), call, ToolMessage("c", "look", "a chart")) == history.messages(GROUP)


async def test_what_is_read_anew_is_what_the_store_has_then() -> None:
    store = RecordingStore()
    history = History(store=store)
    add(history, "secret")
    history.know(said("secret", message_id="7"))
    store.trouble = True
    assert not await history.reread()
    assert users(history) == ["secret"]
    store.trouble, store.remembered[GROUP] = False, Remembered((Round("t0", (UserMessage("kept"),)),))
    assert await history.reread()
    add(history, "of a turn that went on")
    await history.load(GROUP)
    assert (users(history), history.known(GROUP, "7")) == (["kept"], None)


# --- messages -------------------------------------------------------------------------------------


async def test_a_message_is_known_by_its_id_in_its_own_conversation() -> None:
    history, message = History(store=RecordingStore()), said("hi", message_id="7")
    history.know(message)
    assert await history.find(GROUP, "7") is message
    assert await history.find(PRIVATE, "7") is None
    assert await history.find(GROUP, "8") is None


async def test_a_message_without_an_id_is_nobodys() -> None:
    history = History(store=RecordingStore())
    history.know(said("hi", message_id=""))
    assert await history.find(GROUP, "") is None


async def test_an_id_that_comes_again_is_the_newer_message() -> None:
    history, newer = History(store=RecordingStore()), said("new", message_id="7")
    history.know(said("old", message_id="7"))
    history.know(newer)
    assert await history.find(GROUP, "7") is newer


def test_what_was_overheard_is_taken_once_and_in_order() -> None:
    history = History(store=RecordingStore())
    messages = [said(str(number), at=False) for number in range(3)]
    for message in messages:
        history.overhear(message)
    assert history.take_overheard(PRIVATE) == ()
    assert history.take_overheard(GROUP) == tuple(messages)
    assert history.take_overheard(GROUP) == ()


def test_what_was_overheard_is_taken_in_the_order_in_which_it_was_said() -> None:
    history = History(store=RecordingStore())
    live = [said(str(number), at=False) for number in range(3)]
    missed = structs.replace(said("missed", at=False), time=live[0].time - 1)
    for message in (*live, missed):
        history.overhear(message)
    assert history.take_overheard(GROUP) == (missed, *live)


async def test_a_past_that_cannot_be_read_now_is_read_at_the_next_turn() -> None:
    earlier = Round("t0", (UserMessage("earlier"), AssistantMessage("indeed")))
    before, since = said("before", at=False), said("since", at=False)
    store = RecordingStore(remembered={GROUP: Remembered((earlier,), (before,))})
    history, store.trouble = History(store=store), True
    await history.load(GROUP)
    add(history, "in between")
    history.overhear(since)
    assert users(history) == ["in between"]
    store.trouble = False
    await history.load(GROUP)
    assert users(history) == ["earlier", "in between"]
    assert history.take_overheard(GROUP) == (before, since)
    await history.load(GROUP)
    assert store.asked == [GROUP, GROUP]


def test_only_the_latest_of_what_was_overheard_is_kept() -> None:
    history = History(store=RecordingStore())
    messages = [said("x", message_id=str(number)) for number in range(MAX_OVERHEARD + 5)]
    for message in messages:
        history.overhear(message)
    assert history.take_overheard(GROUP) == tuple(messages[5:])


async def test_a_recalled_message_is_forgotten_and_the_others_stay() -> None:
    history = History(store=RecordingStore())
    for message in [said("x", message_id=id_) for id_ in ("1", "2", "3")]:
        history.know(message)
        history.overhear(message)
    for where, id_ in ((GROUP, "2"), (GROUP, "unknown"), (PRIVATE, "1")):
        history.forget_message(where, id_)
    assert await history.find(GROUP, "2") is None
    assert await history.find(GROUP, "1") is not None
    assert [message.message_id for message in history.take_overheard(GROUP)] == ["1", "3"]


HEARD = UserMessage("[群聊记录]\n阿澈#1: 周六去香山吧\n[提问]\n小明#2: 行吗", sources=("7", "8"))
GONE = UserMessage("[群聊记录]\n阿澈#1: [已撤回]\n[提问]\n小明#2: 行吗", sources=("7", "8"))


def test_a_recalled_message_leaves_the_rounds_that_told_it() -> None:
    history = History(store=RecordingStore())
    history.add_round(GROUP, "t1", HEARD, [AssistantMessage("行")])
    add(history, "小红#3: [引用 阿澈#1 的「周六去香山吧」] 啊")
    history.forget_message(GROUP, "7")
    assert history.messages(GROUP)[0] == GONE
    assert users(history)[1] == "小红#3: [引用 阿澈#1 的「[已撤回]」] 啊"


def test_what_is_recalled_while_a_run_goes_on_is_not_in_its_round() -> None:
    history = History(store=RecordingStore())
    history.forget_message(GROUP, "7")
    later = replace(HEARD, text="小明#2: 算了", sources=("9",))
    history.forget_message(GROUP, "9")
    kept = history.add_round(GROUP, "t1", HEARD, [AssistantMessage("行"), later])
    assert kept == (GONE, AssistantMessage("行"), replace(later, text="小明#2: [已撤回]")) == history.messages(GROUP)


def test_the_bots_words_that_were_recalled_before_their_id_was_known_are_in_no_round() -> None:
    store = RecordingStore()
    history = History(store=store)
    history.forget_message(GROUP, "9001")  # QQ recalls it at once: the send has no answer yet
    history.said(GROUP, "9001", OwnWords("t1", "行", final=True))
    assert store.entries == [MessageErased(GROUP, "9001")]  # once more, behind the row that has the id
    assert history.add_round(GROUP, "t1", HEARD, [AssistantMessage("行")])[-1] == AssistantMessage("[已撤回]")
    history.said(GROUP, "9002", OwnWords("t2", "好", final=True))
    assert history.add_round(GROUP, "t2", HEARD, [AssistantMessage("好")])[-1] == AssistantMessage("好")


def test_what_was_recalled_before_a_restart_does_not_keep_another_message_of_the_turn() -> None:
    history = History(store=RecordingStore())
    history.said(GROUP, "9002", OwnWords("t1", "1. 八点半", final=True, earlier=1))
    history.forget_message(GROUP, "9002")
    answer = AssistantMessage("[已撤回]\n- 八点三十分")  # said in another layout
    assert history.add_round(GROUP, "t1", HEARD, [answer])[-1] == AssistantMessage("[已撤回]")


async def test_a_recall_of_what_may_be_in_a_summary_has_the_store_asked_again() -> None:
    store = RecordingStore(remembered={GROUP: Remembered((), summary="周六去香山")})
    history = History(store=store)
    await history.load(GROUP)
    store.remembered[GROUP] = Remembered((Round("t1", (GONE,)),))
    history.overhear(said("x", message_id="6"))
    history.forget_message(GROUP, "6")  # nobody has read it
    await history.load(GROUP)
    assert history.summary(GROUP) == "周六去香山"
    history.forget_message(GROUP, "7")
    store.trouble = True
    await history.load(GROUP)
    assert history.summary(GROUP) == "周六去香山"  # it cannot be asked now
    store.trouble = False
    await history.load(GROUP)
    assert (history.summary(GROUP), users(history)) == ("", [GONE.text])


async def test_a_round_that_quotes_what_a_summary_holds_does_not_save_the_summary() -> None:
    quoting = UserMessage("[提问]\n小明#2: [引用 阿澈#1 的「周六去香山」] 行吗", sources=("8",), quotes=(("8", "7"),))
    store = RecordingStore(remembered={GROUP: Remembered((Round("t1", (quoting,)),), summary="周六去香山")})
    history = History(store=store)
    await history.load(GROUP)
    after = replace(quoting, text="[提问]\n小明#2: [引用 阿澈#1 的「[已撤回]」] 行吗")
    store.remembered[GROUP] = Remembered((Round("t1", (after,)),))
    history.forget_message(GROUP, "7")
    assert users(history) == [after.text]
    await history.load(GROUP)
    assert history.summary(GROUP) == ""


async def test_the_memory_is_bounded_in_conversations_and_in_messages() -> None:
    history = History(store=RecordingStore())
    for number in range(MAX_CONVERSATIONS + 1):
        add(history, "hi", where=Conversation(BOT, "private", number))
    assert history.messages(Conversation(BOT, "private", 0)) == ()
    assert history.messages(Conversation(BOT, "private", MAX_CONVERSATIONS)) != ()
    for number in range(MAX_KNOWN + 1):
        history.know(said("hi", message_id=str(number + 1)))
    assert await history.find(GROUP, "1") is None
    assert await history.find(GROUP, str(MAX_KNOWN + 1)) is not None


def test_a_conversation_in_use_is_not_the_one_that_is_forgotten() -> None:
    history = History(store=RecordingStore())
    add(history, "hi")
    for number in range(MAX_CONVERSATIONS - 1):
        add(history, "hi", where=Conversation(BOT, "private", number))
    assert users(history) == ["hi"]
    add(history, "hi", where=Conversation(BOT, "private", MAX_CONVERSATIONS))
    assert users(history) == ["hi"]
    assert history.messages(Conversation(BOT, "private", 0)) == ()


async def test_whoever_has_a_number_is_known_before_a_round_is_told() -> None:
    store = RecordingStore()
    numbered = MemberNumbered(conversation=GROUP, number=7, user_id=777)
    store.remembered[GROUP] = Remembered((Round("t0", (UserMessage("kept"),)),), members=(numbered,))
    speakers = Speakers(store=store)

    def told(where: Conversation, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return (UserMessage(f"{speakers.number(where, 777)}"), *messages[1:])

    history = History(store=store, told=told, speakers=speakers)
    await history.load(GROUP)
    assert users(history) == ["7"]
    speakers.forget()  # there were too many conversations meanwhile
    await history.load(GROUP)
    assert speakers.number(GROUP, 777) == 7
    assert await history.reread()
    assert GROUP not in speakers


async def test_a_round_that_ends_after_all_was_let_go_while_its_conversation_was_read_is_told_next() -> None:
    """A reset elsewhere, just then: the next window passed over that round, which no prompt had told."""

    class Interrupted(RecordingStore):
        async def remember(self, conversation: Conversation) -> Remembered | None:
            if not self.entries:
                self.put(ConversationReset(PRIVATE))
                assert await history.reread()
            return await super().remember(conversation)

    store = Interrupted()
    store.remembered[GROUP] = Remembered((Round("t0", (UserMessage("first"),)),))
    history = History(store=store)
    await history.load(GROUP)
    round_ = history.add_round(GROUP, "t1", UserMessage("second"), [AssistantMessage("said")])
    store.remembered[GROUP] = Remembered((Round("t0", (UserMessage("first"),)), Round("t1", round_)))
    await history.load(GROUP)
    assert users(history) == ["first", "second"]


async def test_what_is_too_much_to_keep_of_the_talk_is_counted_before_and_after_a_restart() -> None:
    store = RecordingStore()
    history = History(store=store)
    for number in range(MAX_OVERHEARD + 5):
        history.overhear(said("x", message_id=str(number)))
    assert history.unread(GROUP).missed == 5
    history.take_overheard(GROUP)
    assert history.unread(GROUP).missed == 0
    stored = tuple(said("x", message_id=f"s{number}") for number in range(MAX_OVERHEARD))
    store.remembered[GROUP] = Remembered(overheard=stored, missed=7)
    again = History(store=store)
    again.overhear(said("y", message_id="new"))
    await again.load(GROUP)
    assert again.unread(GROUP).missed == 8
    assert [message.message_id for message in again.take_overheard(GROUP)][-1] == "new"


def test_where_members_have_runs_of_their_own_each_reads_on_until_a_round_tells_it() -> None:
    history = History(store=RecordingStore(), by_member=True)
    line = said("x", at=False, message_id="1")
    history.overhear(line)
    assert [history.take_overheard(GROUP, reader) for reader in (5, 5, 6)] == [(line,), (), (line,)]
    history.add_round(GROUP, "t1", UserMessage("x", sources=("1",)), [AssistantMessage("ok")])
    assert history.take_overheard(GROUP, 7) == ()
