"""Errors a user can mend: shown as one line by the command line, with exit code 2."""


class InputError(ValueError):
    """Something the user gave is unusable; the message names the file or column and the fix."""
