# SPDX-License-Identifier: BSL-1.0
# A user's unit is clean under warnings that varve's own build does not ask for, though varve comes by -I:
# cmake -DSCRATCH=<folder> -P warnings.cmake -- <compiler> <flags>...
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/behind_dashes.cmake")
set(compile ${behind_dashes} -fsyntax-only -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror)
set(unit "#include <varve/varve.hpp>
#include <varve/linalg.hpp>
#include <varve/nn.hpp>
#include <varve/optim.hpp>
#include <varve/io/csv.hpp>
#include <varve/io/npz.hpp>
#include <varve/io/zlib.hpp>
#include <varve/interop/dlpack.hpp>
namespace vv = varve;
int main() {
  auto const f = [](auto const& x) { return vv::sum(vv::sin(x) * x); };
  double s = static_cast<double>(vv::grad(f)(vv::array<double, 3>{1, 2, 3})[0]);
  constexpr auto fused = vv::fuse([](auto const& x) { return vv::sum(vv::sin(x) * x); });
  s += fused(vv::array<double, 3>{1, 2, 3});
  vv::tensor t = vv::grad([](auto const& x) { return vv::sum(vv::matmul(x, x.t())); })(vv::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  auto const r = [](auto const& p, auto const& x) { return p * x - 1.0; };
  s += vv::optim::levenberg_marquardt{}.minimize(r, t, vv::zeros({2, 2})).cost;
  vv::save_npz(\"file.npz\", std::tuple(t, s));
  double x = s;
@LINE@
  return x > 0 ? 0 : 1;
}
")
function(check line fails)
  string(REPLACE "@LINE@" "${line}" text "${unit}")
  file(WRITE "${SCRATCH}/warnings.cpp" "${text}")
  execute_process(COMMAND ${compile} "${SCRATCH}/warnings.cpp" RESULT_VARIABLE failed ERROR_VARIABLE message)
  if(NOT fails AND failed)
    message("${message}")
    message(FATAL_ERROR " a unit that includes varve has warnings")
  elseif(fails AND NOT failed)
    message(FATAL_ERROR " the user's own warnings are silenced: ${line}")
  endif()
endfunction()
check("" FALSE)
check("  { double x = 2\; s += x\; }" TRUE)
check("  unsigned long n = t.size(0)\; s += double(n)\; int m = x\; s += m\;" TRUE)
