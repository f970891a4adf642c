// SPDX-License-Identifier: BSL-1.0
// A result that nothing uses has no part in the gradient, whatever its own derivative is: NaN, or infinite.
#include <varve/aot.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::array;
using vv::tensor;

namespace {
struct harmless {
  template <class V>
  constexpr auto operator()(V const& v) const {
    return v * 2.0;
  }
};
/// NaN, and so is its derivative.
struct harmful {
  template <class V>
  constexpr auto operator()(V const& v) const {
    return vv::log(vv::abs(v) * -1.0);
  }
};

/// The second carried value enters neither the outputs nor the first.
template <class Of>
inline constexpr auto scanned = [](auto const& x) {
  auto const [last, all] = vv::scan(
      [](auto const& c, auto const& k) {
        auto const& [a, b] = c;
        return std::pair(std::pair(a * k, Of{}(b)), a + k);
      },
      std::pair(x, x * 0.5), array<double, 3>{1, 2, 3});
  return vv::sum(all) + last.first;
};
/// ... which the outputs alone are made of: nothing that is carried is used.
template <class Of>
inline constexpr auto outputs = [](auto const& x) {
  auto const all =
      vv::scan(vv::closure([](auto const& a, auto const& k, auto const& y) { return std::pair(Of{}(a), y * k); }, x), x,
               array<double, 3>{1, 2, 3})
          .second;
  return vv::sum(all);
};
/// A value that is used two steps later.
template <class Of>
inline constexpr auto chained = [](auto const& x) {
  auto const last = vv::scan(
                        [](auto const& v, auto const& k) {
                          auto const& [a, b, c, d] = v;
                          return std::pair(std::tuple(a + b, b * c, c * k, Of{}(d * c)), vv::none);
                        },
                        std::tuple(x, x * 1.0, x * 0.5, x), array<double, 4>{1, 2, 3, 4})
                        .first;
  return std::get<0>(last);
};
template <class Of>
inline constexpr auto while_looped = [](auto const& x) {
  auto const [a, b, n] =
      vv::while_loop<5>([](auto const&, auto const&, auto const& n) { return n < 3; },
                        [](auto const& a, auto const& b, auto const& n) { return std::tuple(a * a, Of{}(b), n + 1); },
                        std::tuple(x, x * 0.5, 0));
  return a;
};
template <class Of>
inline constexpr auto branched = [](auto const& x) {
  auto const [a, b] = vv::cond(
      x > 0.0, [](auto const& u) { return std::tuple(u * u, Of{}(u)); },
      [](auto const& u) { return std::tuple(u * 3.0, Of{}(u)); }, x);
  return a;
};
template <class Of>
inline constexpr auto mapped = [](auto const& x) {
  auto const [a, b] =
      vv::map(vv::closure([](auto const& k, auto const& y) { return std::tuple(y * k, Of{}(y * k)); }, x),
              array<double, 3>{1, 2, 3});
  return vv::sum(a);
};
template <class Of>
inline constexpr auto nested = [](auto const& x) {
  auto const last = vv::scan(
                        [](auto const& c, auto const& k) {
                          auto const in = vv::scan(
                              [](auto const& d, auto const& q) {
                                auto const& [a, b] = d;
                                return std::pair(std::pair(a * q, Of{}(b)), vv::none);
                              },
                              c, array<double, 2>{0.5, 3});
                          auto const& [a, b] = in.first;
                          return std::pair(std::pair(a + k, b), vv::none);
                        },
                        std::pair(x, x * 0.5), array<double, 3>{1, 2, 3})
                        .first;
  return last.first * last.first;
};
/// Which of the two is used the value of a row tells C++ itself.
template <class Of>
inline constexpr auto by_value = [](auto const& x) {
  auto const last = vv::scan(
                        [](auto const& c, auto const& k) {
                          auto [a, b, d] = c;
                          if (k > 2.0) a = a + b;
                          b = b * k;
                          d = Of{}(d);
                          return std::pair(std::tuple(a, b, d), vv::none);
                        },
                        std::tuple(x * 1.0, x * 0.5, x * 1.0), array<double, 3>{3, 1, 3})
                        .first;
  return std::get<0>(last) * std::get<0>(last);
};
template <class Of>
inline constexpr auto in_segments = [](auto const& x) {
  auto const [last, all] = vv::scan<0, 2>(
      [](auto const& c, auto const& k) {
        auto const& [a, b] = c;
        return std::pair(std::pair(a * k, Of{}(b)), a + k);
      },
      std::pair(x, x * 0.5), array<double, 4>{1, 2, 3, 0.5});
  return vv::sum(all) + last.first;
};

void is(double y, double right) { CHECK(y == Approx(right)); }
void is(tensor const& y, tensor const& right) { CHECK(vv::allclose(y, right)); }

/// Functions of tensors: what is right is found on tensors too, where it costs the compiler least.
using function = std::function<tensor(tensor const&)>;
template <class F>
void check(char const* what, F const& bad, function const& good) {
  INFO(what);
  double const right = vv::grad(good)(tensor(1.5)).item();
  is(vv::grad(bad)(1.5), right);
  is(vv::fuse(vv::grad(bad))(1.5), right);
}
void check_tensors(char const* what, function const& bad, function const& good) {
  INFO(what);
  tensor const x(1.5), right = vv::grad(good)(x), second = vv::grad(vv::grad(good))(x);
  is(vv::grad(bad)(x), right);
  is(vv::grad(vv::grad(bad))(x), second);
  is(vv::jvp(vv::grad(bad), std::tuple(x), std::tuple(vv::ones_like(x))).second, second);
  is(vv::select(vv::vmap(vv::grad(bad))(vv::stack(std::vector{x, x})), 0, 1), right);
  is(vv::compile(vv::grad(bad))(x), right);
  is(vv::interpret(vv::make_fx(vv::grad(bad))(x), vv::boxed_args(x))[0], right);
  for (function const& run :
       {bad, function(vv::compile(bad, vv::backends::fused)), function(vv::compile(bad, vv::backends::aot_eager))}) {
    tensor const leaf = vv::clone(x).requires_grad_();
    run(leaf).backward();
    is(leaf.grad(), right);
  }
}
} // namespace

TEST_CASE("unused results: of loops and branches, static and fused", "[hop][scan][while_loop][cond]") {
  check("scan", scanned<harmful>, scanned<harmless>);
  check("scan, outputs", outputs<harmful>, outputs<harmless>);
  check("scan, chained", chained<harmful>, chained<harmless>);
  check("scan, nested", nested<harmful>, nested<harmless>);
  check("scan, in segments", in_segments<harmful>, in_segments<harmless>);
  check("while_loop", while_looped<harmful>, while_looped<harmless>);
  check("cond", branched<harmful>, branched<harmless>);
  check("map", mapped<harmful>, mapped<harmless>);
}

TEST_CASE("unused results: a step that C++ decides", "[hop][scan]") {
  double const x = 1.5;
  is(vv::grad(by_value<harmful>)(x), vv::grad(by_value<harmless>)(x));
}

TEST_CASE("unused results: of a loop, in higher orders", "[hop][scan]") {
  constexpr auto bad = scanned<harmful>;
  function const good = scanned<harmless>;
  double const x = 1.5, second = vv::grad(vv::grad(good))(tensor(x)).item();
  is(vv::grad(vv::grad(bad))(x), second);
  is(vv::fuse(vv::grad(vv::grad(bad)))(x), second);
  is(vv::jvp(vv::grad(bad), std::tuple(x), std::tuple(1.0)).second, second);
  is(vv::vmap(vv::grad(bad))(array<double, 2>{x, x})[1], vv::grad(good)(tensor(x)).item());
}

TEST_CASE("unused results: of loops and branches, on tensors", "[hop][scan][while_loop][cond]") {
  check_tensors("scan", scanned<harmful>, scanned<harmless>);
  check_tensors("scan, outputs", outputs<harmful>, outputs<harmless>);
  check_tensors("scan, chained", chained<harmful>, chained<harmless>);
  check_tensors("scan, nested", nested<harmful>, nested<harmless>);
  check_tensors("scan, in segments", in_segments<harmful>, in_segments<harmless>);
  check_tensors("while_loop", while_looped<harmful>, while_looped<harmless>);
  check_tensors("cond", branched<harmful>, branched<harmless>);
  check_tensors("map", mapped<harmful>, mapped<harmless>);
}
