"""Workloads played through the negotiation of two schedulers."""
