// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/dispatch/operator.hpp>
#include <varve/dispatch/silence.hpp>
#include <varve/kernel/simd.hpp>

namespace varve {

/// What the calls of a higher-order operator have in common: arguments and results in PyTorch's notation, without the
/// name, lists without their lengths, as
/// `(GraphModule f, Tensor[] xs, Tensor[] more) -> Tensor[]`. `lengths` tells those of the lists of a call from its
/// attributes; the list behind them takes what is left. An empty text says that no operand is written into, and no more
/// (HO-18).
struct hop_signature {
  char const* text = "";
  dims (*lengths)(attributes const& at) = nullptr;
};

/// The lane kernels of an elementwise operator that programs of the compiler are made of.
struct op_lanes {
  float (*f32)(float const* a) = nullptr;
  double (*f64)(double const* a) = nullptr;
  kernel::batch<float> (*simd_f32)(kernel::batch<float> const* a) = nullptr;
  kernel::batch<double> (*simd_f64)(kernel::batch<double> const* a) = nullptr;
  /// Of operators whose rules say `integer_lanes`.
  std::int64_t (*i64)(std::int64_t const* a) = nullptr;
  kernel::batch<std::int32_t> (*simd_i32)(kernel::batch<std::int32_t> const* a) = nullptr;
  kernel::batch<std::int64_t> (*simd_i64)(kernel::batch<std::int64_t> const* a) = nullptr;
};

/// One operator as data usable in constant expressions: what graph nodes point to. Its address is its identity.
/// Lane kernels evaluate a pointwise operator on scalars or SIMD registers: `a[k]` is the k-th operand; booleans are 0
/// and 1.
struct op_handle {
  char const* name;
  op_kind kind;
  /// Number of operands; -1 for any number.
  int arity;
  /// Dtype and shape of the result; refuses what does not fit.
  meta (*shape)(attributes const& at, meta const* in, int count);
  double (*lane_f64)(double const* a) = nullptr;
  /// All of them, in constant expressions. Null elsewhere: machine code of those that nobody runs would be a twentieth
  /// of a small program's compilation.
  op_lanes const* (*lanes)() = nullptr;
  bool has_integer_lanes = false;
  /// Of an in-place operator: the one that computes what it writes.
  op_handle const* (*functional)() = nullptr;
  /// Of a higher-order operator.
  hop_signature signature{};
  /// Of a higher-order operator: its result is that of its function on operands 1, 2, ...; with the random numbers that
  /// follow from operand 0?
  bool is_call = false, draws_from_state = false;
  /// ... results are those of its function, or of one of its functions, which is given the operands from this one on;
  /// -1: of no function. Of a loop the first `carried` results are given to the next step in the place of its operands.
  int given_from = -1;
  int (*carried)(attributes const& at) = nullptr;
  /// ... do calls of one name, which operand 0 is, share their function where it is the same (`share_regions`)?
  bool shares_region = false;
  /// ... does its function write into operand 1, of which the call gives it a copy? Passes leave it as it is.
  bool writes_copy = false;
  /// Of an effect: nothing depends on what it gives, so that it stays away where a function runs again for a gradient.
  bool only_tells = false;
  /// Of operators whose attributes are a text: writes at most `most` characters of it, and a 0.
  void (*text)(attributes const& at, char* to, int most) = nullptr;
  /// Of an effect: may it act for all lanes of a `vmap` where only some ask for it?
  bool in_all_lanes = false;
  /// Is a call with these attributes the same in another process? Null: always.
  bool (*outlives_process)(attributes const& at) = nullptr;
  /// Of varve: its name says what it is. An operator of another program may be called alike.
  bool own = true;
  /// Attributes as the public function makes them (`op_table::checked`); null where there are none.
  attributes (*checked)(attributes const& at, meta const* in) = nullptr;
  /// What it is planned as, if it is of varve (`rules<>::planned_as`).
  operator_class planned_as = operator_class::other;
  /// The operator of ONNX that is the same on operands of one dtype (`rules<>::onnx`); null: none.
  char const* onnx = nullptr;
  /// How it is written in C++ (`rules<>::cpp`).
  operator_text cpp{};
  /// Does it give truth values of numbers that are promoted to one dtype?
  bool compares = false;
};

namespace detail {
template <class T>
struct lane {
  template <class R, class V, std::size_t... K>
  static VARVE_INLINE constexpr V call(V const* a, std::index_sequence<K...>) {
    return static_cast<V>(R::kernel(a[K]...));
  }
  template <class R, class V>
  static VARVE_INLINE constexpr V run(V const* a) {
    return call<R, V>(a, std::make_index_sequence<static_cast<std::size_t>(R::arity)>{});
  }
};

/// Does an operator of varve make integers of integers, in registers of such too (`rules<>::integer_lanes`)? Few do, of
/// which alone those kernels are made: each costs the compiler time.
template <class Tag>
inline constexpr bool has_integer_lanes = [] {
  if constexpr (requires { rules<Tag>::integer_lanes; }) return declared::by_varve<Tag>() && rules<Tag>::integer_lanes;
  else return false;
}();
template <class Tag>
constexpr op_lanes make_lanes() {
  using R = rules<Tag>;
  op_lanes l{&lane<float>::run<R, float>, &lane<double>::run<R, double>, &lane<float>::run<R, kernel::batch<float>>,
             &lane<double>::run<R, kernel::batch<double>>};
  if constexpr (has_integer_lanes<Tag>) {
    l.i64 = &lane<std::int64_t>::run<R, std::int64_t>;
    l.simd_i32 = &lane<std::int32_t>::run<R, kernel::batch<std::int32_t>>;
    l.simd_i64 = &lane<std::int64_t>::run<R, kernel::batch<std::int64_t>>;
  }
  return l;
}
template <class Tag>
inline constexpr op_lanes lanes_of_tag = make_lanes<Tag>();
template <class Tag>
constexpr op_lanes const* lanes_of() {
  if (std::is_constant_evaluated()) return &lanes_of_tag<Tag>;
  return nullptr;
}

template <class Tag>
constexpr op_handle const* handle_of();
template <class Tag>
constexpr op_handle make_handle() {
  using R = rules<Tag>;
  op_handle h{Tag::op_name, R::kind, R::arity, &R::shape};
  h.own = declared::by_varve<Tag>();
  if constexpr (R::kind == op_kind::effect) h.only_tells = only_tells<R>;
  if constexpr (requires { R::in_all_lanes; }) h.in_all_lanes = R::in_all_lanes;
  if constexpr (requires(attributes const& at) { R::outlives_process(at); }) h.outlives_process = &R::outlives_process;
  if constexpr (requires(attributes const& at, char* to) { R::text(at, to, 0); }) h.text = &R::text;
  if constexpr (requires(attributes const& at, meta const* in) { R::checked(at, in); }) h.checked = &R::checked;
  if constexpr (R::kind == op_kind::pointwise) {
    if constexpr (requires { R::promote; }) h.compares = R::promote == promotion::comparison;
    h.lane_f64 = &lane<double>::run<R, double>;
    h.lanes = &lanes_of<Tag>;
    h.has_integer_lanes = has_integer_lanes<Tag>;
  }
  if constexpr (requires { R::planned_as; }) h.planned_as = R::planned_as;
  if constexpr (requires { R::onnx; }) h.onnx = R::onnx;
  if constexpr (requires { R::cpp; }) h.cpp = R::cpp;
  if constexpr (requires { typename R::functional; }) h.functional = &handle_of<typename R::functional>;
  return h;
}
} // namespace detail

/// The operator of a tag as data; its address is its identity in graphs.
template <class Tag>
inline constexpr op_handle handle = detail::make_handle<Tag>();
template <class Tag>
constexpr op_handle const* detail::handle_of() {
  return &handle<Tag>;
}

} // namespace varve
