// SPDX-License-Identifier: BSL-1.0
// Fused programs of integers: they wrap around as tensors do.
#include <varve/varve.hpp>

#include <varve_test.hpp>
namespace vv = varve;
using vv::index_t;

namespace {
constexpr auto results = [](auto const&... y) { return std::tuple{y...}; };

/// The results of `f` over 75 elements: whole vectors and a rest, fused and as tables, are to the bit those of its
/// operators one by one.
template <class T, bool AnySize = true, class F>
void computed_with(F const& f, vv::tensor const& x, vv::tensor const& y) {
  constexpr auto fixed = vv::fuse<vv::spec<T, 75>, vv::spec<T, 75>>(F{});
  constexpr auto table = vv::fuse<vv::spec<T, 75>, vv::spec<T, 75>>(F{}, vv::table_driven);
  auto const want = f(x, y), a = fixed(x, y), c = table(x, y), d = vv::compile(f)(x, y);
  auto const equal = [](vv::tensor const& found, vv::tensor const& expected) {
    REQUIRE(found.dtype() == expected.dtype());
    REQUIRE(found.sizes() == expected.sizes());
    CHECK(vv::sum(vv::ne(found, expected)).item<int>() == 0);
  };
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (equal(std::get<K>(a), std::get<K>(want)), ...);
    (equal(std::get<K>(c), std::get<K>(want)), ...);
    (equal(std::get<K>(d), std::get<K>(want)), ...);
    if constexpr (AnySize) {
      constexpr auto sized = vv::fuse<vv::spec<T, vv::dim<"n">>, vv::spec<T, vv::dim<"n">>>(F{});
      auto const b = sized(x, y);
      (equal(std::get<K>(b), std::get<K>(want)), ...);
    }
  }(std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(want)>>>{});
}
/// Programs of several dtypes: vectors of doubles.
template <class T>
void computed_among_others(vv::tensor const& x, vv::tensor const& y) {
  computed_with<T, sizeof(T) == 4>(
      [](auto a, auto b) {
        auto const s = a * b + a, p = vv::square(a);
        return results(s, p, vv::abs(a - b), vv::to(s, vv::type<double>) * 0.5, vv::to(s, vv::type<std::uint8_t>),
                       vv::to(s, vv::type<bool>), s < b, vv::maximum(a, b) - 1, vv::where(a < b, s, p),
                       vv::sum(s, vv::axis<0>), vv::amax(p), vv::to(p, vv::type<std::int64_t>) * 3);
      },
      x, y);
}
/// Nothing beyond 32 bits: vectors of integers.
template <class T>
void computed_alone(vv::tensor const& x, vv::tensor const& y) {
  computed_with<T, sizeof(T) == 1>(
      [](auto a, auto b) {
        auto const s = a * b + a, p = vv::square(a), i = vv::to(b, vv::type<std::int32_t>) - 1000;
        auto const where = vv::where((a < b) * vv::ne(p, 0), s, vv::relu(-b));
        return results(s, p, where, i * i, vv::abs(i - 7), vv::to(i, vv::type<std::uint8_t>), vv::to(s, vv::type<bool>),
                       vv::sign(vv::sub(a, b)), vv::minimum(vv::maximum(s, b), a), vv::ge(s, p), vv::amax(s),
                       vv::amin(where, vv::axis<0>), vv::to(vv::eq(a, b), vv::type<T>) * b);
      },
      x, y);
  computed_with<T, false>(
      [](auto a, auto b) {
        auto const m = vv::reshape(a, vv::shape<5, 15>), t = vv::reshape(b, vv::shape<15, 5>),
                   row = vv::slice(b, vv::axis<0>, 1, 31, 2);
        auto const s = m * vv::transpose(t, vv::axis<0>, vv::axis<1>) - row;
        return results(s, vv::amax(s, vv::axis<0>), vv::amin(s, vv::axis<1>), vv::amax(-s),
                       vv::expand(vv::select(a, vv::axis<0>, vv::axis<3>), vv::shape<2, 20>) *
                           vv::slice(row, vv::axis<0>, 0, 1));
      },
      x, y);
}
/// Sums, powers and products of matrices, of which no double holds all digits: vectors of int64. A few of the elements
/// make a loop without vectors.
template <class T>
void computed_in_full(vv::tensor const& x, vv::tensor const& y) {
  computed_with<T>(
      [](auto a, auto b) {
        auto const s = a * b + a, first = vv::slice(b, vv::axis<0>, vv::range<0, 1>);
        return results(s, vv::sum(s), vv::sum(vv::square(a) - b), vv::pow(a, 3) + vv::pow(b, a),
                       vv::abs(s) - vv::maximum(a, b), vv::where(a < b, -s, vv::relu(s)),
                       vv::to(s, vv::type<std::int32_t>) * 3, vv::to(s, vv::type<std::uint8_t>),
                       vv::to(s, vv::type<bool>), vv::sum(s < b), vv::amax(s), vv::amin(a - b),
                       first * first * first - 7 * first, vv::sum(vv::sign(a) * first, vv::axis<0>, vv::keepdim));
      },
      x, y);
  computed_with<T, false>(
      [](auto a, auto b) {
        auto const m = vv::reshape(a, vv::shape<15, 5>), t = vv::reshape(b, vv::shape<5, 15>);
        return results(vv::mm(m, t), vv::sum(m * 3, vv::axis<0>),
                       vv::sum(t * vv::select(a, vv::axis<0>, vv::axis<4>), vv::axis<1>),
                       vv::sum(m * vv::transpose(t, vv::axis<0>, vv::axis<1>) - m, vv::axis<1>));
      },
      x, y);
}
template <class T>
std::pair<vv::tensor, vv::tensor> random_integers(int bits_of_int64 = 24) {
  vv::tensor const x = vv::empty({75}, vv::dtype_of_type<T>()), y = vv::empty({75}, vv::dtype_of_type<T>());
  std::uint64_t bits = 12345;
  for (index_t k = 0; k < 75; ++k)
    for (vv::tensor const& t : {x, y}) {
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      t.data<T>()[k] = sizeof(T) == 8 ? static_cast<T>(static_cast<std::int64_t>(bits) >> (64 - bits_of_int64))
                                      : static_cast<T>(bits >> 32); // 24: exact in doubles
    }
  return {x, y};
}
} // namespace

TEMPLATE_TEST_CASE("fuse: integers in vectors of doubles", "[fuse][dtype]", std::int32_t, std::int64_t) {
  auto const [x, y] = random_integers<TestType>();
  computed_among_others<TestType>(x, y);
}
TEMPLATE_TEST_CASE("fuse: integers in vectors of integers", "[fuse][dtype]", std::int32_t, std::uint8_t) {
  auto const [x, y] = random_integers<TestType>();
  computed_alone<TestType>(x, y);
}
TEMPLATE_TEST_CASE("fuse: integers in vectors of int64", "[fuse][dtype]", std::int32_t, std::int64_t) {
  auto const [x, y] = random_integers<TestType>(64);
  computed_in_full<TestType>(x, y);
}
