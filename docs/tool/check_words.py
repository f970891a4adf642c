# SPDX-License-Identifier: BSL-1.0
"""check_words.py <repository>: counts in the comments of include/varve what a machine can find of text that is hard to
read: comments that begin with "...", questions in place of descriptions, sentences of more than 35 words, and codes of
specifications that readers do not have. Prints each with its place; gives 1 if there are any."""
import pathlib
import re
import sys

MOST_WORDS = 35


def comments(text):
    """The comments of a header, as (line, text): neighbouring lines of one kind and indentation are one comment."""
    block, start, kind = [], 0, ""
    for number, line in enumerate(text.split("\n") + [""], 1):
        found = re.match(r"(\s*///?)(?: (.*))?$", line)
        if found and (not block or found[1] == kind):
            if not block:
                start, kind = number, found[1]
            block.append(found[2] or "\n")
            continue
        if block:
            yield start, " ".join(block)
        block = []
        if found:
            start, kind, block = number, found[1], [found[2] or "\n"]
            continue
        behind = re.search(r"\S.*?\s(?:///<?|//) (.*)$", line)
        if behind and '"' not in line[: behind.start(1)]:
            yield number, behind[1]


def sentences(comment):
    """Its sentences, without code and formulas."""
    text = re.sub(r"`[^`]*`", "x", comment)
    text = re.sub(r"\b(?:e\.g|i\.e|etc|cf|vs|al)\.", "eg", text)
    return [s for s in re.split(r"(?<=[.!?;:])\s+|\n", text) if s.strip()]


def faults(comment):
    if comment.startswith("..."):
        yield "begins with ..."
    if re.search(r"\b[A-Z]{2}-\d+\b", comment):
        yield "has a code of a specification"
    if re.match(r"(?:Is|Are|Do|Does|Did|Has|Have|Can|May|Must|Was|Were|Will|Would|Should)\b[^.]*\?", comment):
        yield "asks a question"
    for sentence in sentences(comment):
        words = len(re.findall(r"[A-Za-z][A-Za-z'-]+", sentence))
        if words > MOST_WORDS:
            yield f"has a sentence of {words} words"


def main(root):
    count = 0
    headers = pathlib.Path(root, "include", "varve")
    for header in sorted(headers.rglob("*.hpp")):
        for line, comment in comments(header.read_text(encoding="utf-8")):
            for fault in faults(comment):
                count += 1
                print(f"{header.relative_to(root)}:{line}: the comment {fault}: {comment.strip()[:80]}")
    print(f"words: {count} comments to be written anew")
    return count > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
