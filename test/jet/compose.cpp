// SPDX-License-Identifier: BSL-1.0
#include <varve/compile/compile.hpp>
#include <varve/complex.hpp>
#include <varve/jet/jet.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::tensor;

namespace {
constexpr auto cube = [](auto const& x) { return x * x * x; };
constexpr auto wave = [](auto const& x) {
  return vv::exp(vv::sin(x)) / (1.0 + x * x) + vv::tanh(x) * vv::sqrt(x + 3.0);
};
/// The third derivative of a function of one number.
constexpr auto third = [](auto const& f) {
  return [f](auto const& x) {
    auto const one = vv::ones_like(x), zero = vv::zeros_like(x);
    return std::get<2>(vv::jet(f, std::tuple{x}, std::tuple{one, zero, zero}).second);
  };
};
template <class F>
constexpr auto slope(F const& f) {
  return [f](auto const& x) { return vv::jvp(f, std::tuple{x}, std::tuple{vv::ones_like(x)}).second; };
}
/// e^x; only its jvp reads the result.
inline constexpr struct grow_t {
  static constexpr auto op_name = "grow";
  constexpr auto operator()(vv::value auto const& x) const { return vv::bound<grow_t>{}(x); }
} grow{};
} // namespace
template <>
struct vv::rules<grow_t> : vv::rule::elementwise<1, vv::promotion::floating> {
  static constexpr vv::saved_values saved{{vv::saved_values::operand(0)}};
  static constexpr auto kernel(auto x) { return vv::kernel::exp(x); }
  static constexpr auto jvp(vv::arg_t<0>, auto const&, auto const& d, auto const& y, auto const&) {
    return vv::mul(y, d);
  }
};

constexpr auto of_cube = vv::jet(cube, std::tuple{2.0}, std::tuple{1.0, 0.0, 0.0});
static_assert(of_cube.first == 8 && of_cube.second == std::tuple{12.0, 12.0, 6.0});
constexpr auto of_two = vv::jet([](auto const& x, auto const& y) { return std::pair(x * y, x + y); },
                                std::tuple{2.0, 3.0}, std::tuple{std::tuple{1.0, 4.0}, std::tuple{0.0, 5.0}});
static_assert(of_two.first == std::pair{6.0, 5.0});
static_assert(of_two.second.first == std::tuple{3.0, 22.0} && of_two.second.second == std::tuple{1.0, 9.0});

constexpr auto of_float = vv::jet(cube, std::tuple{2.0f}, std::tuple{1.0f, 0.0f});
static_assert(std::is_same_v<decltype(of_float.second), std::tuple<float, float>>);

TEST_CASE("jet: plain numbers beside tensors; what has no part in it may be written", "[jet]") {
  tensor const x({0.5, 2.0}), zero = vv::zeros_like(x);
  auto const f = [](auto const& a, auto const& b) { return a * b * b; };
  auto const [y, d] = vv::jet(f, std::tuple{x, 3.0}, std::tuple{std::tuple{zero, zero}, std::tuple{1.0, 0.5}});
  CHECK(y[1].item() == 18);
  CHECK(std::get<0>(d)[1].item() == 12);              // 2 a b
  CHECK(std::get<1>(d)[1].item() == Approx(4 + 6.0)); // 2 a + 2 a b / 2
  auto const writes = [](tensor const& v) {
    tensor r = vv::zeros({2}, vv::dtype::float64);
    vv::fill_(r, 3.0);
    return v * r;
  };
  CHECK(std::get<0>(vv::jet(writes, std::tuple{x}, std::tuple{vv::ones_like(x), zero}).second)[0].item() == 3);
  auto const copies = [](tensor const& v) { return vv::copy_(vv::zeros({2}, vv::dtype::float64), v); };
  CHECK_THROWS_WITH(vv::jet(copies, std::tuple{x}, std::tuple{vv::ones_like(x), zero}),
                    Catch::Contains("copy_ writes into its operand"));
}

TEST_CASE("jet: both worlds, and what nested jvps give", "[jet]") {
  array<double, 3> const a{0.7, -0.3, 1.1};
  auto const s = third(wave)(a);
  tensor const d = third(wave)(tensor(a));
  auto const right = slope(slope(slope(wave)))(tensor(a));
  for (vv::index_t k = 0; k < 3; ++k) {
    CHECK(s[k] == Approx(right[k].item()));
    CHECK(d[k].item() == Approx(right[k].item()));
  }
}

TEST_CASE("jet: derivatives that read the result", "[jet]") {
  CHECK(third([](auto const& x) { return grow(x); })(0.5) == Approx(std::exp(0.5)));
  tensor const x({0.7, -0.3, 1.1});
  for (auto const f : {+[](tensor const& v) { return tensor(grow(v)); },
                       +[](tensor const& v) { return tensor(vv::abs(vv::complex(v, v * v))); },
                       +[](tensor const& v) { return tensor(vv::real(vv::sgn(vv::complex(v, v * v)))); }})
    CHECK(vv::allclose(third(f)(x), slope(slope(slope(f)))(x)));
}

TEST_CASE("jet: under vmap and grad, and of them", "[jet]") {
  tensor const x({0.7, -0.3, 1.1});
  tensor const right = third(wave)(x);
  CHECK(vv::allclose(vv::vmap(third(wave))(x), right));
  CHECK(vv::allclose(third(vv::vmap(wave))(x), right));
  auto const total = [](auto const& v) { return vv::sum(third(wave)(v)); };
  tensor const fourth = slope(third(wave))(x);
  CHECK(vv::allclose(vv::grad(total)(x), fourth));
  CHECK(vv::allclose(third(vv::grad([](auto const& v) { return vv::sum(wave(v)); }))(x), fourth));
  CHECK(vv::grad(third(wave))(0.7) == Approx(fourth[0].item()));
  CHECK(third(vv::grad(wave))(0.7) == Approx(fourth[0].item()));
  CHECK(third(third(wave))(0.7) == Approx(third(third(wave))(x)[0].item()));
}

TEST_CASE("jet: fused, compiled and traced", "[jet]") {
  array<double, 3> const a{0.7, -0.3, 1.1};
  tensor const x(a), right = third(wave)(x);
  constexpr auto fast = vv::fuse([](auto const& v) { return third(wave)(v); });
  auto const y = fast(a);
  for (vv::index_t k = 0; k < 3; ++k) CHECK(y[k] == Approx(right[k].item()));
  CHECK(vv::allclose(vv::compile(third(wave))(x), right));
  CHECK(vv::allclose(vv::interpret(vv::make_fx(third(wave))(x), vv::boxed_args(x))[0], right));
}

TEST_CASE("jet: products of matrices, reductions, indices, pieces", "[jet]") {
  auto const f = [](auto const& x, auto const& w) {
    auto const h = vv::matmul(x, w);
    return vv::sum(vv::softmax(h, vv::ints<1>{}) * vv::amax(h, vv::ints<1>{}, vv::keepdim)) +
           vv::sum(vv::where(h > 0.0, h, vv::exp(h)));
  };
  vv::manual_seed(3);
  tensor const x = vv::randn({3, 4}, vv::dtype::float64), w = vv::randn({4, 2}, vv::dtype::float64),
               dx = vv::randn({3, 4}, vv::dtype::float64), dw = vv::randn({4, 2}, vv::dtype::float64);
  auto const [y, d] =
      vv::jet(f, std::tuple{x, w},
              std::tuple{std::tuple{dx, tensor(vv::zeros_like(x))}, std::tuple{dw, tensor(vv::zeros_like(w))}});
  auto const along = [&](tensor const& t) { return f(x + dx * t, w + dw * t); };
  tensor const zero = vv::full({}, 0.0);
  CHECK(y.item() == Approx(f(x, w).item()));
  CHECK(std::get<0>(d).item() == Approx(slope(along)(zero).item()));
  CHECK(std::get<1>(d).item() == Approx(slope(slope(along))(zero).item()));
}

TEST_CASE("jet: what does not depend on the arguments has zeros; what cannot be followed is refused", "[jet]") {
  tensor const x({0.5, 2.0}), one = vv::ones_like(x), zero = vv::zeros_like(x);
  auto const [y, d] =
      vv::jet([](tensor const& v) { return std::pair(v * 2.0, vv::gt(v, 1.0)); }, std::tuple{x}, std::tuple{one, zero});
  CHECK(y.second[1].item<bool>());
  CHECK(vv::allclose(std::get<0>(d.first), one * 2.0));
  CHECK(vv::allclose(std::get<1>(d.first), zero));
  auto const writes = [](tensor const& v) {
    tensor r = vv::clone(v);
    vv::mul_(r, 2.0);
    return r;
  };
  CHECK_THROWS_WITH(vv::jet(writes, std::tuple{x}, std::tuple{one, zero}),
                    Catch::Contains("mul_ writes into its operand"));
  auto const branches = [](tensor const& v) {
    return vv::cond(vv::sum(v) > 0.0, [](tensor const& u) { return u * u; }, [](tensor const& u) { return u; }, v);
  };
  CHECK(std::get<1>(vv::jet(branches, std::tuple{x}, std::tuple{one, zero}).second)[1].item() == 2);
  CHECK_THROWS_AS(vv::jet(cube, std::tuple{x}, std::tuple{one, tensor({1.0})}), vv::shape_error);
  CHECK_THROWS_AS(vv::jet(cube, std::tuple{vv::arange(2)}, std::tuple{one}), vv::dtype_error);
  CHECK(vv::this_thread_state.transforms.top == nullptr);
}
