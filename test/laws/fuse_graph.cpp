// SPDX-License-Identifier: BSL-1.0
#include "law.hpp"

#include <varve/compile/compile.hpp>
#include <varve/fuse/fast_math.hpp>
#include <varve/op/to.hpp>

#include <varve_test.hpp>

using namespace law;

namespace {
/// `f` of tensors, traced and fused, on `x`.
template <class F>
values fused(F const& f, values const& x) {
  return with_count(x.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
    vv::graph const g = vv::make_fx([&](auto const&... v) { return f(values{v...}); })(x[K]...);
    values r;
    for (tensor const& y : vv::fuse(g)(vv::boxed_args(x[K]...))) r.push_back(y);
    return r;
  });
}
std::string against(tensor const& got, tensor const& expected, double tolerance) {
  if (got.dtype() != expected.dtype())
    return std::string("dtype ") + vv::name(got.dtype()) + ", not " + vv::name(expected.dtype());
  return difference(got, expected, tolerance);
}
} // namespace

TEST_CASE("all operators: a fused run-time graph computes what the operator does", "[laws][fuse]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    INFO(describe(r, s));
    values const x = make(r, s, seed);
    CHECK(against(fused([&](values const& v) { return r(v); }, x)[0], r(x), 1e-14) == "");
  });
}

TEST_CASE("all operators: so it does on every dtype, alone and mixed", "[laws][fuse]") {
  using enum vv::dtype;
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    for (vv::dtype const t : {float32, int64, int32, uint8, bool_}) {
      values x = make(r, s, seed);
      for (std::size_t k : r.real())
        if (k != r.real()[0] || seed % 2 == 0) x[k] = vv::to(x[k], t);
      tensor expected;
      try {
        expected = r(x);
      } catch (vv::error const&) {
        continue; // not of this dtype
      }
      INFO(describe(r, s) << " " << vv::name(t) << (seed % 2 ? " mixed" : ""));
      CHECK(against(fused([&](values const& v) { return r(v); }, x)[0], expected, t == float32 ? 2e-6 : 1e-14) == "");
    }
  });
}

TEST_CASE("all operators: a fused gradient is the gradient", "[laws][fuse]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (r.constant) return;
    INFO(describe(r, s));
    values const x = make(r, s, seed);
    tensor const y = r(x);
    numbers draw(seed + 7);
    tensor const g = uniform(y.sizes(), draw);
    values const expected = vjp(r, x, g);
    for (std::size_t const k : r.real()) {
      auto const one = [&](values const& v) { return vjp(r, v, tensor(g))[k]; };
      values all = x;
      with_count(x.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
        auto const fast = vv::compile([&](auto const&... v) { return one(values{v...}); }); // captures g
        CHECK(against(fast(all[K]...), expected[k], 1e-12) == "");
        CHECK(fast.versions() == 1);
        return 0;
      });
    }
  });
}

TEST_CASE("all operators: a gradient fused with fast_math is the gradient", "[laws][fuse][fast_math]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (r.constant) return;
    INFO(describe(r, s));
    values const x = make(r, s, seed);
    tensor const y = r(x);
    numbers draw(seed + 9);
    tensor const g = uniform(y.sizes(), draw);
    values const expected = vjp(r, x, g);
    values all = x;
    all.push_back(g);
    with_count(all.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
      vv::graph const traced = vv::make_fx([&](auto const&... v) {
        values const in{v...};
        values both = vjp(r, values(in.begin(), in.end() - 1), in.back()), kept{r(values(in.begin(), in.end() - 1))};
        for (std::size_t const k : r.real()) kept.push_back(both[k]);
        return kept;
      })(all[K]...);
      auto const got = vv::fuse(traced, vv::fast_math)(vv::boxed_args(all[K]...));
      CHECK(against(got[0], y, 1e-11) == "");
      int number = 0;
      for (std::size_t const k : r.real()) CHECK(against(got[++number], expected[k], 1e-10) == "");
      return 0;
    });
  });
}
