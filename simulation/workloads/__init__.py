"""The papers' workloads, and what a workload holds."""
