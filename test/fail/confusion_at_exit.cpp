// SPDX-License-Identifier: BSL-1.0
// expect: perturbation confusion through a capture
// expect: closure\(f, captured
// clang-format off: the header that speaks comes first, or the message also tells the way to it
#include <varve/transform/scope.hpp>
// clang-format on
#include <varve/op/operators.hpp>
#include <varve/transform/closure.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/with.hpp>
namespace vv = varve;

struct passing : vv::dispatch_mode<passing> {
  constexpr auto process(auto op, auto const&... args) { return op(args...); }
};
// d/dx (x * d/dy (3 * y)) = 3, the 3 seen through a mode of a level above the inner gradient's own
constexpr double right() {
  passing m;
  return vv::grad([&](auto x) {
    return vv::with(
        m, [](auto u, auto v) { return u * vv::grad(vv::closure([](auto y, auto v) { return v * y; }, v))(1.0); }, x,
        3.0);
  })(2.0);
}
static_assert(right() == 3);
#ifdef FAIL
constexpr auto scaled = [](auto u, auto v) { return u * vv::grad([=](auto y) { return v * y; })(1.0); };
constexpr double wrong() {
  passing m;
  return vv::grad([&](auto x) { return vv::with(m, scaled, x, 3.0); })(2.0);
}
#endif
