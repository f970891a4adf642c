// SPDX-License-Identifier: BSL-1.0
// A function of attention with a captured bias, exported for every batch size: the program is printed, saved, and run
// by another process, which knows nothing of the function.
// output: input bias: constant
// output: x.size\(0\): batch, 2 <= batch <= 64
// output: %0: float32\[4, 4\] = placeholder\(0\)
// output: loaded: batch 2, agrees with the function: yes
// output: loaded: batch 7, agrees with the function: yes
// output: refused: varve: exported program: expected input x.size\(0\) to be <= 64, found 65
#include <varve/export.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>

namespace vv = varve;
using vv::dims;
using vv::tensor;

namespace {
tensor bias() { return vv::reshape(vv::arange(16), dims{4, 4}) * 0.1f; }
/// Queries, keys and values are one tensor: [batch, heads, length, width].
tensor attention(tensor const& x, tensor const& b) {
  auto const score = [&](auto s, auto, auto, auto q, auto k) { return s + vv::index(b, q, k); };
  return vv::flex_attention(x, x, x, score);
}
tensor input(vv::index_t batch) {
  vv::manual_seed(static_cast<std::uint64_t>(batch));
  return vv::randn(dims{batch, 2, 4, 8});
}

int run(std::string const& path) {
  vv::exported_program const p = vv::load(path);
  for (vv::index_t batch : {2, 3, 7}) {
    tensor const x = input(batch), y = p(x)[0], want = attention(x, bias());
    bool const close = vv::amax(vv::abs(y - want), dims{}).item<float>() < 1e-5f;
    std::cout << "loaded: batch " << batch << ", agrees with the function: " << (close ? "yes" : "no") << "\n";
  }
  try {
    (void)p(input(65));
  } catch (vv::shape_error const& e) { std::cout << "refused: " << e.what() << "\n"; }
  return 0;
}
} // namespace

int main(int count, char** arguments) {
  if (count > 1) return run(arguments[1]);
  tensor b = bias();
  auto const f = vv::compile([&](tensor x) { return attention(x, b); }); // its operators are in the program
  auto const batch = vv::dynamic_dim("batch", 2, 64);
  vv::exported_program const p =
      vv::export_program(f, {.dynamic_shapes = {{batch, vv::dim_static, vv::dim_static, vv::dim_static}},
                             .names = {"x"},
                             .state = {vv::attribute("bias", b)}})(input(5));
  std::cout << p << std::flush;
  vv::save(p, "attention.program");
  return std::system(("\"" + std::string(arguments[0]) + "\" attention.program").c_str());
}
