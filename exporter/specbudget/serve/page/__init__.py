"""The status page: the status in words and pictures, written by templates, and kept up to date while it is open."""
