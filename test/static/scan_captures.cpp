// SPDX-License-Identifier: BSL-1.0
// scan of static values: what the step captures, modes, traces.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;

constexpr auto sums = [](auto init, auto xs) {
  return vv::scan(
      [](auto c, auto x) {
        auto n = c + x;
        return std::pair{n, n * n};
      },
      init, xs);
};
constexpr auto scored = [](auto xs) {
  auto [c, y] = sums(0.0, xs);
  return c * vv::sum(y);
};
constexpr array<double, 3> xs{1, 2, 3};

// values of a transform that the step captures come in by closure
constexpr auto decayed = [](auto k, auto xs) {
  return vv::scan(vv::closure([](auto c, auto x, auto k) { return std::pair{k * c + x, vv::none}; }, k), 0.0, xs).first;
};
static_assert(decayed(0.5, xs) == 0.25 + 1 + 3);
static_assert(vv::grad(decayed)(0.5, xs) == 2 * 0.5 + 2 && vv::grad(vv::grad(decayed))(0.5, xs) == 2);
static_assert(vv::equal(vv::grad<1>(decayed)(0.5, xs), array<double, 3>{0.25, 0.5, 1}));
static_assert(vv::equal(vv::vmap(decayed, vv::in_dims<0, vv::none>)(array<double, 2>{0.5, 1}, xs),
                        array<double, 2>{4.25, 6}));

// a mode is given one call, and sees what the step does
struct counting : vv::dispatch_mode<counting> {
  int loops = 0, others = 0;
  constexpr auto process(auto op, auto const&... x) {
    if (std::string_view(op.name()) == "scan") ++loops;
    else ++others;
    return op(x...);
  }
};
constexpr auto counted() {
  counting mode;
  double const y = vv::with(mode, [](auto v) { return sums(0.0, v).first; }, xs);
  return std::tuple(y, mode.loops, mode.others);
}
static_assert(counted() == std::tuple(6.0, 1, 6));

// traced: one node; a value of the function around it becomes an input of the step, once
constexpr auto lifting = vv::trace(
    [](auto xs, auto w) {
      return vv::scan([=](auto c, auto x) { return std::pair{c + x * w * w, vv::none}; }, 0.0, xs).first;
    },
    vv::spec<double, 5>, vv::spec<double>);
static_assert(vv::verify(lifting.thaw()));
static_assert(lifting.sizes.regions == 2 && lifting.regions[1].inputs == 3 && lifting.count(vv::mul) == 2);
constexpr auto backwards = vv::trace(vv::grad(scored), vv::spec<double, 5>);
static_assert(vv::verify(backwards.thaw()) && backwards.sizes.regions == 3);
constexpr auto open = vv::trace([](auto init, auto xs) { return sums(init, xs).second; }, vv::spec<double>,
                                vv::spec<double, vv::dim<"n">>);
static_assert(vv::verify(open.thaw()) && open.nodes[open.results[0]].out.sizes == vv::dims{open.symbol("n")});

// in segments: the same values, fewer of them kept
template <vv::index_t Segment>
constexpr auto in_segments = [](auto c, auto xs, bool reverse = false) {
  auto [last, y] = vv::scan<0, Segment>(
      [](auto c, auto x) {
        auto n = c * 0.5 + x;
        return std::pair{n, n * n};
      },
      c, xs, reverse);
  return last * vv::sum(y * y);
};
constexpr array<double, 7> seven{1, 2, 3, -1, 0.5, 2, 1};
static_assert(in_segments<0>(0.5, seven) == in_segments<3>(0.5, seven) &&
              in_segments<0>(0.5, seven) == in_segments<7>(0.5, seven));
static_assert(in_segments<0>(0.5, seven, true) == in_segments<3>(0.5, seven, true) &&
              in_segments<0>(0.5, seven) == in_segments<vv::sqrt_segments>(0.5, seven));
static_assert(vv::equal(vv::grad<1>(in_segments<0>)(0.5, seven), vv::grad<1>(in_segments<3>)(0.5, seven)));
static_assert(vv::scan<0, 2>([](auto c) { return std::pair{c * 2.0, vv::none}; }, 1.0, vv::steps<5>).first == 32);
