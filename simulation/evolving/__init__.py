"""Workloads of evolving jobs, played under the extended iteration and its rivals (Prabhakaran)."""
