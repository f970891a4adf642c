// SPDX-License-Identifier: BSL-1.0
/// @file
/// Functions beside the umbrella that are computed in one pass where nothing watches: what their operators give where a
/// mode does, with gradients, for all layouts and for numbers that are none.
#include <varve/composite/all.hpp>
#include <varve/nn.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>

namespace vv = varve;
using vv::dims, vv::dtype, vv::tensor;

namespace {
struct watching : vv::dispatch_mode<watching> {
  auto process(auto op, auto const&... args) { return op(args...); }
};
tensor wave(dims const& sizes, dtype type, bool special) {
  tensor t = vv::empty(sizes, dtype::float64);
  double const infinity = std::numeric_limits<double>::infinity(),
               odd[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), -0.0};
  for (vv::index_t k = 0; k < t.numel(); ++k)
    t.data<double>()[k] = special && k % 7 == 3 ? odd[k / 7 % 4] : 3 * std::sin(0.3 + 1.3 * static_cast<double>(k));
  return vv::to(t, type);
}
bool same(tensor const& a, tensor const& b) {
  tensor const x = vv::contiguous(vv::to(vv::detach(a), dtype::float64)),
               y = vv::contiguous(vv::to(vv::detach(b), dtype::float64));
  bool r = x.sizes() == y.sizes() && a.dtype() == b.dtype();
  for (vv::index_t k = 0; r && k < x.numel(); ++k) {
    double const u = x.data<double>()[k], v = y.data<double>()[k];
    r = u == v || (u != u && v != v);
  }
  return r;
}
/// f(x), the gradient of its sum, and the derivative of that, are as below a mode.
template <class F>
void check(F const& f, tensor const& x, bool twice = true) {
  auto const sum = [&](auto const& v) { return vv::sum(f(v)); };
  auto const slope = [&](auto const& v) { return vv::sum(vv::grad(sum)(v)); };
  tensor const y = f(x), g = vv::grad(sum)(x);
  tensor h;
  if (twice) h = vv::grad(slope)(x);
  watching mode;
  vv::mode_guard const on(mode);
  CHECK(same(y, f(x)));
  CHECK(same(g, vv::grad(sum)(x)));
  if (twice) CHECK(same(h, vv::grad(slope)(x)));
}
} // namespace

TEST_CASE("max_pool: in one pass as by operators", "[family][pool]") {
  struct pool {
    dims size, step, margin, dilation, ceil;
  };
  pool const all[] = {{dims{2}, dims{}, dims{0}, dims{1}, dims{0}},
                      {dims{3, 2}, dims{2, 1}, dims{1, 0}, dims{1}, dims{1}},
                      {dims{2, 3}, dims{3}, dims{1}, dims{2, 1}, dims{0}},
                      {dims{2}, dims{3}, dims{1}, dims{1, 2}, dims{1}}};
  for (pool const& p : all)
    for (dtype const type : {dtype::float32, dtype::float64, dtype::float16})
      for (bool const special : {false, true})
        for (bool const turned : {false, true}) {
          tensor x = wave({2, 3, 7, 7}, type, special);
          if (turned) x = vv::transpose(x, 2, 3);
          check([&](auto const& v) { return vv::max_pool2d(v, p.size, p.step, p.margin, p.dilation, p.ceil).first; }, x,
                type != dtype::float16);
          auto const places = [&] {
            return tensor(vv::max_pool2d(x, p.size, p.step, p.margin, p.dilation, p.ceil).second);
          };
          tensor const at = places();
          watching mode;
          vv::mode_guard const on(mode);
          CHECK(same(at, places()));
        }
}
TEST_CASE("max_pool: whole numbers, one and three dimensions, no samples, and windows that lie outside", "[family]") {
  auto const pair = [](auto const& f) {
    auto const [y, at] = f();
    watching mode;
    vv::mode_guard const on(mode);
    auto const [z, there] = f();
    CHECK(same(y, z));
    CHECK(same(at, there));
  };
  tensor const whole = vv::to(wave({2, 2, 6, 5}, dtype::float64, false), dtype::int32);
  pair([&] { return vv::max_pool2d(whole, 3, 1, 1); });
  tensor const line = wave({2, 9}, dtype::float32, true);
  pair([&] { return vv::max_pool1d(line, 3, 2, 1, 1, 1); });
  tensor const room = wave({2, 4, 5, 6}, dtype::float32, true);
  pair([&] { return vv::max_pool3d(room, 2, 2, 1); });
  tensor const outside = wave({1, 3, 1, 6}, dtype::float64, false);
  pair([&] { return vv::max_pool2d(outside, dims{2, 3}, dims{3, 2}, dims{1, 0}, dims{2}, dims{1}); });
  pair([&] { return vv::max_pool2d(outside, {2, 3}, {3, 2}, {1, 0}); }); // in braces
  CHECK(vv::avg_pool2d(outside, {1, 3}, {1, 2}).sizes() == dims{1, 3, 1, 2});
  CHECK(vv::adaptive_avg_pool2d(outside, {1, 2}).sizes() == dims{1, 3, 1, 2});
  tensor const none = vv::max_pool2d(vv::empty({0, 3, 4, 4}), 2).first;
  CHECK(none.sizes() == dims{0, 3, 2, 2});
  CHECK_THROWS_AS(vv::max_pool2d(vv::empty({3, 0, 4, 4}), 2), vv::value_error);
  CHECK_THROWS_AS(vv::max_pool2d(vv::empty({3, 3, 4, 4}), 5), vv::value_error);
}
TEST_CASE("max_pool: an infinite window has the place of its first element", "[family][pool]") {
  tensor const least = vv::full({1, 4, 4}, -std::numeric_limits<double>::infinity());
  auto const at = tensor(vv::max_pool2d(least, 2).second).to_vector<std::int64_t>();
  CHECK(at == std::vector<std::int64_t>{0, 2, 8, 10});
}
TEST_CASE("smooth_l1_loss and huber_loss: in one pass as by operators", "[family][loss]") {
  for (dtype const type : {dtype::float32, dtype::float64})
    for (bool const special : {false, true})
      for (dims const& sizes : {dims{}, dims{0}, dims{70}, dims{5, 9}}) {
        tensor const x = wave(sizes, type, special), y = vv::mul(wave(sizes, type, false), 0.4);
        check([&](auto const& v) { return vv::smooth_l1_loss(v, y, vv::reduction::none, 0.7); }, x);
        check([&](auto const& v) { return vv::smooth_l1_loss(y, v, vv::reduction::sum); }, x);
        check([&](auto const& v) { return vv::huber_loss(v, y, vv::reduction::none, 0.7); }, x);
        check([&](auto const& v) { return vv::huber_loss(y, v, vv::reduction::sum); }, x);
      }
}
TEST_CASE("copysign: signs of zeros and NaN, whole numbers, and a derivative of 0 at 0", "[family]") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const x[] = {1, -2, 0, nan, 5}, y[] = {-0.0, 3, -1, -1, -nan};
  tensor const a = tensor::from_data(x, dims{5}), b = tensor::from_data(y, dims{5});
  auto const r = tensor(vv::copysign(a, b)).to_vector<double>();
  CHECK((r[0] == -1 && r[1] == 2 && r[2] == 0 && std::signbit(r[2])));
  CHECK((std::isnan(r[3]) && std::signbit(r[3]) && r[4] == -5));
  tensor const whole = vv::copysign(vv::arange(4), -1);
  CHECK(whole.dtype() == dtype::float32);
  CHECK(whole.to_vector<float>() == std::vector<float>{-0.0f, -1, -2, -3});
  auto const [of_x, of_y] = vv::grad([](auto const& u, auto const& v) { return vv::sum(vv::copysign(u, v)); },
                                     vv::argnums<0, 1>)(tensor::from_data(x, dims{3}), tensor::from_data(y, dims{3}));
  CHECK(of_x.template to_vector<double>() == std::vector<double>{-1, -1, 0});
  CHECK(of_y.template to_vector<double>() == std::vector<double>{0, 0, 0});
}
TEST_CASE("cross_entropy: a target of another shape is refused by name", "[family][loss][exception]") {
  tensor const x = vv::ones({4, 3});
  CHECK_THROWS_WITH(vv::cross_entropy(x, vv::ones({4})),
                    ContainsText("a floating target holds probabilities") && ContainsText("[4, 3] and [4]"));
  CHECK_THROWS_WITH(vv::cross_entropy(x, vv::zeros({5}, dtype::int64)), ContainsText("[5]"));
}
