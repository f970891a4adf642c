// SPDX-License-Identifier: BSL-1.0
// A network that is traced once, and runs for every batch size: the graph, what it depends on, and five sizes.
// output: %35: float32\[s0, 8\] = mm\(%34, %1, \[0, 1\]\)
// output: guard: 2 <= s0
// output: 1000 rows: gradients of shapes \[1000, 8\], \[8, 16\], \[16, 4\]
// output: without the graph: 0
// output: 1 row: .*needs 2 <= s0
#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace vv = varve;
using vv::dim_dynamic;
using vv::tensor;

int main() {
  auto const loss = [](tensor const& x, tensor const& w1, tensor const& w2) {
    tensor const hidden = vv::tanh(vv::matmul(x, w1));
    return vv::sum(vv::logsumexp(vv::matmul(hidden, w2), 1));
  };
  auto const inputs = [](vv::index_t rows) { return vv::sin(vv::reshape(vv::arange(rows * 8), vv::dims{rows, 8})); };
  tensor const w1 = vv::cos(vv::reshape(vv::arange(8 * 16), vv::dims{8, 16})),
               w2 = vv::sin(vv::reshape(vv::arange(16 * 4), vv::dims{16, 4}));

  // Traced on fake tensors: the batch is a symbol, the rest are numbers. No element is computed.
  std::vector<dim_dynamic> const fixed{dim_dynamic::fixed, dim_dynamic::fixed};
  vv::graph const g = vv::make_fx(vv::grad<0, 1, 2>(loss),
                                  vv::tracing::symbolic({{dim_dynamic::dynamic, dim_dynamic::fixed}, fixed, fixed}))(
      inputs(32), w1, w2);
  std::printf("%s\n", vv::to_string(g).c_str());
  for (auto const& guard : g.guards) std::printf("guard: %s\n", g.expressions.view().text(guard).c_str());

  double worst = 0;
  for (vv::index_t rows : {2, 3, 7, 64, 1000}) {
    tensor const x = inputs(rows);
    vv::boxed_args const y = vv::interpret(g, vv::boxed_args(x, w1, w2));
    auto const [gx, g1, g2] = vv::grad<0, 1, 2>(loss)(x, w1, w2);
    for (auto const& [mine, theirs] : {std::pair(y[0], gx), std::pair(y[1], g1), std::pair(y[2], g2)})
      worst = std::max(worst, vv::amax(vv::abs(mine - theirs)).item<double>());
    std::printf("%4d rows: gradients of shapes %s, %s, %s\n", static_cast<int>(rows),
                vv::to_string(y[0].sizes()).c_str(), vv::to_string(y[1].sizes()).c_str(),
                vv::to_string(y[2].sizes()).c_str());
  }
  std::printf("largest difference to the gradients without the graph: %g\n", worst);
  try {
    (void)vv::interpret(g, vv::boxed_args(inputs(1), w1, w2));
  } catch (vv::error const& e) { std::printf("1 row: %s\n", e.what()); }
  return worst == 0 ? 0 : 1;
}
