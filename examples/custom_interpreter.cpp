// SPDX-License-Identifier: BSL-1.0
// An interpreter of one's own: a mode that counts floating-point operations and notes every operator. One `process`
// runs in both worlds.
// output: static: 5 calls, 18 flops: mul sum neg exp mul
// output: tensors: 5 calls, 18 flops: mul sum neg exp mul
// output: the mode sees the gradient's operators as well: [1-9][0-9]* calls
#include <varve/varve.hpp>

#include <cstdio>
#include <cstring>
#include <string>

namespace vv = varve;

struct flop_counter : vv::dispatch_mode<flop_counter> {
  int calls = 0;
  vv::index_t flops = 0;
  std::string names;

  auto process(auto op, auto const&... args) {
    auto const result = op(args...); // lowers: to the next mode, transform or kernel
    ++calls;
    names += std::string(names.empty() ? "" : " ") + op.name();
    vv::index_t work = vv::numel(vv::to_dims(vv::shape_of(result)));
    if (std::strcmp(op.name(), "sum") == 0) // a sum adds every element of its operand
      vv::for_each_value([&](auto const& v) { work = vv::numel(vv::to_dims(vv::shape_of(v))) - 1; }, args...);
    flops += work;
    return result;
  }
};

constexpr auto gaussian = [](auto x) {
  return vv::exp(-vv::sum(x * x)) * 0.5;
}; // on 8 elements: 8 + 7 + 1 + 1 + 1 operations

int main() {
  vv::array<double, 8> const a{1, 2, 3, 4, 5, 6, 7, 8};
  flop_counter compiled;
  double const y = vv::with(compiled, gaussian, a); // the compiler resolves the mode
  std::printf("static: %d calls, %d flops: %s (result %g)\n", compiled.calls, static_cast<int>(compiled.flops),
              compiled.names.c_str(), y);

  vv::tensor const t = vv::tensor::from_data(a.data, {8});
  flop_counter dynamic;
  {
    vv::mode_guard const on{dynamic}; // this thread's operators, until the end of the scope
    gaussian(t);
  }
  std::printf("tensors: %d calls, %d flops: %s\n", dynamic.calls, static_cast<int>(dynamic.flops),
              dynamic.names.c_str());

  flop_counter both;
  {
    vv::mode_guard const on{both};
    vv::grad(gaussian)(t);
  }
  std::printf("the mode sees the gradient's operators as well: %d calls\n", both.calls);
}
