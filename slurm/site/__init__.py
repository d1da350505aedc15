"""A site's slurm.conf, gres.conf and sbatch lines, made a workload."""
