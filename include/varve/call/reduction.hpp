// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/call.hpp>

namespace varve::by_name {
/// Reductions, softmax and its kin, by name.
std::span<call_row const> reductions();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/op/all.hpp>

namespace varve::by_name {
inline call_family const reduction_family{&reductions};

/// An operand in the dtype that a call asks for.
inline tensor in_dtype(tensor const& x, std::optional<dtype> const& t) { return t ? tensor(to(x, *t)) : x; }

VARVE_LIBRARY std::span<call_row const> reductions() {
  using enum call_forms;
  using type = std::optional<dtype>;
  using axes = dims; // none or [] are all
  static call_row const rows[] = {
      {"sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, type t) -> tensor { return sum(in_dtype(x, t)); }, out},
      {"sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, axes a, bool k, type t) -> tensor { return sum(in_dtype(x, t), a, dims{k}); }, out},
      {"mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, type t) -> tensor { return mean(in_dtype(x, t)); }, out_of_its_dtype},
      {"mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, axes a, bool k, type t) -> tensor { return mean(in_dtype(x, t), a, dims{k}); },
       out_of_its_dtype},
      {"amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
       +[](tensor const& x, axes a, bool k) -> tensor { return amax(x, a, dims{k}); }, out_of_its_dtype},
      {"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
       +[](tensor const& x, axes a, bool k) -> tensor { return amin(x, a, dims{k}); }, out_of_its_dtype},
      {"max(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return amax(x); }},
      {"min(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return amin(x); }},
      {"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
       +[](tensor const& x, std::optional<index_t> a, bool k) -> tensor {
         if (a) return argmax(x, dims{*a}, dims{k});
         dims kept = x.sizes();
         for (int d = 0; d < kept.n; ++d) kept[d] = 1;
         return reshape(argmax(x), k ? kept : dims{});
       },
       out_of_its_dtype},
      {"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
       +[](tensor const& x, axes a, bool k) -> tensor { return logsumexp(x, a, dims{k}); }, out,
       "special_logsumexp special.logsumexp"},
      {"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, index_t a, type t) -> tensor { return softmax(in_dtype(x, t), dims{a}); }, out_of_its_dtype,
       "nn.functional.softmax special.softmax"},
      {"log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
       +[](tensor const& x, index_t a, type t) -> tensor { return log_softmax(in_dtype(x, t), dims{a}); },
       out_of_its_dtype, "nn.functional.log_softmax special.log_softmax"},
      {"sum_to_size(Tensor self, int[] size) -> Tensor",
       +[](tensor const& x, dims s) -> tensor {
         return sum_to_size(x.dtype() == dtype::bool_ ? tensor(to(x, dtype::int64)) : x, s);
       }},
  };
  return rows;
}
} // namespace varve::by_name
#endif
