// SPDX-License-Identifier: BSL-1.0
#include "law.hpp"

#include <varve/graph/verify.hpp>
#include <varve/op/to.hpp>
#include <varve/trace/core_decompositions.hpp>

#include <varve_test.hpp>

using namespace law;

namespace {
/// What a graph computes of tensors.
values run(vv::graph const& g, values const& x) {
  vv::boxed_args in;
  for (tensor const& v : x) in.push_back(v);
  values r;
  for (tensor const& y : vv::interpret(g, in)) r.push_back(y);
  return r;
}
/// The graph of `f` on `x`, in operators of the core set.
template <class F>
vv::graph decomposed(F const& f, values const& x) {
  return with_count(x.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
    return vv::make_fx([&](auto const&... v) { return f(values{v...}); }, vv::core_decompositions)(x[K]...);
  });
}
bool is_core(vv::graph const& g) {
  return g.count(vv::log1p_exp) + g.count(vv::one_hot) + g.count(vv::slice_backward) +
             g.count(vv::as_strided_backward) + g.count(vv::as_strided_scatter) ==
         0;
}
std::string against(tensor const& got, tensor const& expected, double tolerance) {
  if (got.dtype() != expected.dtype())
    return std::string("dtype ") + vv::name(got.dtype()) + ", not " + vv::name(expected.dtype());
  return difference(got, expected, tolerance);
}
} // namespace

TEST_CASE("all operators: in operators of the core set they compute the same, on every dtype", "[laws][decompose]") {
  using enum vv::dtype;
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    for (vv::dtype const t : {float64, float32, int64, bool_}) {
      values x = make(r, s, seed);
      for (std::size_t k : r.real()) x[k] = vv::to(x[k], t);
      tensor expected;
      try {
        expected = r(x);
      } catch (vv::error const&) {
        continue; // not of this dtype
      }
      INFO(describe(r, s) << " " << vv::name(t));
      vv::graph const d = decomposed([&](values const& v) { return r(v); }, x);
      CHECK(is_core(d));
      CHECK(against(run(d, x)[0], expected, t == float32 ? 2e-6 : 1e-14) == "");
    }
  });
}

TEST_CASE("all operators: their gradients in operators of the core set are the gradients, and the gradients of what "
          "they are decomposed into",
          "[laws][decompose]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (r.constant) return;
    INFO(describe(r, s));
    values const x = make(r, s, seed);
    numbers draw(seed + 7);
    tensor const g = uniform(r(x).sizes(), draw);
    values const expected = vjp(r, x, g);
    values with = x;
    with.push_back(g);
    vv::graph const forward = decomposed([&](values const& v) { return r(v); }, x);
    for (std::size_t const k : r.real()) {
      vv::graph const d =
          decomposed([&](values const& v) { return vjp(r, values(v.begin(), v.end() - 1), v.back())[k]; }, with);
      CHECK(is_core(d));
      CHECK(against(run(d, with)[0], expected[k], 1e-12) == "");
      auto const along = [&](tensor const& v) {
        values in = x;
        in[k] = v;
        return run(forward, in)[0];
      };
      CHECK(against(std::get<0>(vv::vjp(along, x[k]).second(g)), expected[k], 1e-12) == "");
    }
  });
}
