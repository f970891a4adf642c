// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/op/abs.hpp>
#include <varve/op/clamp.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/exp.hpp>
#include <varve/op/full_like.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/relu.hpp>
#include <varve/op/sigmoid.hpp>
#include <varve/op/sin.hpp>
#include <varve/op/sqrt.hpp>
#include <varve/op/tanh.hpp>
#include <varve/rule/broadcasting.hpp>

namespace varve {

/// Operators that write into the memory of their first operand, a tensor, and return it. The other operands broadcast
/// to it. The category of the result's dtype must not be higher than that of the first operand. The version counter
/// rises by one.
///
/// While gradients are recorded, the tensor gets the history of its new elements, and so do its base and its views;
/// leaves that require gradients are refused. Inside `grad` and `jvp`, only values that the function itself computed
/// can be written; under `vmap`, only mapped values. Traced values, including views, are written like tensors; the
/// finished graph contains no writes (`functionalize`). Static values, and values seen through static transforms, are
/// refused.
template <class Tag>
struct in_place {
  template <value... Y>
  tensor const& operator()(tensor const& x, Y const&... y) const {
    if constexpr (std::is_same_v<Tag, copy__t>) (detail::require_element("copy_", y, x.dtype()), ...);
    bound<Tag>{}(x, y...);
    return x;
  }
  template <class X, value... Y>
    requires(!std::is_same_v<std::remove_cvref_t<X>, tensor> && is_proxy_base<std::remove_cvref_t<X>>)
  constexpr X& operator()(X&& x, Y const&... y) const {
    static_assert(!(is_seen<Y> || ...),
                  "varve: an in-place operator writes a value that is seen through a static transform into one that is "
                  "not; assign what the operator without underscore gives: x = add(x, y)");
    if constexpr (!(is_seen<Y> || ...)) // stops further errors after the message
      backend<typename decltype(detail::base_tag<std::remove_cvref_t<X>>())::type>::template write<Tag>(x, y...);
    return x;
  }
  /// Refuses static values: they have no memory that views could share.
  template <class X, value... Y>
    requires(value<X> && !std::is_same_v<std::remove_cvref_t<X>, tensor> && !is_proxy_base<std::remove_cvref_t<X>>)
  constexpr X& operator()(X&& x, Y const&...) const {
    static_assert(never<X>, "varve: an in-place operator was called on a static value, or on one seen through a static "
                            "transform; assign what the operator without underscore gives: x = mul(x, y)");
    return x;
  }
};
/// Copies the elements of y into x, converted to the dtype of x.
inline constexpr struct copy__t : in_place<copy__t> {
  static constexpr auto op_name = "copy_";
} copy_{};
inline constexpr struct add__t : in_place<add__t> {
  static constexpr auto op_name = "add_";
} add_{};
inline constexpr struct sub__t : in_place<sub__t> {
  static constexpr auto op_name = "sub_";
} sub_{};
inline constexpr struct mul__t : in_place<mul__t> {
  static constexpr auto op_name = "mul_";
} mul_{};
inline constexpr struct div__t : in_place<div__t> {
  static constexpr auto op_name = "div_";
} div_{};
inline constexpr struct neg__t : in_place<neg__t> {
  static constexpr auto op_name = "neg_";
} neg_{};
inline constexpr struct exp__t : in_place<exp__t> {
  static constexpr auto op_name = "exp_";
} exp_{};
inline constexpr struct log__t : in_place<log__t> {
  static constexpr auto op_name = "log_";
} log_{};
inline constexpr struct abs__t : in_place<abs__t> {
  static constexpr auto op_name = "abs_";
} abs_{};
inline constexpr struct sin__t : in_place<sin__t> {
  static constexpr auto op_name = "sin_";
} sin_{};
inline constexpr struct cos__t : in_place<cos__t> {
  static constexpr auto op_name = "cos_";
} cos_{};
inline constexpr struct tanh__t : in_place<tanh__t> {
  static constexpr auto op_name = "tanh_";
} tanh_{};
inline constexpr struct sqrt__t : in_place<sqrt__t> {
  static constexpr auto op_name = "sqrt_";
} sqrt_{};
inline constexpr struct sigmoid__t : in_place<sigmoid__t> {
  static constexpr auto op_name = "sigmoid_";
} sigmoid_{};
inline constexpr struct relu__t : in_place<relu__t> {
  static constexpr auto op_name = "relu_";
} relu_{};

namespace detail {
/// Refuses a result that cannot be written into the tensor: one of another shape, or of a higher dtype category. Only
/// metadata are compared, so that tensors without data, graphs and proxies refuse the same results.
constexpr void require_room(char const* op, meta const& x, meta const& result) {
  if (!is_expandable(result.sizes, x.sizes)) refuse::shapes_do_not_match(op, x.sizes, result.sizes);
  if (category(result.type) > category(x.type)) refuse::dtype_does_not_fit(op, name(result.type), name(x.type));
}
/// Refuses tensors that must not be written, before anything is written.
VARVE_NOINLINE inline void check_in_place(char const* op, tensor const& x, dims const& strides) {
  if (x.is_inference() && !this_thread_inference)
    refuse::with<autograd_error>(
        (std::string("varve: ") + op +
         ": a tensor made in inference mode cannot be written into outside of it; clone it first")
            .c_str());
  if (repeats_elements(x.sizes(), strides))
    refuse::with<value_error>(
        (std::string("varve: ") + op +
         ": the tensor shows elements of its memory more than once, as an expanded one does; clone it "
         "first")
            .c_str());
}
template <class = void>
VARVE_NOINLINE tensor write_into(tensor const& x, tensor const& y) {
  tensor const same = y.dtype() == x.dtype() ? y : converted(y, x.dtype());
  tensor const source = same.shares_storage(x) ? contiguous_copy(same) : same; // the kernel forbids overlap
  dims const strides = broadcast_strides(source.sizes(), source.strides(), x.sizes());
  kernel::copy_strided(x.sizes(), operand_of(x, x.strides().numbers()), operand_of(source, strides.numbers()));
  x.bump_version();
  return x;
}
/// Writes the result if all operands have one dtype, also for broadcast operands and other memory orders. Returns false
/// for other dtypes, and for operands that overlap the written tensor without being identical to it.
VARVE_NOINLINE inline bool write_strided(pointwise_info const& f, kernel::loop loop, tensor const* const* x) {
  constexpr int most = 4;
  tensor const& self = *x[0];
  dims strides[most];
  kernel::operand o[most];
  for (int k = 0; k < f.arity; ++k) {
    tensor const& in = *x[k];
    bool const same = in.raw() == self.raw() && in.sizes() == self.sizes() && in.strides() == self.strides();
    if (in.dtype() != self.dtype() || in.is_number() || (in.shares_storage(self) && !same) ||
        !is_expandable(in.sizes(), self.sizes()))
      return false;
    strides[k] = broadcast_strides(in.sizes(), in.strides(), self.sizes());
    o[k] = operand_of(in, strides[k].numbers());
  }
  kernel::pointwise(self.sizes(), operand_of(self, strides[0].numbers()), o, f.arity, loop, f.beside_of(self.dtype()));
  self.bump_version();
  return true;
}
/// Writes the result without temporary memory if all operands have one dtype and shape and are contiguous; otherwise
/// tries `write_strided`. Returns false if neither is possible.
VARVE_NOINLINE inline bool write_directly(pointwise_info const& f, tensor const* const* x) {
  tensor const& self = *x[0];
  kernel::loop const loop = f.loops[static_cast<int>(self.dtype())];
  void const* in[4];
  bool alike = loop && self.is_contiguous();
  for (int k = 0; alike && k < f.arity; ++k) {
    alike = x[k]->dtype() == self.dtype() && x[k]->is_contiguous() && x[k]->sizes() == self.sizes() &&
            (!x[k]->shares_storage(self) || x[k]->raw() == self.raw());
    in[k] = x[k]->raw();
  }
  if (!alike) return loop && !f.conditions && write_strided(f, loop, x);
  if (self.numel() > 0) loop(static_cast<std::size_t>(self.numel()), self.raw(), in);
  self.bump_version();
  return true;
}
/// Aligns an operand of a write to the lanes of x. An operand with more dimensions than a lane is refused, as without
/// `vmap`; otherwise its first dimension could match the number of lanes by chance.
template <class X, class O>
constexpr auto aligned_to_lanes(char const* op, X const& x, O const& o) {
  auto const of_a_lane = [](auto const& v) {
    dims const s = to_dims(shape_of(v.value));
    return s.sub(s.n - to_dims(logical_rank_fact(v))[0], s.n);
  };
  if (of_a_lane(o).n > of_a_lane(x).n) refuse::shapes_do_not_match(op, of_a_lane(x), of_a_lane(o));
  return align(o, logical_rank_fact(x));
}
/// The rules of an in-place operator that writes the result of a functional operator.
template <class Tag, class Functional>
struct mutation {
  using F = rules<Functional>;
  using functional = Functional;
  static constexpr op_kind kind = op_kind::mutation;
  static constexpr int arity = F::arity;
  static constexpr auto schema =
      arity == 1 ? "(Tensor(a!) self) -> Tensor(a!)" : "(Tensor(a!) self, Tensor other) -> Tensor(a!)";
  static constexpr saved_values saved = F::saved;
  /// The index of the operand that is written and returned, as in the schema.
  static constexpr int mutated = 0;
  static constexpr meta shape(attributes const&, meta const* in, int) {
    require_room(Tag::op_name, in[0], F::shape({}, in, arity));
    return in[0];
  }
  static void require_writable(tensor const& x) { check_in_place(Tag::op_name, x, x.strides()); }
  /// The derivatives are those of the functional operator, at the operands' values before the write.
  template <std::size_t I, class Op, value G, value... X>
  static constexpr auto vjp(arg_t<I> i, Op const&, G const& g, X const&... y_and_x) {
    return F::vjp(i, bound<Functional>{}, g, y_and_x...);
  }
  template <std::size_t I, class Op, value D, value... X>
  static constexpr auto jvp(arg_t<I> i, Op const&, D const& d, X const&... y_and_x) {
    return F::jvp(i, bound<Functional>{}, d, y_and_x...);
  }
  template <class Op, class N, class X, class... O>
  static constexpr auto batch(Op const& op, N const&, X const& x, O const&... o) {
    [[maybe_unused]] auto const type = computed_in_lanes<F>(x, o...);
    return op(x.value, in_dtype_of_lanes<true>(aligned_to_lanes(Tag::op_name, x, o), type)...);
  }
  template <class... Y>
  static tensor make(attributes const&, tensor const& x, Y const&... y) {
    meta const in[] = {meta_of(x), meta_of(y)...};
    (void)shape({}, in, arity);
    require_writable(x);
    tensor const* const operands[] = {&x, &y...};
    return write_directly(info_of<Functional>, operands)
               ? x
               : write_into<>(x, evaluate_tensor(bound<Functional>{}, x, y...));
  }
};
} // namespace detail

template <>
struct rules<copy__t> {
  static constexpr bool takes_complex = true;
  static constexpr op_kind kind = op_kind::mutation;
  static constexpr auto schema = "(Tensor(a!) self, Tensor src) -> Tensor(a!)";
  static constexpr int arity = 2;
  static constexpr int mutated = 0;
  static constexpr saved_values saved = saved_values::nothing();
  /// Any dtype is converted; only the shape must fit.
  static constexpr meta shape(attributes const&, meta const* in, int) {
    detail::require_room(copy__t::op_name, in[0], {in[0].type, in[1].sizes});
    return in[0];
  }
  static void require_writable(tensor const& x) { detail::check_in_place(copy__t::op_name, x, x.strides()); }
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const&,
                            value auto const&) {
    return detail::constant_zeros(g);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const&, value auto const& g, value auto const&, value auto const&,
                            value auto const& source) {
    return detail::unmatch(g, source);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<0>, Op const&, value auto const& d, auto const&...) {
    return detail::constant_zeros(d);
  }
  template <class Op>
  static constexpr auto jvp(arg_t<1>, Op const&, value auto const& d, value auto const& y, auto const&...) {
    return detail::match(d, y);
  }
  template <class Op, class N, class X, class O>
  static constexpr auto batch(Op const& op, N const&, X const& x, O const& o) {
    return op(x.value, detail::aligned_to_lanes(copy__t::op_name, x, o));
  }
  template <class Y>
  static tensor make(attributes const&, tensor const& x, Y const& y) {
    meta const in[] = {meta_of(x), meta_of(y)};
    (void)shape({}, in, arity);
    require_writable(x);
    return detail::write_into(x, y);
  }
};
template <>
struct rules<add__t> : detail::mutation<add__t, add_t> {};
template <>
struct rules<sub__t> : detail::mutation<sub__t, sub_t> {};
template <>
struct rules<mul__t> : detail::mutation<mul__t, mul_t> {};
template <>
struct rules<div__t> : detail::mutation<div__t, div_t> {};
template <>
struct rules<neg__t> : detail::mutation<neg__t, neg_t> {};
template <>
struct rules<exp__t> : detail::mutation<exp__t, exp_t> {};
template <>
struct rules<log__t> : detail::mutation<log__t, log_t> {};
template <>
struct rules<abs__t> : detail::mutation<abs__t, abs_t> {};
template <>
struct rules<sin__t> : detail::mutation<sin__t, sin_t> {};
template <>
struct rules<cos__t> : detail::mutation<cos__t, cos_t> {};
template <>
struct rules<tanh__t> : detail::mutation<tanh__t, tanh_t> {};
template <>
struct rules<sqrt__t> : detail::mutation<sqrt__t, sqrt_t> {};
template <>
struct rules<sigmoid__t> : detail::mutation<sigmoid__t, sigmoid_t> {};
template <>
struct rules<relu__t> : detail::mutation<relu__t, relu_t> {};

/// Sets all elements to one number.
inline constexpr struct fill__t {
  template <class X, number N>
  constexpr auto& operator()(X&& x, N v) const {
    return copy_(x, v);
  }
} fill_{};
inline constexpr struct zero__t {
  template <class X>
  constexpr auto& operator()(X&& x) const {
    return copy_(x, 0);
  }
} zero_{};
/// Limits all elements to [min, max] (`clamp`). Either bound may be `none`.
inline constexpr struct clamp__t {
  template <class X, class Lo, class Hi = none_t>
  constexpr auto& operator()(X&& x, Lo const& low, Hi const& high = {}) const {
    return copy_(x, clamp(x, low, high));
  }
} clamp_{};
/// Makes x another handle of y's memory, with y's shape (`Tensor.set_`). x keeps its identity and history; its version
/// counter rises by one. The dtypes must be the same (`dtype_error`). It has no derivative: while operators are
/// recorded, neither tensor may require gradients (`autograd_error`). Inside transforms it is refused. A functional
/// tensor becomes another alias of y's value; its old value must not be written any more.
inline constexpr struct set__t {
  tensor const& operator()(tensor const& x, tensor const& y) const {
    if (x.is_wrapped() || y.is_wrapped())
      refuse::with<transform_error>(
          "varve: set_ was called inside of a transform, with a value seen through it; use copy_");
    bool const objects = x.object() && y.object() && &x.object()->type() == &y.object()->type();
    if (!objects && (!x.has_data() || !y.has_data()))
      refuse::with<dtype_error>("varve: set_: both tensors must have memory of their own");
    if (x.dtype() != y.dtype())
      refuse::with<dtype_error>(
          (std::string("varve: set_: a tensor of ") + name(x.dtype()) + " cannot take memory of " + name(y.dtype()))
              .c_str());
    if (this_thread_state.grad_mode && !this_thread_inference && (x.has_history() || y.has_history()))
      refuse::with<autograd_error>(
          "varve: set_ has no derivative, and was called with a tensor that requires grad, in grad "
          "mode; call it under no_grad, or use copy_");
    if (x.is_inference() && !this_thread_inference)
      refuse::with<autograd_error>(
          "varve: set_: a tensor made in inference mode cannot be written into outside of it; clone it first");
    if (detail::watches_renames) [[unlikely]]
      detail::watches_renames->renaming(*detail::watches_renames, "set_", x);
    if (objects) {
      x.become_alias(y);
    } else {
      x.take_memory_of(y);
      x.bump_version();
    }
    if (detail::watches_renames) [[unlikely]]
      detail::watches_renames->renamed(*detail::watches_renames, x, y);
    return x;
  }
} set_{};

inline tensor rules<clone_t>::make(attributes const&, tensor const& x) { return detail::contiguous_copy(x); }

} // namespace varve
