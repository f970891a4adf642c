// SPDX-License-Identifier: BSL-1.0
// Two units, one program: an entity that is not inline ends the link, one that each unit has for itself the comparison.
#include <varve/varve.hpp>

#include <array>

namespace vv = varve;

std::array<void const*, 4> objects_of_b();
double gradient_of_b(double x);

int main() {
  bool const same_objects = objects_of_b() == std::array<void const*, 4>{&vv::add, &vv::mul, &vv::sum, &vv::sin};
  bool const same_values = gradient_of_b(3.0) == vv::grad([](auto x) { return vv::mul(x, x); })(3.0);
  return same_objects && same_values ? 0 : 1;
}
