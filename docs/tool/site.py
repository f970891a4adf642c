# SPDX-License-Identifier: BSL-1.0
"""site.py <repository> <folder>: the documents as plain HTML, checked.

Markdown goes through cmark-gfm; the reference and the list of headers are made of the headers' comments. Every link
must lead somewhere, every name that documents and examples write as vv::name must be in the reference: else it fails.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import time

import declared
import messages
import module
import reference

# (source, page, title); without a source: made here.
PAGES = [
    ("README.md", "index.html", "varve"),
    ("docs/tutorial.md", "tutorial.html", "Tutorial"),
    ("docs/transforms.md", "transforms.html", "What there is"),
    ("docs/choosing.md", "choosing.html", "Plain, compile or fuse"),
    ("docs/coming_from.md", "coming_from.html", "Coming from ..."),
    ("docs/modes_and_subclasses.md", "modes_and_subclasses.html", "Modes and subclasses"),
    ("docs/operators_of_your_own.md", "operators_of_your_own.html", "Operators of your own"),
    ("docs/transforms_of_your_own.md", "transforms_of_your_own.html", "Transforms of your own"),
    ("docs/implicit.md", "implicit.html", "Implicit functions"),
    ("docs/emit_c.md", "emit_c.html", "Programs in C"),
    ("docs/processes.md", "processes.html", "Several processes"),
    ("docs/errors.md", "errors.html", "Errors explained"),
    ("docs/tools.md", "tools.html", "Packages and tools"),
    ("docs/compile_times.md", "compile_times.html", "Compile times"),
    ("docs/gallery.md", "gallery.html", "Gallery"),
    (None, "messages.html", "All messages"),
    (None, "reference.html", "Reference"),
    (None, "headers.html", "Headers"),
    ("docs/operators.md", "operators.html", "Operators by name"),
    ("docs/measured.md", "measured.html", "Measured"),
    ("docs/performance.md", "performance.html", "Operators beside libtorch"),
    ("docs/design.md", "design.html", "Design"),
    ("docs/departures.md", "departures.html", "Departures"),
    ("docs/scenarios.md", "scenarios.html", "Scenarios"),
    ("CONTRIBUTING.md", "contributing.html", "Contributing"),
    ("CHANGELOG.md", "changelog.html", "Changes"),
]


def slug(heading):
    text = html.unescape(re.sub(r"<[^>]+>", "", heading)).strip().lower()
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", text))


def with_anchors(body):
    """Headings get ids, and are links to themselves."""
    seen = {}

    def one(m):
        name = slug(m.group(2))
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            name += f"-{seen[name] - 1}"
        return f'<h{m.group(1)} id="{name}">{m.group(2)}</h{m.group(1)}>'

    return re.sub(r"<h([1-6])>(.*?)</h\1>", one, body, flags=re.S)


class Site:
    def __init__(self, root, out):
        self.root, self.out, self.bad = root, out, []
        self.page_of = {source: page for source, page, _ in PAGES if source}
        self.copied = {}  # file of the repository -> page or file of the site
        self.written = {}

    def write(self, page, title, body):
        up = "../" * page.count("/")
        nav = "".join(f'<li{" class=here" if p == page else ""}><a href="{up}{p}">{html.escape(t)}</a></li>'
                      for _, p, t in PAGES if self.exists(p))
        text = (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                f'<meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
                f'<link rel="stylesheet" href="{up}style.css"></head>\n<body><nav><ul>{nav}</ul></nav>\n'
                f"<main>\n{body}\n</main></body></html>\n")
        path = os.path.join(self.out, page)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.written[page] = text

    def exists(self, page):
        return any(p == page and (not s or os.path.exists(f"{self.root}/{s}")) for s, p, _ in PAGES)

    def target(self, source, link):
        """Where a link of a document leads on the site."""
        if re.match(r"[a-z]+:|#", link):
            return link
        path, _, part = link.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(source), path))
        part = "#" + part if part else ""
        up = "../" * self.page_of.get(source, "").count("/")
        if file in self.page_of:
            return up + self.page_of[file] + part
        full = f"{self.root}/{file}"
        if os.path.isdir(full):
            self.bad.append(f"{source}: links to the folder {file}")
            return link
        if not os.path.isfile(full):
            self.bad.append(f"{source}: links to {link}, which is not there")
            return link
        if file.endswith((".svg", ".png")):
            place = "pictures/" + os.path.basename(file)
            if file not in self.copied:
                os.makedirs(f"{self.out}/pictures", exist_ok=True)
                shutil.copyfile(full, f"{self.out}/{place}")
        else:  # a program or a header: as a page
            place = "files/" + file + ".html"
        self.copied[file] = place
        return up + place + part

    def markdown(self, source, page, title):
        with open(f"{self.root}/{source}", encoding="utf-8") as f:
            text = f.read()
        text = re.sub(r"^```cpp\b[^\n]*", "```cpp", text, flags=re.M)
        text = re.sub(r"^```(output)[^\n]*", "```output", text, flags=re.M)
        body = subprocess.run(["cmark-gfm", "-e", "table", "--unsafe"], input=text, capture_output=True, text=True,
                              check=True).stdout
        body = re.sub(r'(href|src)="([^"]*)"',
                      lambda m: f'{m.group(1)}="{html.escape(self.target(source, html.unescape(m.group(2))))}"', body)
        self.write(page, title, with_anchors(body))

    def files(self):
        for file, place in list(self.copied.items()):
            if not place.startswith("files/"):
                continue
            with open(f"{self.root}/{file}", encoding="utf-8") as f:
                lines = f.read().split("\n")
            code = "\n".join(f'<span id="L{k}">{html.escape(line)}</span>' for k, line in enumerate(lines, 1))
            self.write(place, file, f"<h1><code>{file}</code></h1>\n<pre>{code}</pre>")

    def check_links(self):
        ids = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in self.written.items()}
        links = 0
        for page, text in self.written.items():
            for link in re.findall(r'(?:href|src)="([^"]*)"', text):
                link = html.unescape(link)
                if re.match(r"[a-z]+:", link):
                    continue
                links += 1
                path, _, part = link.partition("#")
                to = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                if to not in self.written and not os.path.isfile(f"{self.out}/{to}"):
                    self.bad.append(f"{page}: the link {link} leads nowhere")
                elif part and to in ids and part not in ids[to]:
                    self.bad.append(f"{page}: {to} has no place {part}")
        return links


def headers_page(root, names, said):
    """Narrow headers: those that define a public name, and the umbrellas, folder by folder."""
    public = {n.header for n in names.values()}
    pages = {n.header: n.page for n in names.values()}
    rows = ["<p><code>#include &lt;varve/varve.hpp&gt;</code> has everything but what is optional. A unit that needs "
            "little includes little: the header that a name stands in says the reference. A header that makes values "
            "calls operators by itself only as far as it needs them: for <code>x * x</code> include "
            "<code>varve/op/all.hpp</code> or <code>varve/op/operators.hpp</code> too.</p>"]
    for folder in sorted({os.path.dirname(h) for h in said}):
        mine = [h for h in sorted(said) if os.path.dirname(h) == folder and (h in public or not folder)]
        if not mine:
            continue
        rows.append(f"<h2>{html.escape(reference.FOLDERS.get(folder, folder))}</h2><table>")
        for h in mine:
            name = f"<code>varve/{h}</code>"
            if h in pages:
                name = f'<a href="{pages[h]}#{h.split("/")[-1]}">{name}</a>'
            rows.append(f"<tr><td>{name}</td><td>{code_of(said[h])}</td></tr>")
        rows.append("</table>")
    return "<h1>Headers</h1>" + "\n".join(rows)


def messages_page(root):
    """Every message, by header."""
    rows = ['<p>Every message of the headers, as far as it is one text; <code>...</code> stands where values follow. '
            '<a href="errors.html">Errors explained</a> tells what leads to the usual ones.</p>']
    count = 0
    for header, texts in messages.by_header(root).items():
        mine = sorted({t for t in texts if messages.is_message(t)})
        if mine:
            rows.append(f"<h2><code>varve/{header}</code></h2><ul>")
            rows += [f"<li>{html.escape(t.replace(chr(92) + 'n', '').strip())}{' ...' if t.endswith(' ') else ''}</li>"
                     for t in mine]
            rows.append("</ul>")
            count += len(mine)
    return f"<h1>All {count} messages</h1>" + "\n".join(rows)


def code_of(text):
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def names_used(root):
    """What documents and examples write as vv::name: {name: first file}"""
    used = {}
    places = [s for s, _, _ in PAGES if s and s.endswith(".md") and os.path.exists(f"{root}/{s}")]
    for folder, _, files in os.walk(f"{root}/examples"):
        places += [os.path.relpath(os.path.join(folder, f), root) for f in files if f.endswith((".cpp", ".hpp"))]
    inner = "|".join(reference.PUBLIC)
    for place in places:
        with open(f"{root}/{place}", encoding="utf-8") as f:
            text = f.read()
        if place.endswith(".md"):
            text = "\n".join(re.findall(r"^```cpp\n(.*?)^```", text, flags=re.M | re.S))
        for m in re.finditer(rf"\b(?:vv|varve)::((?:(?:{inner})::)?[a-z_]\w*)", text):
            used.setdefault(m.group(1), place)
    return used


def missing_names(root, names):
    spaces = set(reference.PUBLIC)
    missing = []
    for name, place in sorted(names_used(root).items()):
        if name in names or name in spaces or "detail" in name:
            continue
        if name.endswith("_t") and name[:-2] in names:  # the tag of an operator: told with its object
            continue
        missing.append(f"{place}: vv::{name} is not in the reference")
    return missing


WRITTEN = ["README.md", "docs/tutorial.md", "docs/transforms.md", "docs/coming_from.md", "docs/modes_and_subclasses.md",
           "docs/operators_of_your_own.md", "docs/emit_c.md", "docs/processes.md", "docs/gallery.md", "docs/choosing.md",
           "docs/compile_times.md", "docs/implicit.md"]
OTHERS = {"static_assert", "decltype", "find_package", "add_subdirectory", "with_parts", "setup_context"}


def words_missing(root, names):
    """Calls and templates that the prose names: `vmap(f)`, `spec<...>`. Tables of others' names have those first."""
    known = {n.split("::")[-1] for n in names} | set(reference.tags) | OTHERS | set(reference.PUBLIC)
    known |= {m for n in names.values() for _, _, m in n.members}
    bad = []
    for place in WRITTEN:
        with open(f"{root}/{place}", encoding="utf-8") as f:
            text = re.sub(r"^```.*?^```", "", f.read(), flags=re.M | re.S)
        for line in text.split("\n"):
            if place.endswith("coming_from.md") and line.startswith("|"):
                line = "|".join(line.split("|")[2:])
            for code in re.findall(r"`([^`]+)`", line):
                for word in re.findall(r"(?<![\w.:])((?:\w+::)*[a-z_]\w+)(?=[(<])", code):
                    if not word.startswith("std::") and word.split("::")[-1] not in known:
                        bad.append(f"{place}: {word} is no name of varve's")
    return bad


def main(root, out):
    start = time.time()
    root, out = os.path.abspath(root), os.path.abspath(out)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    site = Site(root, out)
    shutil.copyfile(f"{root}/docs/tool/style.css", f"{out}/style.css")
    work = out + ".xml"
    reference.run_doxygen(root, work)
    names = reference.read_names(work + "/xml")
    said = reference.header_summaries(root, work)
    for source, page, title in PAGES:
        if source and os.path.exists(f"{root}/{source}"):
            site.markdown(source, page, title)
    site.write("reference.html", "Reference", "<h1>Reference</h1>" + reference.index_page(names))
    site.write("headers.html", "Headers", with_anchors(headers_page(root, names, said)))
    site.write("messages.html", "All messages", with_anchors(messages_page(root)))
    for page, (title, body) in reference.folder_pages(names).items():
        site.write(page, title, f"<h1>{html.escape(title)}</h1>\n{body}")
    site.files()
    links = site.check_links()
    with open(f"{root}/src/varve.cppm", encoding="utf-8") as f:
        if f.read() != module.text(root, names):
            site.bad.append("src/varve.cppm is not that of the headers: cmake --build <build> --target module_unit")
    with open(f"{root}/README.md", encoding="utf-8") as f:
        if len(f.readlines()) > 150:
            site.bad.append("README.md: more than 150 lines; what is long belongs into docs/")
    without = [n.name for n in names.values() if not n.comment]
    site.bad += missing_names(root, names) + declared.missing(root, names) + words_missing(root, names)
    with open(out + "/names.json", "w", encoding="utf-8") as f:
        json.dump({n.name: f"{n.page}#{reference.anchor(n.name)}" for n in names.values()}, f, indent=0)
    for line in site.bad:
        print("docs:", line, file=sys.stderr)
    print(f"{len(site.written)} pages, {links} links, {len(names)} public names, {len(without)} without a comment, "
          f"{time.time() - start:.0f} s: {out}/index.html")
    if without:
        print("without a comment:", *sorted(without))
    return 1 if site.bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
