// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/dispatch/boxed_function.hpp>
#include <varve/varve.hpp>

#include <memory>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
vv::boxed_args twice(vv::boxed_args const& x) { return vv::boxed_args(tensor(x[0] + x[0])); }
static_assert(std::is_convertible_v<decltype(&twice), vv::boxed_function>);
static_assert(!std::is_convertible_v<int, vv::boxed_function>);
static_assert(!std::is_convertible_v<tensor (*)(int), vv::boxed_function>);
static_assert(std::is_nothrow_move_constructible_v<vv::boxed_function>);
} // namespace

TEST_CASE("boxed_function: anything of the signature converts, copies share it, the last one ends it",
          "[dispatch][boxed_function]") {
  tensor const x = from({3}, {1});
  CHECK_FALSE(vv::boxed_function());
  vv::boxed_function f = twice;
  CHECK(elements(f(vv::boxed_args(x))[0]) == std::vector<double>{6});
  auto const alive = std::make_shared<int>(0);
  {
    f = [alive, n = 0](vv::boxed_args const& a) mutable { return ++n, *alive = n, a; };
    CHECK(alive.use_count() == 2);
    vv::boxed_function g = f, h;
    h = g;
    vv::boxed_function const& itself = g;
    g = itself;
    CHECK(alive.use_count() == 2);
    (void)f(vv::boxed_args(x));
    (void)h(vv::boxed_args(x));
    CHECK(*alive == 2); // one state
    f = std::move(h);
    CHECK_FALSE(h); // NOLINT: moved from
  }
  CHECK(f);
  CHECK(alive.use_count() == 2);
  f = {};
  CHECK(alive.use_count() == 1);
}
