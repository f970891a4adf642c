// SPDX-License-Identifier: BSL-1.0
// Two units, one program: an entity that is not inline ends the link; one that each unit has for itself makes the units
// disagree.
#include "units.hpp"

int main() {
  report const a = observe(), b = observe_b();
  bool good = a.objects == b.objects && a.tables == b.tables && a.handle == b.handle && a.state == b.state &&
              a.fixed == b.fixed && a.dynamic == b.dynamic;
  // a mode switched on in one unit is seen by operators of the other
  counting m;
  {
    vv::mode_guard const on{m};
    (void)observe_b();
  }
  good = good && m.calls > 0 && vv::this_thread_state.quiet();
  good = good && early.size() == 13 && early == before_main::results() && early == before_main_of_b();
  return good ? 0 : 1;
}
