"""Exact solving: PuLP programs passed to HiGHS, sums of weights kept exact."""
