"""Start times as distributions: learnt run times, futures, a calibration by their own record."""
