// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/dispatch/operator.hpp>
#include <varve/dispatch/silence.hpp>
#include <varve/kernel/simd.hpp>

namespace varve {

/// The signature that all calls of a higher-order operator share: arguments and results in PyTorch's notation, without
/// the name and without lengths of lists, such as `(GraphModule f, Tensor[] xs, Tensor[] more) -> Tensor[]`. `lengths`
/// returns the lengths of the lists of a call from its attributes; the list after them takes the remaining operands. An
/// empty text states only that no operand is written into.
struct hop_signature {
  char const* text = "";
  dims (*lengths)(attributes const& at) = nullptr;
};

/// What passes and interpreters of graphs know of a higher-order operator. Its tag states it.
struct hop_traits {
  hop_signature signature{};
  /// True if the result is that of the function on operands 1, 2, ...
  bool is_call = false;
  /// True if the function draws random numbers that follow from operand 0.
  bool draws_from_state = false;
  /// For an operator whose results are those of one of its functions: the first operand that is passed to the function;
  /// else -1. For a loop, `carried` returns how many of the first results replace operands in the next step.
  int given_from = -1;
  int (*carried)(attributes const& at) = nullptr;
  /// True if the calls of one name, which is operand 0, share their function if it is the same (`share_regions`).
  bool shares_region = false;
  /// True for a `composite_hop`, which is only known by what it computes on tensors: graphs that contain it are
  /// interpreted.
  bool is_composite = false;
  /// True if the function writes into operand 1, of which the call passes a copy. Passes leave the function unchanged.
  bool writes_copy = false;
};

/// The lane kernels of an elementwise operator, from which programs planned at compile time are made.
struct op_lanes {
  float (*f32)(float const* a) = nullptr;
  double (*f64)(double const* a) = nullptr;
  kernel::batch<float> (*simd_f32)(kernel::batch<float> const* a) = nullptr;
  kernel::batch<double> (*simd_f64)(kernel::batch<double> const* a) = nullptr;
  /// For operators whose rules set `integer_lanes`; else null.
  std::int64_t (*i64)(std::int64_t const* a) = nullptr;
  kernel::batch<std::int32_t> (*simd_i32)(kernel::batch<std::int32_t> const* a) = nullptr;
  kernel::batch<std::int64_t> (*simd_i64)(kernel::batch<std::int64_t> const* a) = nullptr;
};

/// One operator as data usable in constant expressions, to which graph nodes point. Its address is its identity. Lane
/// kernels evaluate a pointwise operator on scalars or SIMD registers: `a[k]` is operand k, and booleans are 0 and 1.
struct op_handle {
  char const* name;
  op_kind kind;
  /// The number of operands, or -1 for any number.
  int arity;
  /// Returns the dtype and shape of the result, and refuses operands that do not fit.
  meta (*shape)(attributes const& at, meta const* in, int count);
  double (*lane_f64)(double const* a) = nullptr;
  /// Returns all lane kernels in constant expressions, and null elsewhere. Machine code for unused kernels would take a
  /// twentieth of a small program's compile time.
  op_lanes const* (*lanes)() = nullptr;
  bool has_integer_lanes = false;
  /// For an in-place operator, returns the operator that computes what it writes; else null.
  op_handle const* (*functional)() = nullptr;
  /// What graphs know of a higher-order operator.
  hop_traits hop{};
  /// True for an effect on whose result nothing depends. It is skipped when a function runs again for a gradient.
  bool only_tells = false;
  /// For operators whose attributes are a text: writes at most `most` characters of it, and a 0.
  void (*text)(attributes const& at, char* to, int most) = nullptr;
  /// True for an effect that may act for all lanes of a `vmap` if only some of them call it.
  bool in_all_lanes = false;
  /// Returns true if a call with these attributes is the same in another process. Null means always.
  bool (*outlives_process)(attributes const& at) = nullptr;
  /// True for an operator of varve, which its name identifies. An operator of another program may have the same name.
  bool own = true;
  /// Returns the attributes as the public function makes them (`op_table::checked`); null if there are none.
  attributes (*checked)(attributes const& at, meta const* in) = nullptr;
  /// The class as which an operator of varve is planned (`rules<>::planned_as`).
  operator_class planned_as = operator_class::other;
  /// The operator of ONNX that is the same on operands of one dtype (`rules<>::onnx`), or null.
  char const* onnx = nullptr;
  /// The text of the operator in C++ (`rules<>::cpp`), and in C if that one does not serve (`rules<>::c99`).
  operator_text cpp{};
  char const* c99 = nullptr;
  /// The functions that call the operator, if programs do not name it themselves (`rules<>::part_of`), or null.
  char const* part_of = nullptr;
  /// True if it returns bool for numbers that are promoted to one dtype.
  bool compares = false;
  /// The elements of operands on which an element of the result may depend (`rules<>::reach`).
  operator_reach reach = operator_reach::by_class;
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

/// True if an operator of varve returns integers for integers, also in SIMD registers (`rules<>::integer_lanes`). Only
/// these few operators get integer kernels, because each kernel costs compile time.
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
  if constexpr (requires { R::reach; }) h.reach = R::reach;
  if constexpr (requires { R::onnx; }) h.onnx = R::onnx;
  if constexpr (requires { R::cpp; }) h.cpp = R::cpp;
  if constexpr (requires { R::c99; }) h.c99 = R::c99;
  if constexpr (requires { R::part_of; }) h.part_of = R::part_of;
  if constexpr (requires { typename R::functional; }) h.functional = &handle_of<typename R::functional>;
  return h;
}
} // namespace detail

/// The operator of a tag as data. Its address is its identity in graphs.
template <class Tag>
inline constexpr op_handle handle = detail::make_handle<Tag>();
template <class Tag>
constexpr op_handle const* detail::handle_of() {
  return &handle<Tag>;
}

} // namespace varve
