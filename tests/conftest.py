"""What all tests share: no test is timed, on a machine that may be busy with others."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
