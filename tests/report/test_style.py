"""Colours mean something, and mean it in both looks."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from idfsmec.prediction import METHODS, register_method
from idfsmec.report import plot_accuracy_by_rate, style, use_style
from idfsmec.report.page import FIGURES
from idfsmec.report.style import SEQUENTIAL, THEME
from idfsmec.selection import MRMR
from tests.report.tidy import by_gid, make_scores, texts

REPORT = Path(style.__file__).parent


def test_every_figure_has_a_caption_and_every_caption_stands_somewhere():
    captions, sources = style.captions(), [*REPORT.glob("*.py")]
    assert {figure.section for figure in FIGURES} <= set(captions)
    text = "".join(path.read_text("utf-8") for path in sources)
    assert [name for name in captions if f'"{name}"' not in text] == []


def test_no_colour_of_the_scale_is_exchanged_in_the_dark_look():
    scale = {to_hex(SEQUENTIAL(step)) for step in range(SEQUENTIAL.N)}
    assert not scale & {light for light, _ in THEME.values()}


def test_the_scale_gets_darker_all_the_way():
    red, green, blue, _ = SEQUENTIAL(np.arange(SEQUENTIAL.N)).T
    assert (np.diff(0.2126 * red + 0.7152 * green + 0.0722 * blue) < 0).all()


def lines(methods, names):
    ax = plot_accuracy_by_rate(
        make_scores({(name, rate, 5): 0.7 for name in names for rate in (0.0, 0.3)}),
        methods=methods,
    )
    return ax, {name: by_gid(ax, f"line-{name}")[0] for name in names}


def test_families_decide_the_look_names_do_not():
    families = {"IDFS-MEC": "filter", "mRMR": "proposed", "mine": "filter", "chance": "sanity"}
    methods = {name: {"family": family} for name, family in families.items()}
    _, drawn = lines(methods, list(families))
    assert drawn["IDFS-MEC"].get_color() == drawn["mine"].get_color()
    assert drawn["IDFS-MEC"].get_marker() != drawn["mine"].get_marker()
    widths = {name: line.get_linewidth() for name, line in drawn.items()}
    assert max(widths, key=widths.get) == "mRMR"
    assert [name for name, line in drawn.items() if line.get_linestyle() != "-"] == ["chance"]


def test_only_the_first_of_several_proposed_methods_is_emphasised():
    methods = {name: {"family": "proposed"} for name in ("first", "second")}
    _, drawn = lines(methods, ["first", "second"])
    assert drawn["first"].get_linewidth() > drawn["second"].get_linewidth()
    assert drawn["first"].get_color() == drawn["second"].get_color()
    assert drawn["first"].get_marker() != drawn["second"].get_marker()


def test_labels_are_written_in_place_of_names():
    ax, _ = lines({"m1": {"family": "filter", "label": "my filter"}}, ["m1", "m2"])
    assert {"my filter", "m2"} <= set(texts(ax))


def test_a_method_of_no_known_family_has_a_colour_of_its_own():
    _, drawn = lines({"a": {"family": "filter"}, "b": {"family": "new kind"}}, ["a", "b", "c"])
    assert drawn["b"].get_color() == drawn["c"].get_color() != drawn["a"].get_color()


def test_without_results_the_registry_says_what_a_method_is():
    register_method("my wrapper", MRMR(), family="wrapper", label="mine")
    try:
        ax, drawn = lines(None, ["my wrapper", "PS-NSGA"])
        assert "mine" in texts(ax)
        assert drawn["my wrapper"].get_color() == drawn["PS-NSGA"].get_color()
    finally:
        del METHODS["my wrapper"]


def test_two_dozen_methods_of_a_family_are_all_told_apart():
    names = [f"m{i}" for i in range(24)]
    _, drawn = lines({name: {"family": "filter"} for name in names}, names)
    assert len({(line.get_marker(), line.get_linestyle()) for line in drawn.values()}) == 24


def test_own_figures_have_the_colours_of_the_report():
    with mpl.rc_context():
        use_style()
        use_style()  # twice is no different
        _, ax = plt.subplots()
        (line,) = ax.plot([1, 2])
        assert line.get_color() in {light for light, _ in THEME.values()}
        assert not ax.spines["top"].get_visible()
        image = ax.imshow([[0.0, 1.0]])
        assert image.get_cmap().name == SEQUENTIAL.name


def test_a_long_note_takes_no_width_from_the_axes():
    widths = []
    for note in ("folds of people", "folds of people, tuned by inner folds of them, " * 6):
        ax = style.make_axes(None, 7.2, 3.0)
        style.style_axes(ax, "Accuracy", note)
        ax.figure.draw_without_rendering()
        widths.append(ax.get_position().width)
    assert widths[1] == pytest.approx(widths[0], abs=0.01)
