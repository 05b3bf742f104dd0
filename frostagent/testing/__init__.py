"""Models for tests, without a network or a key: one follows a script, one replays a recording."""

from frostagent.testing.recorded import RecordingModel, ReplayModel
from frostagent.testing.scripted_model import ScriptedModel, call

__all__ = ["RecordingModel", "ReplayModel", "ScriptedModel", "call"]
