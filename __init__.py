"""The root holds aucsched's rooms; they install as the package ``aucsched`` (see src/aucsched)."""
