"""The sidecar's own record of its series, in one file of the state folder: written by serve, read by review."""
