"""For all tests: property tests have no deadline of their own (machines are busy), only pytest's."""

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.load_profile("default")
