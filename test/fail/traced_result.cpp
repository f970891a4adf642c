// SPDX-License-Identifier: BSL-1.0
// expect: make_fx, compile: what a traced function returns must be a tree of tensors
#include <varve/varve.hpp>

using varve::tensor;
tensor program(tensor const& x) {
  auto const compiled = varve::compile([](tensor const& v) {
#ifdef FAIL
    return std::pair(v * 2, 3);
#else
    return std::pair(v * 2, v + 3);
#endif
  });
  return compiled(x).first;
}
