"""The demo: a stand-in engine and a sidecar as real processes, and what they say on one screen."""
