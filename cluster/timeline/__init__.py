"""Free resources over the time to come."""
