"""Evolving jobs: requests of running jobs beside the queue, and what is fair to those that wait."""
