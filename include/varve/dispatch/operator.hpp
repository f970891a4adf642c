// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/value/array.hpp>
#include <varve/value/seen.hpp>

namespace varve {

/// What a graph needs to know of an operator's nature to transform and fuse it.
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

/// What passes, planning and emission take an operator for, as its rules say: `static constexpr operator_class
/// planned_as = operator_class::sum;`. Without a word an elementwise one is `pointwise`, of which its lane kernels say
/// all there is to know, and another one `other`. `data` is a constant of rank > 0; `cheap` takes an instruction or
/// two; `expand` may expand nothing, as `clone`; `scan` is any loop.
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

/// How `emit_cpp` writes an elementwise operator, as its rules say: `static constexpr operator_text
/// cpp{"kernel::exp($0)"};`
/// `$0`, `$1`, `$2` are its operands, `$T` the type that it computes in; `infix` is for floating numbers and registers.
/// Without a word it is written as the kernel of its rules, for which more headers are read.
struct operator_text {
  char const* text = nullptr;
  char const* infix = nullptr;
};

/// The values that an operator's `vjp` reads, for each operand it is asked of: a bit per operand, and `result`. What is
/// not kept cannot be overtaken by an in-place operator, and costs no memory (derivatives.yaml). Rules say `static
/// constexpr saved_values saved{...}`, or `saved_by(attributes)` where attributes tell; without a word all is kept.
struct saved_values {
  static constexpr int most = 8;
  static constexpr std::uint16_t result = 1 << 15;
  static constexpr std::uint16_t operand(int i) { return static_cast<std::uint16_t>(1 << i); }
  std::uint16_t of[most] = {0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF};
  static constexpr saved_values nothing() { return {{0, 0, 0, 0, 0, 0, 0, 0}}; }
};

namespace detail {
/// Refuses a condition that is no truth value; uint8 counts as one, for PyTorch's sake.
constexpr void require_condition(char const* op, dtype t) {
  if (t != dtype::bool_ && t != dtype::uint8) refuse::condition_is_not_of_bool(op, name(t));
}
} // namespace detail

/// How the dtypes of operands give the dtype of a pointwise operator's kernel and result.
enum class promotion : unsigned char {
  /// result_type of the operands (add, maximum)
  arithmetic,
  /// as above, integers and bool become the default floating dtype (sin, div)
  floating,
  /// computed in result_type, the result is bool (lt)
  comparison
};

/// Every rule of an operator, in one specialization per operator tag: `shape`, `eval` (or what its family needs for
/// it), `jvp`, `vjp`, `batch`. A user's operator is the same specialization in the user's file.
template <class Tag>
struct rules;

/// An operator with its attributes: what interpreters process and call. A, B, C are facts (types for static values,
/// data otherwise). Calling it on values dispatches; inside an interpreter's `process`, calling it on opened values
/// *is* lowering.
template <class Tag, class A = none_t, class B = none_t, class C = none_t>
struct bound {
  using tag = Tag;
  static constexpr int facts = !is_none<A> + !is_none<B> + !is_none<C>;
  static constexpr bool typed = !std::is_same_v<A, dims> && !std::is_same_v<B, dims> && !std::is_same_v<C, dims>;
  [[no_unique_address]] A a{};
  [[no_unique_address]] B b{};
  [[no_unique_address]] C c{};

  /// PyTorch's name of the operator.
  static constexpr char const* name() { return Tag::op_name; }
  template <class... X>
  constexpr auto operator()(X const&... x) const;
  /// The attributes as data.
  constexpr attributes boxed() const {
    if constexpr (facts == 0) return no_attributes;
    else if constexpr (facts == 1) return attributes(to_dims(a));
    else if constexpr (facts == 2) return attributes(to_dims(a), to_dims(b));
    else return attributes(to_dims(a), to_dims(b), to_dims(c));
  }
};

/// One operand of a batch rule. When `batched` holds (a type for static values, a flag otherwise) dimension 0 of
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

/// The K-th attribute of a bound operator.
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
/// A value, where it is a view of memory as what lies there: an `array` or a `tensor`.
template <class X>
constexpr decltype(auto) viewed(X const& x) {
  if constexpr (requires { typename X::array_type; }) return x.load();
  else if constexpr (memory_ref<X>) return x.view();
  else return (x);
}
/// A value in the form rules see: rank-0 arrays are numbers, views are loaded, `arange<double, 6>` (a function that
/// makes a value) is called.
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
struct probe : R, rule_names {}; // a name found in both bases is ambiguous: then R has it
} // namespace detail

/// Does the operator have the rule of that name? Asked by name, so that an error inside a rule is not mistaken for its
/// absence.
template <class Tag>
concept has_jvp = !requires { &detail::probe<rules<Tag>>::jvp; };
/// Likewise, of `vjp`.
template <class Tag>
concept has_vjp = !requires { &detail::probe<rules<Tag>>::vjp; };
/// Likewise, of `batch`.
template <class Tag>
concept has_batch = !requires { &detail::probe<rules<Tag>>::batch; };
/// Likewise, of `eval`.
template <class Tag>
concept has_eval = !requires { &detail::probe<rules<Tag>>::eval; };

/// An operator no derivative passes through (comparisons, `argmax`): its result is a constant to `grad` and `jvp`.
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
/// What an operand is on entry: rank-0 arrays are numbers, and a plain number beside a varve value takes the dtype that
/// value decides (PyTorch's wrapped numbers). A truth value stays one: it raises no dtype, and some operators refuse
/// it.
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
struct static_shape; // of a result, where the operands are plain: `static_eval.hpp`
}
/// Base of operator tags whose operands promote to one dtype and which take no attributes: the objects `add`, `sin`,
/// `where`.
template <class Tag>
struct promoting_operator {
  template <value... X>
  constexpr auto operator()(X const&... x) const {
    if constexpr (((number<X> || is_array<X>) && ...) && (is_array<X> || ...)) {
      // Asked here, where messages are shorter than below the door of all calls.
      using asked = detail::static_shape<bound<Tag>, std::remove_cvref_t<decltype(detail::front<X...>(x))>...>;
      if constexpr (!evaluates<asked>) {
        static_assert(never<Tag, X...>, "varve: these operands do not fit this operator: the operator and its operands "
                                        "are named above, the refusal below");
        static_assert((asked::compute(), true)); // the compiler tells why, and goes on
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
  /// A size is a plain number here: what it is taken for.
  template <detail::value_or_size... X>
    requires(std::is_same_v<X, extent> || ...)
  constexpr auto operator()(X const&... x) const {
    return (*this)(detail::taken_for_number(x)...);
  }
};

/// Higher-order operators carry functions; interpreters treat them by rules of their own.
template <class Op>
inline constexpr bool is_hop = false;

} // namespace varve
