"""Amplification by iteration: what the last iterate of a noisy contraction reveals when the others stay hidden."""
