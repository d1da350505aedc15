"""Applications that an iScheduler senses and actuates: the API, Prophet's costs, a live scheduler.

An example to read and to change, no part of the package: ``examples/adaptive_jacobi.py`` runs it. Its
decisions are those of ``aucsched.negotiation.malleable``, the functions that play a simulation's jobs.
"""
