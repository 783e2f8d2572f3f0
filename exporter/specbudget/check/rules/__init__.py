"""The rules of the gate, one file per budget line."""
