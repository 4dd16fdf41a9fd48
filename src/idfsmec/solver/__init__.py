"""Pure mathematics of IDFS-MEC on arrays; imports nothing else of the package."""
