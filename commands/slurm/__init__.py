"""``aucsched slurm``: commands beside a live Slurm."""
