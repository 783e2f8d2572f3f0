"""What specbudget publishes, declared once: budget lines, series, closed label sets."""
