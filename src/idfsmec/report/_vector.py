"""One drawing, two SVGs: letters as outlines, which any program shows alike, and as text."""

from __future__ import annotations

import io
import warnings
from typing import Any, cast

import matplotlib as mpl
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure

#: Of SVG.
_DPI = 72
_GROUND = '<rect width="100%" height="100%" style="fill: #ffffff"/>\n'


def fix_layout(figure: Figure) -> None:
    """Find the layout, which is the same for all formats, and leave it alone from here on.

    A figure whose layout engine is "none" still has one, for which each format would be drawn
    twice.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            engine.execute(figure)
        if said:
            # Some artists know their size only once they were drawn.
            figure.draw_without_rendering()
    with mpl.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)


def draw_svgs(figure: Figure, salt: str) -> tuple[str, str]:
    """Draw a figure whose layout is final; it is of no use for anything else afterwards.

    Parameters
    ----------
    figure : Figure
    salt : str
        Makes identifiers inside the drawing differ from those of other figures.

    Returns
    -------
    outlined : str
        On white, letters as outlines.
    plain : str
        Without a ground, letters as text in whatever font the reader has.
    """
    for patch in (figure.patch, *(ax.patch for ax in figure.axes)):
        patch.set(facecolor="none", edgecolor="none")
    dpi = figure.dpi
    figure.set_dpi(_DPI)
    width, height = figure.get_size_inches()
    files = _Files()
    with mpl.rc_context({"svg.hashsalt": salt}):
        lines = _TwoFonts(
            _DPI * width, _DPI * height, files, image_dpi=dpi, metadata={"Date": None}
        )
        files.outlined.write(_GROUND)
        # Colour bars are pixels among lines.
        renderer = MixedModeRenderer(figure, width, height, dpi, lines)
        figure.draw(cast(RendererBase, renderer))
        renderer.finalize()
    return files.outlined.getvalue(), files.plain.getvalue()


class _Files:
    """What is written goes into both files, or into the one named last."""

    def __init__(self) -> None:
        self.outlined, self.plain = io.StringIO(), io.StringIO()
        self.open = [self.outlined, self.plain]

    def write(self, text: str) -> None:
        for file in self.open:
            file.write(text)

    def flush(self) -> None:
        """Have nothing to do: files in memory are always up to date."""


class _TwoFonts(RendererSVG):
    """Draws everything once and every text twice, once for each file."""

    def __init__(self, width: float, height: float, files: _Files, **options: Any) -> None:
        super().__init__(width, height, files, **options)
        self._files = files

    def draw_text(self, gc: Any, x: float, y: float, s: str, *args: Any, **options: Any) -> None:
        self.writer.comment(s)  # ends the tag before it, which both files need
        both = self._files.open
        for kind, file in (("path", self._files.outlined), ("none", self._files.plain)):
            mpl.rcParams["svg.fonttype"] = kind
            self._files.open = [file]
            super().draw_text(gc, x, y, s, *args, **options)
        self._files.open = both
