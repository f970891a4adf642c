// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("tensor_ref: extents known at run time make memory a tensor without a copy", "[value][tensor_ref]") {
  std::vector<double> v{1, 2, 3, 4, 5, 6};
  vv::tensor_ref<double, vv::dyn, 3> const rows(v.data(), {2, 3});
  CHECK(rows.view().raw() == v.data());
  CHECK(elements(vv::sum(rows * 2, 0)) == std::vector<double>{10, 14, 18});
  CHECK(elements(vv::vmap(vv::grad([](auto const& x) { return vv::sum(x * x); }))(rows)) ==
        std::vector<double>{2, 4, 6, 8, 10, 12});
  vv::tensor_ref<double const, vv::dyn> const all(v);
  CHECK(vv::reshape(all, dims{3, 2}).sizes() == dims{3, 2});
  tensor const x = from({1, 2, 3, 4}, {2, 2});
  vv::tensor_ref<double, vv::dyn, vv::dyn> const turned(vv::permute(x, dims{1, 0}));
  CHECK(elements(vv::exp(turned) - vv::exp(vv::permute(x, dims{1, 0}))) == std::vector<double>{0, 0, 0, 0});
  vv::add_(rows.view(), 1);
  CHECK(v[5] == 7);
  CHECK_THROWS_AS((vv::tensor_ref<double, vv::dyn, 3>(v.data(), {3, 2})), vv::shape_error);
  CHECK_THROWS_AS((vv::tensor_ref<float, vv::dyn, vv::dyn>(x)), vv::dtype_error);
  CHECK_THROWS_AS((vv::tensor_ref<double, vv::dyn>(x)), vv::shape_error);
}

TEST_CASE("tensor_ref: extents known to the compiler make memory an array", "[value][tensor_ref]") {
  std::vector<double> v{1, 2, 3};
  vv::tensor_ref<double, 3> const r(v);
  static_assert(std::is_same_v<decltype(r * 2.0), vv::array<double, 3>>);
  CHECK((r * 2.0).data[2] == 6);
  CHECK(vv::grad([](auto const& x) { return vv::sum(x * x); })(r).data[1] == 4);
  CHECK_THROWS_AS((vv::tensor_ref<double, 4>(v)), vv::shape_error);
}

TEST_CASE("tensor_ref: every kind of operator takes it for the value that it views", "[value][tensor_ref]") {
  tensor const x = from({0.5, -1, 2, 3, -0.25, 1}, {2, 3}), y = from({1, 2, 3, 4, 5, 6}, {3, 2});
  vv::tensor_ref<double const, vv::dyn, vv::dyn> const a(x), b(y);
  vv::array<double, 2, 3> const here{0.5, -1, 2, 3, -0.25, 1};
  vv::tensor_ref<double const, 2, 3> const c(here.data);
  auto const same = [&](auto const& f) {
    tensor const expected = f(x);
    CHECK(elements(f(a)) == elements(expected));
    auto const r = f(c);
    for (index_t k = 0; k < expected.numel(); ++k)
      CHECK(vv::data_of(r)[k] == Approx(elements(expected)[static_cast<std::size_t>(k)]));
  };
  same([](auto const& v) { return vv::softmax(v, vv::axis<1>); });
  same([](auto const& v) { return vv::logsumexp(v, vv::axis<0>); });
  same([](auto const& v) { return vv::layer_norm(v, vv::shape<3>); });
  same([](auto const& v) { return vv::clamp(vv::gelu(v), 0.0, vv::none); });
  same([](auto const& v) { return vv::matmul(v, vv::permute(v, vv::axis<1, 0>)); });
  same([](auto const& v) { return vv::mean(vv::square(v)); });
  same([](auto const& v) { return vv::select(v, vv::axis<0>, vv::axis<1>); });
  same([](auto const& v) { return vv::unsqueeze(v, vv::axis<0>); });
  same([](auto const& v) { return vv::to(v, vv::type<double>); });
  same([](auto const& v) { return vv::to(v, vv::type<float>); });
  same([](auto const& v) { return vv::cat(std::tuple(v, v), vv::axis<0>); });
  same([](auto const& v) { return vv::stack(std::tuple(v, v)); });
  same([](auto const& v) { return vv::where(vv::gt(v, 0), v, 0); });
  same([](auto const& v) { return vv::sum_to_size(v, vv::shape<1, 3>); });
  same([](auto const& v) {
    return vv::cond(
        vv::gt(vv::sum(v), 0), [](auto const& w) { return vv::softplus(w); }, [](auto const& w) { return vv::neg(w); },
        v);
  });
  CHECK(elements(vv::matmul(a, b)) == elements(vv::matmul(x, y)));
  same([](auto const& v) { return vv::contiguous(v); });
  same([](auto const& v) { return vv::map([](auto const& row) { return vv::exp(row); }, v); });
  same([](auto const& v) {
    return vv::scan([](auto const& c, auto const& row) { return std::pair{c + vv::sum(row), row}; }, 0.0, v).first;
  });
  same([](auto const& v) { return vv::jvp([](auto const& w) { return w * w; }, std::tuple(v), std::tuple(v)).second; });
  same([](auto const& v) { return std::get<0>(vv::vjp([](auto const& w) { return w * w; }, v).second(v)); });
  same([](auto const& v) { return vv::jacfwd([](auto const& w) { return vv::sum(vv::sin(w), vv::axis<1>); })(v); });
  same([](auto const& v) { return vv::jacrev([](auto const& w) { return vv::sum(vv::sin(w), vv::axis<1>); })(v); });
  same([](auto const& v) { return vv::hessian([](auto const& w) { return vv::sum(w * w * w); })(v); });
  CHECK(elements(vv::broadcast_to(b, dims{2, 3, 2})) == elements(vv::broadcast_to(y, dims{2, 3, 2})));
}

TEST_CASE("tensor_ref: of ranges takes its extent from their type", "[value][tensor_ref]") {
  std::vector<double> v{1, 2, 3};
  std::vector<float> const constant{1, 2};
  std::array<double, 3> a{4, 5, 6};
  std::span<double, 2> const two(v.data(), 2);
  std::span<double> const all(v);
  static_assert(std::is_same_v<decltype(varve::tensor_ref(v)), varve::tensor_ref<double, varve::dyn>>);
  static_assert(std::is_same_v<decltype(varve::tensor_ref(constant)), varve::tensor_ref<float const, varve::dyn>>);
  static_assert(std::is_same_v<decltype(varve::tensor_ref(a)), varve::tensor_ref<double, 3>>);
  static_assert(std::is_same_v<decltype(varve::tensor_ref(two)), varve::tensor_ref<double, 2>>);
  static_assert(std::is_same_v<decltype(varve::tensor_ref(all)), varve::tensor_ref<double, varve::dyn>>);
  CHECK(varve::sum(varve::tensor_ref(v)).item() == 6);
  CHECK(varve::fuse([](auto const& x) { return varve::sum(x * x); })(varve::tensor_ref(a)) == 77);
}
