// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/mul.hpp>
#include <varve/rule/broadcasting.hpp>

namespace varve {

/// Operators that write into the memory of their first operand, a tensor, and return it. The other operand broadcasts to it; its dtype must not have a higher category.
/// The version counter of the storage rises once (DT-2). Under `grad`, `jvp` and `vmap` use the functional forms: writing into a value seen through a transform is `transform_error`.
template <class Tag>
struct in_place {
  template <value Y>
  tensor const& operator()(tensor const& x, Y const& y) const {
    refuse_transformed(x);
    if constexpr (std::is_same_v<Y, tensor>) refuse_transformed(y);
    bound<Tag>{}(x, y);
    return x;
  }

private:
  static void refuse_transformed(tensor const& t) {
    if (t.is_wrapped() && detail::is_alive(this_thread_state.transforms.top, t))
      throw transform_error((std::string("varve: ") + Tag::op_name + ": a value seen through a transform can neither be written in place nor into memory; use the functional operator").c_str());
  }
};
/// x becomes y, converted.
inline constexpr struct copy__t : in_place<copy__t> {
  static constexpr auto op_name = "copy_";
} copy_{};
/// x += y in memory.
inline constexpr struct add__t : in_place<add__t> {
  static constexpr auto op_name = "add_";
} add_{};
/// x *= y in memory.
inline constexpr struct mul__t : in_place<mul__t> {
  static constexpr auto op_name = "mul_";
} mul_{};

namespace detail {
/// Refuses what may not be written, before anything is.
VARVE_NOINLINE inline void check_in_place(char const* op, tensor const& x, tensor const& y, dtype result) {
  if (x.is_inference() && !this_thread_inference)
    throw autograd_error((std::string("varve: ") + op + ": a tensor made in inference mode cannot be written into outside of it; clone it first").c_str());
  if (x.is_wrapped()) throw transform_error((std::string("varve: ") + op + ": a value seen through a transform cannot be written in place; use the functional operator").c_str());
  if (!(broadcast(x.sizes(), y.sizes()) == x.sizes())) refuse::shapes_do_not_match(op, x.sizes(), y.sizes());
  if (category(result) > category(x.dtype()))
    throw dtype_error((std::string("varve: ") + op + ": a result of dtype " + name(result) + " cannot be written into " + name(x.dtype())).c_str());
  dims const &s = x.sizes(), &st = x.strides();
  for (int k = 0; k < s.n; ++k)
    if (s[k] > 1 && st[k] == 0) throw value_error((std::string("varve: ") + op + ": the tensor repeats elements (stride 0); clone it first").c_str());
}
template <class = void>
VARVE_NOINLINE tensor write_into(tensor const& x, tensor const& y) {
  tensor const same = y.dtype() == x.dtype() ? y : converted(y, x.dtype());
  tensor const source = same.shares_storage(x) ? contiguous_copy(same) : same; // the kernel forbids overlap
  dims const strides = broadcast_strides(source.sizes(), source.strides(), x.sizes());
  kernel::copy_strided(x.sizes(), operand_of(x, x.strides().v), operand_of(source, strides.v));
  x.bump_version();
  return x;
}
/// Operands of one dtype and shape whose elements follow one another need no memory in between; false when these do not.
VARVE_NOINLINE inline bool write_directly(pointwise_info const& f, tensor const& x, tensor const& y) {
  kernel::loop const loop = f.loops[static_cast<int>(x.dtype())];
  bool const alike = loop && x.dtype() == y.dtype() && x.is_contiguous() && y.is_contiguous() && x.sizes() == y.sizes();
  if (!alike || (x.shares_storage(y) && x.raw() != y.raw())) return false;
  void const* const in[] = {x.raw(), y.raw()};
  if (x.numel() > 0) loop(static_cast<std::size_t>(x.numel()), x.raw(), in);
  x.bump_version();
  return true;
}
template <class Functional>
struct mutation {
  static constexpr op_kind kind = op_kind::mutation;
  static constexpr saved_values saved = [] {
    if constexpr (std::is_same_v<Functional, copy__t>) return saved_values::nothing();
    else return saved_of<rules<Functional>>();
  }();
  static constexpr auto schema = "(Tensor(a!) self, Tensor other) -> Tensor(a!)";
  static constexpr int arity = 2;
  /// The schema: operand 0 is written and returned.
  static constexpr int mutated = 0;
  static constexpr meta shape(attributes const&, meta const* in, int) { return in[0]; }
  /// The operands' cotangents are those of the functional operator, of the values as they were before.
  template <std::size_t I, class Op, value G, value Y, value X, value Z>
  static constexpr auto vjp(arg_t<I> i, Op const&, G const& g, Y const& y, X const& x, Z const& z) {
    return rules<Functional>::vjp(i, bound<Functional>{}, g, y, x, z);
  }
  static tensor make(attributes const&, tensor const& x, tensor const& y) {
    if constexpr (std::is_same_v<Functional, copy__t>) {
      check_in_place("copy_", x, y, dtype::bool_);
      return write_into(x, y);
    } else {
      check_in_place(Functional::op_name, x, y, result_type(meta_of(x), meta_of(y)));
      return write_directly(info_of<Functional>, x, y) ? x : write_into(x, evaluate_tensor(bound<Functional>{}, x, y));
    }
  }
};
} // namespace detail

template <>
struct rules<copy__t> : detail::mutation<copy__t> {
  static constexpr saved_values saved = saved_values::nothing();
  template <class Op>
  static constexpr auto vjp(arg_t<0>, Op const&, value auto const& g, value auto const&, value auto const&, value auto const&) {
    return full_like(g, 0);
  }
  template <class Op>
  static constexpr auto vjp(arg_t<1>, Op const&, value auto const& g, value auto const&, value auto const&, value auto const& source) {
    return detail::unmatch(g, source);
  }
};
template <>
struct rules<add__t> : detail::mutation<add_t> {};
template <>
struct rules<mul__t> : detail::mutation<mul_t> {};

inline tensor rules<clone_t>::make(attributes const&, tensor const& x) { return detail::contiguous_copy(x); }

} // namespace varve
