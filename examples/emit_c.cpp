// SPDX-License-Identifier: BSL-1.0
// An estimator for a small machine: a Kalman filter whose model is differentiated by varve, as a function in C that
// allocates nothing and needs math.h only.
#include <varve/export/emit_c.hpp>
#include <varve/special/angles.hpp>
#include <varve/varve.hpp>

#include <iostream>
#include <vector>

namespace vv = varve;
using vv::tensor;

int main() {
  // A pendulum: angle and speed. A sensor sees the horizontal place of its end, now and then.
  auto const part = [](tensor const& v, vv::index_t k) {
    return tensor(vv::reshape(vv::slice(v, vv::axis<0>, k, k + 1), vv::dims{}));
  };
  auto const moves = [part](tensor const& s) {
    tensor const faster = part(s, 1) - 0.02 * 9.81 * vv::sin(part(s, 0));
    return tensor(vv::stack(std::vector<tensor>{part(s, 0) + 0.02 * faster, faster}));
  };
  auto const sees = [part](tensor const& s) { return tensor(vv::sin(part(s, 0))); };
  auto const filter = [&](tensor const& state, tensor const& spread, tensor const& place, tensor const& is_seen) {
    tensor const f = vv::jacfwd(moves)(state), ahead = moves(state),
                 wider = vv::matmul(vv::matmul(f, spread), vv::transpose(f, vv::axis<0>, vv::axis<1>)) +
                         tensor({{1e-6, 0.0}, {0.0, 1e-4}});
    return vv::cond(
        is_seen > 0.0,
        [&](tensor const& s, tensor const& p, tensor const& z) {
          tensor const h = vv::grad(sees)(s), ph = vv::mv(p, h), gain = ph / (vv::sum(h * ph) + 0.01);
          tensor const column = vv::reshape(gain, vv::dims{2, 1}), row = vv::reshape(ph, vv::dims{1, 2});
          return std::tuple(s + gain * (z - sees(s)), p - column * row);
        },
        [](tensor const& s, tensor const& p, tensor const&) { return std::tuple(s * 1.0, p * 1.0); }, ahead, wider,
        place);
  };

  tensor const state({0.5, 0.0}), spread({{0.1, 0.0}, {0.0, 0.1}}), place(0.45), is_seen(1.0);
  vv::boxed_args constants; // the noise, which the program contains
  vv::graph const g = vv::make_fx(filter).with_captures(constants, state, spread, place, is_seen);
  vv::c_program const c = vv::emit_c(
      g, "pendulum_filter",
      {.fast_math = true, .unroll = 16, .constants = constants, .test = vv::boxed_args(state, spread, place, is_seen)});
  std::cout << c.header << "\n// " << c.stack << " bytes of stack, " << c.work << " of work\n\n"
            << c.source << "\n"
            << c.test;
  // output: \(float64\[2\], float64\[2, 2\], float64, float64\) -> \(float64\[2\], float64\[2, 2\]\)
  // output: int pendulum_filter\(const double \*x0, .*, double \*y0, double \*y1\);
  // output: bytes of stack, 0 of work
  // output: static void pendulum_filter_then
  // output: sin\(
  // output: if \(pendulum_filter\(pendulum_filter_in0, .*, pendulum_filter_out1\)\) return 2;
}
