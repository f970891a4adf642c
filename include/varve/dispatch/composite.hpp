// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/promoted_fact.hpp>
#include <varve/dispatch/tensor_dispatch.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <utility>

namespace varve {

namespace detail {
/// True if a mode watches public calls on tensors: a function mode or one of the pre-dispatch stack.
inline bool public_calls_are_watched() {
  thread_state const& s = this_thread_state;
  return (s.included - s.excluded).has_any({dispatch_key::function_mode, dispatch_key::pre_dispatch});
}

template <class A>
inline constexpr bool is_dynamic_operand = [] {
  if constexpr (value<A>) return is_tensor_base<base_of<A>> && level_of<A> == 0;
  else return false;
}();

/// Returns whether a dtype is floating or complex, as a flag for `choose`.
inline constexpr auto is_of_floating_dtype = [](dims const& type) {
  return dims{has_derivatives(static_cast<dtype>(type[0]))};
};
template <value V>
constexpr auto is_floating_fact(V const& v) {
  return same_fact(on_dims(is_of_floating_dtype, type_fact(v)), ints<1>{});
}
/// Returns the common dtype of values (`torch.result_type`) as a fact. Combining the values pair by pair may result in
/// another dtype.
template <value... V>
constexpr auto common_type(V const&... v) {
  auto const together = [](auto const&... f) {
    dtype_sum r;
    (r.add(static_cast<dtype>(f[0].number()), static_cast<int>(f[1].number())), ...);
    return dims{static_cast<index_t>(r.result())};
  };
  return on_dims(together, promoted_fact(v)...);
}
/// Returns a value converted to a dtype. Plain numbers stay as they are.
template <value V, fact T>
constexpr auto in_common(V const& v, T const& type) {
  if constexpr (is_plain_number<V>) return v;
  else return dependent<to_t, V>{}(v, type);
}
/// True if all values are tensors of one dtype, so that their common dtype is known.
template <value... V>
constexpr bool are_tensors_of_one_dtype(V const&... v) {
  if constexpr ((is_dynamic_operand<V> && ...)) {
    dtype const all[] = {v.dtype()...};
    bool alike = true;
    for (dtype t : all) alike = alike && t == all[0];
    return alike;
  } else return false;
}
/// Returns `f` called with the values converted to their common dtype.
template <class F, value... V>
constexpr auto in_common_type(F const& f, V const&... v) {
  if constexpr ((is_dynamic_operand<V> && ...))
    if (are_tensors_of_one_dtype(v...)) return f(v...);
  auto const type = common_type(v...);
  return f(in_common(v, type)...);
}
/// Returns a value converted to the common dtype of other values.
template <value R, value... V>
constexpr auto in_common_type_of(R const& r, V const&... v) {
  if constexpr (is_dynamic_operand<R>)
    if (are_tensors_of_one_dtype(v...)) return r;
  return in_common(r, common_type(v...));
}
/// Returns `f(v, number)` for a plain number that counts in the dtype of v: if v is of integers, its fraction is cut
/// off.
template <value V, value N, class F>
constexpr auto with_number_in_dtype_of(V const& v, N const& n, F const& f) {
  if constexpr (number<N> && std::is_floating_point_v<N>)
    return choose(
        is_floating_fact(v), [&](auto const& u) { return f(u, n); },
        [&](auto const& u) { return f(u, static_cast<index_t>(n)); }, v);
  else return f(v, n);
}
/// Refuses values that are not floating, because the function would implicitly turn integers and bool into
/// floating-point numbers.
template <class Tag, value X>
constexpr void needs_floating(X const& x) {
  if (!is_floating(dtype_of(x))) refuse::dtype_is_not_supported(Tag::op_name, varve::name(dtype_of(x)));
}
/// True if the result of a composite may be its operand or a view of it (`Tensor(a)` in PyTorch's schemas).
template <class Tag>
inline constexpr bool gives_view = requires { requires Tag::gives_view; };
/// True if a composite returns a view of its operand, or elements unchanged. Other composites compute float16 and
/// bfloat16 in float32 as a whole, so that sums do not overflow and results are rounded once.
template <class Tag>
inline constexpr bool keeps_elements = gives_view<Tag> || requires { requires Tag::keeps_elements; };
/// Returns a result with memory of its own: a copy if the body returned an operand or a view of one.
template <class Y, class... A>
constexpr auto apart(Y const& y, A const&... a) {
  if constexpr (is_dynamic_operand<Y>) {
    bool shared = false;
    auto const look = [&](auto const& v) {
      if constexpr (is_dynamic_operand<std::remove_cvref_t<decltype(v)>>) shared = shared || y.shares_storage(v);
    };
    (look(a), ...);
    if (shared) return Y(dependent<clone_t, Y>{}(y));
  }
  return y;
}
/// Returns the dtype of a call's result if that is float16 or bfloat16. Otherwise returns bool: no operand has these
/// dtypes, or they are combined with other floating ones.
VARVE_NOINLINE inline dtype type_of_halves(tensor const* const* x, int n) {
  dtype type = dtype::bool_;
  int best = -1; // operands with dimensions decide before others, and those before plain numbers
  for (int k = 0; k < n; ++k) {
    if (!x[k]->defined() || !is_floating(x[k]->dtype())) continue;
    int const rank = promotion_class(meta_of(*x[k]));
    if (rank == best) type = promote_types(type, x[k]->dtype());
    else if (rank > best) best = rank, type = x[k]->dtype();
  }
  return is_compact(type) ? type : dtype::bool_;
}
/// Returns what was computed in float32 for operands of a smaller dtype.
template <class T>
T rounded_to(dtype type, T const& y) {
  return y.dtype() == dtype::float32 ? dependent<to_t, T>{}(y, type) : y;
}
template <class A>
tensor const* tensor_or_null(A const& a) {
  if constexpr (is_dynamic_operand<A>) return &a;
  else return nullptr;
}
template <class A>
constexpr auto in_float(A const& a) {
  if constexpr (is_dynamic_operand<A>) {
    if (a.defined() && is_compact(a.dtype()) && is_floating(a.dtype())) return dependent<to_t, A>{}(a, dtype::float32);
  }
  return a;
}
/// Puts the tensors among the arguments of a call into `x`, and returns their number.
template <class... A>
int tensors_among(tensor const** x, A const&... a) {
  int n = 0;
  auto const take = [&](tensor const* t) {
    if (t) x[n++] = t;
  };
  (take(tensor_or_null(a)), ...);
  return n;
}
/// Returns `f(a...)`. For float16 and bfloat16 it is computed in float32 and then rounded.
template <class F, class... A>
constexpr auto halves_in_float(F const& f, A const&... a) {
  using result = decltype(f(a...));
  if constexpr (std::is_same_v<result, tensor> && (is_dynamic_operand<A> || ...)) {
    tensor const* x[sizeof...(A)]{};
    if (dtype const type = type_of_halves(x, tensors_among(x, a...)); type != dtype::bool_) [[unlikely]]
      return rounded_to(type, f(in_float(a)...));
  }
  return f(a...);
}
/// True if a composite is correct for complex numbers too. Others refuse them, even if the operators of the body accept
/// them.
template <class Tag>
inline constexpr bool composite_takes_complex = requires { requires Tag::takes_complex; };
/// Returns the result of a composite with a complex operand, or an undefined tensor if all operands are real. The
/// result is computed by `varve/complex.hpp`, for composites of one operand; otherwise throws `dtype_error`.
VARVE_NOINLINE inline tensor of_complex_operands(char const* op, tensor const* const* x, int n, complex_rule rule) {
  for (int k = 0; k < n; ++k) {
    if (!x[k]->defined() || !is_complex(x[k]->dtype())) continue;
    op_table const t{.name = op, .arity = n, .of_complex = rule};
    auto const kernels = rule != complex_rule::refused ? complex_kernels.load(std::memory_order_acquire) : nullptr;
    tensor y = kernels ? kernels({&t, &no_attributes}, boxed_args(*x[k])) : tensor();
    if (!y.defined()) refuse_complex(op, x[k]->dtype());
    return y;
  }
  return {};
}
/// Refuses complex tensors, for functions that are not composites with a tag.
template <class... X>
constexpr void needs_real(char const* op, X const&... x) {
  auto const one = [&](auto const& v) {
    if constexpr (is_dynamic_operand<std::remove_cvref_t<decltype(v)>>)
      if (v.defined() && is_complex(v.dtype())) refuse_complex(op, v.dtype());
  };
  (one(x), ...);
}
/// Refuses to write complex numbers into real ones, in functions that convert all other dtypes.
template <class X, class Y>
constexpr void needs_room(char const* op, X const& x, Y const& y) {
  if constexpr (is_dynamic_operand<X> && is_dynamic_operand<Y>)
    if (is_complex(y.dtype()) && !is_complex(x.dtype()))
      refuse::dtype_does_not_fit(op, name(y.dtype()), name(x.dtype()));
}
/// Calls the body of a composite on tensors: of complex ones by `varve/complex.hpp`, of float16 and bfloat16 in
/// float32.
template <class Tag, class... A>
auto composed_on_tensors(A const&... a) {
  using result = decltype(Tag::body(a...));
  tensor const* x[sizeof...(A)]{};
  int const n = tensors_among(x, a...);
  constexpr bool of_one = sizeof...(A) == 1 && std::is_same_v<result, tensor>;
  if constexpr (!composite_takes_complex<Tag>) {
    tensor y = of_complex_operands(Tag::op_name, x, n, of_one ? complex_rule_of<Tag>() : complex_rule::refused);
    if constexpr (of_one)
      if (y.defined()) [[unlikely]]
        return y;
  }
  if constexpr (std::is_same_v<result, tensor>)
    if (dtype const type = type_of_halves(x, n); type != dtype::bool_) [[unlikely]]
      return rounded_to(type, Tag::body(in_float(a)...));
  return Tag::body(a...);
}
/// Returns the result of a composite.
template <class Tag, class... A>
constexpr auto composed(A const&... a) {
  if constexpr (gives_view<Tag>) return Tag::body(a...);
  else if constexpr (keeps_elements<Tag>) return apart(Tag::body(a...), a...);
  else if constexpr ((is_dynamic_operand<A> || ...)) return composed_on_tensors<Tag>(a...);
  else return Tag::body(a...);
}
/// A public call with all its arguments, presented as an operator. The modes that watch public calls process it as a
/// whole; below them its body runs.
struct public_call : op_table {
  using body_of_call = tensor (*)(public_call const&, boxed_args const&);
  body_of_call body;
  void const* const* arguments; // the addresses of all of them
  public_call(char const* op, int operands, body_of_call body_, void const* const* arguments_)
      : op_table{.name = op, .arity = operands, .registered = &slot}, body(body_), arguments(arguments_) {}

private:
  static tensor run(void*, boxed_op const& op, dispatch_key_set, boxed_args const& x) {
    auto const& self = *static_cast<public_call const*>(op.table);
    return self.body(self, x);
  }
  static constexpr dispatch_table make_table() {
    dispatch_table t = unregistered;
    for (auto& f : t.at) f = {&run};
    place(t, dispatch_key::pre_dispatch, unregistered.at[static_cast<int>(dispatch_key::pre_dispatch)]);
    place(t, dispatch_key::function_mode, unregistered.at[static_cast<int>(dispatch_key::function_mode)]);
    t.stops = dispatch_key_set::full();
    return t;
  }
  static dispatch_table const kernels;
  static std::atomic<dispatch_table const*> slot;
};
inline constexpr dispatch_table public_call::kernels = make_table();
inline constinit std::atomic<dispatch_table const*> public_call::slot{&kernels};

template <class V>
void add_argument(boxed_args& x, attributes& at, V const& v) {
  if constexpr (is_dynamic_operand<V>) x.push_back(v);
  else if constexpr (requires { dims(to_dims(v)); } || std::is_integral_v<V>) {
    if (at.count < attributes::capacity) at.fact[at.count++] = to_dims(v);
  }
}
/// The number of operands among the first arguments, by argument.
template <bool... Operand>
inline constexpr auto operands_before = [] {
  std::array<int, sizeof...(Operand)> r{};
  bool const is[] = {Operand...};
  for (std::size_t k = 1; k < r.size(); ++k) r[k] = r[k - 1] + is[k - 1];
  return r;
}();
/// Returns an argument of a call, or the operand that a mode has put in its place.
template <class A>
auto const& argument_of(public_call const& c, std::size_t k, boxed_args const& x, int operand) {
  if constexpr (is_dynamic_operand<A>) return x[operand];
  else return *static_cast<A const*>(c.arguments[k]);
}
template <class Tag, class... A>
tensor run_composite(public_call const& c, boxed_args const& x) {
  constexpr auto before = operands_before<is_dynamic_operand<A>...>;
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return static_cast<tensor>(composed<Tag>(detail::argument_of<A>(c, K, x, before[K])...));
  }(std::index_sequence_for<A...>{});
}
/// Makes a call of a composite for the modes that watch public calls. They may replace its operands; the other
/// arguments stay as they were written.
template <class Tag, class... A>
tensor call_watched_composite(A const&... a) {
  void const* const all[] = {std::addressof(a)...};
  public_call const c(Tag::op_name, (0 + ... + is_dynamic_operand<A>), &run_composite<Tag, A...>, all);
  boxed_args x;
  attributes at;
  (add_argument(x, at, a), ...);
  return call_boxed({&c, &at}, x);
}
} // namespace detail

namespace detail {
template <class... A>
inline constexpr bool range_comes_first = false;
template <class A, class... R>
inline constexpr bool range_comes_first<A, R...> = range_of_numbers<A>;
} // namespace detail

/// The base of composites: operators that are only a `body` written in other operators (CompositeImplicit).
/// Interpreters process the operators that the body calls; function modes process the call itself.
template <class Tag>
struct composite_operator {
  template <class... A>
  constexpr auto operator()(A const&... a) const {
    if constexpr ((detail::memory_ref<A> || ...)) {
      return (*this)(detail::viewed(a)...);
    } else if constexpr (detail::range_comes_first<A...>) {
      return detail::refuse_range<dependent<Tag, A...>>();
    } else {
      if constexpr ((detail::is_dynamic_operand<A> || ...))
        if (detail::public_calls_are_watched()) [[unlikely]]
          return static_cast<decltype(Tag::body(a...))>(detail::call_watched_composite<Tag>(a...));
      if constexpr (detail::meets_trace<A...>) return Tag::body(detail::beside_trace(a, a...)...);
      else return detail::composed<Tag>(a...);
    }
  }
  /// Calls with lists of integers in braces: `layer_norm(x, {n}, weight, bias)`, `tensordot(a, b, {1}, {0})`.
  template <class X, class... A>
  constexpr auto operator()(X const& x, detail::braces i, A const&... a) const {
    return (*this)(x, detail::dims_in(i), a...);
  }
  template <class X, class... A>
  constexpr auto operator()(X const& x, detail::braces i, detail::braces j, A const&... a) const {
    return (*this)(x, detail::dims_in(i), detail::dims_in(j), a...);
  }
  template <class X, class Y, class... A>
  constexpr auto operator()(X const& x, Y const& y, detail::braces i, A const&... a) const {
    return (*this)(x, y, detail::dims_in(i), a...);
  }
  template <class X, class Y, class... A>
  constexpr auto operator()(X const& x, Y const& y, detail::braces i, detail::braces j, A const&... a) const {
    return (*this)(x, y, detail::dims_in(i), detail::dims_in(j), a...);
  }
};

} // namespace varve
