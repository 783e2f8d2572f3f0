"""What the numbers mean: pure arithmetic over plain values. No I/O, no clock, no logging."""
