"""The tools: which cannot be used, and which files of the operator's folder are broken. Imports
them.
"""

from __future__ import annotations

from bot.cli.doctor.checks import Check, warn, well
from bot.cli.doctor.chinese import sentence
from bot.runtime.clock import SystemClock
from bot.wiring.tools import PORTS, build_toolset, find_tools, strangers
from config.settings import Settings


def check_tools(settings: Settings) -> list[Check]:
    """One line where all is well, else one for each thing to mend. Blocks."""
    found = find_tools(settings)
    checks = [
        warn("tools", sentence("{}: {}", problem.name, problem.what), problem.mend)
        for problem in found.problems
    ]
    toolset = build_toolset(settings, found.tools, clock=SystemClock())
    checks += [
        warn(
            "tools",
            sentence("{} is in TOOLS_DENY, _APPROVE or _AUDIENCE, but there is no such tool", name),
            "Correct its name",
        )
        for name in strangers(settings, toolset)
    ]
    for status in toolset.check_availability(PORTS):
        if not status.available:
            mend = "The model is not told of it meanwhile; see its own documentation"
            checks.append(
                warn(
                    "tools", sentence("{} cannot be used: it {}", status.name, status.reason), mend
                )
            )
    return checks or [well("tools", sentence("all {} can be used", len(found.tools)))]
