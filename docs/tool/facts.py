# SPDX-License-Identifier: BSL-1.0
"""What the repository says of public names beside their comments: schemas, recorded cases, errors, programs."""
import glob
import os
import re
import xml.etree.ElementTree as ET

import blocks
import messages
import reference

SPACES = "|".join(reference.PUBLIC)
MODULES = r"nn\.functional|linalg|special|fft|masked|signal\.windows"  # of PyTorch
CHECKS = ["forward", "vjp", "jvp", "refusals", "vmap", "traced"]  # columns of docs/operators.md
LONGEST = 30  # lines of an example; of a longer test only the lines around the name are shown
HELPERS = re.compile(r"\b(fixture|OF_\w+|agree\w*|check_\w+|\w+_agree|same_\w+)\b")  # tests with these show little


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def files(root, folder, end):
    return sorted(os.path.relpath(os.path.join(at, f), root) for at, _, some in os.walk(f"{root}/{folder}")
                  for f in some if f.endswith(end))


def title_of(root, file):
    """The heading of a document, or the file of a program."""
    found = re.search(r"^# (.*)", read(f"{root}/{file}"), flags=re.M) if file.endswith(".md") else None
    return found.group(1) if found else file


def names_in(text):
    """Public names that a program uses, with `vv::` or by the namespaces that users write."""
    return set(re.findall(r"\b(?:vv|varve)::((?:[a-z_]+::)*\w+)", text)) | set(
        re.findall(rf"\b((?:{SPACES})::\w+)", text))


def argument(text, start, most=2000):
    """What stands behind the parenthesis before `start`, up to the one that closes it."""
    depth, end = 1, start
    while depth and end < min(len(text), start + most):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[start:end]


def schemas(root):
    """{name: PyTorch's schemas of what `ops::call` calls by it}"""
    found = {}
    for file in files(root, "include/varve/by_name", ".hpp"):
        for text in messages.of_text(read(f"{root}/{file}")):
            if m := re.match(rf"((?:{MODULES})\.)?(\w+)(?:\.\w+)?\(.*\) -> ", text):
                found.setdefault((m.group(1) or "") + m.group(2), []).append(text)
    return found


def recorded(root):
    """{operator as PyTorch's samples name it: {check: how many recorded cases pass}}, variants together"""
    found = {}
    for name, cells in re.findall(r"^\| `([\w.-]+)` \|(.*)\|[^|]*\|$", read(f"{root}/docs/operators.md"), flags=re.M):
        counts = found.setdefault(re.sub(rf"^((?:{MODULES})\.)?(\w+).*", r"\1\2", name), {})
        for check, cell in zip(CHECKS, cells.split("|")):
            if numbers := [int(k) for k in re.findall(r"\d+", cell)]:
                old = counts.get(check, (0, 0))
                counts[check] = (old[0] + numbers[0], old[1] + numbers[-1])
    return found


class Sources:
    """The text of headers, to find what a name refuses."""

    def __init__(self, root, names, xml):
        self.root, self.lines, self.places, self.thrown = root, {}, {}, {}
        for n in names.values():
            self.places.setdefault(n.name.split("::")[-1], []).extend(n.places)
        for file in glob.glob(f"{xml}/namespacevarve*detail*.xml"):  # functions that those of users call
            for m in ET.parse(file).getroot().iter("memberdef"):
                if m.get("kind") == "function":
                    self.places.setdefault(m.findtext("name"), []).extend(reference.place_of(m))
        for file in files(root, "include/varve/core", ".hpp"):  # {function of refuse: exception}
            for name, body in re.findall(r" void (\w+)\([^;{]*\) \{\n(.*?)^\}", read(f"{root}/{file}"), re.M | re.S):
                self.thrown[name] = (re.findall(r"refuse::with<(\w+)>", body) or ["value_error"])[0]

    def text(self, header, first, last):
        if header not in self.lines:
            self.lines[header] = re.sub(r"(?<!:)//[^\n]*", "", read(f"{self.root}/include/varve/{header}")).split("\n")
        return "\n".join(self.lines[header][first - 1:last])

    def errors(self, places, depth=2):
        """{(exception, or None where the compiler refuses; message)}: in the bodies, and in what these call there."""
        found = set()
        for place in places:
            text = self.text(*place)
            for m in re.finditer(r"refuse::(\w+)(?:<(\w+)>)?\(", text):
                said = [s for s in re.findall(r'"((?:[^"\\]|\\.)*)"', argument(text, m.end())) if " " in s or ":" in s]
                if m.group(1) == "argument_is_invalid" and said:
                    found.add(("value_error", "".join(said[-1:] if len(said[-1]) > 40 else said)))
                elif m.group(2) and said:
                    found.add((m.group(2), re.sub(r"^varve: (\w*…?\w*: )?", "", "…".join(said)).strip()))
                elif m.group(1) in self.thrown and m.group(1) not in ("argument_is_invalid", "again", "with"):
                    found.add((self.thrown[m.group(1)], m.group(1).replace("_", " ")))
            for m in re.finditer(r"static_assert\(", text):
                found |= {(None, s) for s in messages.of_text(argument(text, m.end())) if s.startswith("varve: ")}
            called = {c for c in re.findall(r"detail::(\w+)[<(]", text) if depth and c in self.places}
            found |= self.errors([p for c in called for p in self.places[c] if p[0] == place[0] or re.match(
                "needs|require|check|refuse", c)], depth - 1) if called else set()
        return {(kind, said) for kind, said in found if said}


class Programs:
    """Programs that the tests run, by the names that they use: blocks of documents, test cases, examples."""

    def __init__(self, root, documents):
        self.shown = {}  # {name: [(rank, about something else, lines, code, output, file, title)]}
        self.used = {}  # {name: documents and examples that use it}
        self.calls = {}  # {name: {form: the shortest call of that form that a test makes}}
        samples = read(f"{root}/test/sample/op.hpp")
        self.laws = names_in(samples)  # operators that the laws test
        self.static = set(self.laws)  # names that tests use on static values
        self.hops = set(re.findall(r'"(\w+)"', read(f"{root}/test/sample/hop.hpp")))
        self.add_calls(samples)
        for file in documents:
            for kind, _, code, output in blocks.blocks_of(f"{root}/{file}"):
                self.add(0 if kind in ("body", "global") else 1, code, output, file)
        for file in files(root, "examples", ".cpp"):
            for name in names_in(read(f"{root}/{file}")):
                self.used.setdefault(name, {})[file] = None
        for file in files(root, "test", ".cpp"):
            text = read(f"{root}/{file}")
            for title, code in re.findall(r'^TEST_CASE\(\s*"([^"]+)"[^{]*\{\n(.*?)^\}', text, flags=re.M | re.S):
                self.add(2 + bool(HELPERS.search(code)), re.sub("^  ", "", code, flags=re.M), None, file, title)
            self.static |= names_in(text) if "both_worlds" in file or file.startswith("test/static/") else set()
            self.add_calls(text)

    def add_calls(self, text):
        for m in re.finditer(rf"\b(?:vv::([\w:]+)|((?:{SPACES})::\w+))(<[^<>;{{}}]*>)?\(", text):
            inner = argument(text, m.end(), 70)
            if re.fullmatch(r"[^\n\"{;(\[]*\)", inner) and " < " not in inner:
                forms = self.calls.setdefault(m.group(1) or m.group(2), {})
                call, form = m.group() + inner, (inner.count(","), "<" in inner)
                forms[form] = min(forms.get(form, call), call, key=lambda c: (c.count("vv::"), len(c), c))

    def add(self, rank, code, output, file, title=""):
        for name in names_in(code):
            away = not re.match(rf"(\w+: )?{name.split('::')[-1]}\b", title)
            self.shown.setdefault(name, []).append((rank, away, code.count("\n"), code.rstrip(), output, file, title))
            if not title:
                self.used.setdefault(name, {})[file] = None
        self.static |= names_in("\n".join(re.findall(r"(?i)static_(?:assert|require)\([^;]*", code)))

    def example(self, name):
        """The best program for a name: (code, output, file, title, whether it is about something else), or None"""
        if name not in self.shown:
            return None
        rank, away, count, code, output, file, title = min(
            self.shown[name], key=lambda s: (s[2] > LONGEST, s[0], s[1], len(names_in(s[3])), abs(s[2] - 6)))
        if count > LONGEST:
            lines = code.split("\n")
            at = next(k for k, line in enumerate(lines) if re.search(rf"\b{name.split('::')[-1]}\b", line))
            code = "\n".join(["// ..."] * (at > 6) + lines[max(0, at - 6):at + 8] + ["// ..."] * (at + 8 < len(lines)))
        return code, output, file, title, rank > 2 or rank == 2 and away
