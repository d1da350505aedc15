"""Explanations: why a job starts or waits, prices of nodes, smallest changes, reports and comparisons."""
