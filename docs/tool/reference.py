# SPDX-License-Identifier: BSL-1.0
"""The public names of the headers, as doxygen reads them.

A name is public when it stands in the namespace varve or one that users are meant to write (`PUBLIC`). The tag of an
operator (`sin_t`) is told with its object (`sin`).
"""
import os
import re
import subprocess
import xml.etree.ElementTree as ET

# Namespaces that users write, beside varve itself.
PUBLIC = ["autograd", "backends", "fft", "forward_ad", "implicit", "kernel", "linalg", "masked", "math", "mpi", "optim",
          "pad_mode", "refuse", "rule", "tracing", "windows"]
ARGUMENTS = {1: ["x"], 2: ["x", "y"], 3: ["condition", "x", "y"]}  # of elementwise operators, by their number
DOXYFILE = """
INPUT = {root}/include
EXCLUDE = {root}/include/varve/library/other_headers.hpp
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


def run_doxygen(root, out):
    """XML of all headers, as users of the compiled library see them: declarations."""
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/Doxyfile", "w", encoding="utf-8") as f:
        f.write(DOXYFILE.format(root=os.path.abspath(root), out=out))
    subprocess.run(["doxygen", f"{out}/Doxyfile"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def text_of(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip() if node is not None else ""


def escaped(text):
    return re.sub(r"([\\`*_\[\]<>|#{}])", r"\\\1", text)


def markdown(node, front=""):
    """A comment as Markdown."""
    if node.tag == "verbatim":
        return "\n\n```cpp\n" + "".join(node.itertext()).strip("\n") + "\n```\n\n"
    if node.tag == "computeroutput":
        code = text_of(node)
        return f"`` {code} ``" if "`" in code else f"`{code}`"
    inner = escaped(re.sub(r"\s+", " ", node.text or ""))
    for child in node:
        inner += markdown(child, "1. " if node.tag == "orderedlist" else "- ") + \
            escaped(re.sub(r"\s+", " ", child.tail or ""))
    if node.tag == "listitem":
        return f"\n{front}{inner.strip()}"
    marks = {"para": ("", "\n\n"), "emphasis": ("*", "*"), "bold": ("**", "**"), "lsquo": ("'", ""), "rsquo": ("'", ""),
             "itemizedlist": ("\n", "\n\n"), "orderedlist": ("\n", "\n\n"), "ulink": ("<", ">")}
    before, after = marks.get(node.tag, ("", ""))
    return before + inner + after


def comment_of(member):
    return "".join(markdown(p) for kind in ("briefdescription", "detaileddescription")
                   for p in member.findall(kind + "/para")).strip()


def cpp(text):
    """C++ as this library writes it: doxygen puts other spaces around `<`, `>`, `&` and `=`."""
    text = re.sub(r"\bvarve::", "", re.sub(r"\s+", " ", text)).strip()
    while re.search(r"< ([^<>]*?) ?>", text):
        text = re.sub(r"< ([^<>]*?) ?>", r"<\1>", text)
    text = re.sub(r" (&&?|\*)(?=[\w.])", r"\1 ", text).replace("& ...", "&...")
    return re.sub(r"(?<=[\w>])=(?=\w|[{\"-])", " = ", text)


def template_of(m):
    """The head of a template, with what it requires."""
    params = m.findall("templateparamlist/param")
    if m.find("templateparamlist") is None:
        return ""
    shown = ", ".join(" ".join(filter(None, [text_of(p.find("type")), text_of(p.find("declname"))])) +
                      (" = " + text_of(p.find("defval")) if p.find("defval") is not None else "") for p in params)
    needs = text_of(m.find("requiresclause"))
    return cpp(f"template <{shown}>") + "\n" + ("  " + cpp(f"requires {needs}") + "\n" if needs else "")


def declaration_of(m):
    """A declaration, its template head on a line of its own."""
    kind, name = re.sub(r" ([&*]+)$", r"\1", text_of(m.find("type"))), m.findtext("name")
    if m.get("kind") == "enum":
        return f"enum class {name} {{ {', '.join(v.findtext('name') for v in m.iter('enumvalue'))} }};"
    if m.get("kind") == "typedef":
        return template_of(m) + cpp(f"using {name} = {kind};")
    if m.get("kind") == "variable":
        value = text_of(m.find("initializer"))
        return template_of(m) + cpp(f"{kind} {name}{' ' * (value[:1] == '=') + value if len(value) < 60 else ''};")
    return template_of(m) + cpp(f"{kind} {name}{text_of(m.find('argsstring'))};")


class Name:
    """All that is declared under one name: parts (header, declaration, comment), calls and members as XML, and bodies
    as (header, first line, last line)."""

    def __init__(self, name, header):
        self.name, self.header, self.parts = name, header, []
        self.calls, self.members, self.places, self.line = [], [], [], 0
        self.bases, self.rules, self.op_name, self.above = "", "", name.split("::")[-1], None

    def add(self, header, declaration, comment):
        old = [(d, c) for _, d, c in self.parts]
        if not any(d == declaration for d, _ in old) or not any(comment in c for _, c in old):
            self.parts.append((header, declaration, comment))

    @property
    def comment(self):
        return "\n\n".join(dict.fromkeys(c for _, _, c in self.parts if c))

    @property
    def declarations(self):
        return list(dict.fromkeys(d for _, d, _ in self.parts if d))

    def prefer(self, headers):
        """Puts what some headers declare first."""
        def order(header):
            return header not in headers, not header.endswith(f"/{self.name.split('::')[-1]}.hpp")
        self.parts.sort(key=lambda part: order(part[0]))
        self.calls.sort(key=lambda m: order(header_of(m)))
        self.header = self.parts[0][0] if self.parts else self.header

    def stands_at(self, node):
        self.line = self.line or int(node.find("location").get("line"))
        self.places += place_of(node)


def header_of(node):
    place = node.find("location")
    return place.get("file").rpartition("include/varve/")[2] if place is not None else ""


def place_of(node):
    """[(header, first line, last line)] of a body, if there is one"""
    place = node.find("location")
    lines = int(place.get("bodystart") or -1), int(place.get("bodyend") or -1)
    return [(header_of(node), *lines)] if lines[1] > 0 else []


def members_of(compound):
    """Public members of a struct."""
    return [m for m in compound.iter("memberdef")
            if m.get("prot") == "public" and m.get("kind") in ("function", "variable", "typedef")
            and not m.findtext("name").startswith("~")]


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
        e.add(header_of(m), declaration_of(m), comment_of(m))
        e.stands_at(m)
        if m.get("kind") == "function":
            e.calls.append(m)


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
    bases = cpp(", ".join(text_of(b) for b in c.findall("basecompoundref")))
    object_name = name[:-2] if name.endswith("_t") and name[:-2] in names else None
    calls = [m for m in members_of(c) if m.findtext("name") in ("operator()", "body")]
    if not object_name and calls and kind == "struct":  # named otherwise: std_t std_dev
        object_name = next((n for n, o in names.items() if n.rpartition("::")[0] == name.rpartition("::")[0] and
                            any(re.fullmatch(rf"[\w: ]*\b{last} \w+;", d) for d in o.declarations)), None)
    e = entry(object_name or name, header_of(c))
    e.stands_at(c)
    e.bases = bases
    if object_name:
        tags[name] = header_of(c)
        e.op_name = next((text_of(m.find("initializer")).strip('= "') for m in members_of(c)
                          if m.findtext("name") == "op_name"), e.op_name)
        e.parts = [(h, "" if re.fullmatch(rf"[\w: ]*\b{last} \w+(\{{\}})?;", d) else d, t) for h, d, t in e.parts]
        e.parts += [] if e.comment else [(header_of(c), "", comment_of(c))]
        add_calls(e, calls)
    elif kind == "concept":
        e.add(header_of(c), cpp(text_of(c.find("initializer"))).replace(name, last), comment_of(c))
    else:
        e.add(header_of(c), template_of(c) + f"{kind} {last}" + f" : {e.bases}" * bool(e.bases) + ";", comment_of(c))
        e.members = members_of(c)


def add_calls(e, calls):
    """How an object is called."""
    e.calls += calls
    for m in calls:
        d = re.sub(r"\b(operator\(\)|body)\(", e.name.split("::")[-1] + "(", declaration_of(m))
        e.add(e.header, re.sub(r"\) const;$", ");", d.replace("static ", "")), comment_of(m))


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
        add_rules(n, f"{xml}/structvarve_1_1rules_3_01{n.name.replace('_', '__')}__t_01_4.xml")
        add_type(n, xml)
    for n in names.values():  # one comment may serve several declarations, one below the other
        above = [o for o in names.values() if o.header == n.header and 0 < o.line < n.line and o.comment]
        if not n.comment and above:
            n.above = max(above, key=lambda o: o.line)
    return names


def add_rules(n, path):
    """What an operator's rules say of it, and how it is called where its base says that."""
    if os.path.exists(path):
        c = ET.parse(path).getroot().find("compounddef")
        n.rules = cpp(", ".join(text_of(b) for b in c.findall("basecompoundref")))
        n.parts += [] if n.comment else [(header_of(c), "", comment_of(c))]
        n.stands_at(c)
        kernel = [m for m in c.iter("memberdef") if m.findtext("name") == "kernel"]
        count = len(kernel[0].findall("param")) if kernel else 0
        if not n.calls and count in ARGUMENTS:
            types = ", ".join(f"value {a.upper()[0]}" for a in ARGUMENTS[count])
            arguments = ", ".join(f"{a.upper()[0]} const& {a}" for a in ARGUMENTS[count])
            n.add(n.header, f"template <{types}>\nconstexpr auto {n.name}({arguments});", "")


def add_type(n, xml):
    """What the type of an object says of it, and how the object is called."""
    declared = re.fullmatch(r"(?:constexpr )?([\w:]+)(?:<.*>)? \w+\{\};", "".join(n.declarations[:1]))
    path = declared and f"{xml}/structvarve_1_1{declared.group(1).replace('_', '__').replace('::', '_1_1')}.xml"
    if path and os.path.exists(path):
        c = ET.parse(path).getroot().find("compounddef")
        n.parts += [] if n.comment else [(n.header, "", comment_of(c))]
        n.stands_at(c)
        calls = [m for m in members_of(c) if m.findtext("name") in ("operator()", "body")]
        if calls and not n.calls:
            n.parts = [(h, "", t) for h, _, t in n.parts]
            add_calls(n, calls)
