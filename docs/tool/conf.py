# SPDX-License-Identifier: BSL-1.0
"""Sphinx's configuration of the site; docs/tool/site.py writes its pages and calls it."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(f"{ROOT}/include/varve/config.hpp", encoding="utf-8") as f:
    version = release = re.search(r'VARVE_VERSION_STRING "([\d.]+)"', f.read()).group(1)
project, author, language, root_doc = "varve", "the authors of varve", "en", "index"
extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions, myst_heading_anchors, myst_ref_domains = ["fieldlist"], 4, ["std"]
highlight_language, pygments_style, pygments_dark_style = "text", "friendly", "monokai"
html_theme, html_title, html_short_title = "furo", f"varve {version}", "varve"
html_static_path, html_css_files = ["style.css"], ["style.css"]
html_js_files = [("scripts/gumshoe-patched.js", {"priority": 100})]
html_use_index = html_show_sphinx = html_show_sourcelink = html_copy_source = html_show_copyright = False
copybutton_selector = "div:not(.highlight-output) > div.highlight > pre"
menus = {}  # {folder: menu of its pages}


def one_menu(app, page, template, context, doctree):
    """Pages that no menu names have the same menu: it is made once."""
    if context.get("meta") and "orphan" in context["meta"]:
        toctree, folder = context["toctree"], os.path.dirname(page)
        context["toctree"] = lambda **how: menus.get(folder) or menus.setdefault(folder, toctree(**how))


def mend_furo(app, error):
    """Debian's furo is not bundled: its script imports another one, and its style sheet a file of the machine."""
    for file, line in (("scripts/furo.js", r'^import Gumshoe from "./gumshoe-patched.js";\n'),
                       ("styles/furo.css", r"^@import url\(/javascript/normalize.css/normalize.css\);")):
        path = f"{app.outdir}/_static/{file}"
        if not error and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            with open(path, "w", encoding="utf-8") as f:
                f.write(re.sub(line, "", text))


def setup(app):
    app.connect("html-page-context", one_menu, priority=400)
    app.connect("build-finished", mend_furo)
