// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

#include <cstdio>

static_assert(VARVE_VERSION_MAJOR >= 0 && VARVE_VERSION_MINOR >= 0 && VARVE_VERSION_PATCH >= 0);
static_assert(VARVE_USE_XSIMD == 0 || VARVE_USE_XSIMD == 1);

int main() {
  auto const loss = [](varve::tensor const& x) { return varve::sum(varve::sin(x) * x); };
  varve::tensor const rows({0.5, -1.0, 2.0, 0.0}, {2, 2});
  std::puts(varve::to_string(varve::vmap(varve::grad(loss))(rows)).c_str());
}
