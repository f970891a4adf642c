// SPDX-License-Identifier: BSL-1.0
// A mode of one's own that counts multiplications of matrix products, and the profiler that varve has.
// output: forward 12288, with the gradient 36864
// output: trace.json holds [0-9]+ events
#include <varve/mode/profiler_mode.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
namespace vv = varve;
using vv::tensor;

struct multiplications : vv::dispatch_mode<multiplications> {
  vv::index_t count = 0;
  auto process(auto const& op, auto const& args) { // on tensors the arguments come as one list
    tensor const r = op(args);
    if (std::string(op.name()) == "mm") // m k n, whichever operand lies transposed
      count += std::lround(std::sqrt(double(args[0].numel() * args[1].numel() * r.numel())));
    return r;
  }
};

int main() {
  auto loss = [](tensor const& w, tensor const& x) { return vv::sum(vv::tanh(x.matmul(w))); };
  tensor const w = vv::ones({16, 24}), x = vv::ones({32, 16});
  multiplications forward, both;
  vv::with(forward, loss)(w, x);
  vv::with(both, vv::grad<0, 1>(loss))(w, x);
  std::printf("forward %ld, with the gradient %ld\n", long(forward.count), long(both.count));
  {
    vv::profiler_mode profiler("trace.json"); // for ui.perfetto.dev; written to its end here
    vv::with(profiler, vv::grad(loss))(w, x);
  }
  std::ifstream trace("trace.json");
  int events = 0;
  for (std::string line; std::getline(trace, line);) events += line.rfind("{\"name\":", 0) == 0;
  std::printf("trace.json holds %d events\n", events);
}
