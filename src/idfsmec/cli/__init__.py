"""The command line: one module per command, no logic that a Python user could not call.

Every command is a function here, with the name and the options of the command: ``idfsmec select
table.parquet --k 20`` is ``idfsmec.cli.select("table.parquet", k=20)``. Functions raise where the
command ends with an exit code, and return what they made.
"""

from idfsmec.cli.app import app
from idfsmec.cli.audit import audit
from idfsmec.cli.benchmark import benchmark
from idfsmec.cli.demo import demo
from idfsmec.cli.features import features
from idfsmec.cli.multiverse import multiverse
from idfsmec.cli.plan import plan
from idfsmec.cli.predict import predict
from idfsmec.cli.report import report
from idfsmec.cli.reproduce import reproduce
from idfsmec.cli.select import select
from idfsmec.cli.summarise import summarise
from idfsmec.cli.train import train
from idfsmec.cli.validate import validate

__all__ = [
    "app",
    "demo",
    "plan",
    "features",
    "select",
    "summarise",
    "train",
    "predict",
    "validate",
    "audit",
    "benchmark",
    "multiverse",
    "report",
    "reproduce",
]
