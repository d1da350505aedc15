"""The papers' workloads, and descriptions of workloads."""
