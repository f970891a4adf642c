// SPDX-License-Identifier: BSL-1.0
// A program that imports varve, and includes nothing of it.
#include <cstdio>
#include <tuple>
import varve;
namespace vv = varve;
// Names that several headers declare, and one of an inner namespace.
using vv::compile, vv::is_complex, vv::make_fx, vv::with, vv::pad_mode::reflect;
constexpr auto cube = [](auto x) { return x * x * x; };
static_assert(vv::grad(vv::grad(cube))(2.0) == 12.0);
int main() {
  vv::tensor const x = {1.0, 2.0};
  auto const g = vv::grad([](auto const& v) { return vv::sum(vv::sin(v) * v); })(x);
  std::puts(vv::to_string(g).c_str());
  std::printf("%g\n", vv::fuse(vv::grad(cube))(3.0));
}
