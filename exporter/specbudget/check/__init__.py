"""The gate before rollout: two checkpoints, the budget and the launch arguments, judged line by line."""
