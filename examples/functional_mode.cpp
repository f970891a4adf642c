// SPDX-License-Identifier: BSL-1.0
// A program that writes into parts of values, run so that nothing is written: a mode of the user's sees the program as
// it is written, the tracer below the functional mode sees functional operators only.
// output: the log: mul_ add_ cat sum
// output: %11: float32\[1\] = add\(%9, %10\)
// output: operators that write in the graph: 0
// output: the argument before and after: 0 0
// output: the same without the mode: 48 48
#include <varve/fake.hpp>
#include <varve/functional.hpp>
#include <varve/varve.hpp>

#include <iostream>
#include <string>
#include <vector>

namespace vv = varve;
using vv::dims;
using vv::tensor;

/// A mode of the user's: it writes down the operators that it sees, but for views.
struct logging : vv::dispatch_mode<logging> {
  std::string log{};
  auto process(auto const& op, auto const& x) {
    if (op.table->kind != vv::op_kind::view) log += std::string(" ") + op.name();
    return op(x);
  }
};

int main() {
  // Doubles the last row, adds numbers to a column of that, and sums all of it beside the original.
  auto const program = [](tensor const& x) {
    tensor const y = vv::clone(x), last = vv::slice(y, 0, 1, 2);
    vv::mul_(last, 2.0);
    vv::add_(vv::select(last, 1, 2), 6.0);
    return vv::sum(vv::cat(std::vector{x, y}, 0));
  };

  logging mine;
  auto const without_writes = [&](tensor const& x) {
    vv::functional_mode mode;
    vv::functional_mode_guard const on(mode);
    vv::mode_guard const log(mine);
    return vv::from_functional_tensor(program(mode.to_functional_tensor(x)));
  };

  tensor const x = vv::reshape(vv::arange(6), dims{2, 3}) * 1.0;
  vv::graph const g = vv::make_fx(without_writes, vv::tracing::fake)(x);
  std::cout << "the log:" << mine.log << '\n' << g << '\n';
  int writes = 0;
  for (vv::node const& n : g.nodes) writes += n.op->kind == vv::op_kind::mutation;
  std::cout << "operators that write in the graph: " << writes << '\n';

  double const before = vv::select(vv::select(x, 0, 0), 0, 0).item<double>();
  double const traced = vv::interpret(g, vv::boxed_args(x))[0].item<double>();
  double const after = vv::select(vv::select(x, 0, 0), 0, 0).item<double>();
  std::cout << "the argument before and after: " << before << ' ' << after << '\n';
  std::cout << "the same without the mode: " << traced << ' ' << program(x).item<double>() << '\n';
}
