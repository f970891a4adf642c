// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/compile/compile.hpp>
#include <varve/op/all.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>

#include <functional>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
constexpr dtype all_types[] = {dtype::bool_, dtype::uint8, dtype::int32, dtype::int64, dtype::float32, dtype::float64};
constexpr memory all_memory[] = {memory::row_major, memory::transposed, memory::stepped};

/// Element of an operand at a position of the broadcast shape.
double broadcast_element(tensor const& t, dims const& shape, index_t position) {
  index_t p = 0, step = 1;
  for (int k = shape.n - 1; k >= 0; --k) {
    index_t const i = position % shape[k];
    position /= shape[k];
    int const own = k - (shape.n - t.dim());
    if (own >= 0 && t.sizes()[own] != 1) p += i * step;
    if (own >= 0) step *= t.sizes()[own];
  }
  return element(t, p);
}
struct binary {
  char const* name;
  std::function<tensor(tensor const&, tensor const&)> op;
  std::function<double(double, double)> plain;
  bool truth = false, floating = false, no_bool = false;
};
std::vector<binary> const binaries{
    {"add", [](auto& a, auto& b) { return vv::add(a, b); }, [](double a, double b) { return a + b; }},
    {"sub", [](auto& a, auto& b) { return vv::sub(a, b); }, [](double a, double b) { return a - b; }, false, false,
     true},
    {"mul", [](auto& a, auto& b) { return vv::mul(a, b); }, [](double a, double b) { return a * b; }},
    {"div", [](auto& a, auto& b) { return vv::div(a, b); }, [](double a, double b) { return a / b; }, false, true},
    {"maximum", [](auto& a, auto& b) { return vv::maximum(a, b); }, [](double a, double b) { return a > b ? a : b; }},
    {"minimum", [](auto& a, auto& b) { return vv::minimum(a, b); }, [](double a, double b) { return a < b ? a : b; }},
    {"lt", [](auto& a, auto& b) { return vv::lt(a, b); }, [](double a, double b) { return a < b; }, true},
    {"le", [](auto& a, auto& b) { return vv::le(a, b); }, [](double a, double b) { return a <= b; }, true},
    {"gt", [](auto& a, auto& b) { return vv::gt(a, b); }, [](double a, double b) { return a > b; }, true},
    {"ge", [](auto& a, auto& b) { return vv::ge(a, b); }, [](double a, double b) { return a >= b; }, true},
    {"eq", [](auto& a, auto& b) { return vv::eq(a, b); }, [](double a, double b) { return a == b; }, true},
    {"ne", [](auto& a, auto& b) { return vv::ne(a, b); }, [](double a, double b) { return a != b; }, true},
};
/// The value a dtype holds for a number that fits it.
double in_type(dtype t, double v) {
  if (t == dtype::bool_) return v != 0;
  if (t == dtype::float32) return static_cast<float>(v);
  return v;
}
} // namespace

TEST_CASE("pointwise: two operands of any dtypes, shapes and layouts agree with a plain loop", "[op][pointwise]") {
  std::vector<std::pair<dims, dims>> const shapes{{{}, {}},      {{5}, {}},  {{}, {2, 3}},     {{2, 1}, {1, 3}},
                                                  {{3}, {2, 3}}, {{0}, {1}}, {{2, 0, 3}, {3}}, {{2, 3, 4}, {2, 3, 4}},
                                                  {{33}, {33}}};
  std::uint64_t seed = 1;
  for (auto const& f : binaries)
    for (auto a : all_types)
      for (auto b : all_types)
        for (auto const& [sa, sb] : shapes) {
          numbers draw(++seed);
          tensor const x = uniform(sa, draw, 0, 4, a, all_memory[seed % 3]),
                       y = uniform(sb, draw, 1, 4, b, all_memory[seed / 3 % 3]);
          dtype t = vv::result_type(vv::meta_of(x), vv::meta_of(y));
          INFO(f.name << " " << vv::name(a) << vv::to_string(sa) << " " << vv::name(b) << vv::to_string(sb));
          if (f.no_bool && (a == dtype::bool_ || b == dtype::bool_)) {
            CHECK_THROWS_AS(f.op(x, y), vv::dtype_error);
            continue;
          }
          if (f.floating && vv::category(t) < 2) t = vv::default_dtype;
          tensor const z = f.op(x, y);
          CHECK(z.dtype() == (f.truth ? dtype::bool_ : t));
          REQUIRE(z.sizes() == vv::broadcast(sa, sb));
          bool same = true;
          for (index_t k = 0; k < z.numel(); ++k) {
            double const u = in_type(t, broadcast_element(x, z.sizes(), k)),
                         v = in_type(t, broadcast_element(y, z.sizes(), k));
            double want = f.plain(u, v);
            if (!f.truth && t == dtype::uint8) want = static_cast<std::uint8_t>(static_cast<int>(want));
            same = same && close(element(z, k), f.truth ? want : in_type(t, want), t == dtype::float32 ? 1e-6 : 1e-14);
          }
          CHECK(same);
        }
}

TEST_CASE("pointwise: a plain number beside a tensor keeps the tensor's dtype within its category", "[op][pointwise]") {
  for (auto t : all_types) {
    INFO(vv::name(t));
    numbers draw(3);
    tensor const x = uniform({2, 3}, draw, 0, 3, t);
    CHECK(vv::add(x, 1).dtype() == (t == dtype::bool_ ? dtype::int64 : t));
    CHECK((1 + x).dtype() == (t == dtype::bool_ ? dtype::int64 : t));
    CHECK(vv::add(x, true).dtype() == t);
    CHECK(vv::add(x, 0.5).dtype() == (vv::is_floating(t) ? t : dtype::float32));
    CHECK(vv::mul(vv::reshape(uniform({1}, draw, 1, 2, dtype::float64), dims{}), x).dtype() ==
          (vv::is_floating(t) ? t : dtype::float64)); // a rank-0 tensor
    CHECK(vv::lt(x, 1.5).dtype() == dtype::bool_);
  }
  CHECK(element(vv::lt(from({1, 2}, {2}, dtype::int64), 1.5), 0) == 1); // compared as floating numbers
  CHECK(element(vv::where(from({1, 0}, {2}, dtype::bool_), from({7, 8}, {2}, dtype::int32), 0.5), 1) == 0.5);
  for (dtype const t : {dtype::uint8, dtype::int32, dtype::int64, dtype::float32}) {
    tensor const x = from({1, 2, 3, 4}, {4}, t), y = from({5, 6, 7, 8}, {4}, t);
    tensor const truths = from({2, 0, 255, 1}, {4}, dtype::uint8); // all but 0 hold, whatever the others are
    CHECK(difference(vv::where(truths, x, y), from({1, 6, 3, 4}, {4}, t)) == "");
    CHECK_THROWS_AS(vv::where(vv::to(truths, dtype::float64), x, y), vv::dtype_error);
  }
}

TEST_CASE("pointwise: one operand of any dtype agrees with the C library", "[op][pointwise]") {
  struct unary {
    char const* name;
    tensor (*op)(tensor const&);
    double (*plain)(double);
    bool floating;
  };
  unary const unaries[] = {
      {"exp", [](tensor const& x) -> tensor { return vv::exp(x); }, std::exp, true},
      {"log", [](tensor const& x) -> tensor { return vv::log(x); }, std::log, true},
      {"sqrt", [](tensor const& x) -> tensor { return vv::sqrt(x); }, std::sqrt, true},
      {"sin", [](tensor const& x) -> tensor { return vv::sin(x); }, std::sin, true},
      {"cos", [](tensor const& x) -> tensor { return vv::cos(x); }, std::cos, true},
      {"tanh", [](tensor const& x) -> tensor { return vv::tanh(x); }, std::tanh, true},
      {"sigmoid", [](tensor const& x) -> tensor { return vv::sigmoid(x); },
       [](double v) { return 1 / (1 + std::exp(-v)); }, true},
      {"expm1", [](tensor const& x) -> tensor { return vv::expm1(x); }, std::expm1, true},
      {"log1p", [](tensor const& x) -> tensor { return vv::log1p(x + 3.5); },
       [](double v) { return std::log1p(v + 3.5); }, true},
      {"erf", [](tensor const& x) -> tensor { return vv::erf(x); }, std::erf, true},
      {"log1p_exp", [](tensor const& x) -> tensor { return vv::log1p_exp(x); },
       [](double v) { return std::log1p(std::exp(v)); }, true},
      {"reciprocal", [](tensor const& x) -> tensor { return vv::reciprocal(x + 3.5); },
       [](double v) { return 1 / (v + 3.5); }, true},
      {"rsqrt", [](tensor const& x) -> tensor { return vv::rsqrt(x + 3.5); },
       [](double v) { return 1 / std::sqrt(v + 3.5); }, true},
      {"abs", [](tensor const& x) -> tensor { return vv::abs(x); }, std::fabs, false},
      {"sign", [](tensor const& x) -> tensor { return vv::sign(x); },
       [](double v) { return static_cast<double>((v > 0) - (v < 0)); }, false},
      {"relu", [](tensor const& x) -> tensor { return vv::relu(x); }, [](double v) { return v > 0 ? v : 0; }, false}};
  std::uint64_t seed = 1;
  for (auto const& f : unaries)
    for (auto t : all_types)
      for (dims const& s : {dims{}, dims{0, 2}, dims{3, 2}, dims{65}}) {
        INFO(f.name << " " << vv::name(t) << vv::to_string(s));
        numbers draw(++seed);
        bool const no_bool = std::string(f.name) == "abs" || std::string(f.name) == "relu";
        if (no_bool && t == dtype::bool_) {
          CHECK_THROWS_AS(f.op(tensor::empty(s, t)), vv::dtype_error);
          continue;
        }
        bool const negative = vv::is_floating(t) && f.plain != static_cast<double (*)(double)>(std::log) &&
                              f.plain != static_cast<double (*)(double)>(std::sqrt);
        tensor const x = uniform(s, draw, negative ? -3 : 0.5, 3.9, t, all_memory[seed % 3]);
        tensor const y = f.op(x);
        dtype const want = f.floating && vv::category(t) < 2 ? vv::default_dtype : t;
        CHECK(y.dtype() == want);
        REQUIRE(y.sizes() == s);
        bool same = true;
        for (index_t k = 0; k < y.numel(); ++k)
          same = same && close(element(y, k), f.plain(element(x, k)), want == dtype::float32 ? 2e-6 : 1e-13);
        CHECK(same);
      }
}

TEST_CASE("pointwise: NaN and infinity as in PyTorch", "[op][pointwise]") {
  double const nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (auto t : {dtype::float32, dtype::float64}) {
    tensor const x = from({nan, 1, inf, -inf, 0}, {5}, t), y = from({1, nan, -inf, inf, -0.0}, {5}, t);
    CHECK(difference(vv::maximum(x, y), from({nan, nan, inf, inf, 0}, {5}, t)) == "");
    CHECK(difference(vv::minimum(x, y), from({nan, nan, -inf, -inf, 0}, {5}, t)) == "");
    CHECK(difference(vv::relu(x), from({nan, 1, inf, 0, 0}, {5}, t)) == "");
    CHECK(difference(vv::clamp(x, -1.0, 2.0), from({nan, 1, 2, -1, 0}, {5}, t)) == "");
    CHECK(difference(vv::eq(x, x), from({0, 1, 1, 1, 1}, {5}, dtype::bool_)) == "");
    CHECK(difference(vv::ne(x, x), from({1, 0, 0, 0, 0}, {5}, dtype::bool_)) == "");
    CHECK(difference(vv::sqrt(from({-1, 4}, {2}, t)), from({nan, 2}, {2}, t)) == "");
    CHECK(difference(vv::log(from({0, -1}, {2}, t)), from({-inf, nan}, {2}, t)) == "");
    CHECK(difference(vv::exp(from({-1e4, 1e4, -inf, nan}, {4}, t)), from({0, inf, 0, nan}, {4}, t)) == "");
    CHECK(difference(vv::sigmoid(from({-1e4, 1e4}, {2}, t)), from({0, 1}, {2}, t)) == "");
    CHECK(difference(vv::tanh(from({-1e4, 1e4, inf}, {3}, t)), from({-1, 1, 1}, {3}, t)) == "");
    CHECK(difference(vv::erf(from({-1e4, 1e4, inf, -inf, nan, 0}, {6}, t)), from({-1, 1, 1, -1, nan, 0}, {6}, t)) ==
          "");
    CHECK(difference(vv::expm1(from({-1e4, 1e4, -inf, nan}, {4}, t)), from({-1, inf, -1, nan}, {4}, t)) == "");
    CHECK(difference(vv::log1p(from({-1, -2, inf}, {3}, t)), from({-inf, nan, inf}, {3}, t)) == "");
    CHECK(difference(vv::log1p_exp(from({-1e4, 1e4, nan}, {3}, t)), from({0, 1e4, nan}, {3}, t)) == "");
    CHECK(difference(vv::reciprocal(from({0, -0.0, inf}, {3}, t)), from({inf, -inf, 0}, {3}, t)) == "");
    CHECK(difference(vv::rsqrt(from({0, inf, -1, 4}, {4}, t)), from({inf, 0, nan, 0.5}, {4}, t)) == "");
    CHECK(difference(vv::pow(from({0, 2, -2, 0, 4}, {5}, t), from({0, -1, 3, 2, 0.5}, {5}, t)),
                     from({1, 0.5, -8, 0, 2}, {5}, t), 1e-6) == "");
    CHECK(difference(vv::where(from({1, 0}, {2}, dtype::bool_), from({1, nan}, {2}, t), from({nan, 2}, {2}, t)),
                     from({1, 2}, {2}, t)) == "");
  }
}

TEST_CASE("activations and layer_norm: integers and wrong shapes are refused", "[op][pointwise]") {
  tensor const whole = from({1, 2}, {2}, dtype::int64), x = from({1, 2, 3, 4}, {2, 2}, dtype::float32);
  CHECK_THROWS_AS(vv::gelu(whole), vv::error);
  CHECK_THROWS_AS(vv::silu(whole), vv::error);
  CHECK_THROWS_AS(vv::softplus(whole), vv::error);
  CHECK_THROWS_AS(vv::layer_norm(whole, dims{2}), vv::error);
  CHECK_THROWS_AS(vv::layer_norm(x, dims{3}), vv::error);
  CHECK_THROWS_AS(vv::layer_norm(x, dims{}), vv::error);
  CHECK(vv::square(from({1, 0}, {2}, dtype::bool_)).dtype() == dtype::int64);
  CHECK(difference(vv::softplus(from({-1, 25}, {2}, dtype::float64)),
                   from({std::log1p(std::exp(-1.0)), 25}, {2}, dtype::float64), 1e-12) == "");
}

TEST_CASE("div: a gradient has the digits of the result, whatever the divisor's dtype", "[op][pointwise]") {
  tensor const x = from({1, 2}, {2}, dtype::float64);
  for (auto t : {dtype::int64, dtype::float32}) {
    tensor const n = from({3, 7}, {2}, t), third = from({1.0 / 3, 1.0 / 7}, {2}, dtype::float64);
    auto const quotient = [&](auto const& v) { return v / n; };
    CHECK(difference(std::get<0>(vv::vjp(quotient, x).second(vv::ones_like(x))), third, 1e-15) == "");
    CHECK(difference(vv::jvp(quotient, std::tuple(x), std::tuple(vv::ones_like(x))).second, third, 1e-15) == "");
  }
  static_assert(vv::grad([](auto v) { return v / 3; })(2.0) == 1.0 / 3);
}

TEST_CASE("to: every dtype to every other", "[op][to]") {
  for (auto a : all_types)
    for (auto b : all_types) {
      INFO(vv::name(a) << " to " << vv::name(b));
      tensor const x = from({0, 1, 2.75, 3}, {2, 2}, a, memory::transposed), y = vv::to(x, b);
      CHECK(y.dtype() == b);
      for (index_t k = 0; k < 4; ++k)
        CHECK(element(y, k) == (b == dtype::bool_    ? element(x, k) != 0
                                : vv::is_floating(b) ? element(x, k)
                                                     : std::trunc(element(x, k))));
      CHECK(y.is(x) == (a == b)); // itself when nothing changes
    }
}

namespace {
template <int N, class F>
constexpr auto derivative(F f) {
  if constexpr (N == 0) return f;
  else return derivative<N - 1>(vv::grad(f));
}
template <int N>
void check_powers_at_zero() {
  double factorial = 1;
  for (int k = 2; k <= N; ++k) factorial *= k;
  for (int p = 0; p <= 4; ++p) {
    INFO("derivative " << N << " of x^" << p);
    double const right = p == N ? factorial : 0, e = p;
    CHECK(derivative<N>([e](auto const& x) { return vv::pow(x, e); })(0.0) == right);
    tensor const exponent = vv::full({}, e, dtype::float64), zero = vv::full({}, 0.0, dtype::float64);
    auto const of_number = derivative<N>([e](tensor const& x) { return vv::pow(x, e); });
    auto const of_tensor = derivative<N>([&](tensor const& x) { return vv::pow(x, exponent); });
    CHECK(tensor(of_number(zero)).item<double>() == right);
    CHECK(tensor(of_tensor(zero)).item<double>() == right);
    CHECK(tensor(vv::compile(of_tensor)(zero)).item<double>() == right);
  }
}
} // namespace

TEST_CASE("pow: higher derivatives at 0 are those of the polynomial", "[op][pointwise]") {
  check_powers_at_zero<1>();
  check_powers_at_zero<2>();
  check_powers_at_zero<3>();
  check_powers_at_zero<4>();
  tensor const powers = from({0, 1, 2}, {3}, dtype::float64), factors = from({5, 3, -2}, {3}, dtype::float64);
  auto const f = [&](tensor const& x) { return vv::sum(vv::pow(x, powers) * factors); };
  CHECK(tensor(vv::grad(vv::grad(f))(vv::full({}, 0.0, dtype::float64))).item<double>() == -4);
  double const none = std::numeric_limits<double>::quiet_NaN(), all = std::numeric_limits<double>::infinity();
  auto const by_exponent = vv::grad([](auto const& y, auto const& x) { return vv::pow(x, y); });
  CHECK(by_exponent(0.0, 0.0) == 0);
  CHECK(by_exponent(2.0, 0.0) == 0);
  CHECK(by_exponent(-1.0, 0.0) == -all);
  CHECK(vv::grad([](auto const& x) { return vv::pow(x, 0.0); })(none) == 0);
}
