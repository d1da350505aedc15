"""Explanations: why a job starts or waits, node prices, smallest changes, reports, comparisons."""
