// SPDX-License-Identifier: BSL-1.0
// expect: error: .*flop_counter_mode.*did you mean .*flop_counter_mode_hpp
// expect(clang): #include <varve/mode/flop_counter_mode.hpp>
#include <varve/varve.hpp>

int main() {
#ifdef FAIL
  varve::flop_counter_mode counter;
#endif
}
