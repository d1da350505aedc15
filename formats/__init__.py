"""Files in and out: native snapshots, schedules, and Slurm's own output."""
