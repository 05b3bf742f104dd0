"""Tools that are programs, under the name that operators' files have used: see
`bot/agent/programs.py`.
"""

from bot.agent.programs import command_tool

__all__ = ["command_tool"]
