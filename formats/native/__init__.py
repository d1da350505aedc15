"""aucsched's own files: snapshots, workloads, schedules; their schemas."""
