// SPDX-License-Identifier: BSL-1.0
// expect: varve: an operator that does something outside of the program has no place in a graph that the
#include <varve/rule/effect.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

struct note_t {
  static constexpr auto op_name = "note";
};
template <>
struct vv::rules<note_t> : vv::rule::effect<vv::rules<note_t>> {
  template <class T>
  static constexpr void run(attributes const&, strided<T const>) {}
};
constexpr auto twice = [](auto const& x) {
#ifdef FAIL
  (void)vv::bind<note_t>()(x);
#endif
  return x + x;
};
auto y = vv::fuse(twice)(vv::array<double, 2>{1, 2});
