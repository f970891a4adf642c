// SPDX-License-Identifier: BSL-1.0
// Sizes as expressions: equal polynomials are one entry, what can be divided is, ranges decide.
#include <varve/shape/size_table.hpp>

namespace vv = varve;
using vv::extent;
using vv::size_table;

static_assert(sizeof(extent) == 8);
static_assert(extent(5).is_number() && extent(-1).is_number() && extent(INT64_MAX).is_number() &&
              extent().number() == 0);
static_assert(extent::entry(0).is_entry() && extent::entry(7, 3).is_entry() && !extent::entry(0).is_name() &&
              !extent(INT64_MAX).is_entry() && !extent(INT64_MAX).is_name() && !extent(-1).is_entry());
static_assert(extent(vv::symbol("n")).is_name() && extent(vv::symbol("longest")).is_name() &&
              !extent(vv::symbol("n")).is_entry() && !extent(vv::symbol("n")).is_number());
static_assert(!extent::entry(0).is_number() && extent::entry(7, 3).entry() == 7 &&
              extent::entry(7, 3).environment() == 3);
static_assert(!known_equal(extent::entry(7, 3), extent::entry(7, 2)) && known_equal(extent(4), 4));

/// Two expressions of n and m are one entry.
template <class F, class G>
constexpr bool same(F f, G g) {
  size_table t;
  extent const n = t.symbol(0), m = t.symbol(1);
  return known_equal(f(t, n, m), g(t, n, m));
}
static_assert(same([](auto& t, auto n, auto m) { return t.add(n, m); },
                   [](auto& t, auto n, auto m) { return t.add(m, n); }));
static_assert(same([](auto& t, auto n, auto) { return t.divide(t.multiply(n, 6), 3); },
                   [](auto& t, auto n, auto) { return t.add(n, n); }));
static_assert(same([](auto& t, auto n, auto m) { return t.multiply(t.add(n, m), t.subtract(n, m)); },
                   [](auto& t, auto n, auto m) { return t.subtract(t.multiply(n, n), t.multiply(m, m)); }));
static_assert(same([](auto& t, auto n, auto m) { return t.divide(t.multiply(t.multiply(n, m), 8), t.multiply(m, 4)); },
                   [](auto& t, auto n, auto) { return t.multiply(2, n); }));
static_assert(same([](auto& t, auto n, auto) { return t.divide(t.add(t.multiply(n, 4), 3), 2); },
                   [](auto& t, auto n, auto) { return t.add(t.multiply(n, 2), 1); }));
static_assert(same([](auto& t, auto n, auto) { return t.divide(t.multiply(n, 7), 3); },
                   [](auto& t, auto n, auto) { return t.add(t.divide(n, 3), t.multiply(2, n)); }));
static_assert(same([](auto& t, auto n, auto) { return t.modulo(t.add(t.multiply(n, 6), 7), 3); },
                   [](auto&, auto, auto) { return extent(1); }));
static_assert(same([](auto& t, auto n, auto m) { return t.least(n, m); },
                   [](auto& t, auto n, auto m) { return t.least(m, n); }));
static_assert(same([](auto& t, auto n, auto) { return t.greatest(n, t.add(n, 1)); },
                   [](auto& t, auto n, auto) { return t.add(n, 1); }));
static_assert(same([](auto& t, auto n, auto) { return t.subtract(n, n); },
                   [](auto&, auto, auto) { return extent(0); }));
static_assert(!same([](auto& t, auto n, auto m) { return t.divide(n, m); },
                    [](auto& t, auto n, auto m) { return t.divide(m, n); }));

/// What is known of a relation where n and m are 2 and more.
template <class F>
constexpr vv::truth known(vv::relation is, F f) {
  size_table t;
  vv::size_range const ranges[] = {{2, vv::size_range::unlimited}, {2, vv::size_range::unlimited}};
  auto const [a, b] = f(t, t.symbol(0), t.symbol(1));
  return t.decide(is, a, b, ranges);
}
struct pair {
  extent a, b;
};
static_assert(known(vv::relation::equal, [](auto& t, auto n, auto) { return pair{t.multiply(n, 3), 0}; }) ==
              vv::truth::no);
static_assert(known(vv::relation::equal, [](auto&, auto n, auto) { return pair{n, 1}; }) == vv::truth::no);
static_assert(known(vv::relation::equal, [](auto&, auto n, auto m) { return pair{n, m}; }) == vv::truth::unknown);
static_assert(known(vv::relation::equal, [](auto&, auto n, auto) { return pair{n, n}; }) == vv::truth::yes);
static_assert(known(vv::relation::less, [](auto& t, auto n, auto) { return pair{n, t.add(n, 1)}; }) == vv::truth::yes);
static_assert(known(vv::relation::less_equal, [](auto& t, auto n, auto m) { return pair{4, t.multiply(n, m)}; }) ==
              vv::truth::yes);
static_assert(known(vv::relation::less, [](auto& t, auto n, auto) { return pair{t.modulo(n, 3), 3}; }) ==
              vv::truth::yes);
static_assert(known(vv::relation::unequal, [](auto& t, auto n, auto) { return pair{t.divide(n, 2), 0}; }) ==
              vv::truth::yes);

constexpr bool evaluates() {
  size_table t;
  extent const n = t.symbol(0), m = t.symbol(1);
  vv::index_t const at[] = {7, 3};
  vv::size_guard const fits{vv::relation::less, m, t.divide(n, 2)};
  return t.view().evaluate(t.divide(t.add(n, m), 4), at) == 2 &&
         t.view().evaluate(t.modulo(t.subtract(m, n), 5), at) == 1 && t.view().evaluate(t.least(n, m), at) == 3 &&
         t.view().evaluate(t.greatest(n, m), at) == 7 && !t.view().holds(fits, at);
}
static_assert(evaluates());
