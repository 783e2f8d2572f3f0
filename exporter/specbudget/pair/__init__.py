"""The pair: two checkpoints, what the engine says of them, and the budget, brought together."""
