// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jacobian.hpp>
#include <varve/transform/vmap.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct attributes {
  dims stride{1, 1}, padding{0, 0}, dilation{1, 1}, output_padding{0, 0};
  index_t groups = 1;
};
/// Element (n, c, i, j) of a tensor of rank 4.
double at(tensor const& t, index_t n, index_t c, index_t i, index_t j) {
  return element(t, ((n * t.size(1) + c) * t.size(2) + i) * t.size(3) + j);
}

/// Two-dimensional convolutions by the definition: `visit(n, result channel, i, j, product)` for each product.
template <class F>
void products(tensor const& x, tensor const& w, attributes const& a, bool transposed, F const& visit) {
  index_t const per_input = transposed ? x.size(1) / a.groups : w.size(1),
                per_result = transposed ? w.size(1) : w.size(0) / a.groups;
  // the loops run over the places of the kernel: elements of the result, or of the input of a transposed one
  auto const places = [&](int k) -> index_t {
    if (transposed) return x.size(k + 2);
    return (x.size(k + 2) + 2 * a.padding[k] - a.dilation[k] * (w.size(k + 2) - 1) - 1) / a.stride[k] + 1;
  };
  index_t const rows = places(0), cols = places(1);
  for (index_t n = 0; n < x.size(0); ++n)
    for (index_t g = 0; g < a.groups; ++g)
      for (index_t c = 0; c < per_input; ++c)
        for (index_t o = 0; o < per_result; ++o)
          for (index_t i = 0; i < rows; ++i)
            for (index_t j = 0; j < cols; ++j)
              for (index_t p = 0; p < w.size(2); ++p)
                for (index_t q = 0; q < w.size(3); ++q) {
                  index_t const u = i * a.stride[0] + p * a.dilation[0] - a.padding[0],
                                v = j * a.stride[1] + q * a.dilation[1] - a.padding[1];
                  index_t const from = g * per_input + c, to = g * per_result + o;
                  if (transposed) visit(n, to, u, v, at(x, n, from, i, j) * at(w, from, o, p, q));
                  else if (u >= 0 && u < x.size(2) && v >= 0 && v < x.size(3))
                    visit(n, to, i, j, at(x, n, from, u, v) * at(w, to, c, p, q));
                }
}
tensor by_definition(tensor const& x, tensor const& w, attributes const& a, bool transposed, dims const& sizes) {
  tensor y = blank(sizes, x.dtype());
  std::vector<double> sum(static_cast<std::size_t>(y.numel()));
  products(x, w, a, transposed, [&](index_t n, index_t c, index_t i, index_t j, double v) {
    if (i >= 0 && i < sizes[2] && j >= 0 && j < sizes[3])
      sum[static_cast<std::size_t>(((n * sizes[1] + c) * sizes[2] + i) * sizes[3] + j)] += v;
  });
  for (index_t k = 0; k < y.numel(); ++k) set(y, k, sum[static_cast<std::size_t>(k)]);
  return y;
}
} // namespace

TEST_CASE("conv2d and conv_transpose2d: stride, padding, dilation, groups and output_padding in every dtype and "
          "layout, by the definition",
          "[op][convolution]") {
  std::uint64_t seed = 1;
  attributes const all[] = {{},
                            {{2, 1}, {1, 2}, {1, 1}, {1, 0}, 1},
                            {{1, 3}, {0, 1}, {2, 1}, {1, 2}, 2},
                            {{2, 2}, {2, 0}, {3, 2}, {2, 1}, 3}};
  for (dtype t : {dtype::uint8, dtype::int32, dtype::int64, dtype::float32, dtype::float64})
    for (attributes const& a : all)
      for (index_t n : {0, 1, 3})
        for (index_t channels : {1, 2, 5}) {
          numbers draw(++seed);
          auto const layout = static_cast<memory>(seed % 3), other = static_cast<memory>(seed / 3 % 3);
          double const low = t == dtype::uint8 ? 0 : -3;
          tensor const x = uniform({n, 2 * a.groups, 9, 8}, draw, low, 3, t, layout),
                       w = uniform({channels * a.groups, 2, 3, 2}, draw, low, 3, t, other);
          INFO(vv::name(t) << " " << n << " samples, " << channels << " channels, groups " << a.groups);
          tensor const y = vv::conv2d(x, w, vv::none, a.stride, a.padding, a.dilation, a.groups);
          CHECK(difference(y, by_definition(x, w, a, false, y.sizes()), t == dtype::float32 ? 1e-5 : 1e-12) == "");
          tensor const v = uniform({2 * a.groups, channels, 3, 2}, draw, low, 3, t, other);
          tensor const z =
              vv::conv_transpose2d(x, v, vv::none, a.stride, a.padding, a.output_padding, a.groups, a.dilation);
          CHECK(difference(z, by_definition(x, v, a, true, z.sizes()), t == dtype::float32 ? 1e-5 : 1e-12) == "");
        }
}

TEST_CASE("conv1d, conv3d: dimensions of size 1 make them conv2d", "[op][convolution]") {
  numbers draw(5);
  tensor const x = uniform({2, 3, 7, 6}, draw), w = uniform({4, 3, 3, 2}, draw), b = uniform({4}, draw);
  tensor const y = vv::conv2d(x, w, b, dims{2, 1}, 1);
  auto five = [](tensor const& t) { return vv::reshape(t, dims{t.size(0), t.size(1), 1, t.size(2), t.size(3)}); };
  CHECK(difference(vv::conv3d(five(x), five(w), b, dims{1, 2, 1}, dims{0, 1, 1}), five(y), 1e-14) == "");
  tensor const one = uniform({2, 3, 9}, draw), taps = uniform({4, 3, 2}, draw);
  auto four = [](tensor const& t) { return vv::reshape(t, dims{t.size(0), t.size(1), 1, t.size(2)}); };
  CHECK(difference(four(vv::conv1d(one, taps, b, 2)), vv::conv2d(four(one), four(taps), b, dims{1, 2}), 1e-14) == "");
  tensor const sample = slice_of(x, 0, 1); // without the dimension of samples
  CHECK(difference(vv::conv2d(sample, w, b, dims{2, 1}, 1), slice_of(y, 0, 1), 1e-14) == "");
}

TEST_CASE("conv_transpose: the transpose of the convolution by its input", "[op][convolution]") {
  numbers draw(6);
  tensor const x = uniform({2, 4, 9}, draw), w = uniform({6, 2, 3}, draw);
  for (index_t stride : {1, 2, 3})
    for (index_t dilation : {1, 2}) {
      tensor const y = vv::conv1d(x, w, vv::none, stride, 1, dilation, 2), g = uniform(y.sizes(), draw);
      index_t const size = (y.size(2) - 1) * stride - 2 + dilation * 2 + 1;
      tensor const back = vv::conv_transpose1d(g, w, vv::none, stride, 1, 9 - size, 2, dilation);
      CHECK(difference(vv::sum(back * x), vv::sum(g * y), 1e-12) == "");
    }
}

TEST_CASE("convolution: second derivatives, alone and mapped, are those of a convolution written in other operators",
          "[op][convolution]") {
  numbers draw(7);
  tensor const x = uniform({1, 2, 4}, draw), w = uniform({2, 2, 2}, draw);
  auto const by_conv = [](auto const& a, auto const& b) { return vv::sum(vv::sin(vv::conv1d(a, b, vv::none, 2, 1))); };
  auto const by_products = [](auto const& a, auto const& b) { // places 0, 2, 4 of the input with a 0 at each end
    auto const wide = vv::slice_backward(a, dims{1, 2, 6}, dims{2, 1, 5, 1});
    auto part = [&](index_t from) { return vv::slice(wide, 2, from, from + 5, 2); };
    auto tap = [&](index_t k) { return vv::reshape(vv::slice(b, 2, k, k + 1), dims{1, 2, 2}); };
    return vv::sum(vv::sin(vv::matmul(tap(0), part(0)) + vv::matmul(tap(1), part(1))));
  };
  CHECK(difference(vv::hessian(by_conv)(x, w), vv::hessian(by_products)(x, w), 1e-12) == "");
  auto const by_weight = [&](auto const& f) { return vv::hessian([&](auto const& b) { return f(x, b); }); };
  CHECK(difference(by_weight(by_conv)(w), by_weight(by_products)(w), 1e-12) == "");
  tensor const many = uniform({3, 2, 2, 2}, draw);
  auto const mixed = [&](auto const& f) { // both operands mapped, below a gradient of a gradient
    return vv::vmap(vv::grad([f](auto const& b, auto const& a) {
                      return vv::sum(vv::square(vv::grad([&](auto const& c) { return f(c, b); })(a)));
                    }),
                    vv::in_dims<0, 0>);
  };
  tensor const inputs = uniform({3, 1, 2, 4}, draw);
  CHECK(difference(mixed(by_conv)(many, inputs), mixed(by_products)(many, inputs), 1e-12) == "");
}

TEST_CASE("convolution: mapped over nothing, and over several levels at once", "[op][convolution]") {
  tensor const none_mapped = vv::zeros({0, 2, 3, 5}), nothing = vv::zeros({0, 4, 3, 2});
  CHECK(vv::vmap([](auto const& x, auto const& w) { return vv::conv1d(x, w); })(none_mapped, nothing).sizes() ==
        dims{0, 2, 4, 4});
  CHECK(vv::vmap([](auto const& x, auto const& w) { return vv::conv1d(x, w); },
                 vv::in_dims<vv::none, 0>)(vv::zeros({2, 3, 5}), nothing)
            .sizes() == dims{0, 2, 4, 4});
  numbers draw(8);
  tensor const x = uniform({2, 3, 1, 2, 5}, draw), w = uniform({2, 4, 2, 1, 2}, draw);
  tensor const y = vv::vmap([](auto const& a, auto const& b) {
    return vv::vmap([&](auto const& c) {
      return vv::vmap([&](auto const& d) { return vv::conv1d(c, d, vv::none, 1, 0, 1, 2); })(b);
    })(a);
  })(x, w);
  REQUIRE(y.sizes() == dims{2, 3, 4, 1, 2, 4});
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j)
      for (index_t k = 0; k < 4; ++k)
        CHECK(difference(slice_of(slice_of(slice_of(y, 0, i), 0, j), 0, k),
                         vv::conv1d(slice_of(slice_of(x, 0, i), 0, j), slice_of(slice_of(w, 0, i), 0, k), vv::none, 1,
                                    0, 1, 2),
                         1e-13) == "");
}

TEST_CASE("convolution: what is refused, with both shapes, and nothing is changed", "[op][convolution]") {
  tensor const x = vv::ones({2, 4, 5}), w = vv::ones({6, 2, 3}), b = vv::ones({6});
  auto text = [](auto const& call) {
    try {
      call();
    } catch (vv::error const& e) { return std::string(e.what()); }
    return std::string("not refused");
  };
  CHECK_NOTHROW(vv::conv1d(x, w, b, 1, 0, 1, 2));
  CHECK_THAT(text([&] { vv::conv1d(x, w); }),
             ContainsText("convolution (channels and groups): shapes [2, 4, 5] and [6, 2, 3] do not fit"));
  CHECK_THAT(text([&] { vv::conv1d(x, vv::ones({5, 2, 3}), vv::none, 1, 0, 1, 2); }), ContainsText("[5, 2, 3]"));
  CHECK_THAT(text([&] { vv::conv1d(x, w, b, 1, 0, 3, 2); }),
             ContainsText("the kernel and the padded input): shapes [2, 4, 5] and [6, 2, 3]"));
  CHECK_THAT(text([&] { vv::conv2d(x, w); }), ContainsText("conv2d: shapes [2, 4, 5] and [6, 2, 3]"));
  CHECK_THAT(text([&] { vv::conv1d(vv::ones({4}), w); }), ContainsText("conv1d: shapes [4] and [6, 2, 3]"));
  CHECK_THAT(text([&] { vv::conv1d(x, w, vv::ones({4}), 1, 0, 1, 2); }),
             ContainsText("bias and result): shapes [4] and [2, 6, 3]"));
  CHECK_THAT(text([&] { vv::conv1d(x, w, vv::ones({6, 1}), 1, 0, 1, 2); }), ContainsText("[6, 1]"));
  CHECK_THAT(text([&] { vv::conv_transpose1d(x, vv::ones({4, 2, 1}), vv::none, 1, 3); }),
             ContainsText("shapes [2, 4, 5] and [4, 2, 1]")); // a result without elements
  CHECK_THROWS_AS(vv::conv1d(x, vv::ones({6, 2, 0}), vv::none, 1, 0, 1, 2), vv::shape_error);
  CHECK_THROWS_AS(vv::conv1d(vv::ones({2, 4, 0}), w, vv::none, 1, 5, 1, 2),
                  vv::shape_error); // only samples and channels may be none
  CHECK_THROWS_AS(vv::conv1d(x, w, b, 0, 0, 1, 2), vv::value_error);
  CHECK_THROWS_AS(vv::conv1d(x, w, b, 1, -1, 1, 2), vv::value_error);
  CHECK_THROWS_AS(vv::conv1d(x, w, b, 1, 0, 0, 2), vv::value_error);
  CHECK_THROWS_AS(vv::conv1d(x, w, b, 1, 0, 1, 0), vv::value_error);
  CHECK_THROWS_AS(vv::conv1d(x, w, b, dims{1, 1}, 0, 1, 2), vv::value_error);
  CHECK_THROWS_AS(vv::conv1d(x, w, b, 2, vv::padding::same, 1, 2), vv::value_error);
  CHECK_THROWS_AS(vv::conv_transpose1d(x, vv::ones({4, 2, 2}), vv::none, 2, 0, 2), vv::value_error);
  CHECK_THROWS_AS(vv::conv_transpose1d(x, vv::ones({4, 2, 2}), vv::none, 2, 0, -1), vv::value_error);
  CHECK_THROWS_AS(vv::convolution(vv::ones({2, 4}), w, vv::none, 1, 0, 1, 0, 0, 1), vv::value_error);
  CHECK_THROWS_AS(vv::conv1d(x, vv::ones({6, 2, 3}, dtype::float64), vv::none, 1, 0, 1, 2), vv::dtype_error);
  CHECK_THROWS_AS(vv::conv1d(x, w, vv::ones({6}, dtype::float64), 1, 0, 1, 2), vv::dtype_error);
  tensor const flags = vv::ones({1, 1, 3}, dtype::bool_);
  CHECK_THROWS_AS(vv::conv1d(flags, flags), vv::dtype_error);
  CHECK(vv::this_thread_state.quiet());
  CHECK(x.version() == 0);
  CHECK(difference(x, vv::ones({2, 4, 5})) == "");
}

TEST_CASE("convolution: NaN and infinity go where their products go", "[op][convolution]") {
  double const inf = HUGE_VAL;
  tensor const x = from({1, std::nan(""), 2, inf, 3, 4}, {1, 1, 6}), w = from({1, 2}, {1, 1, 2});
  tensor const y = vv::conv1d(x, w);
  CHECK((std::isnan(element(y, 0)) && std::isnan(element(y, 1)) && element(y, 2) == inf && element(y, 3) == inf &&
         element(y, 4) == 11));
}
