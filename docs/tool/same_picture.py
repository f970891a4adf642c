# SPDX-License-Identifier: BSL-1.0
"""same_picture.py <folder> <folder>: are the pictures of both the same, but for a pixel here and there?"""
import os
import re
import sys

NUMBER = re.compile(r"(-?\d+\.\d+)")
bad = 0
for name in sorted(os.listdir(sys.argv[1])):
    texts = []
    for folder in sys.argv[1:]:
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            texts.append(NUMBER.split(f.read()))
    a, b = texts
    if len(a) != len(b):
        # fields whose colors differ by a step are cut in other places: few of them may
        if abs(len(a) - len(b)) > 0.02 * len(a):
            print(name, "has", len(b), "parts, not", len(a))
            bad = 1
        continue
    off = [k for k, (x, y) in enumerate(zip(a, b)) if (x != y if k % 2 == 0 else abs(float(x) - float(y)) > 1.5)]
    if len(off) > 0.02 * len(a):
        print(name, "differs in", len(off), "of", len(a), "parts")
        bad = 1
sys.exit(bad)
