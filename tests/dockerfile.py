"""The Dockerfile, read; and its steps performed without an engine: `python -m tests.dockerfile` (`make image`).

The first stage runs in a fresh folder that stands for `/`, with the very commands of the file; what it installed is
then started as the image would start it, and measured. What the second stage does to a system (accounts, the base
image's pip) needs an engine and is left out.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 150 * 10**6  # bytes of packages in the image
STILL_THERE = """
import alembic.command, jinja2, jsonschema, mako.template, referencing
from pygments.lexers import get_lexer_by_name
get_lexer_by_name("python")
from PIL import Image, ImageFont
from pylopdf_fonts_zh_cn import sans_path
ImageFont.truetype(str(sans_path()))
Image.init()
missing = {"PNG", "JPEG", "GIF", "WEBP"} - {*Image.OPEN} | {"PNG", "JPEG"} - {*Image.SAVE}
assert not missing, missing
"""
"""What the Dockerfile's cuts must have left whole."""
BUILD_TOOLS = ("pip", "setuptools", "wheel")
"""What is not left in the packages; the `ensurepip` of the base image the second stage removes."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its word in capitals, and the rest as one line."""

    word: str
    rest: str


def read_stages(text: str) -> list[list[Instruction]]:
    """The instructions of each stage, from its FROM on; what stands before the first FROM is left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    stages: list[list[Instruction]] = []
    for line in filter(str.strip, joined.splitlines()):
        word, _, rest = line.strip().partition(" ")
        if word.upper() == "FROM":
            stages.append([])
        if stages:
            stages[-1].append(Instruction(word.upper(), rest.strip()))
    return stages


def ignored(path: str, patterns: list[str]) -> bool:
    """Whether `.dockerignore` keeps a path of the checkout from the builder: the last pattern that fits decides."""
    verdict = False
    parts = path.split("/")
    prefixes = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    for pattern in patterns:
        wanted, kind = (pattern[1:], False) if pattern.startswith("!") else (pattern, True)
        deep = wanted.removeprefix("**/")
        if any(fnmatch(prefix, wanted) for prefix in prefixes) or (deep != wanted and deep in parts):
            verdict = kind
    return verdict


def read_ignore(text: str) -> list[str]:
    """The patterns of a `.dockerignore`."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


class Builder:
    """Performs a stage with `root` for `/`. The base image is a fresh virtual environment with pip."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._base = root / "base"
        self._workdir = root
        self._patterns = read_ignore((ROOT / ".dockerignore").read_text("utf-8"))
        subprocess.run([sys.executable, "-m", "venv", self._base], check=True)
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "http"))}
        self.environment = {**kept, "PATH": f"{self._base / 'bin'}:{os.environ['PATH']}", "HOME": str(root)}

    def perform(self, stage: list[Instruction]) -> None:
        """Every instruction of the stage, in order."""
        for step in stage:
            match step.word:
                case "ENV":
                    for pair in shlex.split(step.rest):
                        name, _, value = pair.partition("=")
                        self.environment[name] = self._inside(value) if value.startswith("/") else value
                case "ARG":
                    name, _, value = step.rest.partition("=")
                    self.environment[name] = value.strip('"')
                case "WORKDIR":
                    self._workdir = Path(self._inside(step.rest))
                    self._workdir.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    *sources, target = shlex.split(step.rest)
                    for source in sources:
                        self._copy(source, target)
                case "RUN":
                    self.run("/bin/sh", "-ec", step.rest, folder=self._workdir)
                case "FROM":
                    pass
                case _:
                    raise ValueError(f"a build stage with {step.word} is not understood")

    def run(self, *words: str, folder: Path, typed: str = "", **more: str) -> str:
        """A command in the environment of the stage; its standard output. Raises RuntimeError where it fails."""
        environment = {**self.environment, **more}
        done = subprocess.run(
            words, cwd=folder, env=environment, input=typed, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode:
            raise RuntimeError(f"{shlex.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _inside(self, path: str) -> str:
        return str(self._root / path.lstrip("/"))

    def _copy(self, source: str, target: str) -> None:
        origin = ROOT / source
        files = sorted(origin.rglob("*")) if origin.is_dir() else [origin]
        copied = [file for file in files if file.is_file() and not ignored(self._name(file), self._patterns)]
        if not copied:
            raise FileNotFoundError(f"COPY {source}: nothing of it reaches the builder")
        for file in copied:
            place = self._workdir / target / file.relative_to(origin if origin.is_dir() else origin.parent)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)

    def _name(self, file: Path) -> str:
        return file.relative_to(ROOT).as_posix()


def measure(folder: Path) -> int:
    """The bytes of every file inside."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())


def prove(root: Path) -> Iterator[str]:
    """Build, start, measure; a line for each thing found. Raises AssertionError, RuntimeError where it is not well."""
    build, final = read_stages((ROOT / "Dockerfile").read_text("utf-8"))
    builder = Builder(root)
    builder.perform(build)
    (entry,) = (json.loads(step.rest) for step in final if step.word == "ENTRYPOINT")
    venv = Path(builder.environment["VENV"])
    python = str(venv / "bin" / entry[0])
    app = root / "app"
    app.mkdir()

    version = builder.run(python, *entry[1:], "version", folder=app).strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", version), version
    heard = builder.run(python, *entry[1:], "chat", folder=app, typed="@bot hello\n")
    assert heard.startswith("bot: "), heard
    yield f"version {version}, and it answers"

    settings = {"LLM_BASE_URL": "https://llm.invalid/v1", "LLM_API_KEY": "sk-1", "LLM_MODEL": "m"}
    builder.run(python, *entry[1:], "init", folder=app, **settings)
    assert (app / "napcat" / "config" / "onebot11.json").is_file()

    builder.run(python, "-c", STILL_THERE, folder=app)

    (packages,) = venv.glob("lib/python*/site-packages")
    left = [name for name in BUILD_TOOLS if (packages / name).exists()]
    assert not left, f"build tools are left: {left}"
    size = measure(packages)
    assert size < LIMIT, f"{size / 10**6:.0f} MB of packages"
    yield f"{size / 10**6:.0f} MB of packages (at most {LIMIT / 10**6:.0f}), no build tools"


def main() -> None:
    """Prove the Dockerfile in a temporary folder."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        found = "; ".join(prove(Path(folder)))
    sys.stdout.write(f"image: the Dockerfile's steps work: {found} ({time.monotonic() - begun:.0f} s)\n")


if __name__ == "__main__":
    main()
