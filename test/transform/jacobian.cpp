// SPDX-License-Identifier: BSL-1.0
// Jacobians: of any number of elements, in chunks, and beside other arguments.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
bool agree(tensor const& a, tensor const& b) { return difference(a, b, 1e-12).empty(); }
} // namespace

TEST_CASE("jacobians: of another number of elements than the argument", "[transform][jacobian][TR-S27]") {
  tensor const x = counted({2, 4});
  auto const f = [](auto const& v) { return vv::unsqueeze(vv::slice(vv::select(v, 0, 0), 0, 1, 4), 1); };
  std::vector<double> unit(24, 0);
  for (int k = 0; k < 3; ++k) unit[static_cast<std::size_t>(k * 8 + k + 1)] = 1;
  for (tensor const& j : {tensor(vv::jacrev(f)(x)), tensor(vv::jacfwd(f)(x))}) {
    CHECK(j.sizes() == dims{3, 1, 2, 4});
    CHECK(elements(j) == unit);
  }
}

TEST_CASE("jacobians: of what does not depend on the argument are zeros", "[transform][jacobian][TR-S31]") {
  tensor const x = counted({2, 3}), y = counted({2, 3}) + 1.0;
  auto const constant = [&](auto const&) { return y; };
  auto const second = [&](auto const&, auto const& v) { return v; };
  for (tensor const& j : {tensor(vv::jacrev(constant)(x)), tensor(vv::jacfwd(constant)(x)),
                          tensor(vv::jacrev(second)(x, y)), tensor(vv::jacfwd(second)(x, y))})
    CHECK(agree(j, vv::zeros({2, 3, 2, 3}, dtype::float64)));
  auto const first = [&](auto const& u, auto const&) { return u; };
  tensor const unit = vv::reshape(vv::eye(6, dtype::float64), dims{2, 3, 2, 3});
  CHECK(agree(vv::jacrev(first)(x, y), unit));
  CHECK(agree(vv::jacfwd(first)(x, y), unit));
}

TEST_CASE("jacobians: in chunks", "[transform][jacobian][TR-S32]") {
  tensor const x = counted({2, 3}) / 7.0;
  auto const f = [](auto const& v) { return vv::sin(v) * vv::sum(v); };
  for (index_t n : {1, 2, 3, 4, 7, 10, 1000})
    CHECK(difference(vv::jacrev(f, vv::chunk_size{n})(x), vv::jacrev(f)(x), 1e-14) == "");
  for (index_t n : {0, -2}) CHECK_THROWS_WITH(vv::chunk_size{n}, ContainsText("chunk"));
}

namespace {
struct counts_backwards : vv::function<counts_backwards> { // a backward that vmap refuses
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return x * 1.0; }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, auto g) {
    auto const places = vv::nonzero(g); // of a unit vector
    CHECK(places.sizes()[0] == 1);
    return g;
  }
};
} // namespace

TEST_CASE("jacobians: in chunks of one where vmap refuses", "[transform][jacobian][exception][TR-S33]") {
  tensor const x = counted({3});
  auto const f = [](tensor const& v) { return tensor(counts_backwards::apply(v)); };
  CHECK(agree(vv::jacrev(f, vv::chunk_size{1})(x), vv::eye(3, dtype::float64)));
  CHECK_THROWS_WITH(vv::jacrev(f, vv::chunk_size{2})(x), ContainsText("vmap"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("jacobians: beside an argument that is a plain number", "[transform][jacobian][TR-S35]") {
  tensor const x = counted({3, 3}), unit = vv::reshape(vv::eye(9, dtype::float64), dims{3, 3, 3, 3});
  auto const f = [](auto const& v, int k) { return v + k; };
  CHECK(agree(vv::jacrev(f)(x, 3), unit));
  CHECK(agree(vv::jacfwd(f)(x, 3), unit));
}

TEST_CASE("jacobians: of a function that draws numbers", "[transform][jacobian][random][TR-S21]") {
  tensor const x = counted({3});
  auto const f = [](tensor const& v) { return v + vv::randn({3}, dtype::float64); };
  CHECK_THROWS_WITH(vv::jacfwd(f)(x), ContainsText("randomness"));
  CHECK(agree(vv::jacfwd(f, vv::randomness::same)(x), vv::eye(3, dtype::float64)));
  CHECK(agree(vv::jacfwd(f, vv::randomness::different)(x), vv::eye(3, dtype::float64)));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("jacrev and hessian run a function of tensors once", "[transform][jacrev]") {
  tensor const x = vector_of({1, 2, 3});
  int calls = 0;
  auto const counted = [&](tensor const& a) {
    ++calls;
    return a * a;
  };
  CHECK(elements(vv::jacrev(counted)(x)) == doubles({2, 0, 0, 0, 4, 0, 0, 0, 6}));
  CHECK(calls == 1);
  auto const summed = [&](tensor const& a) { return vv::sum(counted(a) * a); };
  calls = 0;
  CHECK(elements(vv::hessian(summed)(x)) == doubles({6, 0, 0, 0, 12, 0, 0, 0, 18}));
  CHECK(calls == 1);
  CHECK(elements(vv::jacrev(vv::jacrev(summed))(x)) == doubles({6, 0, 0, 0, 12, 0, 0, 0, 18}));

  tensor const b = vector_of({10, 20, 30}); // what it writes is written once
  auto const writes = [](tensor const& a, tensor const& w) {
    vv::mul_(w, 2.0);
    return a * w;
  };
  CHECK(elements(vv::jacrev(writes)(x, b)) == doubles({20, 0, 0, 0, 40, 0, 0, 0, 60}));
  CHECK(elements(b) == doubles({20, 40, 60}));
  CHECK(elements(vv::jacrev([](tensor const&) { return vv::ones({2}); })(x)) == doubles({0, 0, 0, 0, 0, 0}));
}

namespace {
constexpr auto two_of_three = [](auto const& a, auto const& b) {
  return vv::stack(std::tuple(a[0] * a[2] + b[0], vv::sin(a[1]) * b[0]), vv::axis<0>);
};
/// Tells in which mode it was called: that of the tangents has levels of `jvp`.
struct told {
  int* reverse;
  tensor operator()(tensor const& x) const {
    for (vv::layer const* l = vv::this_thread_state.transforms.top; l; l = l->below)
      *reverse += l->kind->role == vv::layer_role::grad;
    return vv::reshape(vv::sum(x * x), {1});
  }
};
} // namespace

TEST_CASE("jacobian: by the mode of fewer passes", "[jacobian]") {
  constexpr vv::array<double, 3> a{1, 2, 3};
  constexpr vv::array<double, 1> b{5};
  constexpr auto j = vv::jacobian<0, 1>(two_of_three)(a, b);
  static_assert(std::is_same_v<decltype(j), std::tuple<vv::array<double, 2, 3>, vv::array<double, 2, 1>> const>);
  STATIC_REQUIRE(std::get<0>(j)(0, 2) == 1);
  STATIC_REQUIRE(std::get<1>(j)(0, 0) == 1);
  auto const [by_a, by_b] = vv::jacobian<0, 1>(two_of_three)(tensor(a), tensor(b));
  CHECK(vv::allclose(by_a, tensor(std::get<0>(j))));
  CHECK(vv::allclose(by_b, tensor(std::get<1>(j))));
  CHECK(vv::allclose(vv::jacobian(two_of_three)(tensor(a), tensor(b)), by_a));
  tensor const rows = vv::stack(std::vector<tensor>{tensor(a), tensor(a) * 2.0}, 0);
  auto const f = [](tensor const& r) -> tensor { return two_of_three(r, r); };
  CHECK(vv::allclose(vv::vmap(vv::jacobian(f))(rows), vv::vmap(vv::jacrev(f))(rows)));
  int reverse = 0;
  (void)vv::jacobian(told{&reverse})(tensor({1.0, 2.0, 3.0}));
  CHECK(reverse == 1);
  (void)vv::jacobian(told{&reverse})(tensor(std::vector<double>{2.0}));
  CHECK(reverse == 1); // forward: one pass either way
}
