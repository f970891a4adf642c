// SPDX-License-Identifier: BSL-1.0
/// @file
/// Composites that compute a whole call in a pass or two where nothing watches, with their gradients: what their bodies
/// give where something does, for all layouts and for numbers that are none.
#include <varve/varve.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>
#include <vector>

namespace vv = varve;
using vv::dims, vv::tensor;

namespace {
struct watching : vv::dispatch_mode<watching> {
  int calls = 0;
  auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
tensor wave(dims const& sizes, vv::dtype type, double phase = 0.3, bool special = false) {
  tensor t = vv::empty(sizes, vv::dtype::float64);
  double const infinity = std::numeric_limits<double>::infinity(),
               odd[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), -0.0};
  for (vv::index_t k = 0; k < t.numel(); ++k)
    t.data<double>()[k] = special && k % 7 == 3 ? odd[k / 7 % 4] : 3 * std::sin(phase + 1.3 * static_cast<double>(k));
  return vv::to(t, type);
}
/// Tensors of these sizes, laid out in all ways.
std::vector<tensor> layouts(dims const& sizes, vv::dtype type, bool special) {
  std::vector<tensor> r{wave(sizes, type, 0.3, special)};
  int const n = sizes.n;
  if (n == 0) return r;
  dims wide = sizes;
  wide[n - 1] = 2 * sizes[n - 1];
  r.push_back(vv::slice(wave(wide, type, 0.7, special), n - 1, 0, vv::end, 2));
  dims one = sizes;
  one[0] = 1;
  r.push_back(vv::expand(wave(one, type, 0.9, special), sizes));
  if (n < 2) return r;
  dims turned = sizes;
  turned[n - 1] = sizes[n - 2], turned[n - 2] = sizes[n - 1];
  r.push_back(vv::transpose(wave(turned, type, 1.1, special), -1, -2));
  return r;
}
bool near(tensor const& a, tensor const& b, double tolerance) {
  tensor const x = vv::contiguous(vv::to(vv::detach(a), vv::dtype::float64)),
               y = vv::contiguous(vv::to(vv::detach(b), vv::dtype::float64));
  bool r = x.sizes() == y.sizes() && a.dtype() == b.dtype();
  for (vv::index_t k = 0; r && k < x.numel(); ++k) {
    double const u = x.data<double>()[k], v = y.data<double>()[k];
    r = u == v || (u != u && v != v) || std::fabs(u - v) <= tolerance * (1 + std::fabs(v));
  }
  return r;
}
double tolerance_of(tensor const& x) { return x.dtype() == vv::dtype::float32 ? 4e-6 : 1e-13; }

/// The value, the gradients, and derivatives of the gradients of `f(x, w, b)`, whole and below a mode.
template <class F>
void check(F const& f, tensor const& x, tensor const& w, tensor const& b, bool special) {
  double const close = tolerance_of(x);
  INFO(vv::to_string(x.sizes()) << " strides " << vv::to_string(x.strides()) << " special " << special);
  tensor const whole = f(x, w, b), g = wave(whole.sizes(), x.dtype(), 2.5);
  watching mode;
  auto const below = [&](auto const& call) {
    vv::mode_guard const on{mode};
    return call();
  };
  CHECK(near(whole, below([&] { return f(x, w, b); }), close));
  CHECK(mode.calls > 1); // the body
  auto const pulled = [&] {
    auto const [y, pull] = vv::vjp(f, x, w, b);
    auto const d = pull(g);
    return std::vector<tensor>{std::get<0>(d), std::get<1>(d), std::get<2>(d)};
  };
  std::vector<tensor> const at_once = pulled(), want = below(pulled);
  for (std::size_t k = 0; k < 3; ++k) CHECK(near(at_once[k], want[k], 4 * close));
  tensor const xr = vv::detach(x).alias(), wr = vv::detach(w).alias(), br = vv::detach(b).alias();
  for (tensor const* t : {&xr, &wr, &br}) t->requires_grad_();
  std::vector<tensor> const eager =
      vv::autograd::grad({f(xr, wr, br)}, {xr, wr, br}, {g}, {.create_graph = true}, vv::autograd::unused::zeros);
  for (std::size_t k = 0; k < 3; ++k) CHECK(near(eager[k], want[k], 4 * close));
  if (special || x.numel() == 0) return;
  auto const loss = [&](auto const& u, auto const& v, auto const& c) {
    auto const [y, pull] = vv::vjp(f, u, v, c);
    auto const d = pull(g);
    return vv::sum(vv::sin(std::get<0>(d))) + vv::sum(vv::sin(std::get<1>(d)));
  };
  auto const second = vv::grad(loss, vv::argnums<0, 1, 2>)(x, w, b);
  tensor const of_eager = vv::sum(vv::sin(eager[0])) + vv::sum(vv::sin(eager[1]));
  std::vector<tensor> const again = vv::autograd::grad({of_eager}, {xr, wr, br}, {}, {}, vv::autograd::unused::zeros);
  CHECK(near(std::get<0>(second), again[0], 30 * close));
  CHECK(near(std::get<1>(second), again[1], 30 * close));
  auto const [value, tangent] = vv::jvp([&](auto const& u) { return f(u, w, b); }, std::tuple{x}, std::tuple{g});
  CHECK(near(value, whole, close));
  CHECK(near(vv::sum(tangent * g), vv::sum(at_once[0] * g), 100 * close));
}
template <class F>
void check_all(F const& f, bool has_rows) {
  std::vector<dims> shapes{dims{1}, dims{3, 17}, dims{2, 3, 16}, dims{5, 33}, dims{4, 1}};
  if (!has_rows) shapes.insert(shapes.end(), {dims{}, dims{0}, dims{3, 0}, dims{20, 300}});
  for (vv::dtype const type : {vv::dtype::float32, vv::dtype::float64})
    for (dims const& s : shapes)
      for (bool const special : {false, true})
        for (tensor const& x : layouts(s, type, special)) {
          dims const row = s.n ? dims{s[s.n - 1]} : dims{};
          check(f, x, wave(row, type, 1.), wave(row, type, 2.), special);
        }
}
dims last(tensor const& x) { return {x.sizes()[x.dim() - 1]}; }
} // namespace

TEST_CASE("gelu, silu, softplus: in one pass they are their bodies", "[op][whole]") {
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::gelu(x) * w + b; }, false);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::gelu(x, vv::approximate::tanh) * w + b; },
            false);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::silu(x) * w + b; }, false);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::softplus(x) * w + b; }, false);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::softplus(x, 0.5, 1) * w + b; }, false);
}
TEST_CASE("relu, sigmoid: gradients in one pass are those of operators", "[op][whole]") {
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::relu(x) * vv::sin(x) * w + b; }, false);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::sigmoid(x) * w + b; }, false);
}
TEST_CASE("softmax, log_softmax: short columns at a time they are their bodies", "[op][whole]") {
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::softmax(x, 0) * w + b; }, true);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::log_softmax(x, 0) * w + b; }, true);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::softmax(x, x.dim() > 1 ? -2 : 0) * w + b; },
            false);
  tensor const x = wave({3, 5, 37}, vv::dtype::float32);
  for (int const axis : {0, 1, -2})
    CHECK(near(vv::log_softmax(x, axis), vv::to(vv::log(vv::softmax(vv::to(x, vv::dtype::float64), axis)), x.dtype()),
               1e-5));
}
TEST_CASE("softmax, log_softmax: rows at a time they are their bodies", "[op][whole]") {
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::softmax(x, -1) * w + b; }, true);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::log_softmax(x, x.dim() - 1) * w + b; }, true);
}
TEST_CASE("layer_norm: rows at a time it is its body", "[op][whole]") {
  // special numbers make whole rows none, whose gradients by the weight are none in both
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::layer_norm(x, last(x), w, b); }, true);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::layer_norm(x, last(x), w) * b; }, true);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::layer_norm(x, last(x), vv::none, b) * w; },
            true);
  check_all([](auto const& x, auto const& w, auto const& b) { return vv::layer_norm(x, last(x)) * w + b; }, true);
}
TEST_CASE("whole calls: empty tensors, long rows, other axes and dtypes go by the body", "[op][whole]") {
  CHECK(vv::softmax(vv::zeros({3, 0}), 1).sizes() == dims{3, 0});
  CHECK(vv::layer_norm(vv::zeros({0, 4}), dims{4}).sizes() == dims{0, 4});
  CHECK_THROWS_AS(vv::softmax(vv::arange(4), 0), vv::error);
  CHECK_THROWS_AS(vv::gelu(vv::arange(4)), vv::error);
  CHECK_THROWS_AS(vv::layer_norm(vv::zeros({3, 4}), dims{3}), vv::error);
  CHECK_THROWS_AS(vv::softmax(vv::zeros({3, 4}), 2), vv::error);
  tensor const x = wave({7, 20000}, vv::dtype::float32);
  CHECK(near(vv::sum(vv::softmax(x, 1), dims{1}), vv::ones({7}), 1e-5));
  CHECK(near(vv::sum(vv::softmax(x, 0), dims{0}), vv::ones({20000}), 1e-5));
  tensor const number = vv::softmax(vv::full({1}, 3.f), 0);
  CHECK(number.item<float>() == 1);
}
TEST_CASE("whole calls: one tensor may be x, weight and bias", "[op][whole]") {
  tensor const x = wave({17}, vv::dtype::float64);
  auto const f = [](auto const& u) { return vv::sum(vv::layer_norm(u, dims{17}, u, u) * vv::softmax(u, 0)); };
  tensor const d = vv::grad(f)(x);
  for (vv::index_t k = 0; k < 17; ++k) {
    tensor const above = vv::clone(x), below = vv::clone(x);
    above.data<double>()[k] += 1e-6, below.data<double>()[k] -= 1e-6;
    double const slope = (f(above).template item<double>() - f(below).template item<double>()) / 2e-6;
    CHECK(d.data<double>()[k] == Approx(slope).epsilon(1e-5).margin(1e-7));
  }
}
TEST_CASE("whole calls: what is recorded is one call, checked as others", "[op][whole]") {
  tensor const x = wave({3, 8}, vv::dtype::float32);
  x.requires_grad_();
  {
    vv::no_grad const off;
    CHECK_FALSE(vv::softmax(x, 1).requires_grad());
  }
  tensor const y = vv::softmax(x, 1);
  CHECK(std::string(y.grad_fn().name()) == "SoftmaxBackward0");
  tensor const z = vv::gelu(x);
  vv::add_(x.detach(), vv::ones({3, 8})); // what gelu's gradient reads
  CHECK_THROWS_AS(vv::sum(z).backward(), vv::autograd_error);
  CHECK_NOTHROW(vv::sum(y * y).backward());                       // softmax reads its result alone
  CHECK_THROWS_AS(vv::sum(y * y).backward(), vv::autograd_error); // a second time
}
TEST_CASE("cat: up to eight tensors are one recorded call", "[op][whole]") {
  for (std::size_t const count : {3, 5, 8, 11}) {
    std::vector<tensor> parts;
    for (std::size_t k = 0; k < count; ++k) {
      parts.push_back(wave({2, static_cast<vv::index_t>(k % 4)}, vv::dtype::float64, static_cast<double>(k)));
      parts.back().requires_grad_();
    }
    tensor const y = vv::cat(parts, -1), w = wave(y.sizes(), vv::dtype::float64, 9);
    vv::sum(y * w * y).backward();
    vv::index_t at = 0;
    for (tensor const& p : parts) {
      vv::index_t const end = at + p.sizes()[1].number();
      CHECK(near(p.grad(), 2 * vv::detach(p) * vv::slice(w, 1, at, end), 1e-14));
      at = end;
    }
  }
  std::vector<tensor> odd{vv::ones({2, 2}), vv::ones({2, 2}), vv::ones({3, 2})};
  odd[1].requires_grad_();
  CHECK_THROWS_AS(vv::cat(odd, 1), vv::error);
  CHECK_THROWS_AS(vv::cat(odd, 7), vv::error);
}
