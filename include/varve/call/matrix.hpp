// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/call.hpp>

namespace varve::by_name {
/// Products of vectors and matrices, by name.
std::span<call_row const> matrices();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/call/adapt.hpp>
#include <varve/composite/products.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
inline call_family const matrix_family{&matrices};

template <class Op>
tensor added(tensor const& x, tensor const& a, tensor const& b, tensor const& beta, tensor const& alpha) {
  return with_number(beta,
                     [&](auto u) { return with_number(alpha, [&](auto v) -> tensor { return Op{}(x, a, b, u, v); }); });
}

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
      {"outer(Tensor self, Tensor vec2) -> Tensor", of_two<outer_t>, out, "ger"},
      {"mv(Tensor self, Tensor vec) -> Tensor", of_two<mv_t>, out_of_its_dtype},
      {"bmm(Tensor self, Tensor mat2) -> Tensor", of_two<bmm_t>, out_of_its_dtype},
      {"inner(Tensor self, Tensor other) -> Tensor", of_two<inner_t>, out},
      {"linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
       +[](tensor const& a, tensor const& b, index_t axis) -> tensor { return vecdot(a, b, dims{axis}); }, out,
       "linalg.vecdot"},
      {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", added<addmm_t>,
       both},
      {"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", added<addmv_t>, both},
      {"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", added<addr_t>, both},
      {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       added<baddbmm_t>, both},
      {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", added<addbmm_t>,
       both},
  };
  return rows;
}
} // namespace varve::by_name
#endif
