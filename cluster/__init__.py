"""What is scheduled: nodes, jobs, the snapshot of both, and the schedule that comes out."""
