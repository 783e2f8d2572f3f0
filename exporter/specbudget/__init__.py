"""specbudget: the two-model budget of speculative decoding."""
