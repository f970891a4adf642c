// SPDX-License-Identifier: BSL-1.0
// Dtype promotion by the rules of torch.result_type and torch.promote_types.
#include <varve/varve.hpp>

#include <limits>
namespace vv = varve;
using enum vv::dtype;

// promote_types: symmetric, and the join of a lattice
constexpr vv::dtype all[] = {bool_, uint8, int32, int64, float32, float64};
static_assert([] {
  for (auto a : all)
    for (auto b : all) {
      if (vv::promote_types(a, b) != vv::promote_types(b, a) || vv::promote_types(a, a) != a) return false;
      for (auto c : all)
        if (vv::promote_types(vv::promote_types(a, b), c) != vv::promote_types(a, vv::promote_types(b, c)))
          return false;
    }
  return true;
}());
static_assert(vv::promote_types(uint8, int32) == int32 && vv::promote_types(int64, float32) == float32 &&
              vv::promote_types(bool_, uint8) == uint8);
static_assert(vv::promote_types(float16, bfloat16) == float32 && vv::promote_types(complex64, float64) == complex128);

// result_type: dimensioned values before rank-0 values before plain numbers, unless a later one has a higher category
constexpr vv::meta many(vv::dtype t) { return {t, {3}, false}; }
constexpr vv::meta one(vv::dtype t) { return {t, {}, false}; }
constexpr vv::meta number(vv::dtype t) { return {t, {}, true}; }
static_assert(vv::result_type(many(int32), one(int64)) == int32);
static_assert(vv::result_type(many(float32), one(float64)) == float32);
static_assert(vv::result_type(many(int32), one(float64)) == float64);
static_assert(vv::result_type(many(uint8), number(int32)) == uint8);
static_assert(vv::result_type(many(float32), number(float64)) == float32);
static_assert(vv::result_type(many(int64), number(float64)) == float32); // the default dtype, not the number's
static_assert(vv::result_type(many(bool_), number(int32)) == int64);
static_assert(vv::result_type(many(bool_), number(bool_)) == bool_);
static_assert(vv::result_type(one(int32), number(int64)) == int32);
static_assert(vv::result_type(one(float32), number(float64)) == float32);
static_assert(vv::result_type(one(int64), many(bool_)) == int64);
static_assert(vv::result_type(many(uint8), many(int32), one(float64)) == float64);
static_assert(vv::result_type(many(uint8), one(int64), number(float64)) == float32);
static_assert(vv::result_type(number(int32), number(float64)) == float64); // numbers alone follow C++

// the same, seen through operators on arrays
template <class T>
using vec = vv::array<T, 2>;
template <class Want>
constexpr bool gives(auto v) {
  return std::is_same_v<decltype(v), Want>;
}
static_assert(gives<vec<double>>(vec<float>{1, 2} + vec<double>{1, 2}));
static_assert(gives<vec<float>>(vec<float>{1, 2} + 0.5) && gives<vec<float>>(2.0 * vec<float>{1, 2}));
static_assert(gives<vec<float>>(vec<std::int32_t>{1, 2} + 0.5));
static_assert(gives<vec<std::int32_t>>(vec<std::int32_t>{1, 2} + 1));
static_assert(gives<vec<std::uint8_t>>(vec<std::uint8_t>{1, 2} + 1));
static_assert(gives<vec<std::int64_t>>(vec<bool>{true, false} + 1));
static_assert(gives<vec<float>>(vec<std::int32_t>{1, 2} / vec<std::int32_t>{2, 2})); // division is true division
static_assert(gives<vec<float>>(vv::sqrt(vec<std::int64_t>{4, 9})) && gives<vec<double>>(vv::sqrt(vec<double>{4, 9})));
static_assert(gives<vec<bool>>(vec<float>{1, 2} < 1.5));
static_assert(gives<std::int64_t>(vv::sum(vec<bool>{true, true})) &&
              gives<std::int64_t>(vv::sum(vec<std::int32_t>{1, 2})) && gives<float>(vv::sum(vec<float>{1, 2})));
static_assert(gives<std::int64_t>(vv::argmax(vec<float>{1, 2})));
static_assert(gives<vec<float>>(vv::where(vec<bool>{true, false}, vec<std::int32_t>{1, 2}, 0.5)));
static_assert(vv::where(vec<std::uint8_t>{2, 0}, vec<std::int32_t>{1, 2}, vec<std::int32_t>{3, 4})[0] ==
              1); // all but 0 hold
static_assert(gives<double>(vv::add(1, 0.5)) && gives<double>(vv::exp(1.0)) && gives<float>(vv::exp(1.0f)));
// integers wrap around, in constant expressions too
template <class T>
constexpr bool wraps() {
  constexpr T least = std::numeric_limits<T>::min(), greatest = std::numeric_limits<T>::max();
  constexpr vec<T> x{greatest, least};
  constexpr vv::array<T, 2, 2> m{greatest, greatest, least, greatest};
  static_assert(vv::equal(x + T(1), vec<T>{least, T(least + 1)}) &&
                vv::equal(x - 1, vec<T>{T(greatest - 1), greatest}));
  static_assert(vv::equal(x * x, vec<T>{1, 0}) && vv::equal(vv::square(x), vec<T>{1, 0}) &&
                vv::equal(vv::pow(x, 2), vec<T>{1, 0}));
  static_assert(vv::equal(-x, vec<T>{vv::sub(T(0), greatest), least}));
  static_assert(vv::equal(vv::mm(m, m), std::is_signed_v<T> ? vv::array<T, 2, 2>{T(least + 1), 2, 0, T(least + 1)}
                                                            : vv::array<T, 2, 2>{1, 2, 0, 1}));
  return true;
}
static_assert(wraps<std::int32_t>() && wraps<std::int64_t>() && wraps<std::uint8_t>());
static_assert(vv::sum(vec<std::int64_t>{std::numeric_limits<std::int64_t>::max(), 2}) ==
              std::numeric_limits<std::int64_t>::min() + 1);
// numbers are filled with as PyTorch does: cut off behind the point, negative ones wrap around in uint8
static_assert(vv::equal(vv::full_like(vec<std::int32_t>{}, -3.9), vec<std::int32_t>{-3, -3}) &&
              vv::equal(vv::full_like(vec<std::uint8_t>{}, -249), vec<std::uint8_t>{7, 7}) &&
              vv::equal(vv::full_like(vec<bool>{}, 0.5), vec<bool>{true, true}));
static_assert(vv::add(std::numeric_limits<int>::max(), 1) == std::numeric_limits<int>::min() &&
              vv::mul(1 << 20, 1 << 20) == 0);
static_assert(vv::equal(vec<bool>{true, false} + vec<bool>{true, false}, vec<bool>{true, false}) &&
              vv::equal(vec<bool>{true, false} * vec<bool>{true, true}, vec<bool>{true, false}));
static_assert(vv::equal(vv::to(vec<double>{1.9, -1.9}, vv::type<std::int32_t>), vec<std::int32_t>{1, -1}));
static_assert(vv::equal(vv::to(vec<double>{0.5, 0}, vv::type<bool>), vec<bool>{true, false}));

// values seen through a transform keep the rules
static_assert(gives<vec<float>>(
    vv::jvp([](auto x) { return x * 2.0; }, std::tuple{vec<float>{1, 2}}, std::tuple{vec<float>{1, 1}}).second));
static_assert(gives<float>(vv::grad([](auto x) { return vv::sum(vec<double>{1, 2} * x); })(1.0f)));
static_assert(vv::dtype_of_type<long long>() == int64 && vv::dtype_of_type<unsigned char>() == uint8);
