// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/rule/moving.hpp>
#include <varve/rule/reduction.hpp>

namespace varve {

/// Adds a last axis of size `num_classes` that is 1 at the index and 0 elsewhere (int64, as in PyTorch). Attribute
/// {num_classes}.
template <>
struct rules<one_hot_t> {
  static constexpr operator_class planned_as = operator_class::one_hot;
  static constexpr auto schema = "(Tensor self, int num_classes) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const*) {
    if (at[0].n != 1) refuse::argument_is_invalid("one_hot", "the number of classes is one number");
    return detail::require_sizes("one_hot", at[0]), at;
  }
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 1;
  static constexpr bool differentiable = false;
  using only = std::int64_t;
  static constexpr meta shape(attributes const& at, meta const* in, int) {
    if (in[0].type != dtype::int64)
      refuse::dtype_is_not_supported("one_hot (int64 expected; write x.to(dtype::int64)):", name(in[0].type));
    dims s = in[0].sizes;
    return {dtype::int64, s.push_back(at[0][0])};
  }
  template <class R, class T>
  static constexpr void compute(attributes const& at, strided<R> out, strided<T const> x) {
    index_t const classes = at[0][0];
    detail::clear(out);
    R* to = out.data;
    for_each_row(
        x.sizes,
        [&](index_t n, auto row) {
          for (index_t i = 0; i < n; ++i, to += classes) {
            auto const c = static_cast<index_t>(row[i]);
            if (c < 0 || c >= classes) refuse::index_out_of_range("one_hot", c, classes);
            to[c] = R(1);
          }
        },
        x);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    return op(o.value);
  }
};

template <value X, class N>
constexpr auto one_hot_t::operator()(X const& x, N const& num_classes) const {
  return bind<one_hot_t>(detail::as_fact(num_classes))(x);
}

} // namespace varve
