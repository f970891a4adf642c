// SPDX-License-Identifier: BSL-1.0
// A program as a C++ header, and as a picture for Graphviz.
// output: inline .*gate
// output: digraph
#include <varve/export/emit_cpp.hpp>
#include <varve/varve.hpp>

#include <iostream>
namespace vv = varve;

constexpr auto gate = [](auto w, auto x, auto y) {
  auto p = vv::sigmoid(vv::sum(w * x));
  return (p - y) * (p - y);
};

int main() {
  constexpr auto graph =
      vv::named<"w", "x", "y", "loss">(vv::trace(gate, vv::spec<float, 8>, vv::spec<float, 8>, vv::spec<float>));
  std::cout << vv::emit_cpp(graph, "gate");
  std::cout << vv::to_dot(graph);
}
