"""A model for tests, without a network."""

from frostagent.testing.scripted_model import ScriptedModel, call

__all__ = ["ScriptedModel", "call"]
