# SPDX-License-Identifier: BSL-1.0
"""module.py <repository> <folder of work>: writes src/varve.cppm. (docs/tool/site.py compares with it.)

The module exports the public names that varve/varve.hpp declares. Who imports it does not parse the headers.
"""
import os
import re
import sys

import reference


def reached(root, umbrella="varve.hpp"):
    """Headers that an umbrella includes."""
    todo, seen = [umbrella], set()
    while todo:
        header = todo.pop()
        if header in seen:
            continue
        seen.add(header)
        with open(f"{root}/include/varve/{header}", encoding="utf-8") as f:
            todo += re.findall(r"^#include <varve/([^>]+)>", f.read(), flags=re.M)
    return seen


def text(root, names):
    headers, tags = reached(root), reference.tags
    spaces = {}
    for name in sorted({n.name for n in names.values() if any(p[0] in headers for p in n.parts)} |
                       {t for t, header in tags.items() if header in headers}):
        space, _, last = name.rpartition("::")
        spaces.setdefault(space, []).append(last)
    operators = sorted(op for op, some in reference.operators.items() if headers.intersection(some))
    out = ["// SPDX-License-Identifier: BSL-1.0",
           "// Made by docs/tool/module.py of the names that varve/varve.hpp declares.",
           "// `import varve;` for compilers that can: clang 19. Macros (VARVE_VERSION, ...) are not part of a module.",
           "module;",
           "#include <varve/varve.hpp>", "export module varve;"]
    for space, some in sorted(spaces.items()):
        full = "varve" + ("::" + space if space else "")
        out.append(f"export namespace {full} {{")
        out += [f"using {full}::{n};" for n in some]
        if not space:
            out += [f"using {full}::{op};" for op in operators]
        out.append("}")
    return "\n".join(out) + "\n"


def main(root, work):
    reference.run_doxygen(root, work)
    made = text(root, reference.read_names(work + "/xml"))
    with open(f"{root}/src/varve.cppm", "w", encoding="utf-8") as f:
        f.write(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
