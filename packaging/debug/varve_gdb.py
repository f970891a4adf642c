# SPDX-License-Identifier: BSL-1.0
"""How gdb prints varve's values:  gdb -iex 'source <here>/varve_gdb.py' program, or such a line in ~/.gdbinit.

tensor: dtype, shape and elements (at most `set print elements`, 20 of them if that is more); what a transform sees
through it, and undefined ones, say so. dims, extent: numbers. array: its elements. Nothing is called in the program.
"""
import re
import struct

import gdb
import gdb.printing

MOST = 20
# dtype: (bytes, struct's letter)
FORMS = {"bool_": (1, "?"), "uint8": (1, "B"), "int8": (1, "b"), "int16": (2, "h"), "uint16": (2, "H"), 
         "int32": (4, "i"),
         "uint32": (4, "I"), "int64": (8, "q"), "uint64": (8, "Q"), "float16": (2, "e"), "bfloat16": (2, "bfloat"),
         "float32": (4, "f"), "float64": (8, "d"), "complex64": (8, "ff"), "complex128": (16, "dd")}


def extent_text(value):
    bits = int(value["bits"])
    if bits >> 61 == 2:
        return f"expression {bits & 0xFFFFFFFF}"
    if bits >> 61 == 3 and bits != 2**63 - 1:
        return "".join(chr(bits >> k & 255) for k in range(48, -8, -8) if bits >> k & 255)
    return str(bits)


def extents(dims):
    return [extent_text(dims["v"][k]) for k in range(int(dims["n"]))]


def element(memory, form):
    if form == "bfloat":
        return struct.unpack("<f", b"\0\0" + memory)[0]
    values = struct.unpack("<" + form, memory)
    return complex(*values) if len(values) == 2 else values[0]


def show(v):
    return f"{v:g}" if isinstance(v, float) else str(v).lower() if isinstance(v, bool) else str(v)


def nested(values, sizes):
    """Elements in brackets, as many as there are."""
    if not sizes:
        return show(values.pop(0)) if values else "..."
    parts = []
    for _ in range(sizes[0]):
        if not values:
            parts.append("...")
            break
        parts.append(nested(values, sizes[1:]))
    return "[" + ", ".join(parts) + "]"


class Extent:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return extent_text(self.value)


class Dims:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return "[" + ", ".join(extents(self.value)) + "]"


class Tensor:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        block = self.value["block_"]
        if int(block) == 0:
            return "tensor (undefined)"
        block = block.dereference()
        dtype = str(block["type"]).rsplit("::", 1)[-1]
        sizes = extents(block["sizes"])
        head = f"{dtype.rstrip('_')}[{', '.join(sizes)}]"
        kind = str(block["kind"]).rsplit("::", 1)[-1]
        if kind == "seen":
            return f"tensor {head} seen through a transform: {Tensor(block['seen']['value']).to_string()}"
        if kind != "memory" or not all(s.lstrip("-").isdigit() for s in sizes) or int(block["store"]) == 0:
            return f"tensor {head} ({kind})"
        data = int(block["store"]["data"])
        if data == 0:
            return f"tensor {head} (no data)"
        numbers = [int(s) for s in sizes]
        size, form = FORMS.get(dtype, (0, ""))
        if not size:
            return f"tensor {head}"
        if bool(block["contiguous"]):
            strides, n = [0] * len(numbers), 1
            for k in reversed(range(len(numbers))):
                strides[k], n = n, n * numbers[k]
        else:
            strides = [int(s) for s in extents(block["strides"])]
        offset = int(block["offset"]["bits"])
        most = min(gdb.parameter("print elements") or MOST, MOST)
        values, index = [], [0] * len(numbers)
        memory = gdb.selected_inferior()
        while len(values) < most and all(numbers):
            at = data + size * (offset + sum(i * s for i, s in zip(index, strides)))
            values.append(element(bytes(memory.read_memory(at, size)), form))
            for k in reversed(range(len(numbers))):
                index[k] += 1
                if index[k] < numbers[k]:
                    break
                index[k] = 0
            else:
                break
        return f"tensor {head} {nested(values, numbers) if all(numbers) else '[]'}"


class Array:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        kind = self.value.type.strip_typedefs()
        # gdb does not number the arguments of a pack: they stand in the type's name
        sizes = [int(n) for n in re.findall(r",\s*(-?\d+)", kind.name)]
        total = 1
        for s in sizes:
            total *= s
        values = [self.value["data"][i] for i in range(min(total, MOST))]
        return f"{kind.template_argument(0)}[{', '.join(map(str, sizes))}] {nested(values, sizes)}"


def printers():
    all_of = gdb.printing.RegexpCollectionPrettyPrinter("varve")
    all_of.add_printer("tensor", "^varve::tensor$", Tensor)
    all_of.add_printer("dims", "^varve::dims$", Dims)
    all_of.add_printer("extent", "^varve::extent$", Extent)
    all_of.add_printer("array", "^varve::array<.*>$", Array)
    return all_of


gdb.printing.register_pretty_printer(None, printers(), replace=True)
