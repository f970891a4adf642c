// SPDX-License-Identifier: BSL-1.0
#include "kernel_test.hpp"

#include <varve/kernel/convolution.hpp>

#include <limits>

using namespace kernel_test;
namespace k = varve::kernel;

namespace {
struct call {
  varve::attributes at;
  dims input, weight, output;
  bool possible = true;
};
/// A convolution of random sizes; most of its shapes are no multiples of what the kernels work in.
call random_call() {
  int const n = random_int(1, 3), most = n == 1 ? 70 : n == 2 ? 15 : 7;
  bool const transposed = random_int(0, 1) != 0;
  int const groups = random_int(1, 3), a = random_int(0, 4), b = random_int(1, 20);
  call c;
  c.input = {random_int(0, 4), groups * (transposed ? b : a)};
  c.weight = {groups * b, a};
  c.output = {c.input[0], groups * (transposed ? a : b)};
  dims stride, padding, rest, more;
  for (int d = 0; d < n; ++d) {
    index_t const size = random_int(1, most), taps = random_int(1, random_int(0, 3) ? 4 : most), s = random_int(1, 3),
                  p = random_int(0, 3), e = random_int(1, 3),
                  o = transposed ? random_int(0, static_cast<int>(s > e ? s : e) - 1) : 0, reach = e * (taps - 1) + 1;
    index_t const out = transposed             ? (size - 1) * s - 2 * p + reach + o
                        : size + 2 * p < reach ? 0
                                               : (size + 2 * p - reach) / s + 1;
    c.possible = c.possible && out > 0;
    c.input.push_back(size), c.weight.push_back(taps), c.output.push_back(out), stride.push_back(s),
        padding.push_back(p), rest.push_back(e), more.push_back(o);
  }
  rest.push_back(transposed).push_back(groups);
  for (index_t o : more) rest.push_back(o);
  c.at = varve::attributes(stride, padding, rest);
  return c;
}
template <class T>
std::vector<T> small_integers(dims const& sizes) { // every order of summation gives the same result
  std::vector<T> v(static_cast<std::size_t>(varve::numel(sizes)));
  for (T& x : v) x = static_cast<T>(random_int(-4, 4));
  return v;
}
template <class T>
void check(call const& c) {
  k::convolution_sizes const s(c.at, c.input, c.weight, c.output);
  auto const x = small_integers<T>(c.input), w = small_integers<T>(c.weight);
  std::vector<T> want(static_cast<std::size_t>(varve::numel(c.output)) + 1, T(77)), got = want; // the last one stays
  k::convolve_directly<T>(s, x.data(), w.data(), want.data());
  INFO(varve::to_string(c.input) << " " << varve::to_string(c.weight) << " " << varve::to_string(c.output));
  k::convolve<T>(s, x.data(), w.data(), got.data());
  CHECK(got == want);
  CHECK(want.back() == T(77));
  if constexpr (k::floating_lane<T>) { // whatever its shape
    if (s.transposed) k::detail::convolve_by_spreading<T>(s, x.data(), w.data(), got.data());
    else if (s.field_channels > 0) k::detail::convolve_by_gathering<T>(s, x.data(), w.data(), got.data());
    CHECK(got == want);
  }
}
/// The kernels that go by lines, whatever the shape, where they say that they take it. Returns how many did.
template <class T>
int check_lines(call const& c) {
  if constexpr (k::lanes<T> == 1) return 1; // nothing but registers has lines
  k::convolution_sizes const s(c.at, c.input, c.weight, c.output);
  auto const x = small_integers<T>(c.input), w = small_integers<T>(c.weight);
  std::vector<T> want(static_cast<std::size_t>(varve::numel(c.output)) + 1, T(77)), got = want;
  k::convolve_directly<T>(s, x.data(), w.data(), want.data());
  INFO(varve::to_string(c.input) << " " << varve::to_string(c.weight) << " " << varve::to_string(c.output));
  int took = 0;
  if (s.transposed) took += k::detail::convolve_transposed_by_lines<T>(s, x.data(), w.data(), got.data());
  else took += k::detail::convolve_by_lines<T>(s, x.data(), w.data(), got.data());
  CHECK((!took || got == want));
  if (s.transposed) return took;
  got.assign(got.size(), T(77));
  bool const products = k::detail::convolve_by_products_of_lines<T>(s, x.data(), w.data(), got.data());
  CHECK((!products || got == want));
  got.assign(got.size(), T(77));
  bool const channels = k::detail::convolve_by_products_of_channels<T>(s, x.data(), w.data(), got.data());
  CHECK((!channels || got == want));
  return took + products + channels;
}
} // namespace

TEST_CASE("convolve: line by line it equals the plain loops", "[kernel][convolution]") {
  int took = 0;
  for (int round = 0; round < 800;) {
    call const c = random_call();
    if (!c.possible) continue;
    ++round;
    took += check_lines<float>(c) + check_lines<double>(c);
  }
  CHECK(took > 400); // others have three dimensions
}
TEST_CASE("convolve: lines, channels and strides beyond a tile, and a kernel as large as the field",
          "[kernel][convolution]") {
  auto const one = [](index_t stride, index_t padding, index_t dilation, bool transposed, index_t groups) {
    return varve::attributes(dims{stride, stride}, dims{padding, padding},
                             dims{dilation, dilation, transposed, groups, 0, 0});
  };
  CHECK(check_lines<float>({one(1, 1, 1, false, 1), {1, 3, 40, 700}, {5, 3, 3, 3}, {1, 5, 40, 700}}));
  CHECK(check_lines<double>({one(2, 1, 1, false, 1), {1, 3, 41, 701}, {5, 3, 3, 3}, {1, 5, 21, 351}}));
  CHECK(check_lines<float>({one(1, 1, 1, false, 1), {1, 300, 20, 20}, {17, 300, 3, 3}, {1, 17, 20, 20}}));
  CHECK(check_lines<float>({one(1, 1, 1, true, 1), {1, 300, 20, 20}, {300, 17, 3, 3}, {1, 17, 20, 20}}));
  CHECK(check_lines<float>({one(3, 2, 2, true, 2), {2, 26, 9, 20}, {26, 3, 3, 4}, {2, 6, 25, 60}}));
  CHECK(check_lines<float>({one(1, 1, 2, false, 3), {2, 12, 32, 32}, {9, 4, 15, 15}, {2, 9, 6, 6}}));
  CHECK(check_lines<double>({one(1, 1, 1, false, 70), {1, 70, 32, 32}, {70, 1, 32, 32}, {1, 70, 3, 3}}));
  CHECK(check_lines<float>({one(1, 1, 1, false, 1), {3, 2, 60, 90}, {37, 2, 60, 90}, {3, 37, 3, 3}}));
  CHECK(check_lines<double>({one(1, 0, 2, false, 2), {50, 6, 30, 31}, {34, 3, 14, 14}, {50, 34, 4, 5}}));
  CHECK(check_lines<float>({one(2, 1, 1, true, 1), {2, 5, 19, 33}, {5, 7, 3, 3}, {2, 7, 37, 65}}));
  // a dilation that fills the tile, and strides with more phases than are kept apart
  check_lines<float>({one(17, 0, 1, false, 1), {1, 2, 40, 400}, {3, 2, 3, 3}, {1, 3, 3, 24}});
  check<float>({one(1, 0, 30000, false, 1), {1, 1, 1, 60010}, {3, 1, 1, 3}, {1, 3, 1, 10}});
}
TEST_CASE("convolve: infinite elements stay where they meet a tap", "[kernel][convolution]") {
  float const infinity = std::numeric_limits<float>::infinity();
  for (bool const transposed : {false, true}) {
    varve::attributes const at(dims{1, 1}, dims{1, 1}, dims{1, 1, transposed, 1, 0, 0});
    k::convolution_sizes const s(at, dims{1, 1, 9, 21}, dims{1, 1, 3, 3}, dims{1, 1, 9, 21});
    std::vector<float> x(189, 1.f), w(9, 1.f), want(189), got(189);
    x[100] = infinity, x[20] = -infinity;
    k::convolve_directly<float>(s, x.data(), w.data(), want.data());
    k::convolve<float>(s, x.data(), w.data(), got.data());
    CHECK(got == want);
  }
  // ... and in sums over a field whose lines are no multiple of a register
  varve::attributes const at(dims{1, 1}, dims{1, 1}, dims{1, 1, 0, 1, 0, 0});
  k::convolution_sizes const s(at, dims{1, 1, 9, 21}, dims{1, 1, 9, 19}, dims{1, 1, 3, 5});
  std::vector<float> x(189, 1.f), w(171, 1.f), want(15), got(15);
  x[20] = infinity;
  k::convolve_directly<float>(s, x.data(), w.data(), want.data());
  k::convolve<float>(s, x.data(), w.data(), got.data());
  CHECK(got == want);
}

TEST_CASE("convolve: as products of matrices it equals the plain loops", "[kernel][convolution]") {
  for (int round = 0; round < 800;) {
    call const c = random_call();
    if (!c.possible) continue;
    ++round;
    check<float>(c);
    check<double>(c);
    if (round % 5 == 0) check<std::int32_t>(c), check<std::uint8_t>(c);
  }
}

TEST_CASE("convolve: more channels, taps and places than a panel, a block or a tile holds", "[kernel][convolution]") {
  dims const one{1, 1, 0, 1, 0, 0}, transposed{1, 1, 1, 1, 0, 0};
  check<float>({varve::attributes(dims{1, 1}, dims{1, 1}, one), {2, 70, 9, 9}, {250, 70, 3, 3}, {2, 250, 9, 9}});
  check<double>({varve::attributes(dims{1, 1}, dims{0, 0}, one), {1, 3, 40, 40}, {5, 3, 33, 33}, {1, 5, 8, 8}});
  check<float>({varve::attributes(dims{1, 1}, dims{1, 1}, transposed), {2, 250, 9, 9}, {250, 70, 3, 3}, {2, 70, 9, 9}});
  check<double>({varve::attributes(dims{1}, dims{0}, dims{1, 1, 1, 0}), {1, 3, 1000}, {3, 5, 4}, {1, 5, 1003}});
}
