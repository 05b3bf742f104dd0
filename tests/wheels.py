"""The wheel, built of this checkout, and what people have once it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from email import message_from_bytes
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGES = ("adapters", "bot", "config", "frostagent", "tools")
BESIDE = (".env.example", "LICENSE", "README.md", "pyproject.toml", "setup.py")


def build_wheel(folder: Path) -> Path:
    """The wheel, built of a copy in this folder: a build leaves folders behind."""
    copy = folder / "source"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in BESIDE:
        shutil.copy(ROOT / name, copy)
    pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(folder), str(copy))
    (built,) = folder.glob("*.whl")
    return built


def light_environment(folder: Path, wheel: Path) -> Path:
    """The programs of a new environment that has the wheel and what `pip install frostagent` brings."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    pip(f"--python={folder / 'bin' / 'python'}", "install", "--no-deps", "--no-index", str(wheel))
    (packages,) = folder.glob("lib/python*/site-packages")
    borrow(needed(wheel), packages)
    return folder / "bin"


def pip(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "--quiet", "--no-input", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def needed(wheel: Path, extra: str = "") -> set[str]:
    """What the wheel asks pip for."""
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist") or []
    return names_of(told, extra)


def names_of(requirements: Iterable[str], extra: str = "") -> set[str]:
    read = map(Requirement, requirements)
    return {one.name for one in read if one.marker is None or one.marker.evaluate({"extra": extra})}


def borrow(libraries: set[str], packages: Path) -> None:
    """Have these libraries of our own environment, and what they need themselves, in another one, and no others."""
    own, seen, left = Path(sysconfig.get_path("purelib")), set[str](), set(libraries)
    while left:
        found = distribution(left.pop())
        if found.name in seen:
            continue
        seen.add(found.name)
        left |= names_of(found.requires or ())
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(own / top)
