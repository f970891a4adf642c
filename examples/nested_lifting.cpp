// SPDX-License-Identifier: BSL-1.0
// Functions inside functions of a traced program: what an inner one captures becomes an operand of every operator
// between it and where the value is made, once, in the order in which it is met; sizes are symbols throughout.
// output: %6: float32\[s0, 2\] = cond\(%5, %0, %2, %1\)
// output:   %14: float32\[s0, 2\] = cond\(%13, %7, %9, %10\)
// output: cond of 4 operands, whose functions have 3 3 inputs
// output: every value is bound where it is used
// output: rows 3: difference 0
// output: rows 8: difference 0
#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <iostream>
#include <string>

namespace vv = varve;
using vv::dims;
using vv::tensor;

namespace {
/// The inner branches capture `w` of the program, and `u` of the branch around them.
tensor program(tensor const& x, tensor const& w) {
  tensor const shifted = x + w;
  return vv::cond(
      vv::gt(vv::sum(x), 0.0),
      [&](tensor v) {
        tensor const u = v * shifted;
        return vv::cond(
            vv::gt(vv::sum(v), 10.0), [&](tensor t) { return t * w + u; }, [&](tensor t) { return u - t * w; }, v);
      },
      [&](tensor v) { return v - shifted; }, x);
}
tensor rows(vv::index_t n) { return vv::reshape(vv::to(vv::arange(n * 2), vv::dtype::float32), dims{n, 2}); }
int inputs_of(vv::graph const& g, vv::node const& n, int k) { return g.regions[n.regions_first + k].inputs; }
} // namespace

int main() {
  tensor const w = vv::ones(dims{2});
  vv::graph const g = vv::make_fx(program, vv::tracing::symbolic({{vv::dim_dynamic::dynamic, vv::dim_dynamic::fixed},
                                                                  {vv::dim_dynamic::fixed}}))(rows(5), w);
  std::cout << g << "\n";
  for (vv::node const& n : g.nodes)
    if (n.regions_count) {
      std::cout << n.op->name << " of " << n.count << " operands, whose functions have";
      for (int k = 0; k < n.regions_count; ++k) std::cout << " " << inputs_of(g, n, k);
      std::cout << " inputs\n";
    }
  std::cout << (vv::verify(g) ? "every value is bound where it is used\n" : "a value is not bound\n");
  for (vv::index_t n : {3, 8}) {
    tensor const x = rows(n), y = vv::interpret(g, vv::boxed_args(x, w))[0];
    std::cout << "rows " << n << ": difference " << vv::sum(vv::abs(y - program(x, w))).item<float>() << "\n";
  }
}
