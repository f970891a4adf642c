// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/dispatch/thread_snapshot.hpp>
#include <varve/mode/default_dtype_mode.hpp>
#include <varve/mode/deterministic_mode.hpp>
#include <varve/mode/schema_check_mode.hpp>
#include <varve/varve.hpp>

#include <limits>
#include <thread>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// An operator of a library with a schema, true or false, and a kernel.
struct declared {
  vv::library lib{"claims"};
  template <class F>
  declared(char const* schema, F kernel) {
    lib.def(schema);
    std::string const name(schema);
    lib.impl(name.substr(0, name.find('(')), vv::dispatch_key::cpu, kernel);
  }
};
template <class... X>
std::string complaint(char const* schema, tensor (*kernel)(tensor const&, tensor const&), X const&... x) {
  declared const d(schema, [kernel](tensor const& a, tensor const& b) -> tensor { return kernel(a, b); });
  vv::schema_check_mode check;
  vv::mode_guard const on{check};
  try {
    (void)vv::ops::call("claims::op", x...);
  } catch (vv::schema_error const& e) { return e.what(); }
  return "";
}
void scribble(tensor const& a) { static_cast<double*>(a.raw())[0] += 1; }
} // namespace

TEST_CASE("schema: false declarations are found, by operator and argument", "[mode][schema]") {
  tensor const x = from({1, 2, 3}, {3}), y = from({4, 5, 6}, {3});
  using T = tensor const&;
  // mutation
  CHECK_THAT(complaint(
                 "op(Tensor self, Tensor other) -> Tensor",
                 [](T a, T) {
                   scribble(a);
                   return vv::clone(a) + 0;
                 },
                 x, y),
             ContainsText("claims::op") && ContainsText("argument self is not declared mutated but was"));
  CHECK_THAT(complaint(
                 "op(Tensor self, Tensor other) -> Tensor",
                 [](T a, T b) {
                   b.bump_version();
                   return a + b;
                 },
                 x, y),
             ContainsText("argument other") && ContainsText("version counter was raised"));
  CHECK_THAT(complaint(
                 "op(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                 [](T a, T) {
                   scribble(a);
                   return tensor(a);
                 },
                 x, y),
             ContainsText("was mutated, but its version counter was not raised"));
  CHECK(complaint(
            "op(Tensor(a!) self, Tensor other) -> Tensor(a!)", [](T a, T b) { return vv::add_(a, b); }, x, y) == "");
  CHECK(complaint(
            "op(Tensor(a!) self, Tensor other) -> Tensor(a!)", [](T a, T) { return tensor(a); }, x, y) ==
        ""); // may be mutated, need not
  CHECK(complaint(
            "op(Tensor(a!) self, Tensor other) -> Tensor(a!)", [](T a, T b) { return vv::add_(a, b); }, x, x) ==
        ""); // the same memory twice
  // aliasing
  CHECK_THAT(complaint(
                 "op(Tensor self, Tensor other) -> Tensor", [](T a, T) { return vv::reshape(a, dims{3, 1}); }, x, y),
             ContainsText("argument self is not declared to alias the result, but shares its storage"));
  CHECK_THAT(complaint(
                 "op(Tensor(a) self, Tensor other) -> Tensor(a)", [](T, T b) { return tensor(b); }, x, y),
             ContainsText("argument other is not declared to alias"));
  CHECK_THAT(complaint(
                 "op(Tensor(a) self, Tensor other) -> Tensor(a)", [](T a, T b) { return a + b; }, x, y),
             ContainsText("declared to alias argument self, but shares no storage"));
  CHECK_THAT(complaint(
                 "op(Tensor(a!) self, Tensor other) -> Tensor(a!)", [](T a, T b) { return a + b; }, x, y),
             ContainsText("declared to be argument self"));
  CHECK(complaint(
            "op(Tensor(a) self, Tensor other) -> Tensor(a)", [](T a, T) { return vv::reshape(a, dims{3, 1}); }, x, y) ==
        "");
  CHECK(complaint("op(Tensor self, Tensor other) -> Tensor", [](T a, T b) { return a * b; }, x, y) == "");
}

TEST_CASE("schema: after a complaint, under transforms, and for static values, it goes on",
          "[mode][schema][exception]") {
  vv::schema_check_mode check;
  tensor const x = from({1, 2, 3}, {3});
  CHECK_THROWS_AS(vv::with(check, [](auto const& v) { return v + vv::ones({2}); }, x), vv::shape_error);
  CHECK(vv::this_thread_state.quiet());
  CHECK(elements(vv::with(check, vv::vmap(vv::grad([](auto const& v) { return v * v; })), x)) ==
        std::vector<double>{2, 4, 6});
  CHECK(vv::with(check, [](auto v) { return v * v; }, 3.0) == 9);
  {
    vv::mode_guard const on{check};
    CHECK(elements(vv::cond(
              vv::gt(vv::sum(x), 0), [](auto const& v) { return v * 2; }, [](auto const& v) { return v; }, x)) ==
          std::vector<double>{2, 4, 6});
  }
}

TEST_CASE("deterministic: uninitialized memory is filled, seeded random numbers pass", "[mode][deterministic]") {
  vv::deterministic_mode m;
  vv::mode_guard const on{m};
  CHECK(std::isnan(element(vv::empty({3}), 2)));
  CHECK(element(vv::empty({2}, dtype::int64), 1) == static_cast<double>(std::numeric_limits<std::int64_t>::max()));
  CHECK(element(vv::empty({2}, dtype::bool_), 1) == 1);
  vv::manual_seed(7);
  tensor const a = vv::randn({4});
  vv::manual_seed(7);
  CHECK(difference(a, vv::randn({4})) == "");
}

TEST_CASE("deterministic: operators that are named are refused, or warned of", "[mode][deterministic]") {
  vv::library lib("chance");
  lib.def("sum(Tensor x) -> Tensor");
  int calls = 0;
  lib.impl("sum", vv::dispatch_key::cpu, [&](tensor const& x) -> tensor { return x + ++calls; });
  tensor const x = from({1, 2}, {2});
  vv::deterministic_mode strict, lenient({true, true, false}), twice({true, false, true});
  strict.alert_not_deterministic("chance::sum");
  lenient.alert_not_deterministic("chance::sum");
  {
    vv::mode_guard const on{strict};
    CHECK_THROWS_WITH(vv::ops::call("chance::sum", x), ContainsText("chance::sum has no deterministic implementation"));
    CHECK_NOTHROW(x + x);
  }
  CHECK(calls == 0);
  {
    vv::mode_guard const on{lenient};
    CHECK_NOTHROW(vv::ops::call("chance::sum", x));
    CHECK(lenient.warnings.size() == 1);
  }
  // found out without being told
  vv::mode_guard const on{twice};
  CHECK_THROWS_WITH(vv::ops::call("chance::sum", x), ContainsText("gave two results"));
  CHECK_NOTHROW(vv::vmap(vv::grad([](auto const& v) { return vv::sum(vv::softmax(v, 0) * v); }))(vv::randn({3, 4})));
  CHECK_NOTHROW(vv::add_(x, x));
  CHECK(elements(x) == std::vector<double>{2, 4});
  CHECK(vv::with(twice, [](auto v) { return v * v; }, 3.0) == 9);
}

TEST_CASE("default dtype: factories that name none follow it, those that do are left", "[mode][dtype]") {
  CHECK(vv::zeros({2}).dtype() == dtype::float32);
  {
    vv::default_dtype_mode const on{dtype::float64};
    for (tensor const& t :
         {vv::zeros({2}), vv::ones({2}), vv::empty({2}), vv::full({2}, 0.5), vv::randn({2}), vv::eye(2)})
      CHECK(t.dtype() == dtype::float64);
    CHECK(vv::zeros({2}, dtype::float32).dtype() == dtype::float32);
    CHECK(vv::full({2}, 1).dtype() == dtype::int64);
    CHECK(vv::arange(3).dtype() == dtype::int64);
    {
      vv::default_dtype_mode const inner{dtype::float32};
      CHECK(vv::ones({1}).dtype() == dtype::float32);
    }
    CHECK(vv::get_default_dtype() == dtype::float64);
    CHECK_THROWS_WITH(vv::default_dtype_mode(dtype::int64), ContainsText("int64"));
    CHECK(vv::vmap([](auto const& v) { return v * vv::ones({2}); })(vv::ones({3, 2})).dtype() == dtype::float64);
    CHECK_THROWS([] {
      vv::default_dtype_mode const gone{dtype::float32};
      throw std::runtime_error("in between");
    }());
    CHECK(vv::get_default_dtype() == dtype::float64);
  }
  CHECK(vv::zeros({2}).dtype() == dtype::float32);
}

TEST_CASE("default dtype: belongs to the thread, and is carried", "[mode][dtype][tls]") {
  vv::default_dtype_mode const on{dtype::float64};
  dtype plain{}, carried{};
  auto task = vv::carry([&] { carried = vv::zeros({1}).dtype(); });
  std::thread([&] {
    plain = vv::zeros({1}).dtype();
    task();
  }).join();
  CHECK(plain == dtype::float32);
  CHECK(carried == dtype::float64);
}
