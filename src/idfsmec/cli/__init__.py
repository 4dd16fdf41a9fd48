"""The command line: one module per command, no logic that a Python user could not call."""

from idfsmec.cli import benchmark, demo, features, reproduce, select
from idfsmec.cli._app import app

__all__ = [
    "app",
    "benchmark",
    "demo",
    "features",
    "reproduce",
    "select",
]
