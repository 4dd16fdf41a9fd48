"""Studies on simulated and public tables: what is found, and how well it predicts."""
