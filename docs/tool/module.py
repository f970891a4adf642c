# SPDX-License-Identifier: BSL-1.0
"""module.py <repository> <folder of work> [check]: writes src/varve.cppm, or compares with it.

The module exports the public names that varve/varve.hpp declares. Who imports it does not parse the headers.
"""
import os
import re
import sys

import reference


def reached(root):
    """Headers that the umbrella includes."""
    todo, seen = ["varve.hpp"], set()
    while todo:
        header = todo.pop()
        if header in seen:
            continue
        seen.add(header)
        with open(f"{root}/include/varve/{header}", encoding="utf-8") as f:
            todo += re.findall(r"#include <varve/([^>]+)>", f.read())
    return seen


def text(root, work):
    reference.run_doxygen(root, work)
    headers = reached(root)
    names, tags = reference.read_names(work + "/xml"), reference.tags
    spaces = {}
    for name in sorted({n.name for n in names.values() if n.header in headers} |
                       {t for t, header in tags.items() if header in headers}):
        space, _, last = name.rpartition("::")
        spaces.setdefault(space, []).append(last)
    operators = sorted(op for op, header in reference.operators.items() if header in headers)
    out = ["// SPDX-License-Identifier: BSL-1.0", "// Made by docs/tool/module.py of the names that varve/varve.hpp declares.",
           "// `import varve;` for compilers that can: clang 19. Macros (VARVE_VERSION, ...) are not part of a module.", "module;",
           "#include <varve/varve.hpp>", "export module varve;"]
    for space, some in sorted(spaces.items()):
        full = "varve" + ("::" + space if space else "")
        out.append(f"export namespace {full} {{")
        out += [f"using {full}::{n};" for n in some]
        if not space:
            out += [f"using {full}::{op};" for op in operators]
        out.append("}")
    return "\n".join(out) + "\n"


def main(root, work, check=None):
    made, path = text(root, work), f"{root}/src/varve.cppm"
    if not check:
        with open(path, "w", encoding="utf-8") as f:
            f.write(made)
        return 0
    with open(path, encoding="utf-8") as f:
        if f.read() == made:
            return 0
    print("src/varve.cppm is not that of the headers: python3 docs/tool/module.py . build/module")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
