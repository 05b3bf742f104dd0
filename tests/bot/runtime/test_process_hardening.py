"""A program that the bot runs finds no key of it: not in its own environment, not in that of its parent."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bot.runtime.process_hardening import forget_secrets
from tests.bot.cli.commands import ROOT

SCRIPT = """
import ctypes, os, subprocess, sys
from bot.runtime.process_hardening import forget_secrets, hide_process
if {hides}:
    hide_process()
if {forgets}:
    forget_secrets(os.environ, ["LLM_API_KEY", "NOT_THERE"])
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), os.environ.get("LLM_API_KEY"), os.environ["OTHER"], flush=True)
look = '''
import os
try:
    seen = 'sk-secret' in open(f'/proc/{{os.getppid()}}/environ').read()
except PermissionError:  # as it is for any account but root
    seen = False
print(os.environ.get('LLM_API_KEY'), seen)
'''
subprocess.run([sys.executable, "-c", look])
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")


def seen(*, hides: bool = True, forgets: bool = True) -> list[list[str]]:
    """What the process has, and what its child sees of it."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(hides=hides, forgets=forgets)],
        env={"PYTHONPATH": str(ROOT), "LLM_API_KEY": "sk-secret", "OTHER": "kept"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_nothing_of_a_secret_is_left_where_a_child_could_look() -> None:
    assert seen() == [["0", "None", "kept"], ["None", "False"]]


def test_else_a_child_would_have_it_twice() -> None:
    (dumpable, *_), child = seen(hides=False, forgets=False)
    assert (dumpable, child) == ("1", ["sk-secret", "True"])


def test_only_what_is_named_and_there_is_taken_out() -> None:
    environ = {"LLM_API_KEY": "sk", "PATH": "/bin"}
    forget_secrets(environ, ["LLM_API_KEY", "AMAP_KEY"])
    assert environ == {"PATH": "/bin"}
