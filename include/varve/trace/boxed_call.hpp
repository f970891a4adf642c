// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/dispatch/boxed.hpp>

#include <cmath>
#include <concepts>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

/// @file
/// The entry point of everything that traces a user's function at run time (`make_fx`, `compile`, `aot_function`,
/// `export_program`). A call with trees of tensors becomes a function of boxed tensors. Code behind this entry point is
/// compiled once, in the compiled library, and not for each function.
namespace varve::detail {

/// A reference to a function from boxed tensors to boxed tensors, which the caller owns and keeps alive.
class boxed_function_ref {
public:
  template <class F>
    requires(!std::is_same_v<F, boxed_function_ref>)
  boxed_function_ref(F const& f)
      : f_(&f), call_([](void const* g, boxed_args const& x) -> boxed_args { return (*static_cast<F const*>(g))(x); }) {
  }
  boxed_args operator()(boxed_args const& x) const { return call_(f_, x); }

private:
  void const* f_;
  boxed_args (*call_)(void const*, boxed_args const&);
};

/// True if a type can be an argument of a compiled function: tensors, and trees of tensors and of comparable types.
template <class X>
constexpr bool compilable() {
  if constexpr (std::is_same_v<X, tensor>) return true;
  else if constexpr (is_tree_node<X>)
    return []<class... E>(std::type_identity<std::tuple<E...>>) {
      return (compilable<E>() && ...);
    }(std::type_identity<elements_of<X>>{});
  else return (!value<X> && std::equality_comparable<X>) || number<X>;
}
/// True if two constants are equal for a program that stores one of them. Zeros of different signs differ; NaN equals
/// NaN.
template <class V>
bool same_constant(V const& a, V const& b) {
  if constexpr (std::is_floating_point_v<V>)
    return (a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b));
  else return a == b;
}
/// True if two trees of one type have the same structure and equal constants. Their tensors are not compared.
template <class T>
bool same_constants(T const& a, T const& b) {
  if constexpr (std::is_same_v<T, tensor>) {
    return true;
  } else if constexpr (is_map<T>) {
    bool all = a.size() == b.size();
    for (auto x = a.begin(), y = b.begin(); all && x != a.end(); ++x, ++y)
      all = x->first == y->first && same_constants(x->second, y->second);
    return all;
  } else if constexpr (is_optional<T>) {
    return a.has_value() == b.has_value() && (!a || same_constants(*a, *b));
  } else if constexpr (is_vector<T>) {
    bool all = a.size() == b.size();
    for (std::size_t k = 0; all && k < a.size(); ++k) all = same_constants(a[k], b[k]);
    return all;
  } else if constexpr (is_tree_node<T> && !tuple_node<T>) {
    return same_constants(members_of(a), members_of(b));
  } else if constexpr (is_tree_node<T>) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return (same_constants<std::remove_cvref_t<std::tuple_element_t<K, T>>>(std::get<K>(a), std::get<K>(b)) && ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    return same_constant(a, b);
  }
}
/// Returns a tree with undefined tensors in place of its own.
template <class T>
auto without_tensors(T const& tree) {
  if constexpr (std::is_same_v<T, tensor>) return tensor();
  else if constexpr (is_tree_node<T>) return tree_map([](auto const& v) { return without_tensors(v); }, tree);
  else return tree;
}
/// Returns a tree with its tensors replaced by those in `from`, in order, beginning at index `at`.
template <class T>
auto with_tensors(T const& tree, [[maybe_unused]] boxed_args const& from, [[maybe_unused]] int& at) {
  if constexpr (std::is_same_v<T, tensor>) return from[at++];
  else if constexpr (is_tree_node<T>) return tree_map([&](auto const& v) { return with_tensors(v, from, at); }, tree);
  else return tree;
}
/// Appends the tensors of a tree, in order.
template <class T>
void push_tensors([[maybe_unused]] boxed_args& to, [[maybe_unused]] T const& tree) {
  if constexpr (std::is_same_v<T, tensor>) to.push_back(tree);
  else if constexpr (is_tree_node<T>) tree_for_each([&](auto const& v) { push_tensors(to, v); }, tree);
}
/// Returns the tensors of some trees, in order.
template <class... X>
boxed_args tensors_among(X const&... x) {
  boxed_args r;
  (push_tensors(r, x), ...);
  return r;
}
/// Appends the leaves of the result of a traced function, which must be tensors.
template <class Y>
void push_results(boxed_args& to, Y const& y) {
  if constexpr (is_tree_node<Y>) {
    tree_for_each([&](auto const& v) { push_results(to, v); }, y);
  } else {
    static_assert(std::is_same_v<Y, tensor>, "varve: make_fx, compile: what a traced function returns must be a tree "
                                             "of tensors");
    if constexpr (std::is_same_v<Y, tensor>) to.push_back(y);
  }
}

/// Functions that compare and store the constants among arguments of a list of types. There is one object for each
/// list, so that its address identifies the list. Both functions are null if all arguments are tensors.
struct argument_types {
  bool (*same)(void const* kept, void const* now) = nullptr;
  std::shared_ptr<void const> (*kept)(void const* now) = nullptr;
};
template <class... X>
struct constants_of_arguments {
  static bool same(void const* kept, void const* now) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return (same_constants<X>(std::get<K>(*static_cast<std::tuple<X...> const*>(kept)),
                                std::get<K>(*static_cast<std::tuple<X const&...> const*>(now))) &&
              ...);
    }(std::index_sequence_for<X...>{});
  }
  static std::shared_ptr<void const> kept(void const* now) {
    return std::make_shared<std::tuple<X...>>(
        without_tensors(std::tuple<X...>(*static_cast<std::tuple<X const&...> const*>(now))));
  }
};
template <class... X>
inline constexpr argument_types types_of_arguments{&constants_of_arguments<X...>::same,
                                                   &constants_of_arguments<X...>::kept};
template <class... X>
  requires(std::is_same_v<X, tensor> && ...)
inline constexpr argument_types types_of_arguments<X...>{};

/// A type-erased call of a user's function. It calls the function with other tensors in place of those among the
/// arguments, returns the tensors in the function's result, and stores the structure of the result.
struct boxed_call {
  boxed_args arguments; // the tensors among the arguments, in order
  argument_types const* types;
  void const* trees; // the arguments: a tuple of references
  void const* function;
  boxed_args (*run)(boxed_call const&, boxed_args const&);
  mutable std::shared_ptr<void const> returned{}; // the tree with undefined tensors; null if it is one tensor

  boxed_args operator()(boxed_args const& x) const { return run(*this, x); }
  /// True if the constants among the arguments equal those stored from another call with the same types.
  bool has_constants(std::shared_ptr<void const> const& kept) const {
    return !types->same || types->same(kept.get(), trees);
  }
  std::shared_ptr<void const> constants() const { return types->kept ? types->kept(trees) : nullptr; }
};
/// Returns the arguments of a call with other tensors, in order.
template <class... X>
auto arguments_with([[maybe_unused]] void const* trees, [[maybe_unused]] boxed_args const& in) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    if constexpr ((std::is_same_v<X, tensor> && ...)) {
      return std::tuple<X const&...>(in[static_cast<int>(K)]...);
    } else {
      auto const& all = *static_cast<std::tuple<X const&...> const*>(trees);
      int at = 0;
      return std::tuple<decltype(with_tensors(std::get<K>(all), in, at))...>{
          with_tensors(std::get<K>(all), in, at)...}; // braces: evaluated in order
    }
  }(std::index_sequence_for<X...>{});
}
/// Returns the tensors in the result of a call and stores the structure of the result.
template <class Y>
boxed_args results_of(boxed_call const& c, Y const& y) {
  boxed_args r;
  push_results(r, y);
  if constexpr (is_tree_node<Y>) c.returned = std::make_shared<Y>(without_tensors(y));
  return r;
}
template <class F, class... X>
boxed_args run_boxed(boxed_call const& c, boxed_args const& in) {
  auto const x = arguments_with<X...>(c.trees, in);
  F const& f = *static_cast<F const*>(c.function);
  if constexpr (std::is_void_v<decltype(call_with(f, x))>) return call_with(f, x), boxed_args();
  else return results_of(c, call_with(f, x));
}
/// A call with these arguments. The arguments and the function must outlive it.
template <class... X>
class boxed_call_with : public boxed_call {
public:
  explicit boxed_call_with(void const* f, boxed_args (*r)(boxed_call const&, boxed_args const&), X const&... x)
      : boxed_call{tensors_among(x...), &types_of_arguments<X...>, nullptr, f, r}, all_(x...) {
    trees = &all_;
  }
  boxed_call_with(boxed_call_with const&) = delete;
  boxed_call_with& operator=(boxed_call_with const&) = delete;

private:
  std::tuple<X const&...> all_;
};
/// The type that `call_with` returns for these arguments.
template <class F, class... X>
using result_of_call = decltype(call_with(std::declval<F const&>(), std::declval<std::tuple<X const&...>>()));
/// Returns the tree that a function returned, with the tensors of another run.
template <class Y>
Y returned_tree([[maybe_unused]] std::shared_ptr<void const> const& structure, boxed_args const& y) {
  if constexpr (std::is_same_v<Y, tensor>) {
    return y[0];
  } else if constexpr (!std::is_void_v<Y>) {
    int at = 0;
    if constexpr (requires { Y{}; })
      if (!structure) return with_tensors(Y{}, y, at); // the function was not run: assume a tree of default structure
    return with_tensors(*static_cast<Y const*>(structure.get()), y, at);
  }
}

} // namespace varve::detail
