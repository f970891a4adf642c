# SPDX-License-Identifier: BSL-1.0
"""Public names as the text of the headers declares them, read without doxygen: what the reference may not miss."""
import os
import re

import reference

KEYWORDS = {"decltype", "requires", "alignas", "operator", "if", "return", "static_assert", "noexcept", "bool", "auto"}
CONDITIONAL = {"kernel::arch"}  # declared where xsimd is
DECLARATIONS = [
    r"(?:template <.*> )?(?:struct|class|concept|enum class) "
    r"(?:VARVE_\w+ |\[\[\w+\]\] |alignas\(\w+\) )*([a-z]\w*)\b(?!<|::|;)",
    r"\} ([a-z]\w*)\{\};",
    r"using ([a-z]\w*) =",
    r"(?:\[\[nodiscard\]\] )?(?:(?:inline|constexpr|static|VARVE_\w+) )+[\w:<>&, *.]*?(?<!:)\b([a-z]\w*)\(",
    r"(?:(?:inline|constexpr|constinit|thread_local|const) )+[\w:<>, .]+ ([a-z]\w*)(?:\{|;| =)",
]


def names_of(text):
    """Declared at the outermost level of namespace varve, or of a namespace that users write."""
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', '""', re.sub(r"//[^\n]*", "", text))
    found, stack, depth = [], [], 0
    for line in text.split("\n"):
        opened = re.match(r"(?:inline )?namespace ([\w:]+) \{", line)
        space = "::".join(name for name, _ in stack).removeprefix("varve").removeprefix("::")
        if opened:
            stack.append((opened.group(1), depth))
        elif stack and stack[0][0].startswith("varve") and (not space or space in reference.PUBLIC) \
                and not line.startswith(" "):
            m = next(filter(None, (re.match(p, line) for p in DECLARATIONS)), None)
            if m and m.group(1) not in KEYWORDS:
                found.append((space + "::" if space else "") + m.group(1))
        depth += line.count("{") - line.count("}")
        while stack and depth <= stack[-1][1]:
            stack.pop()
    return found


def missing(root, names):
    """Declared, but without a place in the reference: lines that say where."""
    known = set(names) | set(reference.tags)
    bad = []
    for folder, _, files in sorted(os.walk(f"{root}/include/varve")):
        for file in sorted(files):
            with open(os.path.join(folder, file), encoding="utf-8") as f:
                declared = names_of(f.read())
            bad += [f"{os.path.relpath(os.path.join(folder, file), root)}: {name} is not in the reference"
                    for name in sorted(set(declared) - known - CONDITIONAL)]
    return bad
