"""Game versions: find the game in a table, ask its sources, report their answers.

`tool.py` has the tool, `games.toml` the table. A new game is a new row, a new kind of source a new
entry in `sources.py`.
"""

from tools.get_game_version.tool import get_game_version

__all__ = ["get_game_version"]
