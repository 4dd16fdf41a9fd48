"""What idfsmec costs, finds and survives: ``python -m benchmarks [NAME ...]``.

``speed`` has timings, as ratios in one run; ``quality`` has studies on simulated and public
tables; ``endurance`` kills commands and watches their memory.
"""
