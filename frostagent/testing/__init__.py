"""Models for tests, without a network and without a key: one that says what it is told to, and one
that plays back what a real one said.
"""

from frostagent.testing.recorded import RecordingModel, ReplayModel
from frostagent.testing.scripted_model import ScriptedModel, call

__all__ = ["RecordingModel", "ReplayModel", "ScriptedModel", "call"]
