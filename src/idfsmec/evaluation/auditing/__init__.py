"""The audit: whether the recording tells the groups apart as well as the EEG does."""
