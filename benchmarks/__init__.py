"""Benchmarks, the problems and optimisers that they compare with: `python -m benchmarks --help` lists the programs."""
