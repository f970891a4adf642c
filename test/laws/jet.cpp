// SPDX-License-Identifier: BSL-1.0
#include "law.hpp"

#include <varve/jet/jet.hpp>

#include <varve_test.hpp>

using namespace law;

namespace {
/// A row along the curve x + t d[0] + t^2 / 2 d[1] + t^3 / 6 d[2].
struct along_curve {
  row const& r;
  values const& x;
  values const* d;
  tensor operator()(tensor const& t) const {
    values all = x;
    for (auto k : r.real()) {
      tensor const in = vv::to(t, x[k].dtype());
      all[k] = x[k] + d[0][k] * in + d[1][k] * (in * in * 0.5) + d[2][k] * (in * in * in * (1 / 6.0));
    }
    return r(all);
  }
};
template <class F>
auto slope(F const& f) {
  return [f](tensor const& t) { return vv::jvp(f, std::tuple(t), std::tuple(tensor(vv::ones_like(t)))).second; };
}
} // namespace

TEST_CASE("all operators: a jet has the derivatives that nested jvps have", "[laws][jet]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (r.real().empty()) return;
    INFO(describe(r, s));
    auto const x = make(r, s, seed);
    values const d[] = {directions(r, x, seed + 1000), directions(r, x, seed + 2000), directions(r, x, seed + 3000)};
    auto const at = r.real();
    auto const [y, series] = with_count(at.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const of = [&](std::size_t k) {
        auto const in = [&](tensor const& v) { return tensor(vv::to(v, x[at[k]].dtype())); };
        return std::tuple(in(d[0][at[k]]), in(d[1][at[k]]), in(d[2][at[k]]));
      };
      return vv::jet(of_real{r, x}, std::tuple(x[at[K]]...), std::tuple<decltype(of(K))...>(of(K)...));
    });
    auto const [y1, y2, y3] = series;
    along_curve const f{r, x, d};
    tensor const t = vv::full({}, 0.0);
    double const tolerance = y.dtype() == dtype::float32 ? 1e-3 : 1e-9;
    CHECK(difference(y, r(x)) == "");
    CHECK(difference(y1, slope(f)(t), tolerance) == "");
    CHECK(difference(y2, slope(slope(f))(t), 10 * tolerance) == "");
    CHECK(difference(y3, slope(slope(slope(f)))(t), 100 * tolerance) == "");
  });
}
