// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/argument.hpp>

#include <optional>
#include <span>
#include <tuple>

/// @file
/// The rows of tables for calls by name: a schema in PyTorch's notation and the function that it calls. The types of
/// the function's parameters determine how arguments are converted, so that most rows are one line.
namespace varve {

/// The forms of a call that a row provides besides the plain one. `in_place`: `name_` writes the result into the first
/// argument. `out`: `out=` writes the result into a tensor and converts it; `out_of_its_dtype` requires the same dtype.
/// `both`: `in_place` and `out`. `variadic`: the only positional argument is a list of tensors, which may be passed one
/// by one.
enum class call_forms : unsigned char {
  plain = 0,
  in_place = 1,
  out = 2,
  both = 3,
  out_of_its_dtype = 4,
  variadic = 8
};

namespace detail {
/// Returns the value of an argument, and throws if it has another type, which a schema type of `Any` does not exclude.
template <class T>
T const& held(argument const& a, char const* kind) {
  if (!a.is<T>())
    refuse::with<value_error>(
        ("varve: a call by name: an argument wants " + std::string(kind) + ", not " + a.kind()).c_str());
  return a.as<T>();
}
/// The conversion of an argument to a parameter of type `T`. `code` tells which schema types fit.
template <class T>
struct parameter;
template <>
struct parameter<tensor> { // numbers become plain numbers; None becomes undefined
  static constexpr char code = 't';
  static tensor of(argument const& a) {
    if (a.is<tensor>()) return a.as<tensor>();
    if (a.is<bool>()) return tensor::from_number(a.as<bool>());
    if (a.is<extent>()) return tensor::from_number(static_cast<index_t>(a.as<extent>()));
    return a.is<double>() ? tensor::from_number(a.as<double>()) : tensor();
  }
};
template <>
struct parameter<std::vector<tensor>> {
  static constexpr char code = 'T';
  static std::vector<tensor> of(argument const& a) {
    std::vector<tensor> r;
    for (argument const& e : a.as<argument::list>()) r.push_back(parameter<tensor>::of(e));
    return r;
  }
};
template <>
struct parameter<dims> { // empty for None
  static constexpr char code = 'I';
  static dims of(argument const& a) {
    dims r;
    if (!a.is_none())
      for (argument const& e : held<argument::list>(a, "int[]")) r.push_back(held<extent>(e, "int"));
    return r;
  }
};
template <>
struct parameter<extent> {
  static constexpr char code = 'i';
  static extent of(argument const& a) { return held<extent>(a, "int"); }
};
template <>
struct parameter<index_t> {
  static constexpr char code = 'i';
  static index_t of(argument const& a) { return static_cast<index_t>(a.as<extent>()); }
};
template <>
struct parameter<double> {
  static constexpr char code = 'f';
  static double of(argument const& a) {
    if (a.is<bool>()) return a.as<bool>();
    return a.is<double>() ? a.as<double>() : static_cast<double>(static_cast<index_t>(held<extent>(a, "float")));
  }
};
template <>
struct parameter<bool> {
  static constexpr char code = 'b';
  static bool of(argument const& a) { return a.as<bool>(); }
};
template <>
struct parameter<std::string> {
  static constexpr char code = 's';
  static std::string const& of(argument const& a) { return a.as<std::string>(); }
};
template <>
struct parameter<dtype> {
  static constexpr char code = 'y';
  static dtype of(argument const& a) { return a.as<dtype>(); }
};
template <>
struct parameter<argument> { // unchanged
  static constexpr char code = 'a';
  static argument const& of(argument const& a) { return a; }
};
template <class T>
struct parameter<std::optional<T>> {
  static constexpr char code = parameter<T>::code;
  static std::optional<T> of(argument const& a) {
    return a.is_none() ? std::optional<T>() : std::optional<T>(parameter<T>::of(a));
  }
};

inline void give(argument::list& y, argument r) { y.push_back(std::move(r)); }
template <class... R>
void give(argument::list& y, std::tuple<R...> const& r) {
  std::apply([&](auto const&... v) { (y.emplace_back(v), ...); }, r);
}

template <class R, class... A>
void run_row(void (*function)(), argument const* x, argument::list& y) {
  auto* const f = reinterpret_cast<R (*)(A...)>(function);
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    if constexpr (std::is_void_v<R>) f(parameter<std::remove_cvref_t<A>>::of(x[K])...);
    else give(y, f(parameter<std::remove_cvref_t<A>>::of(x[K])...));
  }(std::index_sequence_for<A...>{});
}
template <class... A>
inline constexpr char parameter_codes[] = {parameter<std::remove_cvref_t<A>>::code..., 0};
} // namespace detail

/// A row: `{"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", f, call_forms::out, "nn.softmax"}`.
///
/// `f` is a function, or a lambda after `+`. Its parameters are `tensor`, `std::vector<tensor>`, `dims`, `extent`,
/// `double`, `bool`, `std::string`, `dtype`, a `std::optional` of these, or `argument`. Plain numbers and `Scalar`s are
/// passed to `tensor` parameters too, and None as an undefined tensor. `f` returns one of these types, a tuple of them,
/// a list, or nothing. Arguments about devices, layouts, memory formats and generators are not passed. The last element
/// lists other names of the operator, separated by blanks.
struct call_row {
  char const* schema;
  void (*function)();
  void (*run)(void (*function)(), argument const* x, argument::list& y);
  char const* parameters;
  call_forms forms;
  char const* also;

  template <class R, class... A>
  call_row(char const* text, R (*f)(A...), call_forms which = call_forms::plain, char const* names = "")
      : schema(text), function(reinterpret_cast<void (*)()>(f)), run(&detail::run_row<R, A...>),
        parameters(detail::parameter_codes<A...>), forms(which), also(names) {}
  template <class R, class... A>
  call_row(char const* text, R (*f)(A...), char const* names) : call_row(text, f, call_forms::plain, names) {}
};

/// The rows of one family. To add a family, define `call_family const mine{&rows};` in your program. It must live until
/// the program ends.
struct call_family {
  std::span<call_row const> (*rows)();
  call_family const* next;
  explicit call_family(std::span<call_row const> (*f)()) : rows(f), next(first()) { first() = this; }
  call_family(call_family const&) = delete;
  call_family& operator=(call_family const&) = delete;
  /// Returns the head of the list of all families, the newest one.
  static call_family const*& first() {
    static constinit call_family const* list = nullptr;
    return list;
  }
};

} // namespace varve
