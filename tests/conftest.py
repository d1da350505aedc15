"""What all tests share; it stands here, as the root is a package named as the checkout is."""

from hypothesis import settings

# No test may fail because the machine is busy: examples are bounded by number, not by time.
settings.register_profile("house", deadline=None)
settings.load_profile("house")
