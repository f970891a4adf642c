// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/static_level.hpp>
#include <varve/interpreter/used_results.hpp>
#include <varve/transform/dynamic_scope.hpp>

namespace varve {

/// True if one of these arguments, or a leaf of one, is a dynamic value and all are at level 0. A transform then uses
/// the run-time stack.
template <class... X>
concept any_dynamic = (detail::tree_is_dynamic<X>() || ...) && ((detail::leaf_level<X>() == 0) && ...);

namespace detail {
template <int N, class Y>
// a named variable, so that compilers do not explain the comparison in their message
inline constexpr bool leaves = level_of<Y> <= N;
/// Checks that a value leaving a static transform of level N belongs to no later level.
template <int N, class Y>
constexpr void check_exit() {
  static_assert(leaves<N, Y>, "varve: the result is seen through a later level than the transform's own (perturbation "
                              "confusion through a capture); "
                              "pass the outer value as an argument or through closure(f, captured...)");
}
/// Returns a value of the trace to which some arguments or declared captures belong, or `none` if there is no such
/// trace.
template <class V, class... R>
constexpr auto first_traced(V const& v, R const&... r) {
  if constexpr (traced_value<V>) return base_value(v);
  else return first_traced(r...);
}
template <class F, class... X>
constexpr auto traced_among([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) {
  if constexpr (any_traced<decltype(captures_of(f)), X...>())
    return detail::call_with([](auto const&... v) { return first_traced(v...); },
                             tree_leaves(detail::joined(captures_of(f), std::tuple<X const&...>(x...))));
  else return none;
}
template <class V, int N>
// a concept, so that the second condition is not evaluated for trees
concept leaf_at_level = value<V> && at_level<V, N>;
template <class V>
concept differentiable_leaf = value<V> && !static_and_not_floating<V>();
/// True if an argument, which is a value or a tree, contains something to differentiate.
template <class X>
consteval bool has_derivative() {
  if constexpr (memory_ref<X>) return true;
  else if constexpr (is_tree_node<X>)
    return []<class... E>(std::type_identity<std::tuple<E...>>) {
      return (has_derivative<E>() || ...);
    }(std::type_identity<elements_of<X>>{});
  else return differentiable_leaf<X>;
}
/// Refuses an argument that a transform cannot differentiate. Returns whether it can.
template <class X>
consteval bool require_derivative() {
  if constexpr (!has_derivative<X>()) {
    static_assert(never<X> || is_tree_node<X> || !value<X>,
                  "varve: an argument that is to be differentiated is an integer or a truth value; write 2.0 for 2, or "
                  "convert it to a floating dtype");
    static_assert(
        never<X> || is_tree_node<X> || value<X>,
        "varve: an argument that is to be differentiated is no value and no tree of values; make it a struct of "
        "tensors, or a template of the type of its leaves: template <class T> struct layer { T weight, bias; };, "
        "or declare its type one: template <> inline constexpr bool varve::is_tree_node<its_type> = true;");
    static_assert(never<X> || !is_tree_node<X>,
                  "varve: an argument that is to be differentiated is a tree without a floating value");
  }
  return has_derivative<X>();
}
} // namespace detail

/// One run of reverse mode on static values: a tape and the level at which its values are seen.
template <class F, class... X>
class static_reverse_scope {
public:
  static constexpr int level = detail::next_level<F, X...>;
  using tower = decltype(detail::leaves_tower<level>(std::declval<F const&>(), std::declval<X const&>()...));
  using interpreter = grad_interpreter<static_tape_level<level, F, tower>>;

  constexpr explicit static_reverse_scope([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x)
      : tape_(tower_below(f, x...)), like_(detail::traced_among(f, x...)) {}

  template <class T>
  constexpr auto track(T const& t) {
    if constexpr (detail::differentiable_leaf<T>) return track_leaf(t);
    else
      return tree_map(
          [&](auto const& v) {
            using V = std::remove_cvref_t<decltype(v)>;
            if constexpr (detail::differentiable_leaf<V>) return track_leaf(v);
            else return v;
          },
          t);
  }
  template <class T>
  constexpr void give(T const&) const {} // static values are never written into
  template <class Body>
  constexpr auto run(Body const& body) {
    return body();
  }
  /// Returns the values of the results below this level.
  template <class Y>
  constexpr auto primal(Y const& t) const {
    return tree_map(
        [](auto const& y) {
          using V = std::remove_cvref_t<decltype(y)>;
          if constexpr (value<V>) {
            detail::check_exit<level, V>();
            if constexpr (at_level<V, level>) return y.value;
            else return y;
          } else {
            return y;
          }
        },
        t);
  }
  template <class Y>
  constexpr void backward_from_scalar(Y const& y) {
    static_assert(value<Y>, "varve: grad: the function must return one scalar value");
    if constexpr (value<Y>) {
      detail::check_exit<level, Y>();
      if constexpr (is_ints<decltype(shape_of(y))>)
        static_assert(decltype(shape_of(y))::size() == 0,
                      "varve: grad: the function must return a scalar (rank 0); reduce its result, for example by sum");
      else if (rank_of(y) != 0) refuse::grad_of_a_function_that_does_not_return_a_scalar(to_dims(shape_of(y)));
      if constexpr (at_level<Y, level>) seed(y, detail::constant_ones(y.value));
      tape_.pull();
    }
  }
  /// Pulls back a tree of cotangents of the results.
  template <class Y, class G>
  constexpr void backward(Y const& t, G const& g) {
    tape_.clear();
    tree_map(
        [&](auto const& y, auto const& c) {
          seed_leaf(y, c);
          return 0;
        },
        t, g);
    tape_.pull();
  }
  /// Pulls back cotangents of the leaves that are used. `t` and `g` must have the same structure.
  template <class Y, class G>
  constexpr void backward(Y const& t, G const& g, detail::used_results const& used) {
    tape_.clear();
    auto const seed_leaves = [&]<std::size_t... K>(auto const& y, auto const& c, std::index_sequence<K...>) {
      ((used[static_cast<int>(K)] ? seed_leaf(std::get<K>(y), std::get<K>(c)) : void()), ...);
    };
    seed_leaves(tree_leaves(t), tree_leaves(g), std::make_index_sequence<detail::leaf_count<Y>()>{});
    tape_.pull();
  }
  /// Returns the collected cotangents of a tracked tree, with zeros where none arrived.
  template <class T>
  constexpr auto gradient(T const& t) const {
    if constexpr (detail::leaf_at_level<T, level>) {
      if (t.extra->set) return t.extra->value;
      return lift_to_all(tape_.tower, detail::constant_zeros(t.value));
    } else
      return tree_map(
          [&](auto const& v) {
            using V = std::remove_cvref_t<decltype(v)>;
            if constexpr (at_level<V, level>) {
              if (v.extra->set) return v.extra->value;
              return lift_to_all(tape_.tower, detail::constant_zeros(v.value));
            } else {
              return none;
            }
          },
          t);
  }

  /// Returns for which leaves of a tracked tree a cotangent arrived.
  template <class T>
  constexpr detail::used_results reached(T const& t) const {
    detail::used_results r;
    int k = 0;
    auto const leaf = [&](auto const& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      if constexpr (at_level<V, level>) r.set(k, v.extra->set);
      else r.set(k, false);
      ++k;
    };
    detail::call_with([&](auto const&... v) { (leaf(v), ...); }, tree_leaves(t));
    return r;
  }

private:
  using like = decltype(detail::traced_among(std::declval<F const&>(), std::declval<X const&>()...));
  /// Records a leaf on the tape. If some arguments belong to a trace, static values become constants of that trace, so
  /// that their cotangents are values of the trace too.
  template <class V>
  constexpr auto track_leaf(V const& v) {
    if constexpr (!is_none<like> && !traced_value<V>)
      return in().track(in(), detail::as_traced(detail::plain(v), like_));
    else return in().track(in(), detail::plain(v));
  }
  static constexpr tower tower_below([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) {
    if constexpr (std::is_empty_v<tower>) return tower{};
    else return detail::leaves_tower<level>(f, x...);
  }
  constexpr interpreter in() {
    interpreter i{};
    i.record_on = &tape_;
    return i;
  }
  template <class Y, class G>
  constexpr void seed_leaf([[maybe_unused]] Y const& y, [[maybe_unused]] G const& g) {
    if constexpr (at_level<Y, level>) seed(y, detail::viewed(g));
  }
  template <class Y, class G>
  constexpr void seed(Y const& y, G const& g) {
    if constexpr (traced_value<Y> && value<G> && !traced_value<G>) {
      if (!(to_dims(shape_of(g)) == to_dims(shape_of(y))))
        refuse::shapes_do_not_match("vjp (cotangent and result)", to_dims(shape_of(g)), to_dims(shape_of(y)));
      if (y.extra) y.extra->add(tape_.tower, to(detail::as_traced(detail::plain(g), y), type_fact(y)));
    } else {
      if (y.extra) y.extra->add(tape_.tower, g);
    }
  }
  tape<tower> tape_;
  [[no_unique_address]] like like_;
};

/// Opens reverse mode for a function and its arguments: on tensors if an argument is a dynamic value, else on static
/// values.
template <class F, class... X>
constexpr auto reverse_scope([[maybe_unused]] F const& f, [[maybe_unused]] X const&... x) {
  if constexpr (any_dynamic<X...>) return dynamic_reverse_scope<>();
  else return static_reverse_scope<F, X...>(f, x...);
}

} // namespace varve
