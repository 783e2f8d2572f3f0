"""The sidecar: polls and tails, keeps counters, publishes /metrics."""
