"""Sphinx's settings. `python tools/docs/build_docs.py` prepares the pages and calls Sphinx."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = Path(ROOT, "python/devtensor/_version.py")

project = "devtensor"
author = "the authors of devtensor"
project_copyright = "the authors of devtensor, Apache-2.0"
html_title = "devtensor"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["files/**"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "github-dark"
add_module_names = False
toc_object_entries = False
python_maximum_signature_line_length = 100
if VERSION.exists():
    release = re.search(r'"(.*)"', VERSION.read_text())[1]  # type: ignore[index]
