# SPDX-License-Identifier: BSL-1.0
"""site.py <repository> <folder>: the documents and the reference as a site, by Sphinx, checked.

Sphinx reads pages that are written into <folder>.pages: the documents with links that lead to pages, programs, the
reference. It fails if a link leads nowhere, a public name has no page or no comment, or a document names what there is
not.
"""
import html
import os
import re
import shutil
import subprocess
import sys
import time

import declared
import facts
import messages
import module
import pages
import reference
from reference import escaped

TITLES = list(pages.TOPICS)
MENUS = {  # caption: pages, as title <document>
    "For users": """Tutorial <docs/tutorial>; What there is <docs/transforms>; compile, fuse or neither <docs/choosing>
        Coming from other libraries <docs/coming_from>; Gallery <docs/gallery>; Programs <files/index>
        Modes and subclasses <docs/modes_and_subclasses>; Operators of your own <docs/operators_of_your_own>
        Transforms of your own <docs/transforms_of_your_own>; Implicit functions <docs/implicit>
        Sparse derivatives <docs/sparse>; Programs that leave <docs/exporting>; Programs in C <docs/emit_c>
        Several processes <docs/processes>; Errors explained <docs/errors>; Packages and tools <docs/tools>
        Compile times <docs/compile_times>; Measured <docs/measured>; Operators beside libtorch <docs/performance>
        Changes <CHANGELOG>""",
    "Reference": "All topics <reference/index>; All names <reference/names>;" + ";".join(
        f"{t} <reference/{pages.slug(t)}>" for t in TITLES[:TITLES.index(None)]) + """
        Operators against PyTorch <docs/operators>; Departures <docs/departures>; All messages <messages>""",
    "For maintainers": "Contributing <CONTRIBUTING>; Design <docs/design>; Scenarios <docs/scenarios>;" + ";".join(
        f"{t} <reference/{pages.slug(t)}>" for t in TITLES[TITLES.index(None) + 1:])}
MENU = "\n```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"
OTHERS = {"static_assert", "decltype", "find_package", "add_subdirectory", "with_parts", "setup_context"}


def documents(root):
    return ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] + facts.files(root, "docs", ".md")


class Source:
    """The folder that Sphinx reads. Only files that change are written, so that it reads no others again."""

    def __init__(self, root, folder):
        self.root, self.folder, self.kept, self.programs, self.bad = root, folder, set(), set(), []

    def write(self, file, text):
        path = os.path.join(self.folder, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.kept.add(path)
        if not os.path.exists(path) or facts.read(path) != text:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)

    def document(self, file):
        """A document, with links to the page of what it links to."""
        def one(m):
            path, _, part = (m.group(2) or "").partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(file), path))
            if not path or re.match("[a-z]+:", path):
                return m.group()
            if not os.path.isfile(f"{self.root}/{to}"):
                self.bad.append(f"{file}: links to {m.group(2)}, which is no file")
            elif to.endswith(".svg"):
                self.write(os.path.basename(to), facts.read(f"{self.root}/{to}"))
                return f"{m.group(1)}(/{os.path.basename(to)})"
            elif not to.endswith(".md"):
                self.programs.add(to)
            return f"{m.group(1)}({'../' * file.count('/')}{pages.staged(to)}{'#' * bool(part)}{part})"
        text = re.sub(r"^```.*?^```$|`[^`]+`|(\]\s?)\(([^)\s]+)\)", one, facts.read(f"{self.root}/{file}"),
                      flags=re.M | re.S)
        if file == "README.md":
            text += "".join(MENU.format(caption, re.sub(r"[;\n]\s*", "\n", some)) for caption, some in MENUS.items())
        self.write(pages.staged(file), text)

    def all_programs(self):
        """Programs that pages link to, and a list of the examples."""
        examples, lines = facts.files(self.root, "examples", ".cpp"), []
        for file in sorted(self.programs | set(examples)):
            text = facts.read(f"{self.root}/{file}")
            self.write(f"files/{file}.md", f"---\norphan: true\n---\n\n# {escaped(file)}\n\n```````"
                       f"{'cpp' if file.endswith('pp') else 'text'}\n{text}```````\n")
            said = re.findall(r"^// (?!SPDX)(.*)", text, flags=re.M)[:1]
            lines += [f"- [{escaped(file)}]({file}.md) {''.join(said)}\n"] * (file in examples)
        self.write("files/index.md", f"# Programs\n\nComplete programs, which the tests run.\n\n{''.join(lines)}")

    def messages(self):
        """Every message, by header."""
        rows, count = [], 0
        for header, texts in messages.by_header(self.root).items():
            mine = sorted({t.replace("\\n", "").strip() for t in texts if messages.is_message(t)})
            rows += [f"\n## varve/{escaped(header)}\n"] * bool(mine) + ["- " + escaped(t) for t in mine]
            count += len(mine)
        self.write("messages.md", f"# All {count} messages\n\nEvery message of the headers that is one text. [Errors "
                   "explained](docs/errors.md) says what leads to the usual ones.\n" + "\n".join(rows) + "\n")


def forget_others(folder, end, kept):
    """Removes files of earlier times."""
    for at, _, some in os.walk(folder):
        for path in (os.path.join(at, f) for f in some if f.endswith(end)):
            if path not in kept:
                os.remove(path)


def check_links(out):
    """Links that lead nowhere, and files of other hosts that a page loads."""
    files = {os.path.relpath(os.path.join(at, f), out) for at, _, some in os.walk(out) for f in some}
    texts = {f: facts.read(f"{out}/{f}") for f in files if f.endswith(".html")}
    ids = {f: set(re.findall(r'\bid="([^"]+)"', text)) for f, text in texts.items()}
    bad, links = [], 0
    for page, text in texts.items():
        bad += [f"{page}: loads {x}" for x in re.findall(r'<(?:script|link|img)\b[^>]*"(https?:[^"]*)"', text)]
        for link in set(re.findall(r'(?:href|src)="(?![a-z]+:)([^"]*)"', text)):
            path, _, part = html.unescape(link).partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(page), path.partition("?")[0])) if path else page
            links += 1
            if to not in files or part and part not in ids.get(to, {part}):
                bad.append(f"{page}: the link {link} leads nowhere")
    return bad, f"{len(texts)} pages, {links} links"


def missing_names(made):
    """Names that documents and examples use, but that are not public."""
    known = set(made.names) | set(reference.tags) | set(reference.PUBLIC) | {"detail"}
    return [f"{list(files)[0]}: vv::{name} is not in the reference" for name, files in made.programs.used.items()
            if not any("::".join(name.split("::")[:k + 1]) in known for k in range(name.count("::") + 1))]


def words_missing(root, names):
    """Calls and templates that the prose names: `vmap(f)`, `spec<...>`. Tables of others' names have those first."""
    known = {n.split("::")[-1] for n in names} | set(reference.tags) | OTHERS | set(reference.PUBLIC)
    known |= {m.findtext("name") for n in names.values() for m in n.members}
    bad = []
    for place in ["README.md"] + [f"docs/{d}.md" for d in (
            "tutorial transforms coming_from modes_and_subclasses operators_of_your_own processes gallery choosing "
            "compile_times").split()]:
        for line in re.sub(r"^```.*?^```", "", facts.read(f"{root}/{place}"), flags=re.M | re.S).split("\n"):
            if place.endswith("coming_from.md") and line.startswith("|"):
                line = "|".join(line.split("|")[2:])
            words = [w for code in re.findall(r"`([^`]+)`", line)
                     for w in re.findall(r"(?<![\w.:])((?:\w+::)*[a-z_]\w+)(?=[(<])", code)]
            bad += [f"{place}: {w} is no name of varve's" for w in words
                    if not w.startswith("std::") and w.split("::")[-1] not in known]
    return bad


def main(root, out):
    start, root, out = time.time(), os.path.abspath(root), os.path.abspath(out)
    source = Source(root, out + ".pages")
    shutil.rmtree(out + ".xml", ignore_errors=True)
    reference.run_doxygen(root, out + ".xml")
    made = pages.Reference(root, out + ".xml/xml", documents(root))
    read = time.time()
    for file in documents(root):
        source.document(file)
    for file, text in made.pages().items():
        source.write(f"reference/{file}", text)
    source.programs.update(f for some in made.programs.used.values() for f in some if not f.endswith(".md"))
    source.all_programs()
    source.messages()
    forget_others(source.folder, "", source.kept)
    failed = subprocess.run([sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d",
                             out + ".trees", "-c", f"{root}/docs/tool", source.folder, out], check=False).returncode
    forget_others(out, ".html", {out + p.removeprefix(source.folder)[:-3] + ".html" for p in source.kept} |
                  {out + "/search.html"})
    broken, count = check_links(out)
    bad = ["Sphinx has warnings"] * bool(failed) + source.bad + broken + missing_names(made)
    bad += declared.missing(root, made.names) + words_missing(root, made.names)
    if facts.read(f"{root}/src/varve.cppm") != module.text(root, made.names):
        bad.append("src/varve.cppm is not that of the headers: cmake --build <build> --target module_unit")
    if facts.read(f"{root}/README.md").count("\n") > 150:
        bad.append("README.md: more than 150 lines; what is long belongs into docs/")
    for n in made.names.values():
        if not os.path.exists(f"{out}/reference/{made.page_of[n.name]}.html"):
            bad.append(f"{n.name} has no page")
        if n.name in made.families and not n.comment and not n.above:
            bad.append(f"{n.header}: {n.name} has no comment")
    sys.stderr.write("".join(f"docs: {line}\n" for line in bad))
    print(f"{count}, {len(made.names)} public names; {read - start:.0f} s to read the headers, "
          f"{time.time() - read:.0f} s for the pages: {out}/index.html")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
