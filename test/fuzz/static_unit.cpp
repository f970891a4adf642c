// SPDX-License-Identifier: BSL-1.0
// Writes a unit of random functions for the compiler: static_unit [seed] [number of functions]. Each is called on
// static arrays, fused, and on tensors: as it is, or its gradient, its derivative along a direction, or over lanes.
#include "../random/generate.hpp"
#include "../random/print.hpp"

#include <cstdio>
#include <cstdlib>

using namespace random_programs;

namespace {
std::string arguments(program const& p) {
  std::string r;
  for (input const& in : p.inputs) r += ", " + as_array(in);
  return r;
}
/// Two lanes of an input.
input doubled(input in) {
  in.sizes.insert(0, 2);
  std::size_t const n = in.elements.size();
  for (std::size_t k = 0; k < n; ++k) in.elements.push_back(in.elements[k] * 0.5);
  return in;
}
/// The text of a function, and of its check. What it calls stands in a namespace: a function that the compiler fuses
/// captures nothing.
struct texts {
  std::string function, check;
};
texts one(std::uint64_t seed) {
  program p = maker(seed, maker::world::compiler)();
  for (input& in : p.inputs) in.expanded = false;
  std::string const s = std::to_string(seed);
  texts t;
  t.function = "namespace of_" + s + " {\nconstexpr auto f = " + as_static_function(p) + ";\n";
  t.function += "constexpr auto total = [](auto const&... x) { return vv::sum(f(x...)); };\n";
  t.function += "constexpr auto along = [](auto const& x0, auto const&... x) {\n"
                "  return vv::jvp(vv::closure(f, x...), std::tuple(x0), "
                "std::tuple(x0)).second;\n};\n}\n";
  static char const* const ways[] = {"\"value\", of_S::f", "\"gradient\", vv::grad(of_S::total)",
                                     "\"derivative\", of_S::along", "\"lanes\", vv::vmap(of_S::f)"};
  std::string way = ways[seed % 4];
  way.replace(way.find('S'), 1, s);
  if (seed % 4 == 3)
    for (input& in : p.inputs) in = doubled(in);
  t.check = "  check(" + s + "ull, " + way + arguments(p) + ");\n";
  return t;
}
} // namespace

int main(int count, char** words) {
  std::uint64_t const seed = count > 1 ? std::strtoull(words[1], nullptr, 10) * 1000 : 0;
  int const functions = count > 2 ? std::atoi(words[2]) : 100;
  std::string body;
  std::printf("#include <random/static_check.hpp>\nusing namespace random_programs;\n");
  for (int k = 0; k < functions; ++k) {
    texts const t = one(seed + static_cast<std::uint64_t>(k));
    std::printf("%s", t.function.c_str());
    body += t.check;
  }
  std::printf("int main() {\n%s"
              "  std::printf(\"static functions %d, comparisons %%d, differences %%d\\n\", comparisons, differences);\n"
              "  return differences ? 1 : 0;\n}\n",
              body.c_str(), functions);
}
