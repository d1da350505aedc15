"""Loops over columns that run as plain Python and that numba compiles as they stand."""
