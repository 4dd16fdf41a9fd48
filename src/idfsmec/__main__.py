"""``python -m idfsmec`` is the ``idfsmec`` command."""

from idfsmec.cli import app

app()
