// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// One row in several worlds: static values, and a trace that is run afterwards, against tensors.
#include "../sample/op.hpp"

#include <varve/fuse/fuse.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/graph/verify.hpp>
#include <varve/trace/trace.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>
#include <varve/transform/vmap.hpp>

namespace world {
using namespace sample;

/// A static value with the elements of a tensor.
template <class O>
auto to_static(tensor const& t) {
  using element = std::conditional_t<O::values == domain::flag, bool,
                                     std::conditional_t<O::values == domain::index, std::int64_t, double>>;
  typename O::template array<element> a{};
  for (index_t k = 0; k < t.numel(); ++k) vv::data_of(a)[k] = static_cast<element>(sample::element(t, k));
  return a;
}
template <class V>
tensor to_tensor(V const& v) {
  tensor r = tensor::empty(vv::to_dims(vv::shape_of(v)), vv::dtype_of(v));
  for (index_t k = 0; k < r.numel(); ++k) set(r, k, static_cast<double>(vv::data_of(v)[k]));
  return r;
}
template <domain D>
inline constexpr bool is_real = D != domain::flag && D != domain::index;

/// Random operands of a row's static shapes.
template <class... O>
values operands(std::uint64_t seed) {
  numbers draw(seed);
  return {make(O::values, O::shape(), draw)...};
}

template <class... O>
consteval std::size_t first_real() {
  bool const real[] = {is_real<O::values>...};
  std::size_t k = 0;
  while (k < sizeof...(O) && !real[k]) ++k;
  return k;
}
template <std::size_t First, std::size_t I>
auto const& pick(auto const& all, auto const& v) {
  if constexpr (I == First) return v;
  else return std::get<I>(all);
}

/// f, its tangents and cotangents along the first real operand, in both worlds. Empty when they agree.
template <class F, class... O>
std::string against_static(F f, bool constant) {
  auto const x = operands<O...>(7);
  auto const dx = operands<O...>(8);
  using first = std::integral_constant<std::size_t, first_real<O...>()>;
  return [&]<std::size_t... K>(std::index_sequence<K...>) -> std::string {
    auto const s = std::tuple(to_static<O>(x[K])...);
    auto const y = f(std::get<K>(s)...);
    if (auto d = difference(to_tensor(y), f(x[K]...), 1e-13); !d.empty()) return d;
    if constexpr (first::value < sizeof...(O)) {
      if (constant) return "";
      auto along = [&](auto const& all, auto const& v) { return f(pick<first::value, K>(all, v)...); };
      auto const at_static = [&](auto const& v) { return along(s, v); };
      auto const at_tensor = [&](auto const& v) { return along(std::tuple(x[K]...), v); };
      using V = std::tuple_element_t<first::value, std::tuple<O...>>;
      auto const ds = to_static<V>(dx[first::value]);
      if constexpr (std::is_floating_point_v<vv::element_of<std::remove_cvref_t<decltype(y)>>>) {
        auto const ts = vv::jvp(at_static, std::tuple(std::get<first::value>(s)), std::tuple(ds)).second;
        auto const td = vv::jvp(at_tensor, std::tuple(x[first::value]), std::tuple(dx[first::value])).second;
        if (auto d = difference(to_tensor(ts), td, 1e-12); !d.empty()) return "jvp: " + d;
        auto const gs = std::get<0>(vv::vjp(at_static, std::get<first::value>(s)).second(ts));
        auto const gd = std::get<0>(vv::vjp(at_tensor, x[first::value]).second(td));
        if (auto d = difference(to_tensor(gs), gd, 1e-6 * (td.dtype() == dtype::float32) + 1e-12); !d.empty())
          return "vjp: " + d;
      }
    }
    return "";
  }(std::index_sequence_for<O...>{});
}

/// f as one fused program. Empty when it agrees with f.
template <class F, class... O>
std::string against_fuse(F f) {
  auto const x = operands<O...>(9);
  return [&]<std::size_t... K>(std::index_sequence<K...>) -> std::string {
    auto const s = std::tuple(to_static<O>(x[K])...);
    return difference(to_tensor(vv::fuse(f)(std::get<K>(s)...)), to_tensor(f(std::get<K>(s)...)), 1e-13);
  }(std::index_sequence_for<O...>{});
}

/// Traces a function and runs the graph.
template <class F>
values run_trace(F const& f, values const& x, auto const&... metas) {
  vv::graph const g = vv::trace_graph(f, metas...);
  if (!vv::verify(g)) return {};
  vv::boxed_args in;
  for (auto const& t : x) in.push_back(t);
  vv::boxed_args const y = vv::interpret(g, in);
  return values(y.begin(), y.end());
}
/// f, and its pullback along the first real operand, traced and run. Empty when they agree with f itself.
template <class F, class... O>
std::string against_trace(F f, bool constant, shapes const& further) {
  shapes all{{O::shape()...}};
  all.insert(all.end(), further.begin(), further.end());
  std::uint64_t seed = 1;
  for (auto const& s : all) {
    row const r{"", {O::values...}, nullptr, {}, constant};
    values const x = make(r, s, ++seed);
    auto const d = [&]<std::size_t... K>(std::index_sequence<K...>) -> std::string {
      tensor const y = f(x[K]...);
      if (auto e = difference(run_trace(f, x, vv::meta_of(x[K])...)[0], y, 1e-14); !e.empty()) return "traced: " + e;
      if constexpr (is_real<std::tuple_element_t<0, std::tuple<O...>>::values>) {
        if (constant || !vv::is_floating(y.dtype())) return "";
        auto pulled = [&](auto const& v, auto const&... rest) {
          auto const whole = [&](auto const& w) { return f(w, rest...); };
          return std::get<0>(vv::vjp(vv::closure([&](auto const& w, auto const&...) { return whole(w); }, rest...), v)
                                 .second(vv::ones_like(f(v, rest...))));
        };
        if (auto e = difference(run_trace(pulled, x, vv::meta_of(x[K])...)[0], pulled(x[K]...), 1e-13); !e.empty())
          return "traced vjp: " + e;
      }
      return "";
    }(std::index_sequence_for<O...>{});
    if (!d.empty()) return vv::to_string(s[0]) + ": " + d;
  }
  return "";
}
} // namespace world
