"""The command line: one module per command, no logic that a Python user could not call."""

from idfsmec.cli import demo, features
from idfsmec.cli._app import app

__all__ = ["app", "demo", "features"]
