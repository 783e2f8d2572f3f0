"""SGLang 0.5.18 and later: its names, labels, records and log lines, and their traps. They stand nowhere else."""
