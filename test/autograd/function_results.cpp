// SPDX-License-Identifier: BSL-1.0
// Results of custom functions: views, temporaries, and what their backward may do.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor leaf_of(tensor const& t) {
  tensor const x = vv::clone(t.detach());
  x.requires_grad_();
  return x;
}
tensor matrix() { return from({1, 2, 3, 4}, {2, 2}, dtype::float64); }
tensor number(double v) { return from({v}, {}, dtype::float64); }

/// Three times the argument, of which `View` shows something.
template <class View>
struct triple : vv::function<triple<View>> {
  static auto forward(tensor const& x) { return View::forward(x * 3.0); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto const&... g) { return View::backward(g...) * 3.0; }
};
struct reshaped {
  static tensor forward(tensor const& t) { return vv::reshape(t, dims{4}); }
  static tensor backward(tensor const& g) { return vv::reshape(g, dims{2, 2}); }
};
struct transposed {
  static tensor forward(tensor const& t) { return vv::transpose(t, vv::axis<0>, vv::axis<1>); }
  static tensor backward(tensor const& g) { return vv::transpose(g, vv::axis<0>, vv::axis<1>); }
};
struct one_row {
  static tensor forward(tensor const& t) { return vv::select(t, 0, 0); }
  static tensor backward(tensor const& g) { return vv::stack(std::vector<tensor>{g, g * 0.0}, 0); }
};
struct one_element {
  static tensor forward(tensor const& t) { return vv::reshape(vv::select(vv::select(t, 0, 0), 0, 1), dims{1}); }
  static tensor backward(tensor const& g) {
    tensor const zero = g * 0.0;
    return vv::reshape(vv::cat(std::vector<tensor>{zero, g, zero, zero}, 0), dims{2, 2});
  }
};
struct two_rows {
  static std::tuple<tensor, tensor> forward(tensor const& t) { return {vv::select(t, 0, 0), vv::select(t, 0, 1)}; }
  static tensor backward(tensor const& g, tensor const& h) { return vv::stack(std::vector<tensor>{g, h}, 0); }
};

/// x³, whose backward may be differentiated once only: what its text is, is not what it means.
struct cube : vv::function<cube> {
  static constexpr bool once_differentiable = true;
  static constexpr auto forward(auto const& x) { return x * x * x; }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in)).save_for_forward(std::get<0>(in));
  }
  static constexpr auto backward(auto& ctx, auto const& g) {
    auto [x] = ctx.saved();
    return g * 3.0 * x * x;
  }
  static constexpr auto jvp(auto& ctx, auto const& t) {
    auto [x] = ctx.saved_for_forward();
    return t * 3.0 * x * x;
  }
  static constexpr bool generate_vmap_rule = true;
};
constexpr auto cubed = [](auto const& x) { return cube::apply(x); };
} // namespace

TEST_CASE("a result of a custom function that shows a temporary is written into with its gradient",
          "[autograd][function]") {
  auto const check = [](auto const& f, std::vector<double> const& right) {
    auto const written = [&](tensor const& x) {
      tensor const y = f(x);
      vv::mul_(y, 10.0);
      return vv::sum(y);
    };
    auto const through_view = [&](tensor const& x) {
      tensor const y = f(x);
      vv::mul_(vv::slice(y, 0, 0, y.size(0)), 10.0);
      return vv::sum(y);
    };
    tensor const x = leaf_of(matrix());
    written(x).backward();
    CHECK(elements(x.grad()) == right);
    CHECK(elements(vv::grad(written)(matrix())) == right);
    tensor const z = leaf_of(matrix());
    through_view(z).backward();
    CHECK(elements(z.grad()) == right);
    CHECK(elements(vv::grad(through_view)(matrix())) == right);
  };
  check([](tensor const& x) { return triple<reshaped>::apply(x); }, doubles({30, 30, 30, 30}));
  check([](tensor const& x) { return triple<transposed>::apply(x); }, doubles({30, 30, 30, 30}));
  check([](tensor const& x) { return triple<one_row>::apply(x); }, doubles({30, 30, 0, 0}));
  check([](tensor const& x) { return triple<one_element>::apply(x); }, doubles({0, 30, 0, 0}));

  tensor const x = leaf_of(matrix()), row = leaf_of(from({5, 6}, {2}, dtype::float64));
  tensor const y = triple<one_row>::apply(x);
  vv::copy_(y, row);
  vv::sum(y * y).backward();
  CHECK(elements(row.grad()) == doubles({10, 12}));

  auto const [a, b] = triple<two_rows>::apply(x); // one memory: what is written into one shows in none that knows
  auto const refused = ContainsText("mul_: a view that a custom function returned is written into; clone it");
  std::uint32_t const version = a.version();
  CHECK_THROWS_WITH(vv::mul_(a, 10.0), refused);
  CHECK_THROWS_WITH(vv::mul_(vv::slice(b, 0, 0, 1), 10.0), refused);
  CHECK(a.version() == version);
  CHECK(elements(a) == doubles({3, 6}));
  (vv::sum(a) + vv::sum(b) * 2.0).backward();
  CHECK(elements(x.grad()) == doubles({3, 3, 6, 6}));
}

TEST_CASE("a backward that is once_differentiable is differentiated by nobody", "[autograd][function]") {
  auto const refused = ContainsText("once_differentiable: its backward cannot be differentiated");
  tensor const two = number(2);
  CHECK(vv::grad(cubed)(two).item<double>() == 12);
  CHECK(vv::grad(cubed)(2.0) == 12);
  CHECK(elements(vv::vmap(vv::grad(cubed))(vv::reshape(two, dims{1}))) == doubles({12}));
  CHECK(vv::jvp(cubed, std::tuple(two), std::tuple(number(1))).second.item<double>() == 12);
  CHECK(vv::functionalize([](tensor const& x) { return vv::grad(cubed)(x); })(two).item<double>() == 12);
  CHECK_THROWS_WITH(vv::grad(vv::grad(cubed))(two), refused);
  CHECK_THROWS_WITH(vv::jvp(vv::grad(cubed), std::tuple(two), std::tuple(number(1))), refused);
  CHECK_THROWS_WITH(vv::jacrev(vv::grad(cubed))(two), refused);
  CHECK_THROWS_WITH(vv::hessian(cubed)(two), refused);
  CHECK_THROWS_WITH(
      vv::grad([](tensor const& x) { return vv::sum(vv::vmap(vv::grad(cubed))(x)); })(vv::reshape(two, dims{1})),
      refused);
  tensor const x = leaf_of(two);
  CHECK_THROWS_WITH(vv::grad(cubed)(x).backward(), refused);
  // Where nobody asks for the second derivative, nothing is refused.
  CHECK(vv::grad([](tensor const& v) { return v * vv::grad(cubed)(v).detach(); })(two).item<double>() == 12);
  CHECK(vv::this_thread_state.quiet());
}

namespace {
/// 3x in two results that lie in one memory: elements 0 and 1, and 1 and 2.
struct overlapping_parts : vv::function<overlapping_parts> {
  static auto forward(auto x) {
    auto const t = x * 3.0;
    return std::tuple(vv::slice(t, 0, 0, 2), vv::slice(t, 0, 1, 3));
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g, auto h) {
    return vv::cat(std::vector<tensor>{vv::slice(g, 0, 0, 1), vv::slice(g, 0, 1, 2) + vv::slice(h, 0, 0, 1),
                                       vv::slice(h, 0, 1, 2)},
                   0) *
           3.0;
  }
  static auto jvp(auto&, auto t) {
    auto const u = t * 3.0;
    return std::tuple(vv::slice(u, 0, 0, 2), vv::slice(u, 0, 1, 3));
  }
};
} // namespace

TEST_CASE("of two results of a custom function in one memory none may be written where that would not be seen in the "
          "other",
          "[autograd][custom]") { // A8
  tensor const x = vv::ones(dims{3}, dtype::float64);
  auto const reads = [](tensor const& v) {
    auto const [a, b] = overlapping_parts::apply(v);
    return vv::sum(a) + vv::sum(b);
  };
  auto const writes = [](tensor const& v) {
    auto const [a, b] = overlapping_parts::apply(v);
    vv::mul_(a, 10.0);
    return vv::sum(a) + vv::sum(b);
  };
  CHECK(writes(x).item<double>() == 93.0);
  CHECK(vv::compile(writes)(x).item<double>() == 93.0);
  CHECK(elements(vv::grad(reads)(x)) == doubles({3, 6, 3}));
  CHECK(elements(vv::grad(vv::functionalize(reads))(x)) == doubles({3, 6, 3}));
  CHECK_THROWS_AS(vv::grad(writes)(x), vv::autograd_error);
  CHECK_THROWS_AS(vv::jvp(writes, std::tuple(x), std::tuple(x)), vv::autograd_error);
  CHECK_THROWS_AS(vv::compile(vv::grad(writes))(x), vv::autograd_error);
  CHECK_THROWS_AS(vv::functionalize(writes)(x), vv::transform_error);
  CHECK_THROWS_AS(vv::grad(vv::functionalize(writes))(x), vv::transform_error);
}

namespace {
struct writes_and_forgets : vv::function<writes_and_forgets> {
  static auto forward(tensor a) {
    vv::mul_(a, 2.0);
    return a * 1.0;
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_dirty<0>(); }
  static auto backward(auto&, auto g) { return g * 2.0; }
};
} // namespace

TEST_CASE("what a refused custom function wrote stays written, and who needs it is told", "[autograd][error]") { // D
  tensor const x = leaf_of(number(3)), y = x * 1.0, square = y * y;
  CHECK_THROWS_AS(writes_and_forgets::apply(y), vv::autograd_error);
  CHECK(y.item<double>() == 6);
  CHECK(y.version() == 1);
  CHECK_THROWS_AS(square.backward(), vv::autograd_error); // y was needed as it was
  CHECK_THROWS_AS(writes_and_forgets::apply(x), vv::autograd_error);
  CHECK(x.item<double>() == 6); // a leaf is refused when forward has run, as in PyTorch
  CHECK(x.version() == 1);
  CHECK(vv::this_thread_state.quiet());
}
