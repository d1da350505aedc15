"""Whole simulations of a log as loops over columns that numba compiles; other policies play in Python."""
