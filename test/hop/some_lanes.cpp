// SPDX-License-Identifier: BSL-1.0
// Loops in functions that only some lanes of a static `vmap` run do not wait for the other lanes (faults of kind B4).
#include "some_lanes_test.hpp"

#include <varve_test.hpp>

using namespace some_lanes_test;

static_assert(vv::vmap(unbounded)(points)[0] == 128.0 && vv::vmap(unbounded)(points)[1] == -243.0 &&
              vv::vmap(unbounded)(points)[2] == 192.0 && vv::vmap(unbounded)(points)[3] == -189.0);

TEST_CASE("loops in branches of a mapped cond end in lanes that run them") {
  auto const check = [](auto const& f) {
    four const y = vv::vmap(f)(points);
    four const fused = vv::fuse(vv::vmap(f))(points);
    for (int k = 0; k < 4; ++k) {
      CHECK(y[k] == f(points[k]));
      CHECK(fused[k] == f(points[k]));
    }
  };
  check(either);
  check(unbounded);
  check(nested);
  check(loop_in_loop);
}

TEST_CASE("a branch of a mapped cond may use a value of the vmap that it captures") {
  auto const f = [](auto const& x, auto const& w) {
    return vv::cond(
        x > 0.0,
        [w](auto const& a) {
          auto const b = w * a;
          auto const c = a * w;
          return vv::while_loop<30>([](auto const& v) { return v < 100.0; }, [](auto const& v) { return v * 2.0; }, c) +
                 b;
        },
        [w](auto const& a) { return w + a; }, x);
  };
  four const y = vv::vmap(f)(points, four{2.0, -3.0, 5.0, -7.0});
  CHECK(y[0] == f(1.0, 2.0));
  CHECK(y[1] == f(-1.0, -3.0));
  CHECK(y[2] == f(3.0, 5.0));
  CHECK(y[3] == f(-7.0, -7.0));
}
