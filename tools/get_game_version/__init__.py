"""Versions of games: find the game in a table, ask its sources, say what they answer.

`tool.py` is the tool, `games.toml` the table: a further game is a further row, a further kind of
source a further entry in `sources.py`.
"""

from tools.get_game_version.tool import get_game_version

__all__ = ["get_game_version"]
