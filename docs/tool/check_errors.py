# SPDX-License-Identifier: BSL-1.0
"""check_errors.py <repository>: the page of errors and the headers agree.

Each message that the page names is one of the headers; each that test/fail expects is named by the page.
"""
import os
import re
import sys

import messages


def main(root):
    with open(f"{root}/docs/errors.md", encoding="utf-8") as f:
        page = f.read()
    named = [re.sub(r"\s+", " ", m) for line in re.findall(r"^- (.*?)(?=^- |^#|\Z)", page, flags=re.M | re.S)
             for m in re.findall(r"`([^`]*)`", line.split(" — ")[0])]
    named += [re.sub(r"\s+", " ", m) for m in re.findall(r"`([^`]*(?:_[^`_]+){3,})`", page)]
    named += [re.sub(r"\s+", " ", m) for m in re.findall(r"`((?:cond|trace): [^`]*)`", page)]
    texts = messages.literals(root)
    bad = [f"no header has the message: {m}" for m in sorted(set(named)) if not any(m in t for t in texts)]
    known = {t for t in texts for m in named if m in t}
    for file in sorted(os.listdir(f"{root}/test/fail")):
        if not file.endswith(".cpp"):
            continue
        with open(f"{root}/test/fail/{file}", encoding="utf-8") as f:
            wanted = re.findall(r"^// expect(?:\(\w+\))?: (.*)$", f.read(), flags=re.M)
        found = False
        for w in wanted:
            pattern = re.compile(w.replace("[", "[") if w.count("(") == w.count(")") else re.escape(w), re.S)
            found = found or any(pattern.search(t.replace("`", "")) or pattern.search(t) for t in known)
        if not found:
            bad.append(f"test/fail/{file} expects what the page does not name: {wanted[0]}")
    flat = [re.sub(r"\s+", " ", m) for m in re.findall(r"`([^`]*)`", page)]
    said = sorted({t for t in texts if t.startswith("varve: ") and len(t) > 20})
    without = [t for t in said if not any(m in t for m in flat if len(m) > 8)]
    for t in without:
        print("docs/errors.md does not explain:", t)
    for line in bad:
        print("docs/errors.md:", line)
    print(f"errors: {len(set(named))} messages named, {len(said) - len(without)} of {len(said)} explained")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
