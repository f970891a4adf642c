// SPDX-License-Identifier: BSL-1.0
// Convolutions in fused programs, against operators one by one.
#include "../sample/apart.hpp"

#include <cmath>
#include <varve_test.hpp>
namespace vv = varve;
using sample::filled;
using vv::array, vv::dim, vv::dims, vv::dtype, vv::index_t, vv::ints, vv::spec, vv::table_driven, vv::tensor;

namespace {
template <class A>
tensor on_heap(A const& a) {
  return vv::clone(tensor::from_blob(const_cast<typename A::value_type*>(a.data), vv::to_dims(vv::shape_of(a)),
                                     vv::contiguous_strides(vv::to_dims(vv::shape_of(a))), vv::dtype_of(a)));
}
double apart(double a, double b) { return std::fabs(a - b) / (1 + std::fabs(b)); }
template <class T, index_t... D>
double apart(array<T, D...> const& a, array<T, D...> const& b) {
  double worst = 0;
  for (index_t i = 0; i < a.size(); ++i)
    worst = std::fmax(worst, apart(static_cast<double>(a.data[i]), static_cast<double>(b.data[i])));
  return worst;
}
double apart(tensor const& a, tensor const& b) {
  if (!(a.sizes() == b.sizes()) || a.dtype() != b.dtype()) return 1e9;
  tensor const x = vv::contiguous(vv::to(a, dtype::float64)), y = vv::contiguous(vv::to(b, dtype::float64));
  double worst = 0;
  for (index_t i = 0; i < a.numel(); ++i) worst = std::fmax(worst, apart(x.data<double>()[i], y.data<double>()[i]));
  return worst;
}
template <class... X, class... Y>
double apart(std::tuple<X...> const& a, std::tuple<Y...> const& b) {
  double worst = 0;
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    ((worst = std::fmax(worst, apart(std::get<K>(a), std::get<K>(b)))), ...);
  }(std::index_sequence_for<X...>{});
  return worst;
}

/// A layer of a network: for arrays and traces, for tensors.
constexpr auto layer = [](auto const& w, auto const& b, auto const& x) {
  return vv::sum(vv::relu(vv::conv2d(x, w, b, ints<1>{}, ints<1>{})));
};
/// Two layers, with stride, groups and the way back up.
constexpr auto network = [](auto const& w, auto const& v, auto const& x) {
  auto const h = vv::tanh(vv::conv2d(x, w, vv::none, ints<2>{}, vv::padding::valid, ints<1>{}, ints<2>{}));
  return vv::mean(vv::square(vv::sub(vv::conv_transpose2d(h, v, vv::none, ints<2>{}, ints<0>{}, ints<1>{}), x)));
};
constexpr auto each = [](auto const& v, auto const& y) {
  return vv::sum(vv::sin(vv::conv1d(y, v, vv::none, ints<2>{}, ints<1>{})));
};
using weight = array<float, 4, 3, 3, 3>;
using bias = array<float, 4>;
using images = array<float, 2, 3, 6, 7>;
} // namespace

TEST_CASE("fuse: a layer of a convolutional network and its gradients", "[fuse][convolution]") {
  auto const w = filled<weight>(1);
  auto const b = filled<bias>(2);
  auto const x = filled<images>(3);
  CHECK(apart(vv::fuse(layer)(w, b, x), layer(w, b, x)) < 1e-5);
  constexpr auto gradient = vv::grad<0, 1, 2>(layer);
  auto const expected = gradient(w, b, x);
  CHECK(apart(vv::fuse(gradient)(w, b, x), expected) < 1e-5);
  CHECK(apart(vv::fuse(gradient, table_driven)(w, b, x), expected) < 1e-5);
  auto const on_tensors = vv::fuse<spec<float, 4, 3, 3, 3>, spec<float, 4>, spec<float, 2, 3, 6, 7>>(gradient);
  CHECK(apart(on_tensors(on_heap(w), on_heap(b), on_heap(x)), gradient(on_heap(w), on_heap(b), on_heap(x))) < 1e-5);
  CHECK(apart(std::get<0>(gradient(on_heap(w), on_heap(b), on_heap(x))), on_heap(std::get<0>(expected))) < 1e-5);
}

TEST_CASE("fuse: stride, groups and transposed convolutions, in both dtypes and all forms", "[fuse][convolution]") {
  auto const check = []<class T>(T, double tolerance) {
    auto const w = filled<array<T, 6, 2, 2, 3>>(1);
    auto const v = filled<array<T, 6, 4, 2, 3>>(2);
    auto const x = filled<array<T, 3, 4, 5, 6>>(3);
    constexpr auto gradient = vv::grad<0, 1>(network);
    auto const expected = gradient(w, v, x);
    CHECK(apart(static_cast<double>(vv::fuse(network)(w, v, x)), static_cast<double>(network(w, v, x))) < tolerance);
    CHECK(apart(vv::fuse(gradient)(w, v, x), expected) < tolerance);
    CHECK(apart(vv::fuse(gradient, table_driven)(w, v, x), expected) < tolerance);
    tensor const a = on_heap(w), b = on_heap(v), c = on_heap(x);
    auto const run =
        vv::compile([](tensor const& p, tensor const& q, tensor const& r) { return vv::grad<0, 1>(network)(p, q, r); });
    CHECK(apart(run(a, b, c), vv::grad<0, 1>(network)(a, b, c)) < tolerance);
    CHECK(apart(std::get<0>(run(a, b, c)), on_heap(std::get<0>(expected))) < tolerance);
  };
  check(0.f, 1e-5);
  check(0., 1e-13);
}

TEST_CASE("fuse: mapped weights, and a derivative of a gradient", "[fuse][convolution]") {
  auto const x = filled<array<double, 1, 2, 7>>(1);
  auto const w = filled<array<double, 3, 2, 2, 3>>(2);
  constexpr auto mapped = vv::vmap(vv::grad(each), vv::in_dims<0, vv::none>);
  CHECK(apart(vv::fuse(mapped)(w, x), mapped(w, x)) < 1e-13);
  constexpr auto twice =
      vv::grad([](auto const& v, auto const& y) { return vv::sum(vv::square(vv::grad<1>(each)(v, y))); });
  auto const one = filled<array<double, 2, 2, 3>>(3);
  CHECK(apart(vv::fuse(twice)(one, x), twice(one, x)) < 1e-12);
}

TEST_CASE("fuse with symbolic sizes: any number of images of any height", "[fuse][symbolic][convolution]") {
  constexpr index_t n = dim<"n">, h = dim<"h">;
  constexpr auto step = vv::grad<0, 1>(layer);
  auto const run = vv::fuse<spec<float, 4, 3, 3, 3>, spec<float, 4>, spec<float, n, 3, h, 7>>(step);
  tensor const w = on_heap(filled<weight>(1)), b = on_heap(filled<bias>(2));
  for (index_t images_ : {1, 5})
    for (index_t height : {1, 2, 9}) {
      tensor const x = vv::reshape(vv::sin(vv::to(vv::arange(images_ * 3 * height * 7), dtype::float32)),
                                   dims{images_, 3, height, 7});
      INFO(images_ << " images of height " << height);
      CHECK(apart(run(w, b, x), step(w, b, x)) < 1e-5);
    }
}

TEST_CASE("fuse with symbolic sizes: what the operator refuses is refused, no images are none",
          "[fuse][symbolic][convolution]") {
  constexpr index_t n = dim<"n">, h = dim<"h">;
  constexpr auto narrow = [](auto const& w, auto const& x) { return vv::conv1d(x, w); };
  auto const run = vv::fuse<spec<float, 2, 1, 3>, spec<float, n, 1, h>>(narrow);
  tensor const w = vv::ones({2, 1, 3});
  CHECK(apart(run(w, vv::ones({2, 1, 3})), narrow(w, vv::ones({2, 1, 3}))) < 1e-6);
  CHECK(run(w, vv::ones({0, 1, 5})).sizes() == dims{0, 2, 3});
  CHECK_THROWS_AS(run(w, vv::ones({1, 1, 2})), vv::shape_error);
  CHECK_THROWS_AS(narrow(w, vv::ones({1, 1, 2})), vv::shape_error);
}

TEST_CASE("trace: a convolution is one node, its bias a sum", "[trace][convolution]") {
  constexpr auto g =
      vv::trace([](auto const& x, auto const& w, auto const& b) { return vv::conv1d(x, w, b, ints<2>{}, ints<1>{}); },
                vv::spec<float, 2, 4, 9>, vv::spec<float, 6, 4, 3>, vv::spec<float, 6>);
  CHECK(g.count(vv::convolution) == 1);
  CHECK_THAT(vv::to_string(g), ContainsText("float32[2, 6, 5] = convolution(%0, %1, [2], [1], [1, 0, 1, 0])"));
}
