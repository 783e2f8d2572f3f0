"""Where numbers come from: files and endpoints turned into plain observations."""
