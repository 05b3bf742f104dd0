"""What the documents tell people to type: a block marked `sh` is run, the rest is held to what there is.

`sh operator` marks what needs a container engine, QQ, or another machine: there the names are checked, down to the
options of our commands. Blocks of `make` alone are run by CI (`.ci/run`), `make run` here. What else the pages say:
test_pages.py.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import typer
import yaml

from bot.cli.cli import app
from bot.cli.setup.container import prepare
from config.checks import PLACEHOLDER
from config.loading import load_settings
from config.settings import KNOWN
from config.sources import read_env_file, strange_in_file
from tests.documents import FENCE, PAGES, ROOT, Block, blocks, every, levels, page
from tests.reference import NAMES

COMPOSE = "docker-compose.yml"
SUBCOMMANDS = {"restart", "up", "down", "stop", "start", "kill", "logs", "ps", "exec", "run", "version"}
TAKES_A_VALUE = {"-f", "--file", "-p", "-s", "--profile", "--tail"}
FOREIGN = {
    "cp",
    "git",
    "pg_dump",
    "pg_restore",
    "ollama",
    "llama-server",
    "vllm",
    "ssh",
    "systemctl",
    "openssl",
    "printf",
}
"""Programs that are not ours, named in `sh operator` blocks."""


def is_run(block: Block) -> bool:
    """Whether a test can run it."""
    return block.info == "sh" and not all(line.startswith("make ") for line in block.text.splitlines())


def inline(name: str) -> list[str]:
    """Everything between single backticks, outside the blocks."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", page(name)))


def test_every_block_has_a_mark_that_is_understood() -> None:
    marks = {block.info for name in PAGES for block in blocks(name)}
    assert marks <= {"sh", "sh operator", "ini", "python", "yaml", ""}


# --- what is run ------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of FrostAgent after its first evening."""
    for name in (COMPOSE, ".env.example"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copy(ROOT / ".env.example", tmp_path / ".env")
    environ = {"LLM_BASE_URL": "https://llm.invalid/v1", "LLM_MODEL": "m"}
    prepare(
        folder=tmp_path,
        environ=environ,
        server="napcat",
        make_token=lambda: "made-by-init-for-the-pages",
        tell=lambda _: None,
    )
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


@pytest.mark.system
@pytest.mark.parametrize("name", [name for name in PAGES if any(map(is_run, blocks(name)))])
def test_the_commands_of_a_page_work_one_after_the_other(machine: Path, name: str) -> None:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "HOME": str(machine),
    }
    for block in filter(is_run, blocks(name)):
        done = subprocess.run(
            ["/bin/sh", "-euc", block.text],
            cwd=machine,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        assert done.returncode == 0, f"{block.place}\n{done.stderr}"


@pytest.mark.system
def test_make_run_without_any_setting_is_a_chat(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    here = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    # -o: what is installed here is taken as it is.
    words = ["make", "-o", f"{sys.prefix}/.run", f"VENV={sys.prefix}", "run"]
    done = subprocess.run(
        words, cwd=tmp_path, env=here, input="@bot hello\n", capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bot: ")


def made_by_ci() -> set[str]:
    """The targets that `.ci/run` makes, and what they are made of."""
    asked = set(re.findall(r"^ *make (?:--keep-going )?([a-z-]+)", page(".ci/run"), re.MULTILINE))
    rules = re.findall(r"^([a-z-]+):([a-z -]*)", page("Makefile"), re.MULTILINE)
    parts = {target: words.split() for target, words in rules}
    return asked | {part for target in asked for part in parts[target]}


def test_every_target_in_the_documents_is_made_by_ci_or_by_a_test() -> None:
    lines = [line for block in (*every("sh"), *every("sh operator")) for line in block.text.splitlines()]
    lines += [code for name in PAGES for code in inline(name)]
    named = {target for line in lines for target in re.findall(r"(?:^|\| )make ([a-z-]+)", line)}
    assert named - made_by_ci() == {"run"}


# --- what is held to what there is --------------------------------------------------------------------


@cache
def entry() -> typer.core.TyperGroup:
    """`frostagent` as it reads what is typed."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    return group


def commands() -> set[str]:
    """What may stand behind `python -m bot`."""
    return set(entry().commands)


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", page("Makefile"), re.MULTILINE))


def services() -> set[str]:
    """Every service of the compose file, and those the pages add."""
    texts = [page(COMPOSE)] + [block.text for block in every("yaml")]
    return {
        name for text in texts for name in re.findall(r"^  ([a-z-]+):$", text.partition("services:")[2], re.MULTILINE)
    }


def wrong_with(line: str) -> Iterator[str]:
    """What a command names that there is not."""
    words = [word for word in shlex.split(line, comments=True) if not re.fullmatch(r"[A-Z_]+=.*", word)]
    match words:
        case ["docker", "compose", *rest]:
            yield from wrong_with_compose(rest)
        case ["make", *rest]:
            yield from (f"no target {word}" for word in rest if word not in targets())
            if "run" in rest:
                yield from (
                    f"no command {word}" for word in re.findall(r'ARGS="?([a-z]+)', line) if word not in commands()
                )
        case ["python", "-m", "bot", *rest] | [".venv/bin/frostagent", *rest]:
            yield from wrong_with_ours(rest)
        case ["sh", script, *names] if (ROOT / script).is_file():
            yield from (f"no service {name}" for name in names if name not in services())
        case [word, *_] if word not in FOREIGN:
            yield f"what is {word}?"
        case _:
            pass


def wrong_with_ours(words: list[str]) -> Iterator[str]:
    """What a command of ours and its options name that there is not."""
    if words and words[0] not in commands():
        yield f"no command {words[0]}"
    elif words:
        known = {option for parameter in entry().commands[words[0]].params for option in parameter.opts}
        known |= {option for parameter in entry().commands[words[0]].params for option in parameter.secondary_opts}
        yield from (f"no option {word}" for word in words if word.startswith("--") and word not in known)


def wrong_with_compose(words: list[str]) -> Iterator[str]:
    plain = [word for before, word in zip(["", *words], words, strict=False) if before not in TAKES_A_VALUE]
    verb, *names = [word for word in plain if not word.startswith("-")]
    if verb not in SUBCOMMANDS:
        yield f"no docker compose {verb}"
    if verb in {"exec", "run"}:
        inside = words[words.index(names[0]) + 1 :]
        names = names[:1]
        ours = inside[0] not in {"python", *FOREIGN}
        yield from wrong_with(shlex.join([".venv/bin/frostagent", *inside] if ours else inside))
    yield from (f"no service {name}" for name in names if name not in services())
    yield from (f"no file {word}" for word in words if word.endswith(".yml") and not (ROOT / word).exists())


def test_what_an_operator_types_names_only_what_there_is() -> None:
    wrong = [
        f"{block.place}: {line}: {problem}"
        for block in (*every("sh operator"), *every("sh"))
        if not is_run(block)
        for line in block.text.splitlines()
        for problem in wrong_with(line)
    ]
    assert wrong == []


def test_a_command_in_the_middle_of_a_sentence_exists() -> None:
    ours = ("docker compose ", "make ", ".venv/bin/frostagent ")
    wrong = [
        f"{name}: {code}: {problem}"
        for name in PAGES
        for code in inline(name)
        if code.startswith(ours) and "…" not in code
        for problem in wrong_with(code)
    ]
    assert wrong == []


def test_our_commands_are_written_as_they_can_be_typed() -> None:
    """`frostagent` is in no PATH, and outside the container `python` is another one."""
    lines = [(block.place, line) for name in PAGES for block in blocks(name) for line in block.text.splitlines()]
    lines += [(name, code) for name in PAGES for code in inline(name)]
    assert [(place, line) for place, line in lines if line.startswith(("frostagent ", "python -m bot"))] == []


def test_no_page_sends_a_signal_with_docker() -> None:
    """Docker takes `kill` for a stop by hand and restarts nothing afterwards."""
    commands = [(block.place, line) for name in PAGES for block in blocks(name) for line in block.text.splitlines()]
    assert [(place, line) for place, line in commands if re.search(r"docker compose (\S+ )*kill", line)] == []


@pytest.mark.parametrize("block", every("ini"), ids=lambda block: block.place)
def test_the_settings_of_a_page_are_settings(tmp_path: Path, block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/personas").mkdir(parents=True)
    (tmp_path / "data/persona.md").write_text("A fox.", "utf-8")
    file = tmp_path / ".env"
    file.write_text(block.text, "utf-8")
    lines = read_env_file(file)
    assert not list(strange_in_file(lines, KNOWN))
    assert {line.name for line in lines} <= {*NAMES, "HTTPS_PROXY"}
    given = {line.name: line.value for line in lines if line.value and not PLACEHOLDER.fullmatch(line.value)}
    base = {"LLM_BASE_URL": "https://llm.invalid/v1", "LLM_MODEL": "m", "ONEBOT_ACCESS_TOKEN": "correct-horse"}
    load_settings(environ={**base, **given}, env_file=None)


@pytest.mark.parametrize("block", every("yaml"), ids=lambda block: block.place)
def test_the_compose_files_of_a_page_are_like_ours(tmp_path: Path, block: Block) -> None:
    images = re.findall(r"image: (\S+)", block.text)
    assert set(images) <= set(re.findall(r"image: (\S+)", page(COMPOSE)))
    assert all(ports.startswith('["127.0.0.1:') for ports in re.findall(r"ports: (.*)", block.text))
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    ours = {key for service in yaml.safe_load(page(COMPOSE))["services"].values() for key in service}
    assert all(set(service) <= ours for service in yaml.safe_load(block.text)["services"].values())


@pytest.mark.parametrize("picture", sorted(ROOT.glob("docs/*.svg")), ids=lambda picture: picture.name)
def test_a_picture_is_drawn_on_its_own_ground_describes_itself_and_loads_nothing(picture: Path) -> None:
    namespace = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(picture.read_text("utf-8"))
    tags = [element.tag.removeprefix(namespace) for element in root.iter()]
    assert set(tags) <= {"svg", "title", "desc", "rect", "circle", "path", "text", "tspan"}
    described = {element.get("id"): element.text for element in root if element.tag.endswith(("title", "desc"))}
    assert all(described[name] for name in root.get("aria-labelledby", "").split())
    ground = next(element for element in root if element.tag == f"{namespace}rect")
    assert (ground.get("fill") or "none") != "none"
    assert not [
        key for element in root.iter() for key in element.attrib if key.endswith("href") or key.startswith("on")
    ]


def test_the_picture_of_a_chat_stands_in_both_readmes_with_words_for_who_cannot_see_it() -> None:
    for name in ("README.md", "README.zh-CN.md"):
        (words,) = re.findall(r"!\[([^\]]+)\]\(docs/chat\.svg\)", page(name))
        assert len(words) > 20


# --- what a report asks for ---------------------------------------------------------------------------

FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
ASKED = {"what", "doctor", "trace", "version", "server", "how"}


def fields(name: str) -> dict[str, tuple[str, bool]]:
    """The fields of a form in order: what kind each is, and whether it must be filled in."""
    form = yaml.safe_load((FORMS / name).read_text("utf-8"))
    assert form.keys() == {"name", "description", "labels", "body"}
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in asked)
    found = {field["id"]: (field["type"], field.get("validations", {}).get("required", False)) for field in asked}
    assert len(found) == len(asked)
    return found


def test_the_forms_for_issues_ask_the_same_in_both_languages_and_for_what_is_needed() -> None:
    assert {file.name for file in FORMS.iterdir()} == {
        "config.yml",
        *(f"{name}{language}.yml" for name in ("bug", "feature") for language in ("", ".zh-CN")),
    }
    assert yaml.safe_load((FORMS / "config.yml").read_text("utf-8")) == {"blank_issues_enabled": False}
    for name in ("bug", "feature"):
        assert list(fields(f"{name}.yml").items()) == list(fields(f"{name}.zh-CN.yml").items())
    assert {name for name, (_, required) in fields("bug.yml").items() if required} == ASKED
    for name in ("bug.yml", "bug.zh-CN.yml"):
        text = (FORMS / name).read_text("utf-8")
        assert "SECURITY.md" in text
        for command in re.findall(r"`([^`]+)`", text):
            if command.startswith(("docker", ".venv")):
                assert list(wrong_with(command)) == []
        assert [file for file in re.findall(r"[\w.-]+\.yml", text) if not (ROOT / file).is_file()] == []


def test_a_weakness_is_reported_in_private_and_no_address_is_made_up() -> None:
    text = page("SECURITY.md")
    english, chinese = text.split("\n# 安全\n")
    assert levels(english)[1:] == levels(chinese)
    assert english.count("\n|") == chinese.count("\n|")
    assert not re.search(r"@|https?:", text)
    assert all("SECURITY.md" in page(name) for name in ("README.md", "README.zh-CN.md"))
