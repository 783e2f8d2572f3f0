"""specbudget: the two-model budget of speculative decoding."""

__version__ = "0.1.0"
