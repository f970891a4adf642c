// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/number_text.hpp>
#include <varve/core/tree.hpp>

#include <string>

/// @file
/// Trees whose leaves have names, which messages, graphs and files use.
namespace varve {

namespace detail {
inline std::string joined_name(std::string const& path, std::string const& name) {
  return path.empty() ? name : path + "." + name;
}
template <class K>
std::string key_text(K const& key) {
  if constexpr (std::is_floating_point_v<K>) return fixed_text(static_cast<double>(key), 6);
  else if constexpr (std::is_arithmetic_v<K>) return std::to_string(key);
  else return std::string(key);
}
} // namespace detail

/// Calls `f(name, leaf)` for every leaf in order. A name is the path to the leaf, joined by dots, such as
/// "layers.0.weight". Its parts are the names of members where they are known (`interop/hana.hpp`), the keys of a
/// `std::map`, and positions otherwise.
template <class F, class T>
void tree_for_each_named(F const& f, T const& t, std::string const& path = "") {
  auto const next = [&](std::string const& name, auto const& v) {
    tree_for_each_named(f, v, detail::joined_name(path, name));
  };
  if constexpr (detail::is_map<T>) {
    for (auto const& [key, v] : t) next(detail::key_text(key), v);
  } else if constexpr (detail::is_optional<T>) {
    if (t) tree_for_each_named(f, *t, path);
  } else if constexpr (detail::is_vector<T>) {
    for (std::size_t k = 0; k < t.size(); ++k) next(std::to_string(k), t[k]);
  } else if constexpr (detail::tuple_node<T>) {
    std::size_t k = 0;
    std::apply([&](auto const&... v) { (next(std::to_string(k++), v), ...); }, t);
  } else if constexpr (is_tree_node<T>) {
    std::size_t k = 0;
    auto const name = [&] {
      if constexpr (detail::adapted_node<T>) return tree_members<T>::name(k++);
      else return std::to_string(k++);
    };
    detail::with_members(t, [&](auto const&... v) { (next(name(), v), ...); });
  } else {
    f(path, t);
  }
}

/// Returns the names of all leaves in order.
template <class T>
std::vector<std::string> tree_names(T const& t) {
  std::vector<std::string> r;
  tree_for_each_named([&](std::string const& name, auto const&) { r.push_back(name); }, t);
  return r;
}

} // namespace varve
