"""Gantt charts, utilisation, plans, workloads drawn."""
