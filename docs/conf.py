"""Sphinx configuration."""

import os

from idfsmec import __version__

project = "idfsmec"
author = "The idfsmec developers"
copyright = "2026, the idfsmec developers"  # noqa: A001  (Sphinx wants this name)
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 10,
    "show_signature": False,
}
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
autosummary_generate = True
# Links into the documentation of other packages. Their inventories come from the network, which a
# build on this machine does not need: names stay plain text in it.
if os.environ.get("READTHEDOCS"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    "joblib": ("https://joblib.readthedocs.io/en/stable", None),
    "mne": ("https://mne.tools/stable", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "pandas": ("https://pandas.pydata.org/docs", None),
    "python": ("https://docs.python.org/3", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
}
numpydoc_show_class_members = False
exclude_patterns = ["_build", "examples"]
# scikit-learn's inherited docstrings refer to labels of its own documentation.
suppress_warnings = ["ref.ref"]
html_theme = "pydata_sphinx_theme"
html_title = f"idfsmec {version}"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
}
html_show_sourcelink = False
# Pages of their own have no section to navigate in, and need the width.
_ALONE = "install quickstart method results case_mumtaz faq trust contributing"
html_sidebars = {name: [] for name in _ALONE.split()}
html_static_path = ["_static"]
html_css_files = ["custom.css"]
