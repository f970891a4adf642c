// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/value/array.hpp>
#include <varve/value/seen.hpp>

namespace varve {

/// The kind of an operator, as far as graphs need it to transform and fuse the operator.
enum class op_kind : unsigned char {
  placeholder,
  constant,
  pointwise,
  convert,
  reduction,
  contraction,
  view,
  join,
  indexing,
  factory,
  random,
  mutation,
  hop,
  effect
};

/// The class that passes, planning and emission assign to an operator. Its rules state it: `static constexpr
/// operator_class planned_as = operator_class::sum;`. By default an elementwise operator is `pointwise`, which its lane
/// kernels describe completely, and any other is `other`. `data` is a constant of rank > 0; `cheap` takes one or two
/// instructions; `expand` may expand nothing, as `clone`; `scan` is any loop.
enum class operator_class : unsigned char {
  placeholder,
  constant,
  data,
  pointwise,
  add,
  sub,
  mul,
  div,
  neg,
  abs,
  cheap,
  convert,
  sum,
  amax,
  amin,
  argmax,
  mm,
  reshape,
  permute,
  expand,
  slice,
  slice_backward,
  cat,
  gather,
  scatter_add,
  convolution,
  one_hot,
  arange,
  count,
  cond,
  scan,
  getitem,
  other
};

/// The elements of its operands on which an element of a result may depend. Rules state it: `static constexpr
/// operator_reach reach = operator_reach::axis;`. By default the class of the operator says so (`planned_as`); an
/// operator without a class may read every element. `sparsity` uses it (`varve/sparse.hpp`).
enum class operator_reach : unsigned char {
  by_class,
  element,   // the elements at the same place; shapes broadcast
  axis,      // the elements whose indices differ at most along the axis in attribute 0
  earlier,   // of these the ones that are not later along the axis, or not earlier if attribute 1 is not 0
  matrix,    // the elements with the same leading indices: all but the last two of operand 0
  scattered, // operand 0 at the same place, and the elements of operand 2 that operand 1 moves there along an axis
};

/// How an operator of varve computes with complex operands (`varve/complex.hpp`). Its rules state it, or its tag if it
/// is a composite of one operand: `static constexpr complex_rule of_complex = complex_rule::exp;`. By default it
/// refuses them. Operators that only move elements take them as they are.
enum class complex_rule : unsigned char {
  exp, // functions of one number; attribute {which} of `complex_map` is their place in this list
  expm1,
  log,
  log1p,
  sqrt,
  reciprocal,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  mul,
  div,
  pow,
  abs,
  rsqrt,
  sigmoid,
  eq,
  ne,
  mm,
  by_parts,               // linear in all its numbers together: real and imaginary parts apart
  by_parts_but_operand_0, // which is a condition
  by_parts_but_operand_1, // which is an index
  refused
};

/// The text that `emit_cpp` writes for an elementwise operator. Its rules state it: `static constexpr operator_text
/// cpp{"kernel::exp($0)"};`. `$0`, `$1`, `$2` are its operands, and `$T` is the type in which it computes; `infix` is
/// for floating-point numbers and registers. By default the operator is written as the kernel of its rules, for which
/// more headers are read.
///
/// `emit_c` reads the same text: it writes a function of `varve/kernel` as that of `math.h`. An operator whose `cpp` is
/// missing or is no C states `static constexpr char const* c99 = "acos$F($0)";`. `$F` is `f` for float, else nothing.
struct operator_text {
  char const* text = nullptr;
  char const* infix = nullptr;
};

/// The values that an operator's `vjp` reads to differentiate by each operand: a bit per operand, and `result`. A value
/// that is not saved takes no memory, and in-place operators may change it (derivatives.yaml). Rules state `static
/// constexpr saved_values saved{...}`, or `saved_by(attributes)` if attributes decide; by default everything is saved.
/// The `jvp` of an operator of varve may read elements of the result only if the result is named here: `jet` relies on
/// it.
struct saved_values {
  static constexpr int most = 8;
  static constexpr std::uint16_t result = 1 << 15;
  static constexpr std::uint16_t operand(int i) { return static_cast<std::uint16_t>(1 << i); }
  std::uint16_t of[most] = {0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF};
  static constexpr saved_values nothing() { return {{0, 0, 0, 0, 0, 0, 0, 0}}; }
};

namespace detail {
/// Refuses a condition that is not bool. uint8 is accepted too, as in PyTorch.
constexpr void require_condition(char const* op, dtype t) {
  if (t != dtype::bool_ && t != dtype::uint8) refuse::condition_is_not_of_bool(op, name(t));
}
} // namespace detail

/// How the dtypes of operands determine the dtype of a pointwise operator's kernel and result.
enum class promotion : unsigned char {
  /// result_type of the operands (add, maximum)
  arithmetic,
  /// result_type of the operands, but the default floating dtype for integers and bool (sin, div)
  floating,
  /// computed in result_type, the result is bool (lt)
  comparison
};

/// All rules of an operator, in one specialization per operator tag: `shape`, `eval` (or what its family needs for it),
/// `jvp`, `vjp`, `batch`. Users define operators by the same specialization in their own files.
template <class Tag>
struct rules;

/// An operator with its attributes, which interpreters process and call. A, B, C are facts (types for static values,
/// data otherwise). Calling it on values dispatches. Inside an interpreter's `process`, calling it on unwrapped values
/// lowers.
template <class Tag, class A = none_t, class B = none_t, class C = none_t>
struct bound {
  using tag = Tag;
  static constexpr int facts = !is_none<A> + !is_none<B> + !is_none<C>;
  static constexpr bool typed = !std::is_same_v<A, dims> && !std::is_same_v<B, dims> && !std::is_same_v<C, dims>;
  [[no_unique_address]] A a{};
  [[no_unique_address]] B b{};
  [[no_unique_address]] C c{};

  /// Returns PyTorch's name of the operator.
  static constexpr char const* name() { return Tag::op_name; }
  template <class... X>
  constexpr auto operator()(X const&... x) const;
  /// Returns the attributes as data.
  constexpr attributes boxed() const {
    if constexpr (facts == 0) return no_attributes;
    else if constexpr (facts == 1) return attributes(to_dims(a));
    else if constexpr (facts == 2) return attributes(to_dims(a), to_dims(b));
    else return attributes(to_dims(a), to_dims(b), to_dims(c));
  }
};

/// One operand of a batch rule. If `batched` is true (a type for static values, a flag otherwise), dimension 0 of
/// `value` is the mapped one.
template <class V, class Flag>
struct operand {
  V value;
  [[no_unique_address]] Flag batched;
};

/// Binds attributes to an operator: `bind<sum_t>(axes, keepdim)`.
template <class Tag, class... F>
constexpr auto bind(F const&... f) {
  return bound<Tag, F...>{f...};
}

/// Returns the K-th attribute of a bound operator.
template <int K, class Op>
constexpr auto const& fact_of(Op const& op) {
  if constexpr (K == 0) return op.a;
  else if constexpr (K == 1) return op.b;
  else return op.c;
}

namespace detail {
/// A view of memory: a `tensor_ref`.
template <class X>
concept memory_ref = requires { typename X::array_type; } || requires { typename X::tensor_type; };
/// Returns a value. A view of memory is returned as the `array` or `tensor` that it refers to.
template <class X>
constexpr decltype(auto) viewed(X const& x) {
  if constexpr (requires { typename X::array_type; }) return x.load();
  else if constexpr (memory_ref<X>) return x.view();
  else return (x);
}
/// Returns a value in the form that rules expect: rank-0 arrays become numbers, views are loaded, and `arange<double,
/// 6>` (a function that makes a value) is called.
template <class X>
constexpr decltype(auto) plain(X const& x) {
  if constexpr (std::is_function_v<X>) return x();
  else if constexpr (memory_ref<X>) return viewed(x);
  else if constexpr (is_array<X> && std::is_same_v<X, array<element_of<X>>>) return x.data[0];
  else return (x);
}

struct rule_names {
  int shape, eval, jvp, vjp, batch, partial, kernel;
};
template <class R>
struct probe : R, rule_names {}; // a name in both bases is ambiguous, which shows that R has it
} // namespace detail

/// True if the operator has a rule `jvp`. It is detected by name, so that an error inside a rule is not mistaken for
/// its absence.
template <class Tag>
concept has_jvp = !requires { &detail::probe<rules<Tag>>::jvp; };
/// True if the operator has a rule `vjp`, detected by name.
template <class Tag>
concept has_vjp = !requires { &detail::probe<rules<Tag>>::vjp; };
/// True if the operator has a rule `batch`, detected by name.
template <class Tag>
concept has_batch = !requires { &detail::probe<rules<Tag>>::batch; };
/// True if the operator has a rule `eval`, detected by name.
template <class Tag>
concept has_eval = !requires { &detail::probe<rules<Tag>>::eval; };

/// An operator through which no derivative passes (comparisons, `argmax`): `grad` and `jvp` treat its result as a
/// constant.
template <class Tag>
concept constant_to_derivatives = requires { requires !rules<Tag>::differentiable; };

namespace detail {
template <class... X>
constexpr dtype promoted_number() {
  auto meta_of_type = []<class V>(std::type_identity<V>) {
    if constexpr (number<V>) return meta{dtype_of_type<V>(), {}, true};
    else
      return meta{static_cast<dtype>(decltype(traits<V>::type(std::declval<V const&>()))::to_dims()[0]),
                  decltype(traits<V>::shape(std::declval<V const&>()))::to_dims(), false};
  };
  return result_type(meta_of_type(std::type_identity<X>{})...);
}
template <class V>
concept static_varve_value = varve_value<V> && is_ints<decltype(traits<V>::type(std::declval<V const&>()))>;
/// Returns an operand as it enters an operator. A plain number beside static values gets the dtype that the operands
/// together decide (PyTorch's wrapped numbers). A bool stays one: it raises no dtype, and some operators refuse it.
template <class... All, class X>
constexpr decltype(auto) front(X const& x) {
  if constexpr (number<X> && !std::is_same_v<X, bool> && (static_varve_value<All> || ...) &&
                ((number<All> || static_varve_value<All>) && ...))
    return static_cast<type_of<promoted_number<All...>()>>(x);
  else return (x);
}
} // namespace detail

namespace detail {
template <class X>
concept value_or_size = value<X> || std::is_same_v<X, extent>;
template <class X>
constexpr decltype(auto) taken_for_number(X const& x) {
  if constexpr (std::is_same_v<X, extent>) return static_cast<index_t>(x);
  else return (x);
}
} // namespace detail
namespace detail {
template <class Op, class... X>
struct static_shape; // dtype and shape of a result of plain operands: `static_eval.hpp`
}
/// The base of operator tags whose operands promote to one dtype and which take no attributes: the objects `add`,
/// `sin`, `where`.
template <class Tag>
struct promoting_operator {
  template <value... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (((number<X> || is_array<X>) && ...) && (is_array<X> || ...)) {
      // Tested here, where messages are shorter than inside of `dispatch`.
      using asked = detail::static_shape<bound<Tag>, std::remove_cvref_t<decltype(detail::front<X...>(x))>...>;
      if constexpr (!evaluates<asked>) {
        static_assert(never<Tag, X...>, "varve: these operands do not fit this operator: the operator and its operands "
                                        "are named above, the refusal below");
        static_assert((asked::compute(), true)); // the compiler reports why, and continues
        return nth<0>(x...);
      } else return bound<Tag>{}(detail::front<X...>(x)...);
    } else {
      return bound<Tag>{}(detail::front<X...>(x)...);
    }
  }
  template <class X, class... Y>
    requires detail::range_of_numbers<X>
  constexpr auto operator()(X const& x, Y const&...) const {
    return detail::refuse_range<X>(), x;
  }
  /// Calls the operator with sizes as plain numbers. Symbolic sizes are specialized.
  template <detail::value_or_size... X>
    requires(std::is_same_v<X, extent> || ...)
  constexpr auto operator()(X const&... x) const {
    return (*this)(detail::taken_for_number(x)...);
  }
};

/// True for higher-order operators. They carry functions, and interpreters process them by separate rules.
template <class Op>
inline constexpr bool is_hop = false;

} // namespace varve
