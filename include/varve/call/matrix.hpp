// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/call.hpp>

namespace varve::by_name {
/// Products of vectors and matrices, by name.
std::span<call_row const> matrices();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/op/all.hpp>

namespace varve::by_name {
inline call_family const matrix_family{&matrices};

VARVE_LIBRARY std::span<call_row const> matrices() {
  using enum call_forms;
  static call_row const rows[] = {
      {"matmul(Tensor self, Tensor other) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor { return matmul(a, b); }, out_of_its_dtype,
       "linalg_matmul linalg.matmul __matmul__"},
      {"__rmatmul__(Tensor self, Tensor other) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor { return matmul(b, a); }},
      {"mm(Tensor self, Tensor mat2) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor {
         if (a.dim() != 2 || b.dim() != 2) refuse::shapes_do_not_match("mm", a.sizes(), b.sizes());
         return mm(a, b);
       },
       out_of_its_dtype},
      {"dot(Tensor self, Tensor tensor) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor {
         if (a.dtype() != b.dtype()) refuse::dtype_is_not_supported("dot of two dtypes:", name(b.dtype()));
         return dot(a, b);
       },
       out_of_its_dtype, "vdot"},
  };
  return rows;
}
} // namespace varve::by_name
#endif
