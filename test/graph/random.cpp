// SPDX-License-Identifier: BSL-1.0
#include "sample.hpp"

#include <varve_test.hpp>

namespace sample { // its operators hide varve's of the same names

namespace {
/// A random graph over a few shapes that broadcast against each other.
template <unsigned Seed>
struct random_program {
  constexpr graph operator()() const {
    writer w(Seed % 3 ? dtype::float32 : dtype::float64);
    unsigned state = Seed * 2654435761u + 12345u;
    auto pick = [&](int n) {
      state = state * 1664525u + 1013904223u;
      return static_cast<int>((state >> 10) % static_cast<unsigned>(n));
    };
    index_t const a = 1 + pick(7), b = 2 + pick(20);
    std::vector<int> v{w.argument(dims(a, b)), w.argument(dims(b)), w.argument(dims(a, 1)), w.argument(dims(a, b))};
    v.push_back(w.number(0.5));
    if (Seed % 2) v.push_back(w.table(dims(b)));
    auto any = [&] { return v[static_cast<std::size_t>(pick(static_cast<int>(v.size())))]; };
    for (int k = 0; k < 14; ++k) {
      int const x = any(), y = any();
      dims const s = w.sizes(x);
      int const last = s.n - 1;
      switch (pick(12)) {
      case 0:
        v.push_back(w.apply(add, x, y));
        break;
      case 1:
        v.push_back(w.apply(mul, x, y));
        break;
      case 2:
        v.push_back(w.apply(sub, x, y));
        break;
      case 3:
        v.push_back(w.apply(tanh_, x));
        break;
      case 4:
        v.push_back(w.choose(w.apply(gt, x, y), x, y));
        break;
      case 5:
        if (s.n == 2) {
          bool const adds = pick(3) != 0; // one at a time: the order of arguments is the compiler's
          v.push_back(w.reduce(adds ? sum : amax, x, dims(pick(2)), true));
        }
        break;
      case 6:
        if (s.n == 2) v.push_back(w.reduce(sum, x, dims(0)));
        else if (s.n == 1) v.push_back(w.reduce(sum, x, dims(0)));
        break;
      case 7: // shift along the last axis and back
        if (s.n > 0 && s[last] > 2) v.push_back(w.unsliced(w.sliced(x, last, 1, s[last]), s, last, 0, s[last] - 1));
        break;
      case 8:
        if (s.n > 0 && s[last] > 1)
          v.push_back(
              w.joined({w.sliced(x, last, 1, s[last]), w.sliced(x, last, 0, 1)}, last)); // braces keep the order
        break;
      case 9:
        v.push_back(w.shaped(expand, x, broadcast(s, dims(a, b))));
        break;
      case 10:
        if (s.n == 2 && w.sizes(y).n == 2) {
          dims const sy = w.sizes(y);
          int const tenth = w.number(0.1), wide = w.shaped(expand, tenth, sy), scaled = w.apply(mul, y, wide);
          int const p = w.product(x, scaled, true, false); // [., a] [a, .]
          if (w.sizes(p) == dims(b, b)) v.push_back(w.product(v[0], p));
        }
        break;
      default:
        if (s.n == 2) v.push_back(w.permuted(w.permuted(w.apply(neg, x), dims(1, 0)), dims(1, 0)));
      }
    }
    int const p = any(), q = any();
    return w.done({v.back(), v[v.size() - 2], p, q});
  }
};
template <unsigned... Seed>
void agree(std::integer_sequence<unsigned, Seed...>) {
  auto one = [](unsigned seed, double d) {
    INFO("seed " << seed);
    CHECK(d < 1e-4);
  };
  (one(Seed, difference<random_program<Seed>>()), ...);
}
} // namespace

TEST_CASE("random: fused random graphs agree with the evaluator", "[graph][fuse]") {
  agree(std::make_integer_sequence<unsigned, 24>{});
}

} // namespace sample
