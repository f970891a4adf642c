// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/autograd/gradcheck.hpp>
#include <varve/implicit.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <stdexcept>

namespace vv = varve;
namespace implicit = varve::implicit;
using vv::array;
using vv::tensor;

namespace {
constexpr auto square_root = implicit::root([](auto x, auto a) { return x * x - a; });
template <class T>
struct point {
  T x, y;
};
/// x^2 + y^2 = a, y = b x
constexpr auto on_a_circle = [](auto const& p, auto const& a, auto const& b) {
  return std::tuple(p.x * p.x + p.y * p.y - a, p.y - b * p.x);
};
tensor number(double v) { return tensor::from_number(v); }
} // namespace

TEST_CASE("root: of tensors, by every kind of derivative", "[implicit]") {
  tensor const a{2.0, 3.0, 4.0}, start{1.0, 1.0, 1.0};
  auto const f = [&](tensor const& v) { return square_root(start, v); };
  CHECK(vv::allclose(f(a), vv::sqrt(a)));
  auto const loss = [&](tensor const& v) { return vv::sum(f(v) * f(v) * f(v)); }; // a^1.5
  CHECK(vv::allclose(vv::grad(loss)(a), vv::sqrt(a) * 1.5));
  auto const curvature = vv::grad([&](tensor const& v) { return vv::sum(vv::grad(loss)(v)); })(a);
  CHECK(vv::allclose(curvature, vv::reciprocal(vv::sqrt(a)) * 0.75));
  tensor const d{1.0, -2.0, 0.5};
  CHECK(vv::allclose(vv::jvp(f, std::tuple(a), std::tuple(d)).second, d * 0.5 / vv::sqrt(a)));
  CHECK(vv::allclose(vv::jvp(vv::grad(loss), std::tuple(a), std::tuple(d)).second, d * 0.75 / vv::sqrt(a)));
  tensor const leaf = a.clone().requires_grad_();
  loss(leaf).backward();
  CHECK(vv::allclose(leaf.grad(), vv::sqrt(a) * 1.5));
  CHECK(vv::gradcheck([&](std::vector<tensor> const& v) { return f(v[0]); },
                      std::vector<tensor>{a.clone().requires_grad_()}));
}

TEST_CASE("root: under vmap every lane is solved, and has its derivatives", "[implicit]") {
  tensor const a{0.5, 2.0, 900.0};
  auto const f = [](tensor const& v) { return square_root(number(1.0), v); };
  CHECK(vv::allclose(vv::vmap(f)(a), vv::sqrt(a)));
  CHECK(vv::allclose(vv::vmap(vv::grad(f))(a), vv::reciprocal(vv::sqrt(a)) * 0.5));
  CHECK(vv::allclose(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(a),
                     vv::reciprocal(vv::sqrt(a)) * 0.5));
  CHECK(vv::allclose(vv::vmap(vv::grad(vv::grad(f)))(a), vv::pow(a, -1.5) * -0.25));
  constexpr array<double, 3> b{0.5, 2, 900};
  auto const along = [](auto v) { return square_root(1.0, v); };
  CHECK(vv::allclose(vv::vmap(along)(b), vv::sqrt(b)));
  CHECK(vv::allclose(vv::vmap(vv::grad(along))(b), 0.5 / vv::sqrt(b)));
  CHECK(vv::allclose(vv::vmap(square_root, vv::in_dims<0, vv::none>)(array<double, 2>{1, -1}, 4.0),
                     array<double, 2>{2, -2}));
}

TEST_CASE("root: a lane without a root is NaN, and the others are solved", "[implicit]") {
  tensor const a{2.0, -2.0};
  tensor const y = vv::vmap([](tensor const& v) { return square_root(number(1.0), v); })(a);
  CHECK(y[0].item() == Approx(std::sqrt(2.0)));
  CHECK(std::isnan(y[1].item()));
  tensor const slope = vv::vmap(vv::grad([](tensor const& v) { return square_root(number(1.0), v); }))(a);
  CHECK(slope[0].item() == Approx(0.5 / std::sqrt(2.0)));
  CHECK(std::isnan(slope[1].item()));
  CHECK_THROWS_AS(square_root(1.0, -2.0), implicit::convergence_error);
  CHECK_THROWS_AS(square_root(number(1.0), number(-2.0)), implicit::convergence_error);
  CHECK_THROWS_AS(vv::grad<1>(square_root)(number(1.0), number(-2.0)), implicit::convergence_error);
  CHECK(vv::dynamic_layer_stack().size() == 0);
  CHECK(square_root(number(1.0), number(9.0)).item() == Approx(3));
}

TEST_CASE("root: trees of tensors, lists and float32", "[implicit]") {
  auto const f = implicit::root(on_a_circle);
  auto const of = [&](tensor const& a, tensor const& b) {
    auto const p = f(point<tensor>{number(1), number(1)}, a, b);
    return p.x * p.y;
  };
  auto const [da, db] = vv::grad<0, 1>(of)(number(5), number(2));
  CHECK(da.item() == Approx(0.4));
  CHECK(db.item() == Approx(-0.6));
  auto const lists = implicit::root([](std::vector<tensor> const& x, std::vector<tensor> const& a) {
    return std::vector<tensor>{x[0] * x[0] - a[0], x[1] * x[1] * x[1] - a[1]};
  });
  tensor const p{2.0f, 3.0f}, q = vv::reshape(tensor{8.0f, 27.0f}, vv::dims{2, 1});
  auto const y = lists(std::vector<tensor>{vv::ones_like(p), vv::ones_like(q)}, std::vector<tensor>{p, q});
  CHECK(y[1].sizes() == vv::dims{2, 1});
  CHECK(y[0].dtype() == vv::dtype::float32);
  CHECK(vv::allclose(y[0], vv::sqrt(p)));
  CHECK(vv::allclose(y[1], vv::reshape(tensor{2.0f, 3.0f}, vv::dims{2, 1})));
  auto const g = vv::grad([&](std::vector<tensor> const& a) {
    return vv::sum(lists(std::vector<tensor>{vv::ones_like(p), vv::ones_like(q)}, a)[1]);
  })(std::vector<tensor>{p, q});
  CHECK(vv::allclose(g[0], vv::zeros_like(p)));
  CHECK(vv::allclose(g[1], vv::reshape(tensor{1 / 12.0f, 1 / 27.0f}, vv::dims{2, 1})));
}

TEST_CASE("root: solvers without matrices give the same derivatives", "[implicit]") {
  tensor const a{1.0, 2.0, 3.0, 4.0}, start = vv::ones_like(a);
  auto const f = [](tensor const& x, tensor const& v) {
    tensor const next = vv::cat(std::vector<tensor>{vv::narrow(x, 0, 1, 3), vv::narrow(x, 0, 0, 1)}, 0);
    return x * x * x + x * 3.0 - next * 0.5 - v;
  };
  auto const loss = [&](auto const& solver, auto const& linear) {
    return [&, solver, linear](tensor const& v) {
      tensor const x = implicit::root(f, solver, linear)(start, v);
      return vv::sum(vv::sin(x));
    };
  };
  auto const one = loss(implicit::newton{}, implicit::dense{});
  tensor const g = vv::grad(one)(a);
  CHECK(vv::gradcheck([&](std::vector<tensor> const& v) { return one(v[0]); },
                      std::vector<tensor>{a.clone().requires_grad_()}));
  auto const h = [&](auto const& of) {
    return vv::grad([&](tensor const& v) { return vv::sum(vv::square(vv::grad(of)(v))); })(a);
  };
  tensor const second = h(one);
  auto const same = [&](auto const& other) {
    CHECK(vv::allclose(vv::grad(other)(a), g, 1e-7, 1e-9));
    CHECK(vv::allclose(h(other), second, 1e-6, 1e-8));
  };
  same(loss(implicit::newton{}, implicit::gmres<4>{.tolerance = 1e-12}));
  same(loss(implicit::newton<implicit::bicgstab>{.linear = {.tolerance = 1e-12}},
            implicit::bicgstab{.tolerance = 1e-12}));
  auto const by_matrix = [](auto const& product, tensor const& b) {
    tensor const m = vv::jacfwd(product)(vv::zeros_like(b));
    return vv::solve(m, b);
  };
  same(loss(implicit::newton{}, implicit::linear_solver{by_matrix, by_matrix}));
}

TEST_CASE("root: data behind the function, and what it captures", "[implicit]") {
  auto const cube = [](auto const& a) {
    return implicit::root(vv::closure([](auto const& x, auto const& v) { return x * x * x - v; }, a))(a * 0.0 + 2.0);
  };
  CHECK(vv::grad(cube)(8.0) == Approx(1 / 12.0));
  CHECK(vv::grad(cube)(number(8.0)).item() == Approx(1 / 12.0));
  auto const captures = [](tensor const& a) {
    return implicit::root([a](tensor const& x) { return x * x - a; })(number(1.0));
  };
  CHECK(captures(number(4.0)).item() == Approx(2)); // nothing is differentiated
  CHECK_THROWS_AS(vv::grad(captures)(number(4.0)), vv::value_error);
  CHECK_THROWS_AS(vv::jvp(captures, std::tuple(number(4.0)), std::tuple(number(1.0))), vv::value_error);
  tensor const leaf = number(4.0).requires_grad_();
  CHECK_THROWS_AS(captures(leaf), vv::value_error);
  CHECK_THROWS(vv::vmap(captures)(tensor{4.0, 9.0}));
  CHECK(vv::dynamic_layer_stack().size() == 0);
  // integers are data without derivative
  auto const power = [](tensor const& a) {
    return implicit::root([](tensor const& x, tensor const& n, tensor const& v) { return vv::pow(x, n) - v; })(
        number(1.5), tensor(3L), a);
  };
  CHECK(vv::grad(power)(number(8.0)).item() == Approx(1 / 12.0));
  CHECK(vv::grad([](auto a) {
          return implicit::root([](auto x, auto n, auto v) { return x * x * x + n * x - v; })(1.0, 2, a);
        })(3.0) == Approx(0.2));
}

TEST_CASE("root: unknowns of other magnitudes, zeros, none", "[implicit]") {
  tensor const scales{1e6, 1e-6, 1e-3, 1.0, 1e-12};
  auto const start = vv::ones_like(scales);
  CHECK(vv::allclose(square_root(start, scales * scales), scales, 1e-14, 0));
  CHECK(vv::allclose(square_root(scales, scales * scales * 2.0), scales * std::sqrt(2.0), 1e-14, 0));
  CHECK(vv::allclose(square_root(vv::to(start, vv::dtype::float32), tensor{1e8f, 4.0f, 1e-4f, 9.0f, 1e-8f}),
                     tensor{1e4f, 2.0f, 1e-2f, 3.0f, 1e-4f}, 1e-6, 0));
  // zeros with rounding, from anywhere: a wave that is 0 at every other place
  tensor const places = vv::arange(101, vv::dtype::float64), wave = vv::sin(places * (std::acos(-1.0) / 2)) * 3.0;
  auto const coupled = [](tensor const& x, tensor const& y) {
    return (x - y) * 3.0 + vv::sin(vv::roll(x, 1, 0)) - vv::sin(vv::roll(y, 1, 0)) + vv::pow(x, 3) - vv::pow(y, 3);
  };
  for (tensor const& from : {tensor(vv::zeros_like(wave)), tensor(vv::ones_like(wave)), tensor(wave + 0.3)})
    CHECK(vv::allclose(implicit::root(coupled)(from, wave), wave, 1e-12, 1e-14));
  CHECK(std::abs(square_root(number(1.0), number(0.0)).item()) < 1e-10); // a double root
  tensor const none = vv::zeros({0}, vv::dtype::float64);
  CHECK(square_root(none, none).sizes() == none.sizes());
  CHECK(implicit::fixed_point([](tensor const& x, tensor const& a) { return x * 0.5 + a; })(none, none).numel() == 0);
  CHECK(square_root(array<double, 0>{}, 2.0).count == 0);
  CHECK(vv::vmap([](tensor const& v) { return square_root(number(1.0), v); })(none).sizes() == none.sizes());
  auto const last = [](tensor const& v) {
    return vv::while_loop([](tensor const& c) { return c < 3.0; }, [](tensor const& c) { return c + 1.0; }, v);
  };
  CHECK(vv::vmap(last)(none).sizes() == none.sizes());
}

TEST_CASE("root: a solver of the user's may return its start or data", "[implicit]") {
  auto const f = [](tensor const& x, tensor const& a) { return x - a; };
  tensor const start{1.0, 2.0}, a{1.0, 2.0};
  auto const same = implicit::root(f, [](auto const&, tensor const& x0) { return x0; });
  vv::add_(same(start, a), 5.0);
  CHECK(start[0].item() == 1);
  CHECK(vv::grad([&](tensor const& v) { return vv::sum(same(start, v) * 3.0); })(a)[1].item() == 3);
  tensor const leaf = vv::clone(start).requires_grad_();
  vv::sum(same(leaf, leaf)).backward();
  CHECK(leaf.grad()[0].item() == 1);
  auto const identity = [](tensor const& v) { return v * 1.0; };
  auto const given = [](auto const&, tensor const& b) { return vv::reshape(b, {2}); };
  vv::add_(implicit::linear_solve(identity, start, given), 5.0);
  CHECK(start[0].item() == 1);
}

TEST_CASE("root: what is refused", "[implicit]") {
  tensor const a{1.0, 2.0};
  auto const f = implicit::root([](tensor const& x, tensor const&) { return vv::sum(x); });
  CHECK_THROWS_AS(f(a, a), vv::shape_error);
  CHECK_THROWS_AS(square_root(tensor{1L}, a), vv::dtype_error);
  CHECK_THROWS_AS(implicit::root(on_a_circle)(point<tensor>{number(1), tensor(1.0f)}, number(1), number(1)),
                  vv::dtype_error);
  // a singular Jacobian
  auto const double_root = implicit::root([](tensor const& x, tensor const& v) { return (x - 1.0) * (x - 1.0) * v; });
  tensor const one = number(1.0);
  CHECK(double_root(one, one).item() == 1);
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return double_root(one, v); })(one), vv::value_error);
  auto const throws = [](tensor const& x, tensor const& v) -> tensor {
    if (x.dim() == 0) throw std::runtime_error("from inside");
    return x - v;
  };
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return implicit::root(throws)(one, v); })(one), std::runtime_error);
  CHECK(vv::dynamic_layer_stack().size() == 0);
}
