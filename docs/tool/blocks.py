# SPDX-License-Identifier: BSL-1.0
"""The C++ of a page, as one program.

blocks.py write <page.md> <out.cpp>     writes the program
blocks.py check <page.md> <program>...  runs it (behind a launcher, if one is given first), and compares what each
                                        block prints with what the page shows
blocks.py fill <page.md> <program>      runs it, and writes what blocks print into the page

A block ```cpp is the body of a function; ```cpp continued goes on in the block before it; ```cpp global stands outside
of functions, and ```cpp program is all that there is, with its main. ```cpp global ../examples/x.hpp must be part of
that file. A block ```output behind it is all that it prints;
one without prints nothing. C++ that is only to be read (another library's) is marked ```c++.
"""
import os
import re
import subprocess
import sys

INCLUDES = ["<varve/varve.hpp>", "<cmath>", "<cstdio>", "<iostream>", "<string>", "<vector>"]
FENCE = re.compile(r"^```(cpp|output)(?: (\w+))?(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def blocks_of(page):
    """[[kind, first line, text, output or None]]"""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    found = []
    for m in FENCE.finditer(text):
        line = text.count("\n", 0, m.start()) + 2
        if m.group(1) == "output":
            if not found or found[-1][3] is not None:
                sys.exit(f"{page}:{line}: an output without a block before it")
            found[-1][3] = m.group(4)
        else:
            if m.group(3):
                with open(os.path.join(os.path.dirname(page), m.group(3)), encoding="utf-8") as f:
                    if m.group(4) not in f.read():
                        sys.exit(f"{page}:{line}: the block is not part of {m.group(3)}")
            found.append([m.group(2) or "body", line, m.group(4), None])
    return found


def runs(blocks):
    """Blocks that run together, as lists: a body and what continues it."""
    groups = []
    for b in blocks:
        if b[0] == "continued":
            groups[-1].append(b)
        elif b[0] == "body":
            groups.append([b])
    return groups


def program(page):
    blocks = blocks_of(page)
    includes, name = list(INCLUDES), os.path.abspath(page)
    for b in blocks:
        for line in re.findall(r"^#include (\S+)", b[2], flags=re.M):
            if line not in includes:
                includes.append(line)
        b[2] = re.sub(r"^#include [^\n]*", "", b[2], flags=re.M)
    out = [f"#include {i}" for i in includes] + ["namespace vv = varve;"]
    whole = [b for b in blocks if b[0] == "program"]
    if whole:
        return "\n".join(out + [f'#line {b[1]} "{name}"\n{b[2]}' for b in blocks if b[0] in ("program", "global")])
    mark = 'std::fflush(stdout), std::cout << std::flush, std::printf("\\x1f%d\\n", {});'
    groups = {id(g[0]): g for g in runs(blocks)}
    for b in blocks:
        if b[0] == "global":
            out += [f'#line {b[1]} "{name}"', b[2]]
        elif id(b) in groups:
            k = len([1 for line in out if line.startswith("static void block_")])
            out.append(f"static void block_{k}() {{")
            for part in groups[id(b)]:
                out += [mark.format(blocks.index(part)), f'#line {part[1]} "{name}"', part[2]]
            out.append("}")
    out.append("int main() {")
    out += [f"  block_{k}();" for k in range(len(groups))]
    out.append("}")
    return "\n".join(out) + "\n"


def printed_by(stdout, page):
    """{block: what it printed}"""
    printed = {int(k): text for k, text in re.findall(r"\x1f(\d+)\n([^\x1f]*)", stdout)}
    return printed or {k: stdout for k, b in enumerate(blocks_of(page)) if b[0] == "program"}


def agree(a, b):
    """Equal, but for the last digits of numbers and the space at the ends."""
    number = re.compile(r"([-+]?\d+\.\d+(?:e[-+]?\d+)?)")
    a, b = number.split(a.strip()), number.split(b.strip())
    return len(a) == len(b) and all(
        x == y if k % 2 == 0 else abs(float(x) - float(y)) <= 2e-5 * max(1e-3, abs(float(y)))
        for k, (x, y) in enumerate(zip(a, b)))


def fill(page, *path):
    """Puts what each block prints behind it. (Who writes the page reads whether it is right.)"""
    ran = subprocess.run(path, capture_output=True, text=True, timeout=300)
    printed = printed_by(ran.stdout, page)
    with open(page, encoding="utf-8") as f:
        text = f.read()

    starts = {line: k for k, (_, line, _, _) in enumerate(blocks_of(page))}

    def one(m):
        out = printed.get(starts[text.count("\n", 0, m.start()) + 2], "").rstrip()
        return m.group(1) + ("```output\n" + out + "\n```\n" if out else "")

    filled = re.sub(r"(^```cpp(?: (?:program|continued))?\n.*?^```\n)(?:```output\n.*?^```\n)?", one, text,
                    flags=re.M | re.S)
    with open(page, "w", encoding="utf-8") as f:
        f.write(filled)
    return ran.returncode


def check(page, *path):
    ran = subprocess.run(path, capture_output=True, text=True, timeout=300)
    printed = printed_by(ran.stdout, page)
    bad = 0
    if ran.returncode:
        print(ran.stdout, ran.stderr, f"{page}: ended with {ran.returncode}", sep="\n")
        bad = 1
    blocks = blocks_of(page)
    for k, (kind, line, _, shown) in enumerate(blocks):
        if kind != "global" and not agree(printed.get(k, ""), shown or ""):
            bad = 1
            print(f"{page}:{line}: prints\n{printed.get(k, '')}but the page shows\n{shown or 'nothing'}")
    print(f"{os.path.basename(page)}: {len(blocks)} blocks of C++ compiled and run")
    return bad


if __name__ == "__main__":
    if sys.argv[1] == "write":
        with open(sys.argv[3], "w", encoding="utf-8") as f:
            f.write(program(sys.argv[2]))
    else:
        sys.exit({"check": check, "fill": fill}[sys.argv[1]](*sys.argv[2:]))
