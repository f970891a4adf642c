# SPDX-License-Identifier: BSL-1.0
"""Pages of the reference, in Markdown: one for each public name with its family (in-place forms, options, numbers of
dimensions), one for each topic. Kernels, C++'s mathematical functions and errors have one page for each header."""
import os
import re

import facts
import module
import reference
from reference import cpp, escaped, text_of

TOPICS = {  # title: folders of include/varve; the topics before None are those of users
    "Transforms": ["transform", "jet", "custom", "functional"], "Eager autograd": ["autograd"],
    "compile and fuse": ["compile", "fuse", "aot"], "Branches and loops": ["hop", "loop"],
    "Values and trees": ["value", "core"], "Operators": ["", "op"], "Composite functions": ["composite"],
    "Neural networks": ["nn"], "Optimizers and fits": ["optim"],
    "Implicit functions": ["implicit"], "Sparse derivatives": ["sparse"],
    "Linear algebra and Fourier": ["linalg", "fft"],
    "Special functions": ["special"], "Complex numbers": ["complex"], "Random numbers": ["random"],
    "Sorts, indices, signals": ["sorting", "indexing", "masked", "signal"], "Files": ["io"],
    "Other libraries": ["interop"], "Export": ["export"], "Modes": ["mode"], "Calls by name": ["by_name"], None: None,
    "Dispatcher": ["dispatch"], "Interpreters": ["interpreter"], "Families of rules": ["rule"],
    "Tracing and graphs": ["trace", "graph", "pass"], "Fake tensors and sizes": ["fake", "shape"],
    "Kernels": ["kernel"]}
AXES = "axis axes dim dims size sizes shape stride step margin pad at keep range".split()  # arguments that are integers
INTEGERS = "integers: types such as `axis<1>` for static values, `dims` or integers for tensors"
KINDS = {"value": "a number, an array, a tensor or a traced value", "number": "a plain number"}


def file_of(name):
    return re.sub(r"[^\w.]+", ".", name)


def slug(title):
    return "topic_" + re.sub(r"[^a-z]+", "_", title.lower())


def staged(file):
    """The page of a file of the repository."""
    return "index.md" if file == "README.md" else file if file.endswith(".md") else f"files/{file}.md"


def topic_of(header):
    return next(t for t, folders in TOPICS.items() if t and header.rpartition("/")[0] in folders)


def table(head, rows):
    rows = [[re.sub(r"(?<!\\)\|", r"\|", re.sub(r"\s+", " ", c)) for c in row] for row in rows]
    return "\n".join(f"| {' | '.join(c)} |" for c in [head, ["---"] * len(head)] + rows) if rows else ""


def code(text, language="cpp"):
    return f"```{language}\n{text.rstrip()}\n```"


def laid_out(declaration, most=88):
    """A declaration whose long lines are broken."""
    out = []
    for line in declaration.split("\n"):
        while len(line) > most and " " in line[8:most]:
            at = line.rfind(", ", 8, most) + 1 or line.rfind(" ", 8, most)
            out.append(line[:at])
            line = "    " + line[at:].lstrip()
        out.append(line)
    return "\n".join(out)


def file_comment(root, header):
    found = re.search(r"/// @file\n((?:///[^\n]*\n)+)", facts.read(f"{root}/include/varve/{header}"))
    return re.sub(r"^/// ?", "", found.group(1), flags=re.M).strip() if found else ""


class Reference:
    def __init__(self, root, xml, documents):
        self.root, self.names = root, reference.read_names(xml)
        self.sources = facts.Sources(root, self.names, xml)
        self.schemas, self.recorded = facts.schemas(root), facts.recorded(root)
        self.programs = facts.Programs(root, documents)
        umbrellas = sorted(u for u in os.listdir(f"{root}/include/varve") if re.fullmatch(r"(?!config|fwd)\w+\.hpp", u))
        self.reached = {u: module.reached(root, u) for u in ["varve.hpp", "mode/all.hpp"] + umbrellas}
        self.members = set(re.findall(r" (\w+)\(A const&\.\.\.", facts.read(
            f"{root}/include/varve/value/member_operators.hpp")))
        self.families = {}
        for n in self.names.values():
            n.prefer(self.reached["varve.hpp"])
            self.families.setdefault(self.family(n), []).append(n)
        self.page_of = {n.name: file_of(title) for title, some in self.families.items() for n in some}

    def family(self, n):
        """The name that a page has: usually of a name itself."""
        base = n.name.removesuffix("_hpp")
        if n.name.startswith(("kernel::", "math::", "refuse::")):
            return n.header[:-4]
        for other in (base.removesuffix("_"), re.sub("[23]d$", "1d", base), re.sub("^pad_mode::.*", "pad", base)):
            if other in self.names and other != n.name:
                return other
        if base.endswith("options"):  # stand with the first function that takes them
            word = re.compile(rf"\b{base.split('::')[-1]}\b")
            return next((o.name for o in self.names.values() if o.header == n.header and o != n and any(map(
                word.search, o.declarations + [reference.declaration_of(m) for m in o.members]))), n.name)
        return self.family(n.above) if n.above else n.name

    def linked(self, text, here, own=""):
        """Names in code become links to their pages, but not those of arguments, which a declaration has itself."""
        def one(m):
            page = self.page_of.get(m.group(1))
            return f"[{m.group()}]({page}.md)" if page and page != here and m.group(1) not in words else m.group()
        words = re.findall(r"\w+", own)
        return re.sub(r"(?<![`\[])`([\w:]+)`(?!`)", one, text)

    def link(self, file):
        return f"[{facts.title_of(self.root, file)}](../{staged(file)})"

    def facts_of(self, n):
        """[(what, text)]: header, worlds, transforms, PyTorch's counterpart, ..."""
        folder, last, rules = n.header.split("/")[0], n.name.split("::")[-1], n.rules + n.bases
        narrow = n.places[-1][0] if n.header == "fwd.hpp" and n.rules else n.header
        whole = next((u for u, some in self.reached.items() if n.header in some and
                      u.split(".")[0].split("/")[0] in ("varve", folder)), narrow)
        rows = [("Header", f"`#include <varve/{whole}>`" + f", or only `<varve/{narrow}>`" * (narrow != whole))]
        text = " ".join(n.declarations)
        values = bool(re.search(r"\bvalue [A-Z]", text))
        if n.name in self.programs.static and (values or folder in TOPICS["Transforms"] + TOPICS["Branches and loops"]):
            rows.append(("Works on", "static values (numbers, arrays) and tensors"))
        elif values or re.search(r"\btensor\b", text) and n.calls:
            rows.append(("Works on", "tensors" + " and traced values" * values))
        if re.search("pointwise|elementwise|comparing_operator|extreme_operator|promoting_operator", rules):
            rows.append(("Shapes and dtypes", "Shapes broadcast, dtypes promote" + (
                "; the result is bool." if "comparing" in rules else
                "; integers and bool become floating." if "promotion::floating" in rules else ".")))
        path, key, counts = self.pytorch(n)
        if n.name in self.programs.laws and (n.calls or n.rules):
            rows.append(("Transforms", "tests compare it under `jvp`, `vjp`, `vmap`, `trace`, `fuse` and "
                         "`functionalize` with differences, loops and plain calls"))
        elif n.op_name in self.programs.hops and folder in TOPICS["Branches and loops"] + ["custom"]:
            rows.append(("Transforms", "tests compare its derivatives, batches, traces, compiled and saved programs"))
        if counts:
            rows.append(("Compared with PyTorch", ", ".join(
                f"{check} {a}" + f" of {b}" * (a < b) for check, (a, b) in counts.items()) +
                " recorded cases pass ([all operators](../docs/operators.md))"))
        if path:
            rows.append(("PyTorch", f"`{path}`" + "".join(f"  \n`{s}`" for s in self.schemas.get(key, [])[:3])))
        also = [f"`{form}`" for form, there in (
            (f"x.{last}(...)", n.name in self.members), (f"{last}_(x, ...)", n.name + "_" in self.names),
            (f"x.{last}_(...)", n.name + "_" in self.members)) if there]
        used = list(self.programs.used.get(n.name, {}))[:6]
        return rows + [("JAX", f"`{j}`") for j in re.findall(r"jax(?:\.\w+)+", n.comment)[:1]] + [
            ("Also", ", ".join(also))] * bool(also) + [("Used in", ", ".join(map(self.link, used)))] * bool(used)

    def pytorch(self, n):
        """(path in Python, key of its schemas, counts of recorded cases)"""
        said = next(iter(re.findall(r"torch\.[\w.]*\w", n.comment)), None)
        if not (n.calls or n.rules) or n.name.startswith(("kernel::", "math::")):
            return said, None, None
        space, _, last = n.name.rpartition("::")
        spaces = [space.replace("windows", "signal.windows") + "."] if space else [
            "", "nn.functional.", "linalg.", "special."]
        keys = [said.removeprefix("torch."), said.split(".")[-1]] if said else []
        keys = [k for key in keys + [n.op_name, last]
                for k in (key, key.replace(".", "_"), key.replace("_", ".", 1))]
        keys = keys[:3 * bool(said)] + [s + k for k in keys for s in spaces] + [f"{space}_{last}"]
        key = next((k for k in keys if k in self.schemas), None)
        sample = next((k for k in keys if k in self.recorded), None)
        return said or (sample or key) and f"torch.{sample or key}", key, self.recorded.get(sample)

    def arguments(self, n):
        """A table of the arguments of the longest call."""
        m = max(n.calls, key=lambda c: len(c.findall("param")))
        kinds, rows = {}, []
        for p in m.findall("templateparamlist/param"):
            kind, _, name = f"{text_of(p.find('type'))} {text_of(p.find('declname'))}".strip().rpartition(" ")
            kinds[name] = (kind.rstrip("."), text_of(p.find("defval")))
        for p in m.findall("param"):
            name, kind, default = (cpp(text_of(p.find(tag))) for tag in ("declname", "type", "defval"))
            concept, own = kinds.get(re.sub(r"\bconst\b|[&.]", "", kind).strip(), (None, ""))
            what = KINDS.get(concept, "a tensor" if "tensor" in str(concept) else f"`{cpp(concept or kind)}`")
            if concept in ("class", "typename"):
                what = INTEGERS if "ints<" in own or name in AXES else "a function" if re.match(r"F\b", kind) else \
                    "see the description"
            default = own if default == "{}" and own else default
            rows += [(f"`{name}`", what, f"`{cpp(default)}`" if default else "")] * bool(name)
        return table(("argument", "accepts", "default"), rows)

    def fields(self, n):
        """A table of fields with their defaults, and the other members."""
        def text(m):
            return self.linked(reference.comment_of(m), self.page_of[n.name], text_of(m.find("argsstring")))

        def line(m):
            return m.find("location").get("line")
        own = [m for m in n.members if m.get("kind") == "variable" and (m.get("static") == "no" or text(m))]
        said = {line(m): text(m) for m in own if text(m)}  # one comment serves all fields of a line
        rows = [(f"`{m.findtext('name')}`", f"`{cpp(text_of(m.find('type')))}`", f"`{value}`" if value else "",
                 said.get(line(m), "")) for m in own for value in [text_of(m.find("initializer")).lstrip("= ")]]
        others = [m for m in n.members if m not in own and (text(m) or m.get("kind") == "function")]
        out = [table(("field", "type", "default", "meaning"), rows)] + [
            code(laid_out(reference.declaration_of(m))) + "\n\n" + text(m) for m in others if text(m)]
        rest = {m.findtext("name") for m in others} - {m.findtext("name") for m in others if text(m)}
        rest = sorted(r for r in rest if not r.startswith("operator") and r != n.name.split("::")[-1])
        return "\n\n".join(filter(None, out + ["Other members: " + ", ".join(f"`{r}`" for r in rest)] * bool(rest)))

    def errors(self, n):
        found = self.sources.errors(n.places)
        if re.search("pointwise|elementwise|comparing_op|extreme_op", n.rules + n.bases):
            found.add(("shape_error", "shapes do not broadcast"))
        return "\n".join(f"- {self.linked(f'`{kind}`', '')}: {escaped(said)}" if kind else
                         f"- The compiler: `{said.replace('`', chr(39))}`"
                         for kind, said in sorted(found, key=lambda e: (e[0] or "~", e[1]))[:14])

    def example(self, n):
        found = self.programs.example(n.name)
        forms = sorted(self.programs.calls.get(n.name, {}).items())[:5] if n.calls or n.rules else []
        if forms and (not found or found[4]):  # tests of other things show little beside plain calls
            return "Calls in the tests:\n\n" + code("".join(f"{c};\n" for _, c in forms))
        if not found:
            return ""
        text, output, file, title, _ = found
        where = f"the test `{file}`, *{escaped(title)}*" if title else self.link(file)
        return f"From {where}:\n\n{code(text)}\n" + (f"\n{code(output, 'output')}\n" if output else "")

    def section(self, n, here, head):
        """One name: description, signature, facts, arguments, fields, errors, example."""
        out = [self.linked(n.comment, here, " ".join(n.declarations) if n.calls else "")]
        out += [code("\n".join(map(laid_out, n.declarations[:12])))] * bool(n.declarations)
        out += ["\n".join(f":{what}: {text}" for what, text in self.facts_of(n))] * head
        for title, text in (("Arguments", self.arguments(n) if head and n.calls else ""), ("Members", self.fields(n)),
                            ("Errors", self.errors(n)), ("Example", self.example(n) if head else "")):
            out += [f"```{{rubric}} {title}\n```\n\n{text}"] * bool(text)
        return "\n\n".join(filter(None, out))

    def page(self, title, some):
        head, here = next((n for n in some if n.name == title), None), file_of(title)
        topic, said = topic_of(some[0].header), file_comment(self.root, (head or some[0]).header)
        out = [f"---\norphan: true\n---\n\n[Reference](index.md) / [{topic}]({slug(topic)}.md)", "# " + escaped(title)]
        out += [self.section(head, here, True)] if head else [f"`#include <varve/{some[0].header}>`", said]
        for n in sorted(some, key=lambda n: n.name):
            if n != head and not n.name.endswith("_hpp") and not (head and n.name == head.name + "_"):
                out += ["## " + escaped(n.name), self.section(n, here, False)]
        if head and said and head.header != "fwd.hpp":
            out.append("```{rubric} Notes on the header\n```\n\n" + said)
        return "\n\n".join(filter(None, out)) + "\n"

    def topic(self, title, folders):
        """Header by header, name by name, with the first sentence of each."""
        out, header = [f"# {title}"], None
        for n in sorted(self.names.values(), key=lambda n: (n.header, n.name)):
            if n.header.rpartition("/")[0] in folders and not n.name.endswith("_hpp"):
                if n.header != header:
                    header = n.header
                    said = file_comment(self.root, header).split("\n\n")[0]
                    out.append(f"\n## varve/{escaped(header)}\n\n{said}\n")
                text = (n.comment or n.above.comment if n.above else n.comment).split("\n\n")[0]
                out.append(f"- [`{n.name}`]({self.page_of[n.name]}.md): " + re.split(r"(?<=[^.]\.)\s", text)[0])
        return "\n".join(out) + "\n"

    def pages(self):
        """{file below reference/: text}"""
        made = {f"{file_of(title)}.md": self.page(title, some) for title, some in self.families.items()}
        made |= {f"{slug(t)}.md": self.topic(t, folders) for t, folders in TOPICS.items() if t}
        made["names.md"] = "# All names\n\n" + "\n".join(f"- [`{n}`]({self.page_of[n]}.md)" for n in sorted(
            self.names, key=lambda n: (n.split("::")[-1].lower(), n))) + "\n"
        made["index.md"] = "\n".join(
            ["# Reference\n\nEach public name has a page. [All names](names.md) stand in one list, and the search "
             "finds them.\n"] + [f"- [{t}]({slug(t)}.md)" if t else "\nFor extensions and the library itself:\n"
                                 for t in TOPICS]) + "\n"
        return made
