// SPDX-License-Identifier: BSL-1.0
// Sizes that change from call to call become symbols of one program: static first, dynamic at the first change.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using function = std::function<tensor(tensor const&, tensor const&)>;
tensor numbered(vv::dims const& sizes, double step) {
  tensor const n = vv::reshape(vv::arange(vv::numel(sizes).number()), sizes);
  return vv::sin(vv::to(n, vv::dtype::float64) * step + step);
}
/// The value, the gradients of both arguments, and the arguments afterwards.
std::vector<std::vector<double>> numbers_of(function const& f, vv::dims const& a, vv::dims const& b) {
  tensor const x = numbered(a, 0.7), y = numbered(b, 0.3);
  x.requires_grad_(), y.requires_grad_();
  tensor const u = x * 1.0, v = f(u, y);
  vv::sum(vv::sin(v)).backward();
  auto const gradient = [](tensor const& t) { return t.grad().defined() ? elements(t.grad()) : std::vector<double>{}; };
  return {elements(v.detach()), gradient(x), gradient(y), elements(u.detach())};
}
/// Are calls what they are without, at all sizes? For how many kinds of arguments were programs made?
template <class F>
std::size_t programs_for(F const& f, std::vector<std::pair<vv::dims, vv::dims>> const& sizes) {
  auto const fast = vv::compile(f, vv::backends::aot_eager);
  for (auto const& [a, b] : sizes) {
    INFO(vv::to_string(a) << " " << vv::to_string(b) << "\n" << fast.explain(numbered(a, 1), numbered(b, 1)));
    auto const is = numbers_of(fast, a, b), should = numbers_of(f, a, b);
    for (std::size_t k = 0; k < is.size(); ++k) {
      REQUIRE(is[k].size() == should[k].size());
      for (std::size_t e = 0; e < is[k].size(); ++e) CHECK(is[k][e] == Approx(should[k][e]));
    }
  }
  return fast.versions();
}
std::vector<std::pair<vv::dims, vv::dims>> const rows_change{
    {{5, 3}, {3}}, {{7, 3}, {3}}, {{2, 3}, {3}}, {{9, 3}, {3}}};
} // namespace

TEST_CASE("automatic dynamic: one program for all sizes after the first", "[aot][compile]") {
  CHECK(programs_for([](tensor const& x, tensor const& y) { return vv::tanh(x * y) + x; }, rows_change) == 2);
  CHECK(programs_for([](tensor const& x, tensor const& y) { return vv::mm(x, vv::reshape(y, vv::dims{3, 1})); },
                     rows_change) == 2);
  CHECK(programs_for([](tensor const& x, tensor const& y) { return vv::softmax(x, 0) * y; }, rows_change) == 2);
  CHECK(programs_for([](tensor const& x, tensor const& y) { return vv::cat(std::vector<tensor>{x, x * y}, 0); },
                     rows_change) == 2);
  tensor const w = numbered({3, 4}, 0.2);
  CHECK(programs_for([&](tensor const& x, tensor const& y) { return vv::mm(x * y, w); }, rows_change) == 2);
  CHECK(programs_for([](tensor const& x, tensor const& y) { return vv::add_(vv::mul(x, 1.0), y); }, rows_change) == 2);
  CHECK(programs_for([](tensor const& x, tensor const& y) { return vv::add_(x, y) * y; }, rows_change) == 2);
}

TEST_CASE("automatic dynamic: programs are for sizes for which they are right", "[aot][compile]") {
  // 0 and 1 are other programs; equal sizes are so because they must be, or may be.
  CHECK(programs_for(
            [](tensor const& x, tensor const& y) { return x * y; },
            {{{5}, {5}}, {{6}, {6}}, {{6}, {1}}, {{1}, {6}}, {{8}, {8}}, {{8}, {1}}, {{1}, {8}}, {{0}, {0}}}) >= 4);
  CHECK(programs_for([](tensor const& x, tensor const& y) { return vv::sum(x) * y; },
                     {{{5}, {5}}, {{6}, {6}}, {{7}, {3}}, {{3}, {9}}}) == 2);
  CHECK_THROWS_AS(
      programs_for([](tensor const& x, tensor const& y) { return x * y; }, {{{5}, {5}}, {{6}, {6}}, {{7}, {6}}}),
      vv::shape_error); // as without
  // What takes a size for a number has a program for each, and so has what C++ asks for.
  programs_for([](tensor const& x, tensor const& y) { return vv::mean(x, vv::dims{0}) * y; }, rows_change);
  CHECK(programs_for([](tensor const& x, tensor const& y) { return x.sizes()[0].number() > 6 ? x * y : x + y; },
                     rows_change) == 4);
  // Views that would be made of sizes.
  programs_for([](tensor const& x, tensor const& y) { return vv::reshape(x, vv::dims{-1}) * vv::sum(y); }, rows_change);
  programs_for([](tensor const& x, tensor const&) { return vv::reshape(x, vv::dims{-1}); }, rows_change);
  programs_for([](tensor const& x, tensor const&) { return vv::transpose(x); }, rows_change);
  // A size that divides another in the program, and is 0 in a call.
  programs_for([](tensor const& x, tensor const& y) { return vv::roll(x, 1, 0) * y; },
               {{{5, 3}, {3}}, {{7, 3}, {3}}, {{0, 3}, {3}}, {{9, 3}, {3}}});
  tensor const rows = numbered({5, 3}, 0.2);
  vv::graph const rolled = vv::make_fx([](tensor const& x) { return vv::roll(x, 1, 0); }, vv::tracing::symbolic)(rows);
  CHECK_THROWS_WITH(vv::interpret(rolled, vv::boxed_args(numbered({0, 3}, 0.2))),
                    Catch::Matchers::Contains("divided by 0"));
  // Other layouts are programs of their own.
  auto const fast = vv::compile([](tensor const& x) { return x * 2.0; }, vv::backends::aot_eager);
  for (index_t n : {3, 5, 7}) {
    tensor const x = vv::transpose(numbered({4, n}, 0.3));
    CHECK(elements(fast(x)) == elements(x * 2.0));
    CHECK(elements(fast(vv::contiguous(x))) == elements(x * 2.0));
  }
}

TEST_CASE("automatic dynamic: whom it is for, and what explain says", "[aot][compile]") {
  using Catch::Matchers::Contains;
  int graphs = 0;
  auto const counting = [&](vv::graph const& g) -> vv::boxed_function {
    ++graphs;
    return vv::backends::aot_eager(g);
  };
  auto const f = [](tensor const& x) { return x * 2.0; };
  auto const sized = vv::compile(f, counting); // says nothing of symbols
  vv::aot_options how{.fw_compiler = counting};
  how.automatic_dynamic = true;
  auto const free = vv::aot_function(f, how);
  for (index_t n = 3; n < 9; ++n) (void)sized(numbered({n}, 1));
  CHECK(std::exchange(graphs, 0) == 6);
  CHECK_THAT(free.explain(numbered({3}, 1)), Contains("no program was made yet"));
  (void)free(numbered({3}, 1));
  CHECK_THAT(free.explain(numbered({4}, 1)), Contains("argument 0: size 0 has changed, and will be free if it can be"));
  for (index_t n = 4; n < 9; ++n) (void)free(numbered({n}, 1));
  CHECK(graphs == 2);
  CHECK_THAT(free.explain(numbered({99}, 1)), Contains("argument 0: size 0 may be another one"));
  CHECK_THAT(free.explain(vv::to(numbered({99}, 1), vv::dtype::float32)), Contains("dtype float32, but the program"));
  CHECK_THAT(sized.explain(numbered({99}, 1)), !Contains("free"));
  // A compiler that refuses symbols after all.
  vv::aot_options fused{.fw_compiler = vv::backends::fused};
  fused.automatic_dynamic = true;
  auto const each = vv::aot_function(f, fused);
  for (index_t n = 3; n < 6; ++n) CHECK(elements(each(numbered({n}, 1))) == elements(f(numbered({n}, 1))));
  CHECK(each.versions() == 3);
}
