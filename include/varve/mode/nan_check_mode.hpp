// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/mode/call_log.hpp>

#include <bit>
#include <cstdint>
#include <string>

namespace varve {

/// The error for an operator that returns a NaN or an infinity; the message names the operator, its operands and the
/// element.
struct non_finite_error : error {
  using error::error;
};

namespace detail {
enum class finiteness : unsigned char { finite, infinite, nan };
/// Tests the bits, so that it works even where the compiler assumes that there are no NaNs.
template <class T>
constexpr finiteness finiteness_of(T v) {
  if constexpr (sizeof(T) == 4) {
    std::uint32_t const b = std::bit_cast<std::uint32_t>(v) & 0x7fffffffu;
    return b < 0x7f800000u ? finiteness::finite : b == 0x7f800000u ? finiteness::infinite : finiteness::nan;
  } else {
    std::uint64_t const b = std::bit_cast<std::uint64_t>(v) & 0x7fffffffffffffffu, infinity = 0x7ff0000000000000u;
    return b < infinity ? finiteness::finite : b == infinity ? finiteness::infinite : finiteness::nan;
  }
}
/// The first element of the requested kind that is not finite.
struct non_finite {
  finiteness what = finiteness::finite;
  index_t at = -1;
};
/// The kinds of values that a check looks for.
struct finiteness_question {
  bool nan, inf;
  template <class T>
  constexpr finiteness operator()(T v) const {
    finiteness const f = finiteness_of(v);
    return (f == finiteness::nan && nan) || (f == finiteness::infinite && inf) ? f : finiteness::finite;
  }
};
inline non_finite find_in_tensor(tensor const& t, finiteness_question asked) {
  non_finite r;
  if (!t.defined() || !t.has_data() || !has_derivatives(t.dtype())) return r;
  if (is_complex(t.dtype())) {
    r = find_in_tensor(parts_in_memory(t), asked);
    if (r.at > 0) r.at /= 2;
    return r;
  }
  on_stored_dtype(t.dtype(), "nan_check_mode", [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      using E = std::conditional_t<std::is_floating_point_v<T>, T, float>;
      T const* const p = static_cast<T const*>(t.raw());
      index_t at = 0;
      auto const look = [&](E e) {
        if (r.at < 0)
          if (finiteness const f = asked(e); f != finiteness::finite) r = {f, at};
        ++at;
      };
      if (t.is_contiguous()) {
        for (index_t const n = t.numel(); at < n && r.at < 0;) look(p[at]);
        return;
      }
      for_each_index(t.sizes(), [&](dims const& i) {
        index_t o = 0;
        for (int d = 0; d < i.n; ++d) o += i[d] * t.strides()[d];
        look(p[o]);
      });
    }
  });
  return r;
}
template <class V>
constexpr non_finite find_non_finite(V const& v, finiteness_question asked) {
  if constexpr (is_seen<V>) {
    return find_non_finite(v.value, asked);
  } else if constexpr (std::is_same_v<V, tensor>) {
    return find_in_tensor(innermost_tensor(v), asked);
  } else if constexpr (std::is_floating_point_v<V>) {
    if (finiteness const f = asked(v); f != finiteness::finite) return {f, 0};
  } else if constexpr (is_array<V>) {
    if constexpr (std::is_floating_point_v<element_of<V>>)
      for (index_t k = 0; k < V::size(); ++k)
        if (finiteness const f = asked(v.data[k]); f != finiteness::finite) return {f, k};
  }
  return {}; // no elements to check: integers, or a traced value
}
} // namespace detail

/// A mode that throws `non_finite_error` at the first operator that returns a NaN or an infinity, and names it.
/// Gradients and mapped functions are included, since modes see the operators that transforms call. (PyTorch's
/// `detect_anomaly` names the forward operator of a gradient, JAX's `debug_nans` any operator.) Factories are not
/// checked: `empty` may contain anything.
///
///   nan_check_mode check;                     // check{true, false}: infinities are allowed
///   mode_guard const on{check};
///   vmap(grad(loss))(x);                      // varve: log gave a NaN at element 3 of f64[8]; operands: f64[8] finite
///
/// In a constant expression the error is a compile error.
struct nan_check_mode : dispatch_mode<nan_check_mode> {
  static constexpr bool supports_higher_order_operators = true;
  bool nan = true, inf = true;
  constexpr nan_check_mode() = default;
  constexpr nan_check_mode(bool check_nan, bool check_inf) : nan(check_nan), inf(check_inf) {}

  constexpr auto process(auto const& op, auto const&... args) const {
    auto y = op(args...);
    if (kind_of_call(op) == op_kind::factory) return y;
    if constexpr (value<decltype(y)>) {
      if (auto const found = detail::find_non_finite(y, {nan, inf}); found.at >= 0)
        an_operator_gave_a_nan_or_an_infinity(found, op, y, args...);
    } else {
      for (auto const& v : y)
        if (auto const found = detail::find_non_finite(v, {nan, inf}); found.at >= 0)
          an_operator_gave_a_nan_or_an_infinity(found, op, v, args...);
    }
    return y;
  }

private:
  template <class Op, class V, class... X>
  VARVE_COLD static void an_operator_gave_a_nan_or_an_infinity(detail::non_finite const& found, Op const& op,
                                                               V const& y, X const&... args) {
    call_record const call = describe_call(op, args...);
    std::string text = std::string("varve: ") + call.name + " gave " +
                       (found.what == detail::finiteness::nan ? "a NaN" : "an infinity") + " at element " +
                       std::to_string(found.at) + " of " + to_string(detail::describe_value(y));
    int k = 0;
    for_each_value(
        [&](auto const& v) {
          bool const finite = detail::find_non_finite(v, {true, true}).what == detail::finiteness::finite;
          if (k < call.operand_count)
            text += (k ? ", " : "; operands: ") + detail::operand_text(call.operands[k]) +
                    (finite ? " finite" : " not finite");
          ++k;
        },
        args...);
    refuse::with<non_finite_error>(text.c_str());
  }
};

} // namespace varve

#pragma GCC diagnostic pop
