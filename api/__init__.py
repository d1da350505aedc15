"""The Python API's calls, where they are more than one room's function: thin, like the commands."""
