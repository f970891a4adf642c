// SPDX-License-Identifier: BSL-1.0
// A program with no library to link: this unit, compiled with VARVE_COMPILED=1, leaves to another what varve compiles
// once.
#include "../before_main.hpp"

#include <varve/varve.hpp>

#include <cstdio>

namespace vv = varve;

vv::tensor slope_elsewhere(vv::tensor const& x);
std::vector<double> const early = before_main::results();

int main() {
  vv::tensor const x({1.0, 2.0});
  auto const f = [](auto const& x) { return vv::sum(vv::sin(x) * x); };
  vv::tensor const rows = vv::vmap(vv::grad(f))(vv::stack(std::vector<vv::tensor>{x, x}));
  vv::tensor const elsewhere = slope_elsewhere(x);
  std::printf("%.4f %.4f\n", rows[1][0].item(), elsewhere[0].item());
  bool const good = early.size() == 13 && early == before_main::results() && rows[1][0].item() == elsewhere[0].item() &&
                    rows[0][1].item() == elsewhere[1].item();
  return good && elsewhere[0].item() > 1.38 && elsewhere[0].item() < 1.39 ? 0 : 1;
}
