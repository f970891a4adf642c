// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of reductions under masks.
std::span<call_row const> masked_reductions();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/masked/reductions.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const masked_family{&masked_reductions};

/// Calls `f(mask)`, or `f(none)` for None. Masks must be bool.
template <class F>
tensor under(tensor const& mask, F const& f) {
  if (!mask.defined()) return f(none);
  if (mask.dtype() != dtype::bool_) refuse::dtype_is_not_supported("masked (a bool mask):", name(mask.dtype()));
  return f(mask);
}
template <auto const& Op>
tensor reduced_under(tensor const& x, dims a, bool k, std::optional<dtype> t, tensor const& mask) {
  return under(mask, [&](auto const& m) -> tensor { return Op(t ? tensor(to(x, *t)) : x, m, a, dims{k}); });
}
template <auto const& Op>
tensor placed_under(tensor const& x, std::optional<index_t> a, bool k, std::optional<dtype> t, tensor const& mask) {
  tensor const at = under(mask, [&](auto const& m) -> tensor {
    if (a) return Op(x, m, dims{*a}, dims{k});
    dims kept = x.sizes();
    for (int d = 0; d < kept.n; ++d) kept[d] = 1;
    return reshape(tensor(Op(x, m)), k ? kept : dims{});
  });
  return to(at, t.value_or(x.dtype())); // PyTorch returns positions in the dtype of the elements
}
inline tensor multiplied_under(tensor const& x, std::optional<dims> axes, bool k, std::optional<dtype> t,
                               tensor const& mask) {
  tensor y = t ? tensor(to(x, *t)) : x;
  if (mask.defined()) y = where(mask, y, ones_like(y));
  dims const all = detail::normalize_axes(axes.value_or(dims{}), x.sizes());
  for (int d = all.n; d-- > 0;) y = prod(y, dims{all[d]}, dims{k});
  if (!has_derivatives(y.dtype())) y = to(y, dtype::int64);
  return y.shares_storage(x) ? tensor(clone(y)) : y; // x was a number
}
template <auto const& Op>
tensor normalized_under(tensor const& x, index_t a, std::optional<dtype> t, tensor const& mask) {
  return under(mask, [&](auto const& m) -> tensor { return Op(t ? tensor(to(x, *t)) : x, dims{a}, m); });
}

VARVE_LIBRARY std::span<call_row const> masked_reductions() {
  static call_row const rows[] = {
      {"masked.amax(Tensor input, int[1]? dim=None, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) "
       "-> "
       "Tensor",
       reduced_under<masked::amax>},
      {"masked.amin(Tensor input, int[1]? dim=None, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) "
       "-> "
       "Tensor",
       reduced_under<masked::amin>},
      {"masked.sum(Tensor input, int[1]? dim=None, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) "
       "-> "
       "Tensor",
       reduced_under<masked::sum>},
      {"masked.mean(Tensor input, int[1]? dim=None, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) "
       "-> "
       "Tensor",
       reduced_under<masked::mean>},
      {"masked.logsumexp(Tensor input, int[1]? dim=None, *, bool keepdim=False, ScalarType? dtype=None, Tensor? "
       "mask=None) -> "
       "Tensor",
       reduced_under<masked::logsumexp>},
      {"masked.argmax(Tensor input, int? dim=None, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) "
       "-> "
       "Tensor",
       placed_under<masked::argmax>},
      {"masked.argmin(Tensor input, int? dim=None, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) "
       "-> "
       "Tensor",
       placed_under<masked::argmin>},
      {"masked.softmax(Tensor input, int dim, *, ScalarType? dtype=None, Tensor? mask=None) -> Tensor",
       normalized_under<masked::softmax>},
      {"masked.softmin(Tensor input, int dim, *, ScalarType? dtype=None, Tensor? mask=None) -> Tensor",
       normalized_under<masked::softmin>},
      {"masked.log_softmax(Tensor input, int dim, *, ScalarType? dtype=None, Tensor? mask=None) -> Tensor",
       normalized_under<masked::log_softmax>},
      {"masked.prod(Tensor input, int[1]? dim=None, *, bool keepdim=False, ScalarType? dtype=None, Tensor? mask=None) "
       "-> Tensor",
       multiplied_under},
      {"masked.logaddexp(Tensor input, Tensor other, *, ScalarType? dtype=None, Tensor? input_mask=None, Tensor? "
       "other_mask=None) -> Tensor",
       +[](tensor const& x, tensor const& y, std::optional<dtype>, tensor const& p, tensor const& q) {
         return under(p, [&](auto const& m) {
           return under(q, [&](auto const& n) -> tensor { return masked::logaddexp(x, y, m, n); });
         });
       }},
      {"masked.var(Tensor input, int[1]? dim=None, bool? unbiased=None, *, float? correction=None, bool keepdim=False, "
       "ScalarType? dtype=None, Tensor? mask=None) -> Tensor",
       +[](tensor const& x, dims a, std::optional<bool> u, std::optional<double> c, bool k, std::optional<dtype> t,
           tensor const& mask) {
         return under(mask, [&](auto const& m) -> tensor {
           double const less = c ? *c : u.value_or(true) ? 1 : 0;
           return masked::var(t ? tensor(to(x, *t)) : x, m, a, less, dims{k});
         });
       }},
      {"masked.std(Tensor input, int[1]? dim=None, bool? unbiased=None, *, float? correction=None, bool keepdim=False, "
       "ScalarType? dtype=None, Tensor? mask=None) -> Tensor",
       +[](tensor const& x, dims a, std::optional<bool> u, std::optional<double> c, bool k, std::optional<dtype> t,
           tensor const& mask) {
         return under(mask, [&](auto const& m) -> tensor {
           double const less = c ? *c : u.value_or(true) ? 1 : 0;
           return masked::std_dev(t ? tensor(to(x, *t)) : x, m, a, less, dims{k});
         });
       }},
      {"masked.norm(Tensor input, float? ord=2.0, int[1]? dim=None, *, bool keepdim=False, ScalarType? dtype=None, "
       "Tensor? mask=None) -> Tensor",
       +[](tensor const& x, std::optional<double> p, dims a, bool k, std::optional<dtype> t, tensor const& mask) {
         return under(mask, [&](auto const& m) -> tensor {
           return masked::norm(t ? tensor(to(x, *t)) : x, p.value_or(2), m, a, dims{k});
         });
       }},
  };
  return rows;
}
} // namespace varve::by_name
#endif
