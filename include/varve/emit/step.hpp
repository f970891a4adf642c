// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/emit/lanes.hpp>
#include <varve/emit/memory.hpp>
#include <varve/emit/step_form.hpp>
#include <varve/kernel/records.hpp>

/// @file
/// Emission of one step: every index, stride and kernel is a constant, so that only its instruction remains. `P` is a
/// type with `static constexpr auto value`, a `static_program`.
namespace varve::fusion {

namespace detail {
/// Loads lanes in a program with run-time sizes: the number of lanes or the stride may be known at run time only.
template <class V, class M, index_t Stride, class T>
VARVE_PART V load_sized(auto const& mem, index_t const* i, T const* p) {
  if constexpr (M::live == 0 || is_run_time(Stride))
    return load_counted<V, Stride>(p, number_of<Stride>(mem), live_lanes<M, V>(i));
  else return load_lanes<V, M, Stride>(p);
}
template <class M, index_t Stride, bool Fits, class T, class V>
VARVE_PART void store_sized(auto const& mem, index_t const* i, T* p, V const& v) {
  if constexpr (M::live == 0 || is_run_time(Stride))
    store_counted<Stride>(p, v, number_of<Stride>(mem), live_lanes<M, V>(i));
  else store_lanes<M, Stride, Fits>(p, v);
}

/// Returns 0, 1, 2, ... times `step`.
template <class V>
VARVE_PART V ramp(kernel::element_t<V> step) {
  using E = kernel::element_t<V>;
  if constexpr (kernel::is_batch<V>) {
    alignas(64) E all[kernel::lanes<E>];
    for (int l = 0; l < static_cast<int>(kernel::lanes<E>); ++l) all[l] = static_cast<E>(l) * step;
    return kernel::load(all);
  } else {
    return V(0);
  }
}

template <class V>
VARVE_PART V pick_greatest(V const& a, V const& b) {
  if constexpr (kernel::is_batch<V>) return kernel::maximum(a, b);
  else return a > b || a != a ? a : b;
}
template <class V>
VARVE_PART V pick_least(V const& a, V const& b) {
  if constexpr (kernel::is_batch<V>) return kernel::minimum(a, b);
  else return a < b || a != a ? a : b;
}
template <class V>
VARVE_PART V multiply_add(V const& a, V const& b, V const& c) {
  if constexpr (kernel::is_batch<V>) return kernel::fma<kernel::element_t<V>>(a, b, c);
  else if constexpr (std::is_integral_v<V>) return kernel::add(kernel::mul(a, b), c);
  else return a * b + c;
}
/// Returns c - a * b.
template <class V>
VARVE_PART V subtract_product(V const& a, V const& b, V const& c) {
  if constexpr (kernel::is_batch<V>) return kernel::fnma<kernel::element_t<V>>(a, b, c);
  else if constexpr (std::is_integral_v<V>) return kernel::sub(c, kernel::mul(a, b));
  else return c - a * b;
}
/// Rounds a double to the dtype whose value it represents.
template <dtype D>
VARVE_PART double rounded(double x) {
  if constexpr (D == dtype::float64) return x;
  else return static_cast<double>(kernel::wrapped<type_of<D>>(x));
}
template <dtype To, dtype From, class V>
VARVE_PART V converted(V const& x) {
  using E = kernel::element_t<V>;
  if constexpr (To == From || From == dtype::bool_ || (is_floating(To) && !std::is_same_v<E, double>)) {
    return x;
  } else if constexpr (To == dtype::bool_) {
    if constexpr (kernel::is_batch<V>) return kernel::from_mask<E>(kernel::differ<E>(x, V(E(0))));
    else return x != 0 ? E(1) : E(0);
  } else if constexpr (kernel::is_batch<V> && To == dtype::float64) {
    return x;
  } else {
    using T = type_of<To>; // integers wrap around
    if constexpr (kernel::is_batch<V> && is_floating(From)) return kernel::through<T>(x);
    else if constexpr (kernel::is_batch<V>) return kernel::wrapped<T>(x);
    else return static_cast<E>(is_floating(From) ? kernel::cast<T>(x) : kernel::wrapped<T>(x));
  }
}
} // namespace detail

namespace detail {
/// Returns an operand: a value of this iteration, or one computed before the innermost loop. The function is minimal,
/// since a step is written thousands of times.
template <class V>
VARVE_PART V const& pick(V const* fixed, V const* now, int slot) {
  return slot >= 0 ? now[slot] : fixed[~slot];
}
/// Computes arithmetic without the operator's kernel, which the compiler would have to inline each time.
template <step_kind Kind, class V>
VARVE_PART V arithmetic(V const& a, V const& b) {
#if VARVE_USE_XSIMD && (defined(__x86_64__) || defined(__aarch64__))
  if constexpr (kernel::is_batch<V> && std::is_floating_point_v<kernel::element_t<V>>) {
    if constexpr (Kind == step_kind::add) return V(a.data + b.data);
    else if constexpr (Kind == step_kind::sub) return V(a.data - b.data);
    else if constexpr (Kind == step_kind::mul) return V(a.data * b.data);
    else return V(a.data / b.data);
  } else
#endif
      if constexpr (std::is_integral_v<kernel::element_t<V>>) {
    if constexpr (Kind == step_kind::add) return kernel::add(a, b);
    else if constexpr (Kind == step_kind::sub) return kernel::sub(a, b);
    else return kernel::mul(a, b);
  } else {
    if constexpr (Kind == step_kind::add) return a + b;
    else if constexpr (Kind == step_kind::sub) return a - b;
    else if constexpr (Kind == step_kind::mul) return a * b;
    else return a / b;
  }
}
/// Returns the kernel of an operator on the lane type.
template <class V>
constexpr auto kernel_of(op_handle const& op) {
  op_lanes const& lanes = *op.lanes();
  if constexpr (std::is_same_v<V, float>) return lanes.f32;
  else if constexpr (std::is_same_v<V, double>) return lanes.f64;
  else if constexpr (std::is_same_v<V, std::int64_t>) return lanes.i64;
  else if constexpr (std::is_same_v<kernel::element_t<V>, float>) return lanes.simd_f32;
  else if constexpr (std::is_same_v<kernel::element_t<V>, std::int32_t>) return lanes.simd_i32;
  else if constexpr (std::is_same_v<kernel::element_t<V>, std::int64_t>) return lanes.simd_i64;
  else return lanes.simd_f64;
}
/// Calls a kernel as a function that many steps share.
template <auto Kernel, class V, class... X>
VARVE_NOINLINE VARVE_WHOLE V call_apart(X... x) {
  V const a[] = {x...};
  return Kernel(a);
}
/// Returns operand `K` of a step with many operands.
template <class P, int S, int K, class V>
VARVE_PART V const& term(V const* fixed, V const* now) {
  constexpr int slot = P::value.ports[P::value.steps[S].args + K];
  if constexpr (slot >= 0) return now[slot];
  else return fixed[~slot];
}
/// Applies an operator by its lane kernel.
template <class P, int S, class V, int... K>
VARVE_PART V apply([[maybe_unused]] V const* fixed, [[maybe_unused]] V const* now, std::integer_sequence<int, K...>) {
  constexpr step s = P::value.steps[S];
  if constexpr (s.wide && s.from == dtype::float32) {
    constexpr auto k = s.op->lanes()->f32;
    float const a[] = {static_cast<float>(term<P, S, K>(fixed, now))..., 0.0f};
    return k(a);
  } else {
    constexpr auto k = kernel_of<V>(*s.op);
    V const a[] = {term<P, S, K>(fixed, now)..., V(kernel::element_t<V>(0))};
    if constexpr (s.wide) return rounded<s.type>(k(a));
    else return k(a);
  }
}
/// Adds one of many terms to one of two partial results, which halves the latency.
template <step_kind Kind, int K, class V>
VARVE_PART void take(V* r, V const& x) {
  if constexpr (K < 2) r[K] = x;
  else if constexpr (Kind == step_kind::sum) r[K % 2] = arithmetic<step_kind::add>(r[K % 2], x);
  else if constexpr (Kind == step_kind::greatest) r[K % 2] = pick_greatest(r[K % 2], x);
  else r[K % 2] = pick_least(r[K % 2], x);
}
template <int K, class V>
VARVE_PART void take_product(V* r, V const& a, V const& b) {
  if constexpr (K < 2) r[K] = arithmetic<step_kind::mul>(a, b);
  else r[K % 2] = multiply_add<V>(a, b, r[K % 2]);
}
template <class P, int S, class V, int... K>
VARVE_PART V gathered([[maybe_unused]] V const* fixed, [[maybe_unused]] V const* now,
                      std::integer_sequence<int, K...>) {
  constexpr step_kind kind = P::value.steps[S].kind;
  V r[2];
  if constexpr (kind == step_kind::dot)
    (take_product<K>(r, term<P, S, 2 * K>(fixed, now), term<P, S, 2 * K + 1>(fixed, now)), ...);
  else (take<kind, K>(r, term<P, S, K>(fixed, now)), ...);
  if constexpr (sizeof...(K) > 1) {
    if constexpr (kind == step_kind::sum || kind == step_kind::dot) return arithmetic<step_kind::add>(r[0], r[1]);
    else if constexpr (kind == step_kind::greatest) return pick_greatest(r[0], r[1]);
    else return pick_least(r[0], r[1]);
  } else {
    return r[0];
  }
}
} // namespace detail

namespace detail {
/// Executes a load of form `S`.
template <step_form S, int Vector, class M, class V, int... L>
VARVE_PART V loaded(auto const& mem, [[maybe_unused]] index_t const* i, step_places const& at,
                    std::integer_sequence<int, L...>) {
  auto const* const p = base<S.where, type_of<S.from>>(mem, at.from);
  return load_lanes<V, M, (Vector >= 0 ? S.stride[Vector >= 0 ? Vector : 0] : 0)>(
      p + (at.offset + ... + (S.stride[L] != 0 ? S.stride[L] * i[L] : 0)));
}

/// Computes a step with code of its own: it reads by indices, or has many operands.
template <class P, int S, int Vector, class M, class V>
VARVE_PART void compute_alone([[maybe_unused]] auto const& mem, [[maybe_unused]] index_t const* i,
                              [[maybe_unused]] V const* fixed, V* now, int slot) {
  constexpr step s = P::value.steps[S];
  using E = kernel::element_t<V>;
  if constexpr (s.kind == step_kind::load || s.kind == step_kind::records || s.kind == step_kind::index) {
    constexpr access a = P::value.accesses[s.access];
    constexpr index_t stride = Vector >= 0 ? a.stride[Vector >= 0 ? Vector : 0] : 0;
    index_t const at = position<P, s.access>(mem, i);
    if constexpr (s.kind == step_kind::load) {
      auto const* p = address<P, a.buffer>(mem) + at;
      if constexpr (sized<P>) now[slot] = load_sized<V, M, stride>(mem, i, p);
      else now[slot] = load_lanes<V, M, stride>(p);
    } else if constexpr (s.kind == step_kind::records) {
      E const* p = address<P, a.buffer>(mem) + at;
      if constexpr (M::live == 0 || is_run_time(stride)) {
        for (int q = 0; q < fields_at_once<E>; ++q)
          now[slot + q] = load_counted<V, stride>(p + q, number_of<stride>(mem), live_lanes<M, V>(i));
      } else {
        load_fields<E>(p, stride, now + slot);
      }
    } else {
      V x = V(static_cast<E>(at));
      if constexpr (stride != 0) x = x + ramp<V>(static_cast<E>(number_of<stride>(mem)));
      if constexpr (s.count == 0) now[slot] = x;
      else if constexpr (kernel::is_batch<V>) now[slot] = kernel::from_mask<E>(pick(fixed, now, s.in[0]) == x);
      else now[slot] = pick(fixed, now, s.in[0]) == x ? V(1) : V(0);
    }
  } else if constexpr (s.kind == step_kind::op) {
    now[slot] = apply<P, S>(fixed, now, std::make_integer_sequence<int, s.count>{});
  } else {
    now[slot] = gathered<P, S>(fixed, now,
                               std::make_integer_sequence<int, (s.kind == step_kind::dot ? s.count / 2 : s.count)>{});
  }
}
} // namespace detail

/// Computes a step of form `S` into `now[at.slot]`, from the values before the loop (`fixed`) and of this iteration
/// (`now`). A value that other blocks use is also stored in `fixed`.
template <step_form S, class P, int Vector, class M, class V>
VARVE_PART void compute([[maybe_unused]] auto const& mem, [[maybe_unused]] index_t const* i, [[maybe_unused]] V* fixed,
                        [[maybe_unused]] V* now, [[maybe_unused]] step_places const& at) {
  using detail::pick;
  if constexpr (S.number >= 0) {
    detail::compute_alone<P, S.number, Vector, M>(mem, i, static_cast<V const*>(fixed), now, at.slot);
  } else if constexpr (S.kind == step_kind::load) {
    now[at.slot] =
        detail::loaded<S, Vector, M, V>(mem, i, at, std::make_integer_sequence<int, detail::depth_of(S.stride)>{});
  } else if constexpr (S.kind >= step_kind::add && S.kind <= step_kind::div) {
    if constexpr (S.wraps && S.kind == step_kind::mul)
      now[at.slot] = kernel::wrapped_product<type_of<S.type>>(
          pick(fixed, now, at.in[0]), pick(fixed, now, at.in[S.count - 1])); // `square` has one operand
    else now[at.slot] = detail::arithmetic<S.kind>(pick(fixed, now, at.in[0]), pick(fixed, now, at.in[1]));
  } else if constexpr (S.kind == step_kind::fma) {
    now[at.slot] =
        detail::multiply_add<V>(pick(fixed, now, at.in[0]), pick(fixed, now, at.in[1]), pick(fixed, now, at.in[2]));
  } else if constexpr (S.kind == step_kind::fnma) {
    now[at.slot] =
        detail::subtract_product<V>(pick(fixed, now, at.in[0]), pick(fixed, now, at.in[1]), pick(fixed, now, at.in[2]));
  } else if constexpr (S.kind == step_kind::op && S.count == 1) {
    constexpr auto k = detail::kernel_of<V>(*S.op);
    if constexpr (S.apart) now[at.slot] = detail::call_apart<k, V>(pick(fixed, now, at.in[0]));
    else now[at.slot] = k(&pick(fixed, now, at.in[0]));
  } else if constexpr (S.kind == step_kind::op) {
    constexpr auto k = detail::kernel_of<V>(*S.op);
    V const a[] = {pick(fixed, now, at.in[0]), pick(fixed, now, at.in[1])};
    if constexpr (S.apart) now[at.slot] = detail::call_apart<k, V>(a[0], a[1]);
    else now[at.slot] = k(a);
  } else if constexpr (S.kind == step_kind::constant) {
    now[at.slot] = V(static_cast<kernel::element_t<V>>(at.value));
  } else if constexpr (S.kind == step_kind::convert) {
    now[at.slot] = detail::converted<S.type, S.from>(pick(fixed, now, at.in[0]));
  }
  if constexpr (S.wraps) {
    if constexpr (S.kind == step_kind::dot || (S.kind == step_kind::op && identify(*S.op) == operator_class::pointwise))
      now[at.slot] = kernel::wrapped_any<type_of<S.type>>(now[at.slot]);
    else if constexpr (S.kind != step_kind::mul) now[at.slot] = detail::converted<S.type, dtype::int64>(now[at.slot]);
  }
  if constexpr (S.kept) fixed[at.kept] = now[at.slot];
}

} // namespace varve::fusion
