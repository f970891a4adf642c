// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/composite/all.hpp>
#include <varve/op/all.hpp>

#if __has_include(<Eigen/Core>)
#include <Eigen/Core>
#else
#include <eigen3/Eigen/Core>
#endif

/// @file
/// Support for Eigen matrices of values wrapped by static transforms, as in
/// `grad([](auto x) { Eigen::Matrix<decltype(x), 2, 2> m; ... })`: products, inverses, decompositions. Include this
/// header yourself; varve.hpp does not. Eigen finds functions such as `sqrt` and `abs` by argument-dependent lookup
/// (`value/math.hpp`).
namespace Eigen {

template <class I, class V, class E>
struct NumTraits<varve::seen<I, V, E>> : GenericNumTraits<varve::seen<I, V, E>> {
  using value_type = varve::seen<I, V, E>;
  using number = varve::base_of<value_type>;
  using Real = value_type;
  using NonInteger = value_type;
  using Nested = value_type;
  using Literal = value_type;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 1,
    AddCost = 3,
    MulCost = 3
  };
  static constexpr value_type of(number v) {
    value_type r{};
    if constexpr (std::is_arithmetic_v<V>) r.value = v;
    else r.value = NumTraits<V>::of(v);
    return r;
  }
  static constexpr value_type epsilon() { return of(NumTraits<number>::epsilon()); }
  static constexpr value_type dummy_precision() { return of(NumTraits<number>::dummy_precision()); }
  static constexpr value_type highest() { return of((NumTraits<number>::highest)()); }
  static constexpr value_type lowest() { return of((NumTraits<number>::lowest)()); }
  static constexpr value_type infinity() { return of(NumTraits<number>::infinity()); }
  static constexpr value_type quiet_NaN() { return of(NumTraits<number>::quiet_NaN()); }
  static constexpr int digits10() { return NumTraits<number>::digits10(); }
};

/// Arithmetic of wrapped values and plain numbers.
template <class I, class V, class E, class Op>
struct ScalarBinaryOpTraits<varve::seen<I, V, E>, double, Op> {
  using ReturnType = varve::seen<I, V, E>;
};
template <class I, class V, class E, class Op>
struct ScalarBinaryOpTraits<double, varve::seen<I, V, E>, Op> {
  using ReturnType = varve::seen<I, V, E>;
};

} // namespace Eigen

#pragma GCC diagnostic pop
