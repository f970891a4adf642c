# SPDX-License-Identifier: BSL-1.0
# Headers that the umbrella does not reach, since they need what a user may not have, or cost what not every user needs:
# `optional_headers`, a regular expression for names below include/varve.
set(names
  aot/ aot.hpp call/ export/ export.hpp fake/ fake.hpp shape/sym_bool.hpp functional.hpp functional/functional_mode.hpp
  functional/functional_tensor.hpp indexing/ indexing.hpp interop/ io/ linalg/ linalg.hpp masked/ masked.hpp mode/ nn/
  nn.hpp optim/ optim.hpp random/ random.hpp signal/ signal.hpp sorting/ sorting.hpp special/ special.hpp
  dispatch/parallel_for.hpp hop/auto_functionalized.hpp hop/out_dtype.hpp hop/recorded_hop.hpp hop/switch_case.hpp
  hop/wrap.hpp shape/environment.hpp
  kernel/angles.hpp kernel/bessel.hpp kernel/blocked.hpp kernel/error_functions.hpp kernel/gamma.hpp kernel/integers.hpp
  kernel/matrices.hpp kernel/pool.hpp kernel/recurrences.hpp kernel/sampling.hpp
  kernel/spectra.hpp kernel/vector_loop.hpp kernel/vectors.hpp)
list(JOIN names "|" optional_headers)
string(REPLACE ".hpp" "[.]hpp$" optional_headers "^(${optional_headers})")
