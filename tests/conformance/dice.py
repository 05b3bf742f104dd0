"""The example of document 004, as an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frostagent import call


class DiceTool:
    """The dice of document 004: `info`, `definition`, `execute`, `available`."""

    def __init__(self, kind: str = "go") -> None:
        self.reason = ""
        self.kind = kind

    def info(self) -> Mapping[str, str]:
        return {"name": "roll_dice", "type": self.kind, "description": "Rolls N dice with S sides each"}

    def definition(self) -> Mapping[str, Any]:
        number = {"type": "integer", "description": "A number."}
        return {
            "name": "roll_dice",
            "description": "Roll dice. Returns sum and individual results.",
            "parameters": {
                "type": "object",
                "properties": {"count": number, "sides": number},
                "required": ["count", "sides"],
            },
        }

    def execute(self, args: dict[str, Any]) -> str:
        if not 1 <= args["count"] <= 10:
            raise ValueError(f"count must be 1-10, got {args['count']}")
        return f"Rolled {args['count']}d{args['sides']}"

    def available(self) -> tuple[bool, str]:
        return not self.reason, self.reason


TWO_DICE = call("roll_dice", count=2, sides=6)
