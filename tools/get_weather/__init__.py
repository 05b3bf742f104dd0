"""Weather: find the place, fetch its weather, report it. Each source is a module."""

from tools.get_weather.tool import get_weather

__all__ = ["get_weather"]
