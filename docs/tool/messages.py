# SPDX-License-Identifier: BSL-1.0
"""Texts of the headers' messages: string literals that are neighbours are one, and names that are messages."""
import os
import re

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def of_text(text):
    """String literals of a header, neighbours joined, and names of functions that are messages."""
    found = re.findall(r'#error "([^"]*)"', text.replace("\\\n", ""))
    text = re.sub(r"(?<!:)//[^\n]*|^ *#include[^\n]*", "", text, flags=re.M).replace("\\\n", "")
    end, current = -1, ""
    for m in LITERAL.finditer(text):
        if current and text[end:m.start()].strip():
            found.append(current)
            current = ""
        current += m.group(1)
        end = m.end()
    found.append(current)
    for body in re.findall(r"^namespace refuse \{\n(.*?)^\}", text, flags=re.M | re.S):
        found += [n + "()" for n in re.findall(r"\bvoid (\w+)\(", body)]
    return found + [n + "()" for n in re.findall(r"\b(?:void|int|tensor) ([a-z]+(?:_[a-z]+){4,})(?:\(| =)", text)]


def by_header(root):
    """{header: messages}"""
    found = {}
    for folder, _, files in sorted(os.walk(f"{root}/include/varve")):
        for file in sorted(files):
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as f:
                found[os.path.relpath(path, f"{root}/include/varve")] = of_text(f.read())
    return found


def literals(root):
    return {t for some in by_header(root).values() for t in some}


def is_message(text):
    """Said to users: sentences that begin as messages do, and functions whose names are messages."""
    return bool(re.match(r"varve(: \w.{8}|/.* | needs| is )", text)
                or re.fullmatch(r"[a-z]+(_[a-z]+)+\(\)", text))
