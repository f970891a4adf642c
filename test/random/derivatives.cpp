// SPDX-License-Identifier: BSL-1.0
// Sparse derivatives and implicit functions of random programs against dense derivatives and unrolled iterations.
// `sh .ci/fuzz --derivatives` checks others, and longer.
#include "derivatives.hpp"

#include "print.hpp"
#include "shrink.hpp"

#include <varve_test.hpp>

using namespace random_programs;

namespace {
/// As many as take a few seconds.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int programs = 40;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int programs = 40;
#else
constexpr int programs = 150;
#endif
#else
constexpr int programs = 150;
#endif
} // namespace

TEST_CASE("random programs: sparse and implicit derivatives are those of dense ones and of iterations",
          "[random][sparse][implicit]") {
  law_tally t;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    program p = make_program(seed);
    std::string what = check_derivatives(p, t);
    CHECK(what == "");
    if (what.empty()) continue;
    stack none;
    failing const fails = [](program const& q, stack const&) {
      law_tally other;
      return check_derivatives(q, other);
    };
    shrink(p, none, fails);
    FAIL("seed " << seed << ": " << fails(p, none) << "\n" << as_cpp(p, none));
  }
  for (auto const& [why, n] : t.all.refusals) UNSCOPED_INFO(n << " " << why);
  UNSCOPED_INFO(t.jacobians << " Jacobians, " << t.hessians << " Hessians, " << t.solutions << " solutions, "
                            << t.second << " second derivatives of them; " << t.entries << " entries, " << t.zeros
                            << " zeros");
  CHECK(t.jacobians > programs * 0.3); // what is left out is bounded: a third of the programs, at least, obey every law
  CHECK(t.hessians > programs * 0.3);
  CHECK(t.solutions > programs * 0.3);
  CHECK(t.second > programs * 0.05);
  CHECK(t.zeros > t.entries); // patterns are not full
}

TEST_CASE("random programs: laws of derivatives that do not hold are found", "[random][sparse][implicit]") {
  tensor const x{0.5, -1.0, 0.25};
  tensor const dense = vv::jacfwd([](tensor const& v) { return v * vv::flip(v, 0); })(x);
  CHECK(laws::uncovered(vv::sparsity_pattern::banded(3, 3, 0, 0), dense).find("lacks the entry (0, 2)") !=
        std::string::npos);
  CHECK(laws::against(laws::dense_matrix(dense, dense), dense * 1.001, 1e-8, "") != "");
  laws::line const solution = [](tensor const& d) {
    return vv::implicit::fixed_point([](tensor const& v, tensor const& e) { return vv::tanh(v + e) * 0.25; })(d, d);
  };
  auto const iterated = [&](double factor) -> laws::line {
    return [=, end = solution(x)](tensor const& d) {
      tensor y = end;
      for (int k = 0; k < 40; ++k) y = vv::tanh(y + d) * factor;
      return y;
    };
  };
  law_tally t;
  CHECK(laws::of_solution(solution, iterated(0.25), x, 1e-8, {true, true}, t) == "");
  CHECK(laws::of_solution(solution, iterated(0.25), x, 1e-8, {false, false}, t) == "");
  CHECK(laws::of_solution(solution, iterated(0.2), x, 1e-8, {true, true}, t).find("is off by") != std::string::npos);
}
