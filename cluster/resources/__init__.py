"""Resources of a cluster as arrays: capacity, requests, allocations, reservations, residual capacity."""
