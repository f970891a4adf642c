# SPDX-License-Identifier: BSL-1.0
# Headers that the umbrella does not reach, since they need what a user may not have, or cost what not every user needs:
# `optional_headers`, a regular expression for names below include/varve.
set(names
  aot/ aot.hpp autograd/saved_function.hpp by_name/ complex/ complex.hpp core/file_bytes.hpp value/tensor_of_bytes.hpp
  custom/saved_functions.hpp export/ export.hpp fake/
  fake.hpp fft/ fft.hpp implicit/ implicit.hpp shape/sym_bool.hpp functional.hpp functional/functional_mode.hpp
  functional/functional_tensor.hpp indexing/ indexing.hpp interop/ io/ jet/ linalg/ linalg.hpp masked/ masked.hpp mode/
  nn/ nn.hpp optim/ optim.hpp random/ random.hpp signal/ signal.hpp sorting/ sorting.hpp sparse/ sparse.hpp special/
  special.hpp transform/transform_of.hpp
  dispatch/parallel_for.hpp hop/auto_functionalized.hpp hop/call_on_copy.hpp hop/out_dtype.hpp hop/print.hpp
  hop/run_const_graph.hpp hop/switch_case.hpp hop/with_effects.hpp hop/wrap.hpp rule/effect.hpp shape/environment.hpp
  kernel/angles.hpp kernel/bessel.hpp kernel/blocked.hpp kernel/error_functions.hpp kernel/fft.hpp kernel/gamma.hpp
  kernel/integers.hpp
  kernel/matrices.hpp kernel/pool.hpp kernel/recurrences.hpp kernel/sampling.hpp kernel/spectra.hpp
  kernel/vector_loop.hpp kernel/vectors.hpp)
list(JOIN names "|" optional_headers)
string(REPLACE ".hpp" "[.]hpp$" optional_headers "^(${optional_headers})")
