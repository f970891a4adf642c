// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct passing : vv::dispatch_mode<passing> {
  auto process(auto op, auto const&... args) { return op(args...); }
};
} // namespace

TEST_CASE("escaped values: of grad and jvp they behave like what they hold", "[transform][escape]") {
  tensor const x = from({1, 2, 3}, {3});
  tensor kept;
  auto f = [&](auto const& v) {
    kept = v * 2;
    return vv::sum(v);
  };
  (void)vv::grad(f)(x);
  CHECK(difference(kept + 1, from({3, 5, 7}, {3})) == "");
  CHECK(difference(vv::sum(kept), from({12}, {})) == "");
  (void)vv::jvp(f, std::tuple(x), std::tuple(x));
  CHECK(difference(vv::mul(kept, kept), from({4, 16, 36}, {3})) == "");
  CHECK(elements(vv::grad([&](auto const& v) { return vv::sum(v * kept); })(x)) == std::vector<double>{2, 4, 6});
}

TEST_CASE("escaped values: of an inner transform they keep the outer one", "[transform][escape]") {
  tensor const x = from({1, 2, 3}, {3});
  auto f = [](auto const& v) {
    tensor kept;
    (void)vv::grad([&](auto const& u) {
      kept = u * u; // holds a value that the outer grad tracks
      return vv::sum(u);
    })(v);
    return vv::sum(kept * kept);
  };
  CHECK(elements(vv::grad(f)(x)) == std::vector<double>{4, 32, 108});
  CHECK(element(vv::jvp(f, std::tuple(x), std::tuple(vv::ones_like(x))).second, 0) == 144);
  CHECK(elements(vv::vmap(f)(vv::reshape(x, dims{3, 1}))) == std::vector<double>{1, 16, 81});
}

TEST_CASE("escaped values: they may become leaves, and their memory is there", "[transform][escape][autograd]") {
  tensor constant, computed;
  (void)vv::grad([&](tensor const& v) {
    constant = vv::full({2}, 1.0, vv::dtype::float64);
    computed = v * 2;
    CHECK_THROWS_AS(computed.requires_grad_(), vv::transform_error);
    CHECK_THROWS_AS(constant.data(), vv::transform_error);
    CHECK_THROWS_AS(constant.set_data(v), vv::transform_error);
    return vv::sum(v * constant);
  })(from({3, 4}, {2}));
  for (tensor const& t : {constant, computed}) {
    t.requires_grad_();
    CHECK((t.requires_grad() && t.is_leaf()));
    vv::sum(t * t).backward();
    CHECK(elements(t.grad()) == elements(t.detach() * 2));
    CHECK(difference(t.data(), t.detach()) == "");
  }
  constant.set_data(from({5, 6}, {2}));
  CHECK(elements(constant) == std::vector<double>{5, 6});
  tensor const other = from({0, 0}, {2});
  other.set_data(computed);
  CHECK(elements(other) == std::vector<double>{6, 8});
}

TEST_CASE("escaped values: of vmap they are refused", "[transform][escape]") {
  tensor const x = from({1, 2, 3}, {3});
  tensor kept;
  (void)vv::vmap([&](auto const& v) { return kept = v * 2; })(x);
  CHECK_THROWS_AS(kept + 1, vv::transform_error);
  CHECK_THROWS_WITH(kept + 1, ContainsText("after its vmap had returned"));
  CHECK_THROWS_AS(kept.data<double>(), vv::transform_error);
  CHECK_THROWS_AS(vv::grad([&](auto const& v) { return vv::sum(v * kept); })(x), vv::transform_error);
  // also when a later vmap of the same size stands at the same level
  CHECK_THROWS_AS(vv::vmap([&](auto const& v) { return v + kept; })(x), vv::transform_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("perturbation confusion: does not arise between run-time levels, captures of any shape included",
          "[transform]") {
  tensor const x = from({2}, {}), three = from({3}, {});
  // d/dx (x * d/dy (x + y)) = 1
  auto confusing = [](auto const& v) { return v * vv::grad([&](auto const& y) { return v + y; })(from({1}, {})); };
  CHECK(vv::grad(confusing)(x).template item<double>() == 1);
  CHECK(vv::jvp(confusing, std::tuple(x), std::tuple(vv::ones_like(x))).second.template item<double>() == 1);
  // the same through a mode
  passing m;
  auto through = [&](auto const& v) {
    return vv::with(
        m,
        [&](auto const& u, auto const& w) { return u * vv::grad([&](auto const& y) { return w * y; })(from({1}, {})); },
        v, three);
  };
  CHECK(vv::grad(through)(x).template item<double>() == 3);
  // d/dx (x * d/dy (x y^2) at y = x) = d/dx 2 x^3 = 6 x^2
  auto deep = [](auto const& v) { return v * vv::grad([&](auto const& y) { return v * y * y; })(v); };
  CHECK(vv::grad(deep)(x).template item<double>() == 24);
  CHECK(vv::grad(vv::grad(deep))(x).template item<double>() == 24);
}
