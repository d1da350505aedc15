"""The shared types: nodes, jobs, the snapshot of both, and the schedule."""
