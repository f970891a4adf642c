# SPDX-License-Identifier: BSL-1.0
# NumPy and varve on the same memory: dlpack.py <library made of dlpack.cpp>
import ctypes
import gc
import sys

import numpy as np

varve = ctypes.CDLL(sys.argv[1])
varve.varve_give.restype = ctypes.c_void_p
varve.varve_element.restype = ctypes.c_double
varve.varve_take.restype = ctypes.c_double
varve.varve_take.argtypes = [ctypes.c_void_p]
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Given:
    def __dlpack__(self, stream=None):
        return python.PyCapsule_New(varve.varve_give(), b"dltensor", None)

    def __dlpack_device__(self):
        return (1, 0)


x = np.from_dlpack(Given())
assert x.dtype == np.float32 and x.shape == (2, 3), x
assert x.tolist() == [[1, 5, 9], [3, 7, 11]], x
assert x.strides == (8, 16), x.strides
# The same memory: what varve holds is read through the array.
address = x.__array_interface__["data"][0]
ctypes.c_float.from_address(address).value = 100
assert varve.varve_element(0, 1) == 100 and x[0, 0] == 100
del x
gc.collect()  # its deleter runs
assert varve.varve_element(2, 3) == 11

# The other way: varve writes where NumPy reads, and NumPy's reference goes with the tensor.
y = np.arange(6.0).reshape(2, 3).T
before = sys.getrefcount(y)
capsule = y.__dlpack__()
assert sys.getrefcount(y) > before
assert varve.varve_take(python.PyCapsule_GetPointer(capsule, b"dltensor")) == 30
assert y.tolist() == [[0, 6], [2, 8], [4, 10]], y
assert sys.getrefcount(y) == before, "the deleter did not run, or twice"
python.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor")

# What varve has no dtype for stays NumPy's.
z = np.arange(3, dtype=np.uint16)
capsule = z.__dlpack__()
assert varve.varve_take(python.PyCapsule_GetPointer(capsule, b"dltensor")) == -1
del capsule
gc.collect()
assert z.tolist() == [0, 1, 2]
print("NumPy", np.__version__, "and varve share memory")
