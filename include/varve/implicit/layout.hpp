// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_inner_function.hpp>
#include <varve/implicit/data.hpp>
#include <varve/loop/trees_of_loop.hpp>
#include <varve/op/cat.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/reshape.hpp>
#include <varve/op/slice.hpp>
#include <varve/op/to.hpp>
#include <varve/transform/closure.hpp>

#include <functional>

/// @file
/// Trees of unknowns as one vector, and users' functions of trees as functions of a vector and of data. Solvers see
/// vectors only.
namespace varve::implicit::detail {

inline constexpr auto elements = [](dims const& s) { return dims{numel(s)}; };
inline constexpr auto elements_of_all = [](auto const&... s) {
  extent n = 0;
  ((n = n + numel(s)), ...);
  return dims{n};
};
/// Returns the leaves of a tree of values, one after another, as one vector.
template <class Tree>
constexpr auto flat(Tree const& tree) {
  return varve::detail::call_with(
      [](auto const&... v) {
        auto const one = [](auto const& x) { return varve::detail::reshape_to(x, on_dims(elements, shape_of(x))); };
        static_assert(sizeof...(v) > 0, "varve: implicit: a tree of unknowns or of residuals holds no value");
        if constexpr (sizeof...(v) == 1) return (one(v), ...);
        else return cat(std::make_tuple(one(v)...), axis<0>);
      },
      varve::detail::flat_values(tree));
}
/// The structure of a tree of static or traced values: `S` are the shapes of its leaves, as facts.
template <class Tree, class... S>
struct layout {
  std::tuple<S...> shapes;

  template <class V>
  constexpr auto tree(V const& v) const {
    return tree_unflatten<Tree>([&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::make_tuple(leaf<K>(v)...);
    }(std::index_sequence_for<S...>{}));
  }

private:
  template <std::size_t K, class V>
  constexpr auto leaf(V const& v) const {
    auto const& own = std::get<K>(shapes);
    if constexpr (sizeof...(S) == 1) return varve::detail::reshape_to(v, own);
    else
      return varve::detail::reshape_to(
          narrow(v, ints<0>{}, before(std::make_index_sequence<K>{}), on_dims(elements, own)), own);
  }
  template <std::size_t... J>
  constexpr auto before(std::index_sequence<J...>) const {
    if constexpr (sizeof...(J) == 0) return ints<0>{};
    else return on_dims(elements_of_all, std::get<J>(shapes)...);
  }
};
template <class... V>
consteval bool are_unknowns(std::type_identity<std::tuple<V...>>) {
  constexpr bool values = (value<V> && ...);
  static_assert(values, "varve: implicit: the unknowns must be a value or a tree of values");
  if constexpr (values) {
    constexpr bool floating = (varve::detail::differentiable_leaf<V> && ...);
    static_assert(floating, "varve: implicit: the unknowns must be floating; write 2.0 for 2, or convert them");
    return floating;
  } else return false;
}
/// Refuses unknowns that are not floating, what captures values of a transform, and other numbers of residuals than of
/// unknowns. Here the compiler's message is short. Returns whether all is well.
template <class Tree>
consteval bool are_unknowns() {
  return are_unknowns(std::type_identity<decltype(varve::detail::flat_values(std::declval<Tree const&>()))>{});
}
template <class Y, class... X>
consteval bool captures_nothing() {
  constexpr bool captures = varve::detail::leaf_level<Y>() > varve::detail::leaf_level<std::tuple<X...>>();
  static_assert(!captures, "varve: implicit: the function captures a value that a transform sees; pass it as an "
                           "argument, or by closure(f, captured...)");
  return !captures;
}
template <class Y, class X>
consteval bool are_as_many() {
  using same = decltype(same_fact(shape_of(flat(std::declval<Y const&>())), shape_of(flat(std::declval<X const&>()))));
  if constexpr (std::is_same_v<same, bool>) {
    return true; // traced values, whose shapes are data
  } else {
    static_assert(same::value, "varve: implicit: the function must return as many values as there are unknowns");
    return same::value;
  }
}
template <class Tree>
constexpr auto layout_of(Tree const& tree) {
  return varve::detail::call_with(
      [](auto const&... v) { return layout<Tree, std::remove_cvref_t<decltype(shape_of(v))>...>{{shape_of(v)...}}; },
      varve::detail::flat_values(tree));
}
/// A user's function f(x, data...) of static values, as a function of one vector and of a flat tuple of data. `Data` is
/// the tuple of the user's arguments.
template <class F, class Layout, class Data>
struct flat_function {
  [[no_unique_address]] F f;
  [[no_unique_address]] Layout unknowns;

  /// Calls the user's function with a tree of unknowns.
  template <class X, class T>
  constexpr auto of_tree(X const& x, T const& data) const {
    return varve::detail::call_with([&](auto const&... t) { return f(x, t...); }, tree_unflatten<Data>(data));
  }
  template <class V, class T>
  constexpr auto call(V const& v, T const& data) const {
    auto const y = of_tree(unknowns.tree(v), data);
    using Y = std::remove_const_t<decltype(y)>;
    constexpr bool captures = varve::detail::leaf_level<Y>() > varve::detail::leaf_level<std::tuple<V, T>>();
    static_assert(!captures, "varve: implicit: the function captures a value that a transform sees; pass it as an "
                             "argument, or by closure(f, captured...)");
    if constexpr (captures) return v; // one message is enough
    else return y;
  }
  template <class V, class T>
  constexpr auto vector(V const& v, T const& data) const {
    return to(flat(call(v, data)), type_fact(v));
  }
  /// Returns as many residuals as unknowns.
  template <class V, class T>
  constexpr auto residual(V const& v, T const& data) const {
    auto const r = vector(v, data);
    if (!(to_dims(shape_of(r)) == to_dims(shape_of(v))))
      refuse::shapes_do_not_match("implicit (residuals and unknowns)", to_dims(shape_of(r)), to_dims(shape_of(v)));
    return r;
  }
  /// Returns the one value of a loss.
  template <class V, class T>
  constexpr auto loss(V const& v, T const& data) const {
    auto const y = call(v, data);
    static_assert(value<std::remove_const_t<decltype(y)>>, "varve: implicit: a loss must return one value of rank 0");
    return y;
  }
};

/// The structure of a tree of tensors.
template <class Tree>
class tensor_layout {
public:
  explicit tensor_layout(Tree const& tree) : empty_(tree_map([](auto const& t) { return without(t); }, tree)) {
    tree_for_each(
        [&](auto const& t) {
          if (!sizes_.empty() && t.dtype() != type_)
            refuse::dtype_is_not_supported("implicit: unknowns of several dtypes", name(t.dtype()));
          sizes_.push_back(t.sizes()), type_ = t.dtype();
        },
        tree);
    if (sizes_.empty()) refuse::argument_is_invalid("implicit", "there are no unknowns");
    if (!is_floating(type_)) refuse::dtype_is_not_supported("implicit: unknowns", name(type_));
  }
  /// A layout of leaves of the given sizes, in a tree without run-time structure.
  explicit tensor_layout(std::vector<dims> sizes) : empty_(), sizes_(std::move(sizes)) {}
  std::vector<dims> const& sizes() const { return sizes_; }
  Tree tree(tensor const& v) const {
    std::size_t k = 0;
    extent at = 0;
    return tree_map(
        [&](auto const& t) {
          using T = std::remove_cvref_t<decltype(t)>;
          dims const& own = sizes_[k++];
          if (sizes_.size() == 1) return own.n == 1 ? T(v) : T(reshape(static_cast<T const&>(v), own));
          extent const from = at;
          at = at + numel(own);
          return T(reshape(narrow(static_cast<T const&>(v), ints<0>{}, dims{from}, dims{numel(own)}), own));
        },
        empty_);
  }

private:
  template <class T>
  static tensor without(T const&) {
    static_assert(std::is_same_v<T, tensor>);
    return {};
  }
  Tree empty_;
  std::vector<dims> sizes_;
  dtype type_{};
};
/// Returns the tensors of a tree, one after another, as one vector. Numbers become tensors.
template <class Tree>
auto flat_tensor(Tree const& tree) {
  using T = dependent<tensor, Tree>;
  std::vector<T> parts;
  tree_for_each(
      [&](auto const& v) {
        T const t = varve::detail::as_tensor(varve::detail::plain(v));
        parts.push_back(t.dim() == 1 ? t : T(reshape(t, dims{-1})));
      },
      tree);
  if (parts.empty()) refuse::argument_is_invalid("implicit", "a function returned no value");
  return parts.size() == 1 ? parts[0] : T(cat(parts, 0));
}
/// Arguments that contain tensors: which are the data. Everything else in them is constant.
template <class... X>
class tensor_data {
public:
  explicit tensor_data(X const&... x)
      : constants_(tree_map([](auto const& v) { return without(v); }, std::tuple(x...))) {}
  static tensors of(X const&... x) {
    tensors r;
    [[maybe_unused]] auto const take = [&](auto const& v) {
      if constexpr (is<decltype(v)>) r.push_back(v);
    };
    (tree_for_each(take, x), ...);
    return r;
  }
  tensor_data(std::in_place_t, std::tuple<X...> const& constants) : constants_(constants) {}
  std::tuple<X...> const& constants() const { return constants_; }
  /// Returns the arguments with other tensors.
  std::tuple<X...> filled(tensors const& from) const {
    std::size_t k = 0;
    return tree_map(
        [&](auto const& v) {
          if constexpr (is<decltype(v)>) return from[k++];
          else return v;
        },
        constants_);
  }

private:
  template <class V>
  static constexpr bool is = std::is_same_v<std::remove_cvref_t<V>, tensor>;
  template <class V>
  static auto without(V const& v) {
    if constexpr (is<V>) return tensor();
    else return v;
  }
  std::tuple<X...> constants_;
};
/// A user's function of tensors, without its type: a function of one vector and of a list of data.
struct erased_function {
  std::function<tensor(tensor const& v, tensors const& data)> f;

  tensor vector(tensor const& v, tensors const& data) const { return f(v, data); }
  tensor residual(tensor const& v, tensors const& data) const { return f(v, data); }
  tensor loss(tensor const& v, tensors const& data) const { return f(v, data); }
};
/// True if a level of `grad` or `jvp`, or eager autograd, records a tensor.
inline bool is_recorded(tensor const& t) {
  tensor const* p = &t;
  for (; p->is_wrapped(); p = &p->inner())
    for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
      if (p->layer() == l->id && ((l->kind->role == layer_role::grad && p->history()) ||
                                  (l->kind->role == layer_role::jvp && p->extra().defined())))
        return true;
  return p->has_history();
}
/// True if a function captures a tensor that is recorded. This traces it.
template <class T>
bool captures_recorded(erased_function const& f, tensors const& given) {
  boxed_args x, captures;
  for (auto const& t : given) x.push_back(t);
  auto const g = [&](boxed_args const& v) {
    tensors data;
    for (int k = 1; k < v.size(); ++k) data.push_back(v[k]);
    return boxed_args(f.f(v[0], data));
  };
  varve::detail::traced<T>(g, x, captures);
  bool any = false;
  for (auto const& t : captures) any = any || is_recorded(t);
  return any;
}
/// Refuses a function that uses tensors which are being differentiated, but were not passed to it: their derivative
/// would be missing. The function is called once, with all of its arguments detached, unless nothing is recorded. If
/// its result is recorded, a trace decides: loops and custom functions may give zeros as the derivative of constants.
template <class T>
void require_no_captures(char const* who, erased_function const& f, T const& start, tensors const& data) {
  bool any = this_thread_state.grad_mode;
  for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
    any = any || l->kind->role == layer_role::grad || l->kind->role == layer_role::jvp;
  if (!any) return;
  tensors given{detach(start)}, constants;
  for (auto const& t : data) constants.push_back(detach(static_cast<T const&>(t)));
  if (!is_recorded(f.f(given[0], constants))) return;
  given.insert(given.end(), constants.begin(), constants.end());
  if (varve::detail::attempt<error>([&] { return captures_recorded<T>(f, given); }, [](error const&) { return true; }))
    refuse::argument_is_invalid(who,
                                "the function captures a tensor that is being differentiated, so that its "
                                "derivative would be missing; pass it as an argument, or by closure(f, captured...)");
}

} // namespace varve::implicit::detail
