"""What several test files share: small snapshots and oracles."""
