// SPDX-License-Identifier: BSL-1.0
// expect: error: .*incomplete type.*adam
// expect: struct adam; *// #include <varve/optim.hpp>
#include <varve/varve.hpp>

int main() {
#ifdef FAIL
  (void)varve::optim::adam{};
#endif
}
