# SPDX-License-Identifier: BSL-1.0
"""The public names of the headers, as doxygen reads them, and pages of them.

A name is public when it stands in the namespace varve or one that users are meant to write (`PUBLIC`). The tag of an
operator (`sin_t`) is told with its object (`sin`).
"""
import html
import os
import re
import subprocess
import xml.etree.ElementTree as ET

# Namespaces that users write, beside varve itself.
PUBLIC = ["autograd", "backends", "forward_ad", "implicit", "masked", "mpi", "optim", "rule", "tracing", "windows", "kernel"]

FOLDERS = {
    "": "Umbrella and indices", "aot": "Gradients ahead of time", "autograd": "Eager autograd", "call": "Calls by name",
    "compile": "compile", "composite": "Functions written in operators", "core": "Names that all share",
    "dispatch": "Dispatcher", "export": "Programs as text and files", "fake": "Programs on shapes alone",
    "functional": "functionalize", "fuse": "fuse", "graph": "Graphs", "hop": "Branches and calls", "implicit": "Implicit functions",
    "indexing": "Indices",
    "interop": "Neighbours", "interpreter": "Interpreters and modes", "io": "Files of numbers", "kernel": "Kernels",
    "linalg": "Linear algebra", "loop": "Loops", "masked": "Masked reductions", "mode": "Modes ready for use",
    "nn": "Neural networks", "op": "Operators", "optim": "Optimizers", "rule": "Families of rules",
    "shape": "Symbolic sizes", "signal": "Signals", "sorting": "Scans and sorts", "special": "Special functions",
    "trace": "Tracing", "transform": "Transforms", "value": "Values",
}


def run_doxygen(root, out):
    """XML of all headers, as users of the compiled library see them: declarations."""
    os.makedirs(out, exist_ok=True)
    config = f"""
PROJECT_NAME = varve
INPUT = {root}/include
RECURSIVE = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
OUTPUT_DIRECTORY = {out}
EXTRACT_ALL = YES
QUIET = YES
WARNINGS = NO
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = VARVE_COMPILED=1 VARVE_DEFINES=0 VARVE_LIBRARY=inline VARVE_LIBRARY_MEMBER= VARVE_INLINE=inline \\
  VARVE_COLD= VARVE_NOINLINE= VARVE_PART= VARVE_WHOLE= VARVE_VECTORIZED= "__attribute__(x)=" "__has_include(x)=1"
HAVE_DOT = NO
"""
    with open(f"{out}/Doxyfile", "w", encoding="utf-8") as f:
        f.write(config)
    subprocess.run(["doxygen", f"{out}/Doxyfile"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def text_of(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip() if node is not None else ""


BLOCKS = {"itemizedlist": "ul", "orderedlist": "ol", "listitem": "li", "table": "table", "row": "tr", "entry": "td",
          "bold": "b", "emphasis": "i", "computeroutput": "code", "para": "p"}


def markup(node):
    """A comment as HTML."""
    inner = html.escape(node.text or "")
    for child in node:
        inner += markup(child) + html.escape(child.tail or "")
    if node.tag in ("programlisting", "verbatim", "preformatted"):
        lines = [text_of(c) for c in node] if node.tag == "programlisting" else ["".join(node.itertext())]
        return "<pre>" + html.escape("\n".join(lines)) + "</pre>"
    tag = BLOCKS.get(node.tag)
    return f"<{tag}>{inner}</{tag}>" if tag else inner


def comment_of(member):
    parts = [markup(p) for kind in ("briefdescription", "detaileddescription") if member.find(kind) is not None
             for p in member.find(kind)]
    return "".join(parts).replace("<p></p>", "").strip()


def declaration_of(m):
    """One line of C++."""
    template = ""
    params = m.find("templateparamlist")
    if params is not None:
        template = "template <" + ", ".join(
            " ".join(filter(None, [text_of(p.find("type")), text_of(p.find("declname")),
                                   "= " + text_of(p.find("defval")) if p.find("defval") is not None else ""]))
            for p in params) + "> "
    if m.get("kind") == "enum":
        values = ", ".join(v.findtext("name") for v in m.iter("enumvalue"))
        return f"enum class {m.findtext('name')} {{ {values} }};"
    kind, name = text_of(m.find("type")), m.findtext("name")
    if m.get("kind") == "typedef":
        return f"{template}using {name} = {kind};"
    end = text_of(m.find("argsstring"))
    return f"{template}{kind} {name}{end};".replace(" ;", ";")


class Name:
    """All that is declared under one name."""

    def __init__(self, name, header):
        self.name, self.header, self.comment, self.declarations, self.members = name, header, "", [], []
        self.line = 0

    def add(self, declaration, comment):
        if declaration and declaration not in self.declarations:
            self.declarations.append(declaration)
        if comment and comment not in self.comment:
            self.comment += comment

    @property
    def folder(self):
        return os.path.dirname(self.header)

    @property
    def page(self):
        return f"reference/{self.folder or 'top'}.html"


def header_of(node):
    place = node.find("location")
    return place.get("file").rpartition("include/varve/")[2] if place is not None else ""


def members_of(compound, into):
    """Public members of a struct, each with its comment."""
    for m in compound.iter("memberdef"):
        if m.get("prot") == "public" and m.get("kind") in ("function", "variable", "typedef") \
                and not m.findtext("name").startswith("~"):
            into.append((declaration_of(m), comment_of(m), m.findtext("name")))


tags = {}  # of operators that are told with their objects: {sin_t: header}
operators = {}  # overloaded ones of namespace varve: {operator+: [headers]}


def read_members(root, front, entry):
    """Functions, variables, types of a namespace; overloaded operators of varve itself."""
    for m in root.iter("memberdef"):
        name = m.findtext("name")
        is_operator = re.match(r"operator\W", name)
        if is_operator and m.find("location") is not None and not front:
            operators.setdefault(name.replace(" ", ""), []).append(header_of(m))
        if "<" in name or m.find("location") is None or is_operator:
            continue
        e = entry(front + name, header_of(m))
        e.add(declaration_of(m), comment_of(m))
        e.line = e.line or int(m.find("location").get("line"))


def compounds_of(xml, spaces):
    """{name: element} of classes, structs and concepts."""
    found = {}
    for space, root in spaces.items():
        front = space + "::" if space else ""
        for c in root.iter("innerclass"):
            name = text_of(c).removeprefix("varve::")
            if "<" not in name and "::" not in name.removeprefix(front):
                found[name] = ET.parse(f"{xml}/{c.get('refid')}.xml").getroot().find("compounddef")
    for file in sorted(f for f in os.listdir(xml) if f.startswith("conceptvarve")):
        c = ET.parse(f"{xml}/{file}").getroot().find("compounddef")
        name = c.findtext("compoundname").removeprefix("varve::")
        if name.rpartition("::")[0] in [""] + PUBLIC:
            found[name] = c
    return found


def add_compound(name, c, names, entry):
    """A type by its declaration and members; the tag of an operator by the calls of its object."""
    kind, last = c.get("kind"), name.split("::")[-1]
    object_name = name[:-2] if name.endswith("_t") and name[:-2] in names else None
    e = entry(object_name or name, header_of(c))
    e.line = e.line or int(c.find("location").get("line"))
    if object_name:
        tags[name] = header_of(c)
        e.comment = comment_of(c) if not e.comment else e.comment
        calls = []
        members_of(c, calls)
        for d, t, n in calls:
            if n in ("operator()", "body"):
                short = object_name.split("::")[-1] + "("
                e.add(re.sub(r"\b(operator\(\)|body)\(", short, d.replace("static ", "")), t)
    elif kind == "concept":
        e.add(text_of(c.find("initializer")) or f"concept {last};", comment_of(c))
    else:
        params = c.find("templateparamlist")
        template = "" if params is None else "template <" + ", ".join(
            " ".join(filter(None, [text_of(p.find("type")), text_of(p.find("declname"))])) for p in params) + "> "
        bases = ", ".join(text_of(b) for b in c.findall("basecompoundref"))
        e.add(f"{template}{kind} {last}" + (f" : {bases}" if bases else "") + ";", comment_of(c))
        members_of(c, e.members)


def read_names(xml):
    """{qualified name behind varve::: Name}"""
    names, spaces = {}, {}

    def entry(name, header):
        return names.setdefault(name, Name(name, header))

    for space in [""] + PUBLIC:
        path = f"{xml}/namespacevarve" + ("_1_1" + space.replace("_", "__") if space else "") + ".xml"
        if os.path.exists(path):
            spaces[space] = ET.parse(path).getroot()
            read_members(spaces[space], space + "::" if space else "", entry)
    compounds = compounds_of(xml, spaces)
    for name, c in compounds.items():
        add_compound(name, c, names, entry)
    for n in names.values():
        if not n.comment:
            n.comment = said_elsewhere(n, compounds, xml)
    for n in names.values():  # one comment may serve several declarations, one below the other
        above = [o for o in names.values() if o.header == n.header and 0 < o.line < n.line and o.comment]
        if not n.comment and above:
            o = max(above, key=lambda o: o.line)
            n.comment = f'<p>See <a href="#{anchor(o.name)}"><code>{o.name}</code></a>, which stands above it.</p>'
    return names


def said_elsewhere(n, compounds, xml):
    """What is known of a name without a comment of its own: its rules' comment, or what its family is."""
    tag = compounds.get(n.name + "_t")
    declared = re.search(r"(?:varve::)?(\w+_t) \w+;$", n.declarations[0]) if n.declarations else None
    if tag is None and declared and declared.group(1) in compounds:
        said = comment_of(compounds[declared.group(1)])
        return said or f"<p>The object of <code>{declared.group(1)}</code>.</p>"
    bases = " ".join(text_of(b) for b in tag.findall("basecompoundref")) if tag is not None else ""
    if "promoting_operator" in bases or "extreme_operator" in bases:
        return f"<p>Elementwise, as <code>torch.{n.name}</code>: shapes broadcast, dtypes promote.</p>"
    if "comparing_operator" in bases:
        return f"<p>Elementwise comparison, as <code>torch.{n.name}</code>; the result is bool.</p>"
    rules = f"{xml}/structvarve_1_1rules_3_01{n.name.replace('_', '__')}__t_01_4.xml"
    if os.path.exists(rules):
        said = comment_of(ET.parse(rules).getroot().find("compounddef"))
        if said:
            return said
    if n.name.endswith("_") and n.name[:-1]:
        return f"<p><code>{n.name[:-1]}</code> in place: writes into its first operand, and gives it.</p>"
    if tag is not None:
        return f"<p>As <code>torch.{n.name}</code>.</p>"
    if n.name.endswith("_hpp"):
        return "<p>Stands for a name that is in a header of its own, so that the compiler's message names it.</p>"
    if n.name.startswith("kernel::"):
        return "<p>Of numbers and of SIMD registers.</p>"
    return ""


def summary(name):
    """The first sentence of a comment."""
    text = html.unescape(re.sub(r"<[^>]+>", "", name.comment.split("</p>")[0]))
    return re.split(r"(?<=[.;])\s", text)[0][:160] if text else ""


def anchor(name):
    return name.replace("::", "-")


def folder_pages(names):
    """{page: (title, html)}; within a page header by header, within a header name by name."""
    pages = {}
    for folder in sorted({n.folder for n in names.values()}):
        body = []
        mine = [n for n in names.values() if n.folder == folder]
        for header in sorted({n.header for n in mine}):
            body.append(f'<h2 id="{header.split("/")[-1]}"><code>#include &lt;varve/{header}&gt;</code></h2>')
            for n in sorted((n for n in mine if n.header == header), key=lambda n: n.name):
                body.append(f'<section id="{anchor(n.name)}"><h3><a href="#{anchor(n.name)}">{n.name}</a></h3>')
                if n.declarations:
                    body.append("<pre>" + html.escape("\n".join(n.declarations[:12])) + "</pre>")
                body.append(n.comment)
                shown = [(d, t) for d, t, _ in n.members if t]
                rest = [m for _, t, m in n.members if not t and not m.startswith("operator")]
                if shown:
                    rows = (f"<dt><code>{html.escape(d)}</code></dt><dd>{t}</dd>" for d, t in shown)
                    body.append("<dl>" + "".join(rows) + "</dl>")
                if rest:
                    body.append("<p>Members: " + " ".join(f"<code>{html.escape(m)}</code>"
                                                          for m in sorted(set(rest))) + "</p>")
                body.append("</section>")
        pages[f"reference/{folder or 'top'}.html"] = (FOLDERS.get(folder, folder), "\n".join(body))
    return pages


def index_page(names):
    """All names, alphabetically."""
    body = ["<p>Every public name with its header and its first sentence. Operators have PyTorch's names and meaning; "
            'which of PyTorch\'s names there are says <a href="operators.html">the list of operators</a>.</p>']
    letters = {}
    for n in sorted(names.values(), key=lambda n: n.name.lower()):
        letters.setdefault(n.name[0].upper(), []).append(n)
    body.append("<p>" + " ".join(f'<a href="#letter-{c}">{c}</a>' for c in letters) + "</p>")
    for c, some in letters.items():
        body.append(f'<h2 id="letter-{c}">{c}</h2><table class="names">')
        body += [f'<tr><td><a href="{n.page}#{anchor(n.name)}"><code>{n.name}</code></a></td>'
                 f"<td>{html.escape(summary(n))}</td><td><code>{n.header}</code></td></tr>" for n in some]
        body.append("</table>")
    return "\n".join(body)


def header_summaries(root, xml):
    """{header: first sentence of its @file comment, or of its first public name}"""
    said = {}
    include = f"{root}/include/varve"
    for folder, _, files in sorted(os.walk(include)):
        for file in sorted(files):
            if not file.endswith(".hpp"):
                continue
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            found = re.search(r"/// @file\n((?:///[^\n]*\n)+)", text) or re.search(r"((?:\n *///[^\n]*)+)", text)
            words = re.sub(r"\s*///\s?", " ", found.group(1)).strip() if found else ""
            said[os.path.relpath(path, include)] = re.split(r"(?<=[.])\s", words)[0]
    return said
