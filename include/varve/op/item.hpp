// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/rule/moving.hpp>

namespace varve {

/// The only element of a value as an int64 of rank 0 (`_local_scalar_dense`). In graphs this node records that the
/// program reads a number from data. Attribute {symbol}: the size that stands for the number in the rest of the graph,
/// or {}.
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
    if (!(numel(in[0].sizes) == 1)) refuse::item_of_other_than_one_element(in[0].sizes);
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
/// Returns the number in a tensor, through any transforms; it is symbolic where there are no data. A number read from
/// data during tracing is refused, because it would be valid for this call only.
VARVE_COLD inline extent number_in(tensor const& t, bool traced = false) {
  if (t.is_wrapped()) return number_in(t.current(), traced || is_traced(t.layer()));
  extent const* const symbol = t.object() ? t.object()->symbol_of(t) : nullptr;
  if (symbol) return *symbol;
  extent const n = t.item<index_t>();
  if (traced) refuse_traced_number();
  return n;
}
} // namespace detail

/// Returns a number itself, for functions of numbers and tensors.
template <number N>
constexpr N item(N v) {
  return v;
}
/// Returns the only element of an integer or bool tensor, as a number that can be a size: `zeros(dims{item(n), 3})`.
/// Under a `fake_mode` with a shape environment, and in `make_fx(f, tracing::symbolic)`, it is a symbol. The symbol
/// stays the same until the tensor is written into. A traced graph reads the number anew in each run. Errors:
/// `data_dependent_error` without a shape environment, `transform_error` in other traces, `dtype_error` for floats.
template <class T = tensor>
  requires(!number<T>)
extent item(T const& t) {
  return detail::number_in(bind<local_scalar_t>(dims{})(t));
}

} // namespace varve
