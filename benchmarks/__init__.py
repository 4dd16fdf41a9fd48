"""Timings against peers, as ratios in one run: ``python -m benchmarks [NAME ...]``."""
