"""The published instance set: kinds of snapshots made from seeds, best values and bounds known of each."""
