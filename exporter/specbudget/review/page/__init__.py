"""A review as something to look at: one HTML file that needs nothing else, and one picture."""
