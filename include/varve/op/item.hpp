// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/rule/moving.hpp>

namespace varve {

/// The only element of a value as an int64 of rank 0 (`_local_scalar_dense`): what a program reads of data, as a node
/// of graphs. Attribute {symbol}: the size that stands for it in the rest of the graph; or {}.
inline constexpr struct local_scalar_t {
  static constexpr auto op_name = "_local_scalar_dense";
} local_scalar{};

template <>
struct rules<local_scalar_t> {
  static constexpr auto schema = "(Tensor self) -> Tensor";
  static constexpr op_kind kind = op_kind::indexing;
  static constexpr int arity = 1;
  static constexpr bool differentiable = false;
  template <class>
  using result = std::int64_t;
  static constexpr attributes checked(attributes const& at, meta const*) {
    if (at[0].n > 1) refuse::argument_is_invalid("item", "there is one number");
    return at;
  }
  static constexpr meta shape(attributes const&, meta const* in, int) {
    if (is_floating(in[0].type)) refuse::dtype_is_not_supported("item (an integer expected):", name(in[0].type));
    if (!(numel(in[0].sizes) == 1)) refuse::argument_is_invalid("item", "the tensor must have exactly one element");
    return {dtype::int64, {}};
  }
  template <class R, class T>
  static constexpr void compute(attributes const&, strided<R> out, strided<T const> x) {
    out.data[0] = static_cast<R>(x.data[0]);
  }
  template <class Op, class N, class O>
  static constexpr auto batch(Op const& op, N const&, O const& o) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(o.value)>, tensor>)
      refuse::with<data_dependent_error>(
          "varve: vmap: item: the number is another one in each lane; use where or cond, or take "
          "it outside of vmap");
    return op(o.value);
  }
};

namespace detail {
/// The number in a tensor, whatever transforms see it: symbolic where data are not there. One that is read of data
/// while a program is being traced is refused: it would be that of this call alone.
VARVE_COLD inline extent number_in(tensor const& t, bool traced = false) {
  if (t.is_wrapped()) return number_in(t.current(), traced || is_traced(t.layer()));
  extent const* const symbol = t.object() ? t.object()->symbol_of(t) : nullptr;
  if (symbol) return *symbol;
  extent const n = t.item<index_t>();
  if (traced) refuse_traced_number();
  return n;
}
} // namespace detail

/// A number is its own element, in functions of numbers and tensors.
template <number N>
constexpr N item(N v) {
  return v;
}
/// The only element of an integer or bool tensor as a number that may be a size: `zeros(dims{item(n), 3})`. Under a
/// `fake_mode` with a shape environment, and in `make_fx(f, tracing::symbolic)`, it is a symbol, the same one until
/// somebody writes into the tensor (FK-7, FK-8); a traced graph reads it anew in each run. Errors:
/// `data_dependent_error` without an environment, `transform_error` in other traces, `dtype_error` for floats.
template <class T = tensor>
  requires(!number<T>)
extent item(T const& t) {
  return detail::number_in(bind<local_scalar_t>(dims{})(t));
}

} // namespace varve
