"""The two parties as pure functions, and both in one process."""
