"""Benchmarks: the paper's Algorithm 1 as a baseline, noisy test problems, and other optimisers to compare with."""
