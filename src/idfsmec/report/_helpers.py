"""Processes that draw figures beside this one, and take from the end what nobody has begun.

A helper imports for as long as it takes to draw a third of a page. So it is started before this
process imports anything itself, and this module imports nothing of weight.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import TextIO, cast

# A section of the page and the name of a table.
Place = tuple[str, str]
# The same modules as here, and none from the folder that the user happens to be in.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from idfsmec.report._helpers import serve; serve()"
)
#: Seconds until a helper has drawn the figure that it is at.
_PATIENCE = 30.0


class Helpers:
    """Processes that draw figures, as long as the block lasts.

    One that cannot start, breaks or has something to say (an error, a warning) does not matter:
    what it was asked for is drawn here, where it can be said.

    Parameters
    ----------
    number : int
        How many; none is fine.
    """

    def __init__(self, number: int) -> None:
        self._number = number if sys.executable else 0
        self._helpers: list[_Helper] = []

    def __enter__(self) -> Helpers:
        for _ in range(self._number):
            with suppress(OSError):
                self._helpers.append(_Helper())
        return self

    def __exit__(self, *exception: object) -> None:
        for helper in self._helpers:
            helper.end()

    def share(
        self, folder: str, places: Sequence[Place], here: Callable[[Place, int], list[dict]]
    ) -> list[list[dict]]:
        """Have figures drawn by whoever is free, and return them in the order of their places.

        Parameters
        ----------
        folder : str
            Of the results.
        places : sequence of Place
            Of the figures.
        here : callable
            Draws those at a place in this process; it is told how many places are done.
        """
        waiting, drawn = deque(enumerate(places)), dict[int, list[dict]]()

        def ask(helper: _Helper) -> None:
            with suppress(IndexError):  # nothing is left
                while True:
                    number, place = waiting.pop()
                    answer = helper.ask(folder, place)
                    if answer is None:
                        waiting.append((number, place))
                        return
                    drawn[number] = answer

        asking = [Thread(target=ask, args=[helper], daemon=True) for helper in self._helpers]
        for thread in asking:
            thread.start()
        try:
            while len(drawn) < len(places):
                if waiting:
                    with suppress(IndexError):  # the last was taken just now
                        number, place = waiting.popleft()
                        drawn[number] = here(place, len(drawn))
                else:
                    for thread in asking:
                        thread.join()
        finally:
            waiting.clear()
            for thread in asking:
                thread.join()
        return [drawn[number] for number in range(len(places))]


class _Helper:
    """One process: a line with a question in, a line with the answer out.

    It is in a session of its own, where it does not hear Ctrl-C, and ends when nobody can ask it
    any more.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this Python, and words of our own
            [sys.executable, "-P", "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # it has one core
        )

    def ask(self, folder: str, place: Place) -> list[dict] | None:
        """Drawn figures; None where there are none, for whatever reason."""
        asked, answered = (
            cast(TextIO, pipe) for pipe in (self._process.stdin, self._process.stdout)
        )
        try:
            asked.write(json.dumps([folder, *place]) + "\n")
            asked.flush()
            return json.loads(answered.readline())
        except (OSError, ValueError):  # it has ended
            return None

    def end(self) -> None:
        """Let it draw the figure that it is at, and end."""
        try:
            self._process.communicate(timeout=_PATIENCE)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def serve() -> None:
    """Draw what is asked for on standard input, until that ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what others print is no answer
    from idfsmec.report.figures import draw_from_folder

    for line in sys.stdin:
        answer = None
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = draw_from_folder(*json.loads(line))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
