// SPDX-License-Identifier: BSL-1.0
#include "law.hpp"

#include <varve/op/sum.hpp>

#include <varve_test.hpp>

using namespace law;

namespace {
double step(tensor const& y) { return y.dtype() == dtype::float32 ? 1e-2 : 1e-5; }
double tolerance(tensor const& y) { return y.dtype() == dtype::float32 ? 1e-3 : 1e-7; }
bool all_zero(tensor const& t) {
  for (double e : elements(t))
    if (e != 0) return false;
  return true;
}
} // namespace

TEST_CASE("all operators: the jvp is the central difference", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (r.real().empty()) return;
    INFO(describe(r, s));
    auto const x = make(r, s, seed);
    auto const dx = directions(r, x, seed + 1000);
    auto const [y, dy] = jvp(r, x, dx);
    CHECK(difference(y, r(x)) == "");
    CHECK((dy.dtype() == y.dtype() && dy.sizes() == y.sizes()));
    if (r.constant) {
      CHECK(all_zero(dy));
    } else {
      double const h = step(y);
      CHECK(difference(dy, central_difference(r(moved(r, x, h, dx)), r(moved(r, x, -h, dx)), h), tolerance(y)) == "");
    }
  });
}

TEST_CASE("all operators: the vjp is the transpose of the jvp", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (r.real().empty()) return;
    INFO(describe(r, s));
    auto const x = make(r, s, seed);
    auto const dx = directions(r, x, seed + 1000);
    auto const [y, dy] = jvp(r, x, dx);
    if (!vv::is_floating(y.dtype())) return;
    numbers draw(seed + 2000);
    tensor const g = uniform(y.sizes(), draw, -1, 1, y.dtype());
    auto const c = vjp(r, x, g);
    double total = 0;
    for (auto k : r.real()) {
      CHECK((c[k].dtype() == x[k].dtype() && c[k].sizes() == x[k].sizes()));
      total += inner(c[k], dx[k]);
    }
    CHECK(total == Approx(inner(g, dy)).epsilon(tolerance(y)).margin(tolerance(y)));
  });
}

TEST_CASE("all operators: derivatives of derivatives agree with differences", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (r.real().empty() || r.constant) return;
    INFO(describe(r, s));
    auto const x = make(r, s, seed);
    auto const dx = directions(r, x, seed + 1000);
    tensor const y = r(x);
    numbers draw(seed + 2000);
    tensor const g = uniform(y.sizes(), draw, -1, 1, y.dtype());
    auto const at = r.real();
    double const h = step(y), tol = 10 * tolerance(y);
    auto const above = vjp(r, moved(r, x, h, dx), g), below = vjp(r, moved(r, x, -h, dx), g);
    with_count(at.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto pull = [&](auto const&... v) { return vv::vjp(of_real{r, x}, v...).second(g); };
      auto const forward_over_reverse = vv::jvp(pull, std::tuple(x[at[K]]...), std::tuple(dx[at[K]]...)).second;
      auto agree = [&](tensor const& a, tensor const& b) { CHECK(difference(a, b, tol) == ""); };
      (agree(std::get<K>(forward_over_reverse), central_difference(above[at[K]], below[at[K]], h)), ...);
      // the Hessian of <g, f> is symmetric, so its transpose gives the same
      auto const reverse_over_reverse = vv::vjp(pull, x[at[K]]...).second(std::tuple(dx[at[K]]...));
      (agree(std::get<K>(reverse_over_reverse), std::get<K>(forward_over_reverse)), ...);
      // and reverse over forward: the gradient of <g, jvp(f)(dx)>
      auto along = [&](auto const&... v) {
        return vv::jvp(of_real{r, x}, std::tuple(v...), std::tuple(dx[at[K]]...)).second;
      };
      auto const reverse_over_forward = vv::vjp(along, x[at[K]]...).second(g);
      (agree(std::get<K>(reverse_over_forward), std::get<K>(forward_over_reverse)), ...);
      return 0;
    });
  });
}
