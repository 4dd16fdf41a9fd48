"""Copies of this process that draw figures beside it, and take from the end what nobody has begun.

Importing takes as long as drawing a third of a page. A copy has imported and read all that this
process has, at no cost; where the system makes none (Windows, macOS), this process draws alone.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Thread
from typing import Generic, TypeVar

from idfsmec._system import fork

Place = TypeVar("Place")
Drawn = TypeVar("Drawn")

#: Seconds after which one who does not answer is given up, and its figure drawn here.
_PATIENCE = 30.0


class Sharing(Generic[Place, Drawn]):
    """Places at which to draw, shared with helpers, which begin as soon as the block does.

    One that cannot start, breaks or has something to say (an error, a warning) does not matter:
    what it was asked for is drawn here, where it can be said.

    Parameters
    ----------
    places : sequence
        What to draw, in whatever words ``draw`` understands.
    draw : callable
        Draws what stands at a place.
    n_helpers : int
        How many; none is fine.
    """

    def __init__(
        self, places: Sequence[Place], draw: Callable[[Place], Drawn], n_helpers: int
    ) -> None:
        self._draw, self._n_helpers, self._n_places = draw, n_helpers, len(places)
        self._waiting = deque(enumerate(places))
        self._drawn: dict[int, Drawn] = {}
        self._helpers: list[_Helper[Place, Drawn]] = []
        self._asking: list[Thread] = []

    def __enter__(self) -> Sharing[Place, Drawn]:
        for _ in range(self._n_helpers):
            with suppress(OSError):
                self._helpers.append(_Helper(self._draw))
        for helper in self._helpers:
            self._asking.append(Thread(target=self._ask, args=[helper], daemon=True))
            self._asking[-1].start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._waiting.clear()
        for thread in self._asking:
            thread.join()
        for helper in self._helpers:
            helper.end()

    def finish(self, say: Callable[[Place, int], None]) -> list[Drawn]:
        """Draw what nobody has begun, and return all in the order of their places.

        Parameters
        ----------
        say : callable
            Called before each place at which this process draws, with the number that are done.
        """
        while len(self._drawn) < self._n_places:
            if self._waiting:
                with suppress(IndexError):  # the last was taken just now
                    number, place = self._waiting.popleft()
                    say(place, len(self._drawn))
                    self._drawn[number] = self._draw(place)
            else:
                for thread in self._asking:
                    thread.join()
        return [self._drawn[number] for number in range(self._n_places)]

    def _ask(self, helper: _Helper[Place, Drawn]) -> None:
        with suppress(IndexError):  # nothing is left
            while True:
                number, place = self._waiting.pop()
                try:
                    self._drawn[number] = helper.ask(place)
                except (OSError, EOFError):
                    self._waiting.append((number, place))
                    return


class _Helper(Generic[Place, Drawn]):
    """One copy: a place in, what was drawn there out, until nobody can ask any more."""

    def __init__(self, draw: Callable[[Place], Drawn]) -> None:
        self._line, there = Pipe()
        try:
            self._process = fork(lambda: self._serve(draw, there))
        finally:
            there.close()

    def _serve(self, draw: Callable[[Place], Drawn], line: Connection) -> None:
        self._line.close()  # the end of whoever asks: it must be gone when that one is
        while True:
            line.send([draw(line.recv())])

    def ask(self, place: Place) -> Drawn:
        """Have it drawn."""
        self._line.send(place)
        if not self._line.poll(_PATIENCE):
            raise TimeoutError
        (drawn,) = self._line.recv()
        return drawn

    def end(self) -> None:
        """Let it end, or see to it."""
        self._line.close()
        give_up = time.monotonic() + 1.0
        while os.waitpid(self._process, os.WNOHANG) == (0, 0):
            if time.monotonic() > give_up:
                os.kill(self._process, signal.SIGKILL)
            time.sleep(0.005)
