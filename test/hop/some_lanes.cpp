// SPDX-License-Identifier: BSL-1.0
// Loops in functions that only some lanes of a static `vmap` run do not wait for the other lanes (faults of kind B4).
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace {
namespace vv = varve;

using four = vv::array<double, 4>;

constexpr four points{1.0, -1.0, 3.0, -7.0};

/// Doubles what is positive up to 100, triples what is negative down to -100: for a lane of the other branch no end.
constexpr auto either = [](auto const& x) {
  return vv::cond(
      x > 0.0,
      [](auto const& a) {
        return vv::while_loop<40>([](auto const& v) { return v < 100.0; }, [](auto const& v) { return v * 2.0; }, a);
      },
      [](auto const& a) {
        return vv::while_loop<40>([](auto const& v) { return v > -100.0; }, [](auto const& v) { return v * 3.0; }, a);
      },
      x);
};
/// The same without a bound.
constexpr auto unbounded = [](auto const& x) {
  return vv::cond(
      x > 0.0,
      [](auto const& a) {
        return vv::while_loop([](auto const& v) { return v < 100.0; }, [](auto const& v) { return v * 2.0; }, a);
      },
      [](auto const& a) {
        return vv::while_loop([](auto const& v) { return v > -100.0; }, [](auto const& v) { return v * 3.0; }, a);
      },
      x);
};
/// A loop in a branch in a branch.
constexpr auto nested = [](auto const& x) {
  return vv::cond(
      x > 0.0,
      [](auto const& a) {
        return vv::cond(
            a > 2.0,
            [](auto const& b) {
              return vv::while_loop<40>([](auto const& v) { return v < 50.0; }, [](auto const& v) { return v * v; }, b);
            },
            [](auto const& b) { return b * 5.0; }, a);
      },
      [](auto const& a) { return a * a; }, x);
};
/// A loop in a loop: lanes that are done with the outer one would never be done with the inner one.
constexpr auto loop_in_loop = [](auto const& x) {
  return vv::while_loop<9>(
      [](auto const& v) { return vv::abs(v) < 1000.0; },
      [](auto const& v) {
        auto const grown = vv::while_loop<60>(
            [](auto const& w, auto const& from) { return vv::abs(w) < 4.0 * vv::abs(from); },
            [](auto const& w, auto const& from) { return vv::where(vv::abs(from) < 1000.0, w * 1.5, w * 0.0); }, v, v);
        return grown;
      },
      x);
};
} // namespace

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

TEST_CASE("loops in branches of a mapped cond: derivatives inside and outside of the vmap") {
  auto const check = [](auto const& f) {
    auto const total = [&](auto const& x) { return vv::sum(vv::vmap(f)(x)); };
    four const inside = vv::vmap(vv::grad(f))(points);
    four const outside = vv::grad(total)(points);
    four const ahead = vv::jvp(vv::vmap(f), std::tuple(points), std::tuple(four{1.0, 1.0, 1.0, 1.0})).second;
    four const ahead_inside =
        vv::vmap([&](auto const& x) { return vv::jvp(f, std::tuple(x), std::tuple(1.0)).second; })(points);
    for (int k = 0; k < 4; ++k) {
      double const right = vv::grad(f)(points[k]);
      CHECK(inside[k] == Approx(right));
      CHECK(outside[k] == Approx(right));
      CHECK(ahead[k] == Approx(right));
      CHECK(ahead_inside[k] == Approx(right));
    }
  };
  check(either);
  check(nested);
  check(loop_in_loop);
}

TEST_CASE("loops in branches of a cond under two vmaps, the predicate mapped by one or both") {
  vv::array<double, 2, 3> const x{1.0, -2.0, 3.0, -4.0, 5.0, -6.0};
  vv::array<double, 2, 3> const y = vv::vmap(vv::vmap(unbounded))(x);
  for (int k = 0; k < 6; ++k) CHECK(y.data[k] == unbounded(x.data[k]));
  vv::array<double, 2> const rows{1.0, -1.0};
  vv::array<double, 3> const columns{2.0, -2.0, 7.0};
  auto const f = [](auto const& r, auto const& c) {
    return vv::cond(
        r * c > 0.0,
        [](auto const& a, auto const& b) {
          return vv::while_loop<30>([](auto const& v, auto const& w) { return v * w < 100.0; },
                                    [](auto const& v, auto const&) { return v * 2.0; }, a, b);
        },
        [](auto const& a, auto const& b) { return a + b; }, r, c);
  };
  auto const all = vv::vmap(vv::vmap(f, vv::in_dims<vv::none, 0>), vv::in_dims<0, vv::none>);
  vv::array<double, 2, 3> const z = all(rows, columns);
  auto const total = [&](auto const& r, auto const& c) { return vv::sum(all(r, c)); };
  auto const [by_row, by_column] = vv::grad<0, 1>(total)(rows, columns);
  vv::array<double, 2> right_by_row{};
  vv::array<double, 3> right_by_column{};
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 3; ++c) {
      CHECK(z.data[3 * r + c] == f(rows[r], columns[c]));
      auto const [gr, gc] = vv::grad<0, 1>(f)(rows[r], columns[c]);
      right_by_row.data[r] += gr, right_by_column.data[c] += gc;
    }
  for (int r = 0; r < 2; ++r) CHECK(by_row[r] == Approx(right_by_row[r]));
  for (int c = 0; c < 3; ++c) CHECK(by_column[c] == Approx(right_by_column[c]));
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
