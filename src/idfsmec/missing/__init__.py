"""Which channels are missing: detected, read from what EEG people have, made on purpose."""
