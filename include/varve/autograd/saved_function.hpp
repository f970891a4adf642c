// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/function.hpp>
#include <varve/core/number_text.hpp>
#include <varve/custom/saved_functions.hpp>

#include <charconv>

namespace varve {

namespace detail {
/// True for arguments of custom functions that can be written to a file.
template <class X>
constexpr bool is_saved_argument() {
  if constexpr (is_vector<X>) return std::is_same_v<typename X::value_type, tensor>;
  else return std::is_same_v<X, tensor> || std::is_arithmetic_v<X> || std::is_enum_v<X> || std::is_empty_v<X>;
}
template <class X>
void write_argument(std::vector<std::string>& words, X const& x) {
  if constexpr (is_vector<X>) words.push_back(std::to_string(x.size()));
  else if constexpr (std::is_same_v<X, tensor> || std::is_empty_v<X>) return;
  else if constexpr (std::is_floating_point_v<X>) words.push_back(hex_text(static_cast<double>(x)));
  else words.push_back(std::to_string(static_cast<long long>(x)));
}
/// Reads an argument; returns false if the words are not those of such an argument.
template <class X>
bool read_argument(std::vector<std::string> const& words, std::size_t& at, std::size_t& tensors, X& x) {
  constexpr std::size_t most = 64; // tensors in a list
  if constexpr (std::is_same_v<X, tensor>) return ++tensors, true;
  else if constexpr (std::is_empty_v<X> && !is_vector<X>) return true;
  else {
    if (at == words.size()) return false;
    std::string const& w = words[at++];
    if constexpr (std::is_floating_point_v<X>) {
      double v = 0;
      if (!read_number(w, v)) return false;
      x = static_cast<X>(v);
      return true;
    } else {
      long long n = 0;
      auto const r = std::from_chars(w.data(), w.data() + w.size(), n);
      if (r.ec != std::errc() || r.ptr != w.data() + w.size()) return false;
      if constexpr (is_vector<X>) {
        if (n < 0 || n > static_cast<long long>(most)) return false;
        x.resize(static_cast<std::size_t>(n)), tensors += static_cast<std::size_t>(n);
        return true;
      } else {
        x = static_cast<X>(n);
        return static_cast<long long>(x) == n;
      }
    }
  }
}
} // namespace detail

/// A registration of a custom function, valid during its lifetime: `saved_function<my_exp, tensor> const
/// known("my_exp");`. Programs that call `my_exp` with arguments of these types (as passed to `apply`) can then be
/// written by `to_text` and `save`. They can be read in processes that register the name for a function with the same
/// arguments; the rules of that process apply. Arguments are tensors, lists of tensors, numbers, enumerators and types
/// without data. Throws `value_error` for a name or function that is already registered.
template <class Derived, class... X>
class saved_function {
  static_assert((detail::is_saved_argument<X>() && ...),
                "varve: saved_function: arguments of a function in a file are tensors, std::vector<tensor>, numbers, "
                "enumerators and types without data");
  using erased = detail::erased_function<Derived, X...>;

public:
  explicit saved_function(std::string name)
      : entry_{std::move(name), &detail::custom_type_mark<erased>, erased::result_count(), &words, &make} {
    detail::saved_functions::add(entry_);
  }
  saved_function(saved_function const&) = delete;
  saved_function& operator=(saved_function const&) = delete;
  ~saved_function() { detail::saved_functions::remove(entry_); }

private:
  static std::vector<std::string> words(detail::boxed_custom_function const& f) {
    std::vector<std::string> r;
    std::apply([&](auto const&... x) { (detail::write_argument(r, x), ...); },
               static_cast<erased const&>(f).constants());
    return r;
  }
  static detail::custom_function_ptr make(std::vector<std::string> const& words, std::size_t& tensors) {
    std::tuple<X...> x{};
    std::size_t at = 0;
    tensors = 0;
    bool const all =
        std::apply([&](auto&... each) { return (detail::read_argument(words, at, tensors, each) && ...); }, x);
    if (!all || at != words.size()) return nullptr;
    return std::apply([](auto const&... each) { return std::make_shared<erased const>(each...); }, x);
  }
  detail::saved_function_entry entry_;
};

} // namespace varve
