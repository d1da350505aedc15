"""A cluster's resources as arrays: capacity, requests, allocations, reservations, the rest."""
