"""Start times as distributions: run times learnt online, futures, and a calibration by its own record."""
