"""The runtime scheduler: running jobs that grow and shrink so that waiting ones start (DBES)."""
