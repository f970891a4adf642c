// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/tensor.hpp>

#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace varve {

/// An argument or result of a call by name (`ops::call`): a tensor, a number, a bool, a text, a dtype, nothing
/// (`none`), or a list of these. It converts from any of them, from `dims`, and from vectors. Integers may be symbolic
/// sizes. C++ numbers keep their kind: `2` is an int, `2.0` a float.
class argument {
public:
  using list = std::vector<argument>;
  argument() = default;
  argument(none_t) {}
  template <std::same_as<bool> B>
  argument(B v) : v_(v) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  argument(I v) : v_(extent(static_cast<index_t>(v))) {}
  argument(extent v) : v_(v) {}
  template <std::floating_point F>
  argument(F v) : v_(static_cast<double>(v)) {}
  argument(char const* v) : v_(std::string(v)) {}
  argument(std::string v) : v_(std::move(v)) {}
  argument(varve::dtype v) : v_(v) {}
  argument(tensor v) : v_(std::move(v)) {}
  argument(list v) : v_(std::move(v)) {}
  argument(dims const& v) : v_(list()) {
    for (extent e : v) std::get<list>(v_).emplace_back(e);
  }
  template <class T>
    requires(!std::same_as<T, argument> && std::convertible_to<T, argument>)
  argument(std::vector<T> const& v) : v_(list(v.begin(), v.end())) {}

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(v_);
  }
  /// Returns the value; `T` is one of tensor, extent (an integer), double, bool, std::string, dtype, list.
  template <class T>
  T const& as() const {
    return std::get<T>(v_);
  }
  bool is_none() const { return v_.index() == 0; }
  /// True if the argument is an int, a float or a bool.
  bool is_number() const { return is<extent>() || is<double>() || is<bool>(); }
  /// Returns the kind in the notation of schemas: `Tensor`, `int`, `float`, `bool`, `str`, `ScalarType`, `None`,
  /// `int[]`, `list`.
  std::string kind() const;

private:
  std::variant<none_t, bool, extent, double, std::string, varve::dtype, tensor, list> v_;
};

/// A named argument: `{"dim", 1}`.
struct named_argument {
  std::string name;
  argument value;
};

inline std::string argument::kind() const {
  static constexpr char const* names[] = {"None", "bool", "int", "float", "str", "ScalarType", "Tensor"};
  if (!is<list>()) return names[v_.index()];
  list const& all = as<list>();
  if (all.empty()) return "an empty list";
  for (argument const& a : all)
    if (a.v_.index() != all[0].v_.index()) return "a list of " + all[0].kind() + " and " + a.kind();
  return all[0].is<list>() ? "a list of lists" : all[0].kind() + "[]";
}

} // namespace varve
