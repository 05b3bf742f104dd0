"""`use_subagent`: asks a named subagent, such as Coder. Long code in its answer is sent to the chat
as files.

Every OneBot server accepts a file segment, in groups and in private (`onebot.md` 4.4), and QQ shows
its name. Files are in base64, whatever MEDIA_SEND says, because they are not needed later. If QQ
refuses a file, the model gives the code as text. It reads the whole answer in any case: the next
question may be about it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from msgspec.structs import replace

from bot.core.errors import AlreadySaid
from frostagent.types.errors import InvalidArguments, ToolError
from frostagent.types.ports import Speaker, Subagents
from frostagent.types.results import ToolResult
from frostagent.types.speech import Attachment, Confirmed, Drafted, Queued, Refused, Unknown
from frostagent.types.tools import ToolContext, tool

MUCH = 1500  # characters of code that are too much for a chat
SNIPPET = 3  # lines of code that belong to the text around them, such as a command
MAX_FILES = 5  # per answer: more become one file with the whole answer
WHOLE = 7000  # characters of an answer that reach the model uncut

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*([^`\n]*)")
NAME = re.compile(r"([\w-][\w.-]{0,60}\.([A-Za-z][A-Za-z0-9]{0,7}))(?![\w./\\-])")
EXTENSIONS = {
    "bash": "sh", "c": "c", "c#": "cs", "c++": "cpp", "cpp": "cpp", "csharp": "cs", "css": "css",
    "dart": "dart", "go": "go", "golang": "go", "html": "html", "ini": "ini", "java": "java",
    "javascript": "js", "js": "js", "json": "json", "jsx": "jsx", "kotlin": "kt", "lua": "lua",
    "markdown": "md", "md": "md", "perl": "pl", "php": "php", "powershell": "ps1", "py": "py",
    "python": "py", "python3": "py", "r": "r", "rb": "rb", "ruby": "rb", "rs": "rs", "rust": "rs",
    "scala": "scala", "scss": "scss", "sh": "sh", "shell": "sh", "sql": "sql", "swift": "swift",
    "toml": "toml", "ts": "ts", "tsx": "tsx", "typescript": "ts", "vue": "vue", "xml": "xml",
    "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
ENDINGS = frozenset(
    {*EXTENSIONS.values(), "bat", "cc", "csv", "h", "hpp", "ipynb", "mjs", "svg", "txt", "yml"}
)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block: the text after the fence, the code, and the last line before it."""

    info: str
    code: str
    before: str


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A text to send as a file."""

    name: str
    text: str

    @property
    def said(self) -> str:
        return f"{self.name} ({self.text.count(chr(10))} lines)"


@tool(needs=(Subagents,), timeout=180, side_effects="none", trusted_result=True, stays_here=True)
async def use_subagent(context: ToolContext, subagent_name: str, content: str) -> ToolResult:
    """Hand a task to a named subagent and get its answer. "Coder" writes and explains code.

    It may take a while; who asked is told so by itself, so do not announce it. The subagent sees
    nothing of this conversation, so put all it needs into content. Long code in its answer is sent
    to the chat as a file by itself, and the result says so; pass the essence of the rest on, short
    code unchanged.

    Args:
        subagent_name: The name of the subagent, as "Coder".
        content: The whole task, with any code it is about.
    """
    if not content.strip():
        raise InvalidArguments("content: the task is empty", fields=("content: empty",))
    answer = await context.port(Subagents).ask(context, subagent_name, content)
    files = files_in(answer.content, subagent_name)
    if not files or Speaker not in context.ports:
        return answer
    sent = await send(context.port(Speaker), files)
    return replace(answer, content=f"{sent}\n\n{answer.content}")


async def send(speaker: Speaker, files: Sequence[CodeFile]) -> str:
    """Send the files to the chat; returns the outcome as text for the model."""
    attachments = tuple(Attachment("file", source_of(file), file.name) for file in files)
    try:
        receipts = await speaker.say(attachments)
    except AlreadySaid:
        return (
            "(Its code was sent to the chat as a file before. Do not send it again; say that it is "
            "there.)"
        )
    except ToolError as error:
        return f"(Its code could not be sent as a file: {error}. Give it in words.)"
    sent: list[str] = []
    for file, receipt in zip(files, receipts, strict=False):
        match receipt:
            case Confirmed() | Unknown() | Queued() | Drafted():
                sent.append(file.said)
            case Refused():
                break
            case _:
                assert_never(receipt)
    missing = ", ".join(file.said for file in files[len(sent) :])
    if not sent:
        return f"(QQ did not take {missing} as a file. Give it in words.)"
    certain = len(receipts) == len(sent) and all(
        isinstance(receipt, Confirmed) for receipt in receipts
    )
    told = (
        "Sent to the chat as a file: "
        f"{', '.join(sent)}{'' if certain else ' (it may arrive later)'}."
    )
    rest = f" Not delivered: {missing}; give that in words." if missing else ""
    return (
        f"({told} Do not repeat it in your answer, nor send it again; say what it is and how it is "
        f"used.{rest})"
    )


def source_of(file: CodeFile) -> str:
    return "base64://" + base64.b64encode(file.text.encode("utf-8", "replace")).decode("ascii")


# --- files ----------------------------------------------------------------------------------------


def files_in(answer: str, name: str) -> tuple[CodeFile, ...]:
    """The files for an answer that is too long for a chat: long code, several pieces, or more than
    the model reads. `name` is the subagent's.
    """
    blocks = [block for block in blocks_of(answer) if block.code.count("\n") > SNIPPET]
    if len(blocks) > 1 or sum(len(block.code) for block in blocks) > MUCH:
        if len(blocks) <= MAX_FILES:
            return tuple(named(blocks))
    elif len(answer) <= WHOLE:
        return ()
    stem = re.sub(r"\W+", "", name).lower()[:32] or "answer"
    return (CodeFile(f"{stem}.md", f"{answer.strip()}\n"),)


def blocks_of(text: str) -> Iterator[CodeBlock]:
    """The fenced blocks of a Markdown text (CommonMark); an unclosed one runs to the end."""
    fence, info, before, last = "", "", "", ""
    code: list[str] = []
    for line in text.splitlines():
        found = FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                yield CodeBlock(info, "\n".join(code) + "\n", before)
                fence, last = "", ""
            else:
                code.append(line)
        elif found:
            fence, info, before, code = found[1], found[2].strip(), last, []
        elif line.strip():
            last = line
    if fence and code:
        yield CodeBlock(info, "\n".join(code) + "\n", before)


def named(blocks: Sequence[CodeBlock]) -> Iterator[CodeFile]:
    """The blocks as files with unique names."""
    taken: set[str] = set()
    for block in blocks:
        name = name_of(block)
        stem, _, extension = name.rpartition(".")
        number = 2
        while name.casefold() in taken:
            name, number = f"{stem}{number}.{extension}", number + 1
        taken.add(name.casefold())
        yield CodeFile(name, block.code)


def name_of(block: CodeBlock) -> str:
    """The file's name: after the fence, in a comment at the top, or before the block."""
    language, _, rest = block.info.partition(" ")
    first = block.code.partition("\n")[0].strip()
    remark = (
        first
        if first.startswith(("#", "//", "--", "/*", "<!--", ";", "%")) and len(first) < 100
        else ""
    )
    for place in (rest, language.partition(":")[2], remark, block.before):
        for found in NAME.finditer(place):
            if found[2].lower() in ENDINGS:  # else it is not a file: numpy.array, example.com
                return found[1]
    word = re.split(r"[^\w+#]", language.lower(), maxsplit=1)[0]
    return f"code.{EXTENSIONS.get(word, 'txt')}"
