"""Timings, as ratios in one run: against peers, one fit, or an empty program."""
