"""Next to a live Slurm: what it says each pass, what the auction would start, how that is done."""
