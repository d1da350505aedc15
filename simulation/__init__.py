"""Simulated clusters: traces in, policies over a machine, the metrics of section 7.4 out."""
