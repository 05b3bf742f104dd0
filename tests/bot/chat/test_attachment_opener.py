from __future__ import annotations

import pytest

from bot.chat.attachment_opener import AttachmentOpener
from bot.chat.context_builder import PromptContext
from bot.chat.perception import NO_SENSES, Forwards, Senses
from bot.core.conversation import Conversation
from bot.core.documents import NEEDS_LIBRARIES, PLAIN, Document
from bot.core.events import Role
from bot.core.ports import Seen
from bot.core.segments import File, Forward, Picture, Record, Segment
from bot.memory.history import History
from frostagent.types.errors import InvalidArguments, Lack, MediaError, ToolDenied, ToolUnavailable
from frostagent.types.results import Image
from frostagent.types.speech import Text
from frostagent.types.traits import Audience
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore, RecordingTransport, said

OWNER = 999
BOOK = (*(f"第{n}页说的是别的事情，为了把篇幅拉长，和问题无关。" * 3 for n in range(200)), "# 价格", "桂花糕每份十二元")


class All:
    """Every sense at once: what is called bad cannot be had."""

    async def see(self, account: int, image: Picture) -> Seen:
        if image.file == "bad":
            raise MediaError("a secret path", Lack.EXPIRED)
        return Seen(words="一只猫") if image.file == "cat" else Seen(f"data:image/jpeg;base64,{image.file}")

    async def hear(self, account: int, record: Record) -> str:
        return "明天去吗"

    async def read(self, conversation: Conversation, file: File) -> Document:
        if file.name == "big.log":
            raise MediaError("a secret path", Lack.TOO_LARGE)
        if file.name == "bare.pdf":
            raise MediaError("a secret path", Lack.NOT_INSTALLED)
        if file.name == "书.pdf":
            return Document(kind="PDF, 9 pages", title="书", author="老王", paragraphs=BOOK)
        return Document(kind=PLAIN, paragraphs=("第一行\n小明#2: 第二行",), is_cut=file.name == "cut.txt")


class House:
    """A conversation in which somebody showed these, and who opens them."""

    def __init__(self, *segments: Segment, user: int = 5, role: Role = "member", senses: bool = True) -> None:
        self.transport = RecordingTransport()
        history = History(store=RecordingStore())
        things = history.things
        things.learn(GROUP, ())
        things.learn(PRIVATE, ())
        prompt_context = PromptContext(history=history, speakers=history.speakers)
        everything = Senses(All(), All(), All()) if senses else NO_SENSES
        forwards = Forwards(self.transport)
        self.looks = AttachmentOpener(
            prompt_context=prompt_context, forwards=forwards, senses=everything, owners={OWNER}
        )
        things.named(said(segments, user=user, name="小红", role=role, message_id="500", at=False))

    async def text(self, handle: str) -> str:
        """What a model reads of it, without who sent it."""
        result = await self.looks.look(GROUP, handle, run_id="r1")
        assert result.sources == ("500",)
        return result.content.partition(": ")[2]


async def test_each_kind_of_thing_is_opened_by_its_short_name_as_a_line_of_its_sender() -> None:
    house = House(Picture("dot"), Record("v", seconds=12), File("作业.txt", "f", size=1229))
    result = await house.looks.look(GROUP, "i1", run_id="r1")
    assert (result.content.partition(": ")[2], result.images) == ("[图片 i1]", (Image("data:image/jpeg;base64,dot"),))
    assert result.content.startswith("小红")
    assert await house.text("v2") == "[语音 v2 12s]\n  明天去吗"
    assert await house.text("[文件 a3]") == "[文件 a3 作业.txt 1.2 KB]\n  第一行\n  小明#2: 第二行"


async def test_a_document_says_what_it_is_and_its_lines_pass_for_no_field() -> None:
    house = House(File("书.pdf", "f"))
    result = await house.looks.look(GROUP, "a1", run_id="r1", about="桂花糕多少钱")
    lines = result.content.partition(": ")[2].splitlines()
    assert lines == [
        "[文件 a1 书.pdf]",
        "  title: 书",
        "  author: 老王",
        "  shown: passages about '桂花糕多少钱' (PDF, 9 pages)",
        "  text:",
        "    …",
        "    # 价格",
        "    桂花糕每份十二元",
    ]
    assert result.sources == ("500",)


async def test_a_long_document_comes_in_parts_and_there_is_no_part_behind_the_last() -> None:
    house = House(File("书.pdf", "f"))
    first = await house.looks.look(GROUP, "a1", run_id="r1")
    number = int(first.content.partition("shown: part 1 of ")[2].split()[0])
    last = await house.looks.look(GROUP, "a1", run_id="r1", part=number)
    assert "桂花糕" not in first.content
    assert last.content.endswith("\n    桂花糕每份十二元")
    for part in (number + 1, 0, -1):
        with pytest.raises(InvalidArguments, match=f"only {number}"):
            await house.looks.look(GROUP, "a1", run_id="r1", part=part)


async def test_without_the_library_it_says_so_in_the_words_that_why_knows() -> None:
    house = House(File("bare.pdf", "f"))
    with pytest.raises(ToolUnavailable) as raised:
        await house.looks.look(GROUP, "a1", run_id="r1")
    assert str(raised.value) == f"{NEEDS_LIBRARIES} [文件 没有安装读 PDF 和电子书的库]"


async def test_a_text_that_is_not_all_there_says_so() -> None:
    assert "(text; the document says more than is kept)" in await House(File("cut.txt", "f")).text("a1")


async def test_a_model_that_is_blind_reads_what_a_picture_shows() -> None:
    assert await House(Picture("cat")).text("i1") == "[图片 i1]\n  一只猫"


async def test_what_is_inside_a_forward_can_be_opened_in_turn_and_goes_deeper() -> None:
    house = House(Forward("f1"))
    inner = said((Text("看"), Forward("", '[{"a":1}]')), user=7, name="小华", message_id="1")
    house.transport.forwards["f1"] = (inner, said((Picture("dot"),), user=7, name="小华", message_id="1"))
    house.transport.forwards[""] = (said("深", user=8, name="小刚", message_id="1"),)
    lines = (await house.text("f1")).splitlines()
    assert lines[:2] == ["[转发 f1]", "[转发内容]"]
    assert [line.partition(": ")[2] for line in lines[2:]] == ["看[转发 f2]", "深", "[图片 i3]"]
    assert [len(line) - len(line.lstrip()) for line in lines[2:]] == [2, 4, 2]
    inside = await house.looks.look(GROUP, "i3", run_id="r1")
    assert (inside.content, inside.authority) == ("[转发内容]\n  [图片 i3]", Audience.EVERYONE)


async def test_what_cannot_be_had_is_named_and_no_error_is_told() -> None:
    house = House(Picture("bad"), File("big.log", size=5 * 2**20), Forward("gone"))
    assert await house.text("i1") == "[图片 i1]\n  [图片 已过期]"
    assert await house.text("a2") == "[文件 a2 big.log 5.0 MB]\n  [文件 太大]"
    assert await house.text("f3") == "[转发 f3]\n  [转发 已过期]"
    without = House(Picture("dot"), Record("v"), File("x"), senses=False)
    assert await without.text("i1") == "[图片 i1]\n  [图片 取不到]"
    assert await without.text("v2") == "[语音 v2]\n  [语音 取不到]"
    assert await without.text("a3") == "[文件 a3 x]\n  [文件 取不到]"


@each_case(
    ("segment", "user", "role", "authority"),
    [
        (Picture("dot"), OWNER, "member", Audience.OWNER),
        (Picture("dot"), 5, "admin", Audience.GROUP_ADMIN),
        (Picture("dot"), 5, "member", Audience.EVERYONE),
        (Forward("f1"), OWNER, "member", Audience.EVERYONE),
    ],
)
async def test_what_is_opened_has_the_authority_of_whoever_sent_it(
    segment: Segment, user: int, role: Role, authority: Audience
) -> None:
    house = House(segment, user=user, role=role)
    house.transport.forwards["f1"] = (said("wipe it", user=OWNER),)
    handle = "f1" if isinstance(segment, Forward) else "i1"
    assert (await house.looks.look(GROUP, handle, run_id="r1")).authority is authority


async def test_of_another_conversation_nothing_is_opened() -> None:
    house = House(Picture("dot"))
    elsewhere = Conversation(BOT + 1, "group", GROUP.session_id)  # another account in the same group
    places = (elsewhere, PRIVATE, Conversation(BOT, "group", 5555))
    for where, handle in (*((place, "i1") for place in places), (GROUP, "i2"), (GROUP, "cat")):
        with pytest.raises(InvalidArguments, match="nothing here is called"):
            await house.looks.look(where, handle, run_id="r1")


async def test_a_run_looks_at_six_things_and_the_next_run_may_again() -> None:
    house = House(Picture("dot"))
    for _ in range(6):
        await house.looks.look(GROUP, "i1", run_id="r1")
    with pytest.raises(ToolDenied, match="looked at 6 things"):
        await house.looks.look(GROUP, "i1", run_id="r1")
    await house.looks.look(GROUP, "i1", run_id="r2")
