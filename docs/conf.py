"""Sphinx configuration."""

import os

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from markupsafe import escape

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
    "sphinx.ext.viewcode",
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
# Signatures name parameters; their types stand in the docstrings.
autodoc_typehints = "none"
html_math_renderer = "mathml"
templates_path = ["_templates"]
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
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
html_favicon = "_static/favicon.svg"
html_js_files = ["page.js"]
html_title = f"idfsmec {version}"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 5,
}
html_show_sourcelink = False
# Pages of their own have no section to navigate in, and need the width.
_ALONE = "install quickstart method results guarantees case_mumtaz faq glossary trust contributing"
html_sidebars = {name: [] for name in _ALONE.split()}
html_static_path = ["_static"]
html_css_files = ["custom.css"]


def write_formula(self, node, block=False):
    """Write a formula as MathML, which browsers draw without a program from the network."""
    formula = tex2mathml(node.astext(), as_block=block)
    self.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def describe_page(app, pagename, templatename, context, doctree):
    """Add what search engines and messengers show of a page: title, first paragraph, picture."""
    if doctree is None:
        return
    paragraph = next(iter(doctree.findall(nodes.paragraph)), None)
    text = " ".join(paragraph.astext().split()) if paragraph else ""
    if len(text) > 200:
        text = text[:200].rpartition(" ")[0] + " …"
    tags = {"og:title": context["title"], "og:type": "website", "og:site_name": project}
    tags |= {"og:description": text} if text else {}
    if html_baseurl:  # addresses of pictures have to be whole
        tags |= {"og:url": html_baseurl + pagename + ".html"}
        tags |= {"og:image": html_baseurl + "_static/report.png", "twitter:card": "summary"}
    lines = [f'<meta property="{name}" content="{escape(value)}">' for name, value in tags.items()]
    if text:
        lines.append(f'<meta name="description" content="{escape(text)}">')
    context["metatags"] = context.get("metatags", "") + "\n".join(lines)


def setup(app):
    block = (lambda self, node: write_formula(self, node, block=True), None)
    app.add_html_math_renderer("mathml", (write_formula, None), block)
    app.connect("html-page-context", describe_page)
