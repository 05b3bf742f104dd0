"""Weather: find the place, fetch its weather, say it. `tool.py` is the tool; a further source is a
further module.
"""

from tools.get_weather.tool import get_weather

__all__ = ["get_weather"]
