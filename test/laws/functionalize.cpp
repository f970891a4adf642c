// SPDX-License-Identifier: BSL-1.0
#include "law.hpp"

#include <varve/functional/functionalize.hpp>
#include <varve/op/in_place.hpp>
#include <varve/op/sum.hpp>

#include <varve_test.hpp>

using namespace law;

namespace {
/// The operator on copies of its operands, its result squared in place: where that is a view, an operand is written
/// into.
values written(row const& r, values const& x) {
  values all;
  for (auto const& t : x) all.push_back(vv::clone(t));
  tensor const y = r(all), before = vv::clone(y);
  if (y.dtype() != dtype::bool_) vv::mul_(y, y);
  all.push_back(y), all.push_back(before);
  return all;
}
std::string run(values& to, auto const& f) {
  try {
    to = f();
    return "";
  } catch (vv::error const& e) { return e.what(); }
}
} // namespace

TEST_CASE("all operators: functionalize is the identity", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    INFO(describe(r, s));
    values const x = make(r, s, seed);
    CHECK(difference(vv::functionalize([&](values const& v) { return r(v); })(x), r(x)) == "");
    values want, got;
    auto const refused = run(want, [&] { return written(r, x); });
    CHECK(run(got, [&] { return vv::functionalize([&](values const& v) { return written(r, v); })(x); }) == refused);
    REQUIRE(got.size() == want.size());
    for (std::size_t k = 0; k < want.size(); ++k) CHECK(difference(got[k], want[k]) == "");
  });
  CHECK(vv::this_thread_state.quiet());
}
