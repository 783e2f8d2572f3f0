"""The forms in which the gate tells its verdict."""
