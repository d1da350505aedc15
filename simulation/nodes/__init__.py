"""Workloads on nodes: the machine, events, policies, metrics."""
