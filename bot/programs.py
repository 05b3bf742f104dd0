"""Tools that are programs, under the name that operators' files have used: see
`frostagent/programs.py`.
"""

from frostagent.programs import command_tool

__all__ = ["command_tool"]
