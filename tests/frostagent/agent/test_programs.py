"""Real programs, none of them a shell: Python itself, printf, sleep."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from frostagent.engine.tool_execution import unavailable_reason
from frostagent.engine.toolset import Toolset
from frostagent.programs import FLOOD, command_tool
from frostagent.types.hooks import Change, Hook
from frostagent.types.results import ToolResult
from frostagent.types.tools import Tool
from frostagent.types.traits import SideEffects, ToolType
from tests.cases import each_case
from tests.fakes import ManualClock

TEXT = {"type": "string", "description": "A text."}
ECHO = "import json, sys; print(json.dumps(sys.argv[1:], ensure_ascii=False))"


def python(code: str, *words: str, parameters: Mapping[str, Any] | None = None, **declared: Any) -> Tool:
    """A tool that runs this code with these words."""
    argv = [sys.executable, "-c", code.replace("{", "{{").replace("}", "}}"), *words]
    return command_tool("run_it", "Runs it.", argv, {"properties": parameters or {}}, **declared)


def is_there(path: str) -> bool:
    return Path(path).exists()


async def call(tool: Tool, **arguments: Any) -> ToolResult:
    """As the engine would."""
    return await Toolset([tool], clock=ManualClock()).execute(tool.name, arguments)


async def echoed(*words: str, parameters: Mapping[str, Any], given: Mapping[str, Any], **declared: Any) -> list[str]:
    result = await call(python(ECHO, *words, parameters=parameters, **declared), **given)
    assert not result.is_error, result.content
    return list(json.loads(result.content))


# --- words ----------------------------------------------------------------------------------------


async def test_an_argument_goes_into_its_place_as_one_word_and_nothing_is_expanded() -> None:
    text = "a b; $HOME `id` * \"'\n好"
    assert await echoed("--find={text}!", "{text}", parameters={"text": TEXT}, given={"text": text}) == [
        f"--find={text}!",
        text,
    ]


async def test_a_list_becomes_several_words() -> None:
    files = {"type": "array", "items": {"type": "string"}, "description": "Files."}
    words = await echoed("--in={files}", "end", parameters={"files": files}, given={"files": ["a b", "c"]})
    assert words == ["--in=a b", "--in=c", "end"]


async def test_a_word_whose_argument_was_left_out_is_left_out_and_defaults_are_put_in() -> None:
    parameters = {"page": {"type": "integer"}, "size": {"type": "integer", "default": 20}}
    argv = [sys.executable, "-c", ECHO, "--page={page}", "--size={size}"]
    tool = command_tool("list_it", "Lists.", argv, {"properties": parameters, "required": []})
    assert json.loads((await call(tool)).content) == ["--size=20"]
    assert json.loads((await call(tool, page="3")).content) == ["--page=3", "--size=20"]


async def test_numbers_switches_and_objects_are_written_as_json_has_them() -> None:
    parameters = {"n": {"type": "number"}, "on": {"type": "boolean"}, "o": {"type": "object"}}
    given = {"n": 2.5, "on": True, "o": {"城": 1}}
    assert await echoed("{n}", "{on}", "{o}", parameters=parameters, given=given) == ["2.5", "true", '{"城": 1}']


async def test_braces_are_doubled_to_stand_for_themselves() -> None:
    assert await echoed("{{{text}}}", parameters={"text": TEXT}, given={"text": "x"}) == ["{x}"]


@each_case("given", ["-x", "--output=/etc/passwd", "-1"])
async def test_a_value_that_looks_like_an_option_is_refused(given: str) -> None:
    result = await call(python(ECHO, "{text}", parameters={"text": TEXT}), text=given)
    assert result.content == "error: text: must not begin with - [TOOL_INVALID_ARGUMENTS]"
    assert result.details["fields"] == ["text: must not begin with -"]


async def test_an_item_of_a_list_or_a_number_that_looks_like_an_option_is_refused_too() -> None:
    parameters = {"many": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}}
    result = await call(python(ECHO, "{many}", "{n}", parameters=parameters), many=["a", "-b"], n=-1)
    assert result.details["fields"] == ["many: must not begin with -", "n: must not begin with -"]


async def test_a_value_may_begin_with_a_dash_where_the_tool_allows_it() -> None:
    words = await echoed("{n}", parameters={"n": {"type": "integer"}}, given={"n": -1}, allow_dash=("n",))
    assert words == ["-1"]


@each_case(("given", "why"), [("a\0b", "text: must not hold a NUL"), ("half \ud800", "half of a character")])
async def test_text_no_program_can_be_given_is_refused(given: str, why: str) -> None:
    result = await call(python(ECHO, "{text}", parameters={"text": TEXT}), text=given)
    assert result.is_error
    assert why in result.content


async def test_the_own_check_of_a_tool_counts_as_well() -> None:
    def refuse(_context: object, arguments: Mapping[str, Any]) -> None:
        raise ValueError(f"not {arguments['text']}")

    result = await call(python(ECHO, "{text}", parameters={"text": TEXT}, check=refuse), text="this")
    assert result.content == "error: not this [TOOL_INVALID_ARGUMENTS]"


@each_case(
    ("argv", "properties", "said"),
    [
        ([], {}, "a list of words"),
        ("ls -l", {}, "a list of words"),
        (["{program}"], {"program": TEXT}, "never an argument"),
        ([""], {}, "never an argument"),
        (["./run"], {}, "absolute path"),
        (["ls", "{what}"], {}, "what: stands in"),
        (["ls"], {"what": TEXT}, "what: stands in"),
        (["ls", "{what!r}"], {"what": TEXT}, "a place is written"),
        (["ls", "{}"], {}, "a place is written"),
        (["ls", "{what"], {"what": TEXT}, "expected '}'"),
    ],
)
def test_an_argv_that_cannot_be_meant_is_refused_at_once(argv: Any, properties: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        command_tool("list_it", "Lists.", argv, {"properties": properties})


def test_only_a_parameter_may_be_allowed_a_dash() -> None:
    with pytest.raises(ValueError, match="is no parameter"):
        command_tool("list_it", "Lists.", ["ls"], allow_dash=("what",))


def test_it_is_a_tool_of_its_own_type_with_all_a_tool_declares() -> None:
    tool = python(ECHO, "{text}", parameters={"text": TEXT}, side_effects="read", idempotent=True, timeout=5)
    assert tool.type is ToolType.CLI
    assert (tool.side_effects, tool.idempotent, tool.timeout) == (SideEffects.READ, True, 5)
    assert tool.parameters["required"] == ["text"]


# --- what comes back ------------------------------------------------------------------------------


async def test_standard_output_and_standard_error_come_back_in_one_in_their_order() -> None:
    code = "import os; os.write(1, b'one '); os.write(2, b'two '); os.write(1, b'three')"
    result = await call(python(code))
    assert result.content == "one two three"
    assert result.details == {"exit_code": 0}


async def test_a_program_that_writes_nothing_has_no_output() -> None:
    assert (await call(python("pass"))).content == "(no output)"


async def test_another_exit_code_is_an_error_with_output_and_code() -> None:
    result = await call(python("print('no such thing'); raise SystemExit(3)"))
    assert result.is_error
    assert result.content == f"error: {sys.executable} ended with exit code 3\nno such thing [TOOL_EXECUTION_FAILED]"
    assert result.details == {"exit_code": 3}


async def test_exit_codes_may_be_declared_fine() -> None:
    result = await call(python("raise SystemExit(1)", ok_exit_codes=(0, 1)))
    assert (result.is_error, result.details) == (False, {"exit_code": 1})


async def test_a_program_that_a_signal_ended_says_which() -> None:
    result = await call(python("import os; os.kill(os.getpid(), 15)"))
    assert "was ended by SIGTERM" in result.content


async def test_of_a_long_output_the_head_and_the_tail_are_kept() -> None:
    result = await call(python("print('a' * 1000 + 'b' * 100_000 + 'c' * 99)", max_output=400))
    assert result.content == "a" * 300 + f"\n[... {1000 + 100_000 + 99 + 1 - 400} bytes cut ...]\n" + "c" * 99 + "\n"


async def test_a_program_that_never_stops_writing_is_ended() -> None:
    result = await call(python("while True: print('x' * 65_536)", max_output=40))
    assert result.is_error
    assert f"wrote more than {FLOOD // 2**20} MiB" in result.content


async def test_bytes_that_are_no_text_are_marked() -> None:
    assert (await call(python("import os; os.write(1, b'\\xff\\xfe.')"))).content == "\ufffd\ufffd."


async def test_nobody_waits_for_what_is_typed() -> None:
    assert (await call(python("import sys; print(repr(sys.stdin.read()))"))).content == "''\n"


# --- its world ------------------------------------------------------------------------------------


async def test_it_sees_path_language_and_a_home_of_its_own_and_no_secret_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-secret")
    code = "import json, os; print(json.dumps(dict(os.environ, CWD=os.getcwd())))"
    seen = json.loads((await call(python(code, environment={"UNITS": "metric"}))).content)
    seen.pop("LC_CTYPE", None)  # Python's own
    assert seen.keys() == {"PATH", "LANG", "HOME", "UNITS", "CWD"}
    assert seen["PATH"] == os.environ["PATH"]
    assert (seen["LANG"], seen["UNITS"]) == ("C.UTF-8", "metric")
    assert seen["CWD"] == seen["HOME"] != os.environ.get("HOME")
    assert not is_there(seen["HOME"])


async def test_it_may_run_in_a_folder_that_is_named(tmp_path: Path) -> None:
    result = await call(python("import os; print(os.getcwd(), end='')", cwd=tmp_path))
    assert result.content == str(tmp_path)


async def test_a_program_is_looked_up_in_path_and_run_by_its_absolute_path() -> None:
    tool = command_tool("print_it", "Prints.", ["printf", "%s", "{text}"], {"properties": {"text": TEXT}})
    assert unavailable_reason(tool) == ""
    assert (await call(tool, text="100%\\n")).content == "100%\\n"


async def test_a_missing_program_makes_the_tool_unavailable_and_says_which() -> None:
    tool = command_tool("draw_it", "Draws.", ["no-such-program", "-x"])
    (status,) = Toolset([tool], clock=ManualClock()).check_availability()
    assert (status.available, status.type) == (False, ToolType.CLI)
    assert status.reason == "needs the program no-such-program, which is not in PATH"
    assert Toolset([tool], clock=ManualClock()).definitions() == ()
    result = await call(tool)
    assert result.content.endswith("which is not in PATH. Do without it. [TOOL_UNAVAILABLE]")


async def test_a_missing_folder_makes_the_tool_unavailable_and_says_which(tmp_path: Path) -> None:
    tool = command_tool("list_it", "Lists.", ["ls"], cwd=tmp_path / "notes")
    assert unavailable_reason(tool) == f"needs the folder {tmp_path / 'notes'}, which is not there"
    assert (await call(tool)).content.endswith("which is not there. Do without it. [TOOL_UNAVAILABLE]")


async def test_a_program_that_cannot_be_started_is_an_error_result(tmp_path: Path) -> None:
    file = tmp_path / "broken"
    file.write_text("neither a script nor a program")
    file.chmod(stat.S_IRWXU)
    result = await call(command_tool("break_it", "Breaks.", [str(file)]))
    assert result.content.endswith("could not be started (Exec format error). Do without it. [TOOL_EXECUTION_FAILED]")
    assert unavailable_reason(command_tool("break_it", "Breaks.", [str(tmp_path / "gone")])).endswith(
        "which is not there"
    )


# --- its end --------------------------------------------------------------------------------------

FAMILY = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}\\n")
"""


def read_pids(file: Path) -> list[int]:
    """The process and its child; none until both are there."""
    text = file.read_text() if file.exists() else ""
    return [int(pid) for pid in text.split()] if text.endswith("\n") else []


async def family(file: Path) -> list[int]:
    """The process and its child, once they are there."""
    async with asyncio.timeout(30):
        while not (pids := read_pids(file)):  # noqa: ASYNC110  # another process writes it
            await asyncio.sleep(0.01)
    return pids


def is_alive(pid: int) -> bool:
    """Whether it runs; a zombie that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def all_end(pids: list[int]) -> None:
    async with asyncio.timeout(30):
        while any(map(is_alive, pids)):  # noqa: ASYNC110  # processes of others tell nobody
            await asyncio.sleep(0.01)


async def test_the_deadline_ends_the_program_and_its_children(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    code = FAMILY + "child.wait()"
    result = await call(python(code, "{file}", parameters={"file": TEXT}, timeout=1.5), file=str(file))
    assert result.content.startswith("error: run_it timed out after 1.5 s")
    await all_end(await family(file))


async def test_a_cancellation_ends_the_program_and_its_children(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    tool = python(FAMILY + "child.wait()", "{file}", parameters={"file": TEXT})
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call(tool, file=str(file)))
        pids = await family(file)
        task.cancel()
    assert task.cancelled()
    await all_end(pids)


async def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    async with asyncio.timeout(30):
        result = await call(python(FAMILY + "print('done')", "{file}", parameters={"file": TEXT}), file=str(file))
    assert result.content == "done\n"
    await all_end(await family(file))


async def test_who_left_the_group_holds_nobody_up(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    code = FAMILY.replace('"600"]', '"600"], start_new_session=True') + "print('done')"
    try:
        async with asyncio.timeout(30):
            result = await call(python(code, "{file}", parameters={"file": TEXT}), file=str(file))
        assert result.content == "done\n"
    finally:
        os.kill((await family(file))[1], 9)


async def test_of_a_long_output_the_program_alone_says_how_much_was_cut() -> None:
    result = await call(python("print('x' * 20_000); raise SystemExit(3)"))
    assert result.content.count("cut ...]") == 1
    assert f"[... {20_001 - 7500} bytes cut ...]" in result.content


async def test_what_a_hook_puts_in_place_of_the_arguments_is_looked_at_as_they_were() -> None:
    tool = python(ECHO, "{text}", parameters={"text": TEXT})
    toolset = Toolset([tool], clock=ManualClock(), hooks=[Hook(before_call=lambda _: Change({"text": "-x"}))])
    result = await toolset.execute(tool.name, {"text": "fine"})
    assert result.content == "error: text: must not begin with - [TOOL_INVALID_ARGUMENTS]"
