// SPDX-License-Identifier: BSL-1.0
// int8, int16, float16, bfloat16. PyTorch's recorded cases run in them in test/opinfo/compact.cpp.
#include "../sample/value.hpp"

#include <varve/special.hpp>
#include <varve/varve.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
dtype const halves[] = {dtype::float16, dtype::bfloat16};
dtype const compact[] = {dtype::float16, dtype::bfloat16, dtype::int8, dtype::int16};
/// By its definition: the nearest number of `digits` binary digits and exponents from `least` on, ties to even.
double nearest(double x, int digits, int least, double most) {
  if (x == 0 || std::isnan(x) || std::isinf(x)) return x;
  double const step = std::ldexp(1.0, std::max(std::ilogb(x), least) - digits + 1);
  double const r = std::nearbyint(x / step) * step;
  return std::abs(r) > most ? std::copysign(INFINITY, x) : r;
}
} // namespace

static_assert(vv::promote_types(dtype::uint8, dtype::int8) == dtype::int16);
static_assert(vv::promote_types(dtype::int8, dtype::int16) == dtype::int16);
static_assert(vv::promote_types(dtype::int16, dtype::uint8) == dtype::int16);
static_assert(vv::promote_types(dtype::int16, dtype::int32) == dtype::int32);
static_assert(vv::promote_types(dtype::int64, dtype::int8) == dtype::int64);
static_assert(vv::promote_types(dtype::bool_, dtype::int8) == dtype::int8);
static_assert(vv::promote_types(dtype::float16, dtype::bfloat16) == dtype::float32);
static_assert(vv::promote_types(dtype::int64, dtype::float16) == dtype::float16);
static_assert(vv::promote_types(dtype::float16, dtype::float64) == dtype::float64);
static_assert(static_cast<float>(vv::float16(1.0f / 3)) == 0.333251953125f);
static_assert(vv::bfloat16(1.0f).bits == 0x3F80);

TEST_CASE("compact: all halves become floats and back, and floats the nearest half", "[op][compact]") {
  for (std::uint32_t b = 0; b < 65536; ++b) {
    vv::float16 h;
    h.bits = static_cast<std::uint16_t>(b);
    vv::bfloat16 f;
    f.bits = h.bits;
    int const e = static_cast<int>(b >> 10 & 31), m = static_cast<int>(b & 1023);
    double const size = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24);
    float const value = h, other = f;
    bool const right = std::isnan(size) ? std::isnan(value)
                                        : value == (b >> 15 ? -size : size) && std::signbit(value) == (b >> 15 != 0);
    if (!right || (!std::isnan(value) && vv::float16(value).bits != b)) FAIL(b << " is " << value);
    if (std::bit_cast<std::uint32_t>(other) != b << 16) FAIL(b);
    if (!std::isnan(other) && vv::bfloat16(other).bits != b) FAIL(b);
    if (std::isnan(other) != std::isnan(static_cast<float>(vv::bfloat16(other)))) FAIL(b);
  }
  numbers draw(1);
  for (int k = 0; k < 200000; ++k) {
    auto const x = static_cast<float>(std::ldexp(draw() * 2 - 1, static_cast<int>(draw() * 50) - 32));
    if (static_cast<float>(vv::float16(x)) != nearest(x, 11, -14, 65504)) FAIL(x);
    if (static_cast<float>(vv::bfloat16(x)) != nearest(x, 8, -126, 3.4e38)) FAIL(x);
  }
  for (float const x : {65503.99f, 65504.0f, 65519.99f, 65520.0f, 65536.0f, 1e30f, INFINITY, 0x1p-24f, 0x1p-25f,
                        0x1.000002p-25f, 0x1.8p-24f, 0x1.ffcp-15f, 0x1.ffep-15f, 0x1.fffp-15f, 0x1p-14f, -0.0f})
    CHECK(static_cast<float>(vv::float16(x)) == nearest(x, 11, -14, 65504));
  CHECK(std::signbit(static_cast<float>(vv::float16(-0.0f))));
}
TEST_CASE("compact: made, converted, read, printed", "[op][compact]") {
  for (dtype const t : compact) {
    INFO(vv::name(t));
    CHECK(difference(vv::zeros({2, 2}, t), from({0, 0, 0, 0}, {2, 2}, t)) == "");
    CHECK(difference(vv::full({2}, 7, t), from({7, 7}, {2}, t)) == "");
    CHECK(difference(vv::arange(4, t), from({0, 1, 2, 3}, {4}, t)) == "");
    CHECK(difference(vv::eye(2, t), from({1, 0, 0, 1}, {2, 2}, t)) == "");
    tensor const x = from({-2, 0, 1, 100}, {4}, t);
    CHECK(difference(vv::zeros_like(x), vv::zeros({4}, t)) == "");
    for (dtype const o : {dtype::bool_, dtype::uint8, dtype::int32, dtype::int64, dtype::float32, dtype::float64,
                          dtype::int8, dtype::int16, dtype::float16, dtype::bfloat16}) {
      INFO(vv::name(o));
      tensor const plain = vv::to(from({-2, 0, 1, 100}, {4}), o);
      CHECK(difference(vv::to(x, o), plain) == "");
      CHECK(difference(vv::to(from({0, 1, 1, 0}, {4}, o), t), from({0, 1, 1, 0}, {4}, t)) == "");
    }
    CHECK(x.to_vector<double>() == doubles({-2, 0, 1, 100}));
    CHECK(vv::slice(x, 0, 3, 4).item<float>() == 100);
    CHECK(vv::to_string(x).find("[-2, 0, 1, 100]") != std::string::npos);
    CHECK(vv::to_string(x).find(vv::name(t)) != std::string::npos);
    CHECK_THROWS_AS(x.data<float>(), vv::dtype_error);
  }
  vv::float16 const two[] = {vv::float16(0.5f), vv::float16(2.0f)};
  tensor const h = tensor::from_data(two, dims{2});
  CHECK(difference(h, from({0.5, 2}, {2}, dtype::float16)) == "");
  CHECK(static_cast<float>(h.data<vv::float16>()[1]) == 2);
  std::int8_t const small[] = {-128, 127};
  CHECK(difference(tensor::from_data(small, dims{2}), from({-128, 127}, {2}, dtype::int8)) == "");
  CHECK(difference(vv::to(from({300, -129, 40000}, {3}, dtype::int64), dtype::int8),
                   from({44, 127, 64}, {3}, dtype::int8)) == "");
}
TEST_CASE("compact: views, copies, writes and layouts", "[op][compact]") {
  for (dtype const t : compact)
    for (memory const m : {memory::row_major, memory::transposed, memory::stepped}) {
      INFO(vv::name(t));
      tensor const x = from({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4}, t, m);
      tensor const row = vv::select(x, 0, 1);
      CHECK(row.shares_storage(x));
      vv::add_(row, 1);
      CHECK(elements(x) == doubles({0, 1, 2, 3, 5, 6, 7, 8, 8, 9, 10, 11}));
      vv::copy_(vv::select(x, 1, 0), from({7, 7, 7}, {3}));
      CHECK(elements(vv::transpose(x, 0, 1)) == doubles({7, 7, 7, 1, 6, 9, 2, 7, 10, 3, 8, 11}));
      CHECK(difference(vv::clone(x), vv::contiguous(x)) == "");
      CHECK(difference(vv::cat(std::vector<tensor>{x, x}, 0),
                       vv::reshape(vv::stack(std::vector<tensor>{x, x}, 0), dims{6, 4})) == "");
      CHECK(elements(vv::gather(x, 1, vv::full({3, 1}, 2))) == doubles({2, 7, 10}));
      CHECK(elements(vv::index_select(x, 0, vv::full({1}, 2))) == doubles({7, 9, 10, 11}));
      CHECK(elements(vv::flip(x, dims{1})) == doubles({3, 2, 1, 7, 8, 7, 6, 7, 11, 10, 9, 7}));
      vv::mul_(x, 2);
      CHECK(element(x, 11) == 22);
      CHECK(x.dtype() == t);
    }
  CHECK_THROWS_AS(vv::add_(vv::zeros({2}, dtype::int8), 0.5), vv::dtype_error);
  CHECK_THROWS_AS(vv::add_(vv::zeros({2}, dtype::int16), vv::ones({2}, dtype::float16)), vv::dtype_error);
}
TEST_CASE("compact: dtypes of results", "[op][compact]") {
  auto const type = [](tensor const& t) { return t.dtype(); };
  for (dtype const t : halves) {
    tensor const x = vv::ones({2}, t);
    CHECK(type(x + 1.5) == t);
    CHECK(type(x + 1) == t);
    CHECK(type(x + vv::ones({2}, dtype::int64)) == t);
    CHECK(type(x + vv::full({}, 1.0, dtype::float64)) == t);
    CHECK(type(x + vv::ones({2})) == dtype::float32);
    CHECK(type(x + vv::ones({2}, dtype::float64)) == dtype::float64);
    CHECK(type(vv::lt(x, x)) == dtype::bool_);
    CHECK(type(vv::sin(x)) == t);
    CHECK(type(vv::sum(x)) == t);
    CHECK(type(vv::matmul(x, x)) == t);
    CHECK(type(vv::argmax(x, 0)) == dtype::int64);
    CHECK(type(vv::where(vv::gt(x, 0), x, 0.5)) == t);
    CHECK_THROWS_AS(vv::matmul(x, vv::ones({2})), vv::dtype_error);
  }
  CHECK(type(vv::ones({2}, dtype::float16) * vv::ones({2}, dtype::bfloat16)) == dtype::float32);
  tensor const b = vv::ones({2}, dtype::int8), s = vv::ones({2}, dtype::int16);
  CHECK(type(b + s) == dtype::int16);
  CHECK(type(b + vv::ones({2}, dtype::uint8)) == dtype::int16);
  CHECK(type(b + 3) == dtype::int8);
  CHECK(type(b + 3.5) == dtype::float32);
  CHECK(type(b / b) == dtype::float32);
  CHECK(type(vv::exp(s)) == dtype::float32);
  CHECK(type(vv::sum(b)) == dtype::int64);
  CHECK(type(vv::amax(b)) == dtype::int8);
  CHECK(type(b + vv::ones({2}, dtype::bool_)) == dtype::int8);
}
TEST_CASE("compact: integers wrap around, and compare exactly", "[op][compact]") {
  tensor const b = from({-128, -1, 0, 100, 127}, {5}, dtype::int8);
  CHECK(elements(b + b) == doubles({0, -2, 0, -56, -2}));
  CHECK(elements(b * b) == doubles({0, 1, 0, 16, 1}));
  CHECK(elements(vv::neg(b)) == doubles({-128, 1, 0, -100, -127}));
  CHECK(elements(vv::abs(b)) == doubles({-128, 1, 0, 100, 127}));
  CHECK(vv::sum(b).item<std::int64_t>() == 98);
  CHECK(elements(vv::lt(b, 200)) == doubles({1, 1, 1, 1, 1}));
  CHECK(elements(vv::eq(b, -129)) == doubles({0, 0, 0, 0, 0}));
  CHECK(elements(vv::maximum(b, 1000)) == doubles({127, 127, 127, 127, 127}));
  CHECK(elements(vv::minimum(b, from({300}, {}, dtype::int64))) == elements(b));
  CHECK(elements(vv::gt(b, from({-300}, {}, dtype::int64))) == doubles({1, 1, 1, 1, 1}));
  CHECK(elements(b + vv::to(b, dtype::uint8)) == doubles({0, 254, 0, 200, 254}));
  tensor const s = from({-32768, 32767}, {2}, dtype::int16);
  CHECK(elements(s - 1) == doubles({32767, 32766}));
  CHECK(elements(vv::clamp(s, -5, 5)) == doubles({-5, 5}));
  // a number is of their dtype before it divides, as it is beside uint8: 300 is 44
  CHECK(elements(vv::floor_divide(b, 300)) == doubles({-3, -1, 0, 2, 2}));
  CHECK(elements(vv::remainder(b, 300)) == doubles({4, 43, 0, 12, 39}));
  CHECK(elements(vv::fmod(b, 300)) == doubles({-40, -1, 0, 12, 39}));
}
TEST_CASE("compact: the neighbour of a number is one of its dtype, which floats do not know", "[op][compact]") {
  for (dtype const t : halves) {
    CHECK_THROWS_AS(vv::nextafter(vv::ones({2}, t), vv::zeros({2}, t)), vv::dtype_error);
    CHECK(vv::nextafter(vv::ones({2}, t), vv::zeros({2})).dtype() == dtype::float32);
  }
}
TEST_CASE("compact: halves are rounded once per operator, and accumulate in float32", "[op][compact]") {
  tensor const many = vv::ones({70000}, dtype::float16);
  CHECK(vv::sum(many).item<double>() == INFINITY); // as in PyTorch: 70000 is beyond float16
  CHECK(vv::mean(many).item<double>() == 1);
  CHECK(vv::sum(vv::ones({4000}, dtype::float16)).item<double>() == 4000);
  CHECK(vv::sum(vv::ones({4000}, dtype::bfloat16)).item<double>() == 4000);
  CHECK(vv::var(many).item<double>() == 0);
  CHECK(vv::vector_norm(vv::full({4}, 300.0, dtype::float16)).item<double>() == 600); // squares are beyond
  CHECK(vv::softmax(many, 0).dtype() == dtype::float16);
  CHECK(element(vv::softmax(many, 0), 5) == Approx(1 / 70000.).epsilon(0.01));
  CHECK(vv::logsumexp(many, 0).item<double>() == Approx(1 + std::log(70000)).epsilon(0.001));
  CHECK(vv::matmul(vv::ones({1, 4000}, dtype::float16), vv::ones({4000, 1}, dtype::float16)).item<double>() == 4000);
  tensor const x = from({0.1, 1, 3}, {3}, dtype::float16);
  CHECK(elements(vv::eq(x, 0.1)) == doubles({1, 0, 0})); // the number is compared as a half
  CHECK(element(x * 0.1, 2) == nearest(0.3, 11, -14, 65504));
  CHECK(element(vv::gelu(from({-3}, {1}, dtype::float16)), 0) == Approx(-0.00404969).epsilon(0.001));
  CHECK(element(vv::hypot(from({300}, {1}, dtype::float16), from({400}, {1}, dtype::float16)), 0) == 500);
  CHECK(element(vv::to(from({70000}, {1}, dtype::int64), dtype::float16) * 0.0, 0) != 0); // infinite
}
TEST_CASE("compact: derivatives, vmap and jvp have the dtype of their values", "[op][compact][grad]") {
  for (dtype const t : halves) {
    INFO(vv::name(t));
    tensor const x = from({0.5, -1, 2}, {3}, t), w = from({1, 2, 3, 4, 5, 6}, {2, 3}, t);
    auto const f = [&](tensor const& v) { return vv::sum(vv::tanh(vv::matmul(w, v)) * 0.5) + vv::mean(v * v); };
    tensor const g = vv::grad(f)(x);
    CHECK(g.dtype() == t);
    tensor const wide_w = vv::to(w, dtype::float32);
    auto const wide = [&](tensor const& v) { return vv::sum(vv::tanh(vv::matmul(wide_w, v)) * 0.5) + vv::mean(v * v); };
    tensor const right = vv::grad(wide)(vv::to(x, dtype::float32));
    for (index_t k = 0; k < 3; ++k) CHECK(element(g, k) == Approx(element(right, k)).epsilon(0.05).margin(0.02));
    tensor const leaf = vv::clone(x);
    leaf.requires_grad_();
    f(leaf).backward();
    CHECK(difference(leaf.grad(), g, 0) == "");
    CHECK(difference(vv::vmap([](tensor const& v) { return vv::softmax(v, 0); })(w), vv::softmax(w, 1), 0) == "");
    auto const [y, d] = vv::jvp([](tensor const& v) { return vv::exp(v) * 2.0; }, std::tuple(x), std::tuple(x));
    CHECK((y.dtype() == t && d.dtype() == t));
    // through a conversion: in between in float32
    tensor const h =
        vv::grad([&](tensor const& v) { return vv::sum(vv::exp(vv::to(v, t))); })(vv::to(x, dtype::float32));
    CHECK(h.dtype() == dtype::float32);
    // parts of one value, whose gradients are added in place
    auto const parts = [](tensor const& v) {
      return vv::sum(vv::slice(v, 0, 0, 2) * 2.0) + vv::sum(vv::slice(v, 0, 1, 3) * 3.0);
    };
    CHECK(elements(vv::grad(parts)(x)) == doubles({2, 5, 3}));
    tensor const again = vv::clone(x);
    again.requires_grad_();
    parts(again).backward();
    CHECK(elements(again.grad()) == doubles({2, 5, 3}));
  }
  CHECK_THROWS_AS(vv::zeros({2}, dtype::int8).requires_grad_(), vv::error);
}
TEST_CASE("compact: traced, compiled, and what is refused by name", "[op][compact][trace]") {
  tensor const x = from({0.5, -1, 2}, {3}, dtype::float16);
  auto const f = [](tensor const& v) { return vv::softmax(v * 2.0, 0) + vv::to(vv::sum(v), dtype::float16); };
  CHECK(difference(vv::interpret(vv::make_fx(f)(x), vv::boxed_args(x))[0], f(x), 0) == "");
  CHECK(difference(vv::compile(f)(x), f(x), 0) == "");
  CHECK_THROWS_AS(vv::fuse(vv::make_fx(f)(x)), vv::dtype_error);
  auto const inside = [](tensor const& v) { return vv::to(vv::to(v, dtype::bfloat16) * 3.0, dtype::float32); };
  tensor const wide = vv::to(x, dtype::float32);
  CHECK(difference(vv::compile(inside)(wide), inside(wide), 0) == "");
  CHECK_THROWS_AS(vv::mean(vv::ones({2}, dtype::int8)), vv::dtype_error);
  {
    vv::anomaly_mode const on;
    tensor const leaf = vv::clone(x);
    leaf.requires_grad_();
    CHECK_THROWS_AS(vv::sum(vv::sqrt(leaf) * 0.0).backward(), vv::autograd_error); // nan below 0
  }
}
