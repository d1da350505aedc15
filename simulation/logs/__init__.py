"""Logs on a machine of counts: policies, orders, reservations, planning."""
