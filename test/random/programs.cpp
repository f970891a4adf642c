// SPDX-License-Identifier: BSL-1.0
// Random programs in random stacks of transforms: all that run must agree. `sh .ci/fuzz` runs others, and longer.
#include "print.hpp"
#include "shrink.hpp"

#include <varve_test.hpp>

using namespace random_programs;

namespace {
/// As many as take a few seconds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t programs = 100;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t programs = 100;
#else
constexpr std::uint64_t programs = 500;
#endif
#else
constexpr std::uint64_t programs = 500;
#endif
} // namespace

TEST_CASE("random programs agree in every stack of transforms", "[random]") {
  tally t;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    program p = make_program(seed);
    difference d = check_program(p, seed, t);
    CHECK_FALSE(d);
    if (!d) continue;
    std::string what = d.what;
    failing const fails = [&](program const& q, stack const& s) { return check_stack(q, s).what; };
    if (!fails(p, d.ways).empty()) {
      shrink(p, d.ways, fails);
      what = fails(p, d.ways);
    }
    FAIL("seed " << seed << ": " << name(d.ways) << ": " << what << "\n" << as_cpp(p, d.ways));
  }
  CHECK(t.comparisons > 2 * t.refused); // most of what is asked for runs
}

TEST_CASE("random programs: a difference is found and shrunk", "[random]") {
  // A way that forgets the derivative of what lies behind a custom function, as a graph of its text would.
  static way const of_text{
      'G', "grad of the text", "return {vv::grad(scalar(f, v))(v[0])};",
      [](function const& f, values const& v) -> values { return {vv::grad(ways::scalar(f, v))(v[0]) * 0.5}; }};
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 200 && found < 6; ++seed) {
    program p = make_program(seed);
    stack s{first_way('I'), &of_text, first_way('I')};
    failing const fails = [&](program const& q, stack const& w) { return check_stack(q, w).what; };
    if (fails(p, s).empty()) continue;
    ++found;
    shrink(p, s, fails);
    CHECK(s.size() == 1);
    CHECK(p.body.code.size() <= 2);
    CHECK(as_cpp(p, s).find("function f1") != std::string::npos);
  }
  CHECK(found == 6);
}
