"""Slurm: its answers read, a site's files read, and the commands that place jobs."""
