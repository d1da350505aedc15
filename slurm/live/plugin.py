"""The submit plugin that puts each new job behind the gate, shipped with the package."""

from __future__ import annotations

from importlib.resources import files


def job_submit_lua() -> str:
    """Return job_submit.lua's text, for the folder of slurm.conf and ``JobSubmitPlugins=lua``."""
    return files(__package__).joinpath("job_submit.lua").read_text("utf-8")
