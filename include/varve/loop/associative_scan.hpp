// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/mode.hpp>
#include <varve/loop/scan.hpp>
#include <varve/op/clone.hpp>
#include <varve/transform/vmap.hpp>
#include <varve/transform/with.hpp>

namespace varve {

/// How `associative_scan` calls its function: `pointwise` calls it once for many rows, which are contiguous in its
/// arguments; `generic` maps it over the rows.
enum class combine_mode : unsigned char { pointwise, generic };

namespace detail {
/// A mode that allows pointwise operators only. It checks by types alone and is never run.
struct pointwise_only : dispatch_mode<pointwise_only> {
  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) {
    if constexpr (is_hop<Op>)
      static_assert(never<Op>, "varve: associative_scan: this function is not pointwise; use combine_mode::generic");
    else {
      constexpr op_kind kind = rules<typename Op::tag>::kind;
      static_assert(kind == op_kind::pointwise || kind == op_kind::convert || kind == op_kind::factory,
                    "varve: associative_scan: this function is not pointwise; use combine_mode::generic");
    }
    return op(x...);
  }
};
template <class F, class T>
void require_pointwise_on_tensors(F const& f, T const& a) {
  generator_guard const as_before(default_generator);
  boxed_args captures;
  trace_layer l;
  l.captures = &captures;
  l.apart = true;
  l.copies_by(&copy_as_laid_out<dependent<tensor, F>>);
  auto const in = [&] { return tree_map([&](auto const& v) { return l.input(v); }, a); };
  auto const x = in(), y = in();
  l.trace_function([&] { return flatten(f(x, y)); });
  for (node const& n : l.builder.finish().nodes)
    if (!n.scaffold && n.op->kind > op_kind::convert && n.op->kind != op_kind::factory)
      refuse::with<value_error>((std::string("varve: associative_scan: the function is not pointwise, it calls ") +
                                 n.op->name + "; use combine_mode::generic")
                                    .c_str());
}
template <class F, class T>
constexpr void require_pointwise(F const& f, T const& a) {
  if constexpr (tree_is_dynamic<T>()) require_pointwise_on_tensors(f, a);
  else (void)sizeof(with(std::declval<pointwise_only&>(), f, a, a));
}
/// Returns the result of the function if its values have the shapes and dtypes of the function's arguments; refuses it
/// otherwise.
template <class T, class Y>
constexpr auto required_like(T const& a, Y const& y) {
  return tree_map(
      [](auto const& u, auto const& v) {
        if constexpr (is_ints<decltype(shape_of(u))> && is_ints<decltype(shape_of(v))>) {
          constexpr bool alike = std::is_same_v<decltype(shape_of(u)), decltype(shape_of(v))> &&
                                 std::is_same_v<decltype(type_fact(u)), decltype(type_fact(v))>;
          static_assert(
              alike, "varve: associative_scan: the function must give values of the shapes and dtypes that it takes");
          if constexpr (alike) return v;
          else return u; // after the message the compiler goes on
        } else {
          meta const before{dtype_of(u), to_dims(shape_of(u))}, after{dtype_of(v), to_dims(shape_of(v))};
          if (!(before == after)) refuse::values_must_keep_shape_and_dtype("associative_scan", &before, &after, 1);
          return v;
        }
      },
      a, y);
}
/// Lifts static values so that they have the types of combined values: seen through every transform that sees one of
/// the values or a declared capture of the function, and as constants of the trace to which one belongs.
template <class Tower, class All>
struct lifted_to_all {
  Tower tower;
  All const& all;
  template <class V>
  constexpr auto operator()(V const& v) const {
    return lift_to_all(tower, call_with([&](auto const&... o) { return all_traced(v, o...); }, all));
  }
};
template <class All>
constexpr auto lift_of(All const& all) {
  auto const tower = call_with([](auto const&... v) { return tower_of<1 + leaf_level<All>()>(v...); }, all);
  return lifted_to_all<std::remove_const_t<decltype(tower)>, All>{tower, all};
}
/// Returns rows [from, to) of each value of a tree, every step-th. `bounds` returns {0, from, to, step} for the sizes
/// of the value and of the corresponding value in `beside`.
template <class B, class T, class... O>
constexpr auto rows(B bounds, T const& x, O const&... beside) {
  return tree_map(
      [&](auto const& v, auto const&... o) { return bind<slice_t>(on_dims(bounds, shape_of(v), shape_of(o)...))(v); },
      x, beside...);
}
inline constexpr auto row_count = [](dims const& s) { return dims{s[0]}; };
/// Interleaves the rows of a and b; a may have one row more.
inline constexpr auto interleaved = [](auto const& a, auto const& b) {
  auto const both = [&](auto const& u) {
    auto const pairs = [](dims const& s) {
      dims r = s;
      r[0] *= 2;
      return r;
    };
    return reshape(stack(std::tuple(u, b), axis<1>), on_dims(pairs, shape_of(b)));
  };
  auto const one_more = [&](auto const& u) {
    return cat(std::tuple(both(rows([](dims const&, dims const& s) { return dims{0, 0, s[0], 1}; }, u, b)),
                          rows([](dims const& n, dims const& s) { return dims{0, s[0], n[0], 1}; }, u, b)),
               axis<0>);
  };
  return choose(same_fact(on_dims(row_count, shape_of(a)), on_dims(row_count, shape_of(b))), both, one_more, a);
};

/// The scan along dimension 0. It combines pairs of rows, scans the combined rows, and then computes every other row
/// from its neighbour. It combines at most twice as many rows as there are, in a depth of 2 log2 of their number.
template <bool Reverse, combine_mode Mode, class F, class Lift>
struct tree_scan {
  F const& f;
  Lift const& lift;
  template <class T>
  constexpr auto operator()(T const& x) const {
    if constexpr (!lengths_are_types<T>) return of_any_length(x);
    else if constexpr (decltype(on_dims(row_count, shape_of(first_leaf(x))))::to_dims()[0] < 2) return x;
    else return level(x);
  }

private:
  template <class T>
  static constexpr auto const& first_leaf(T const& x) {
    if constexpr (is_vector<T>) return first_leaf(x[0]);
    else if constexpr (is_tree_node<T>) return std::get<0>(tree_leaves(x));
    else return x;
  }
  template <class T>
  static constexpr bool lengths_are_types = is_ints<decltype(shape_of(first_leaf(std::declval<T const&>())))>;
  template <class T>
  constexpr T of_any_length(T const& x) const {
    if (to_dims(shape_of(first_leaf(x)))[0] < 2) return x;
    return level(x);
  }
  template <class T>
  constexpr auto combine(T const& a, T const& b) const {
    auto const y = [&] {
      if constexpr (Mode == combine_mode::pointwise) return f(a, b);
      else return vmap(f)(a, b);
    }();
    return required_like(a, tree_map(lift, y));
  }
  template <class T>
  constexpr auto level(T const& x) const {
    constexpr auto first = [](dims const& s) { return dims{0, Reverse && s[0] % 2 == 0, s[0], 2}; };
    constexpr auto second = [](dims const& s) { return dims{0, !(Reverse && s[0] % 2 == 0), s[0], 2}; };
    auto const a = rows(first, x);
    auto const b = rows(second, x);
    constexpr auto with_partner = [](dims const& e, dims const& o) {
      return Reverse ? dims{0, e[0] - o[0], e[0], 1} : dims{0, 0, o[0], 1};
    };
    auto const odd = [&](auto const& y) {
      if constexpr (lengths_are_types<T>) return (*this)(y);
      else return of_any_length(y); // a type known before the function is instantiated
    }(combine(rows(with_partner, a, b), b));
    constexpr auto head = [](dims const& e) { return Reverse ? dims{0, e[0] - 1, e[0], 1} : dims{0, 0, 1, 1}; };
    constexpr auto rest = [](dims const& e) { return Reverse ? dims{0, 0, e[0] - 1, 1} : dims{0, 1, e[0], 1}; };
    constexpr auto before = [](dims const& o, dims const& e) {
      return Reverse ? dims{0, o[0] - e[0] + 1, o[0], 1} : dims{0, 0, e[0] - 1, 1};
    };
    auto const even = choose(
        same_fact(on_dims(row_count, shape_of(first_leaf(a))), ints<1>{}), identity,
        [&](auto const& e) {
          return tree_map(
              [](auto const& h, auto const& r) {
                if constexpr (Reverse) return cat(std::tuple(r, h), axis<0>);
                else return cat(std::tuple(h, r), axis<0>);
              },
              rows(head, e), combine(rows(before, odd, e), rows(rest, e)));
        },
        a);
    if constexpr (!Reverse) return tree_map(interleaved, even, odd);
    else
      return choose(
          same_fact(on_dims(row_count, shape_of(first_leaf(a))), on_dims(row_count, shape_of(first_leaf(b)))),
          [&](auto const& e) { return tree_map(interleaved, odd, e); },
          [&](auto const& e) { return tree_map(interleaved, e, odd); }, even);
  }
};
} // namespace detail

/// Computes prefix combinations, `associative_scan<Dim, Reverse, Mode>(combine, xs)`, along dimension `Dim` of the
/// values of the tree `xs`. Row k of the result is combine(... combine(combine(row 0, row 1), row 2) ..., row k);
/// `Reverse` begins with the last row. All values must have the same length, which must not be 0. `combine` must be
/// associative. It receives two rows, trees of the structure of xs, and returns one with the same shapes and dtypes.
///
/// `combine` is called 2 log2(n) times instead of n, for many pairs of rows at once. In mode `pointwise` it is called
/// on whole slices and may use pointwise operators only; in mode `generic` it is mapped by `vmap`. The scan consists of
/// slices, calls of combine and joins, and every interpreter, trace and `fuse` processes these.
///
/// Errors: `shape_error` or `dtype_error` if combine returns other metadata (for static values a compile error);
/// `shape_error` if lengths differ; `value_error` if a length is 0, or if combine is not pointwise in mode `pointwise`.
///
///     associative_scan<0>([](auto a, auto b) { return maximum(a, b); }, x) // running maximum
template <int Dim = 0, bool Reverse = false, combine_mode Mode = combine_mode::pointwise, class F, class Xs>
constexpr auto associative_scan(F const& combine, Xs const& xs) {
  auto const run = [&](auto const& values, auto const& lift) {
    auto const front = tree_map(
        [](auto const& v) { return permute(v, on_dims(detail::axis_to_front, shape_of(v), ints<Dim>{})); }, values);
    bool any = false;
    index_t length = 0;
    tree_for_each(
        [&](auto const& v) {
          index_t const n = detail::walked_size(to_dims(shape_of(v)))[0];
          if (n == 0)
            refuse::argument_is_invalid("associative_scan", "there is nothing to walk through: the length is 0");
          if constexpr (traced_value<decltype(v)>)
            if (detail::is_sample_of(v, n))
              refuse::argument_is_invalid("associative_scan", "the length must be known, it is a symbol");
          if (any && n != length) refuse::lengths_differ("associative_scan", dims{length}, to_dims(shape_of(v)));
          any = true, length = n;
        },
        front);
    if (!any) refuse::argument_is_invalid("associative_scan", "there is no value to walk through");
    if constexpr (Mode == combine_mode::pointwise) detail::require_pointwise(combine, front);
    auto const y = detail::tree_scan<Reverse, Mode, F, std::remove_cvref_t<decltype(lift)>>{combine, lift}(front);
    return tree_map(
        [](auto const& v) {
          constexpr auto back = [](dims const& s, dims const& axis) {
            dims r;
            for (int k = 1; k < s.n; ++k) r.push_back(k);
            return r.insert(wrap_axis(axis[0], s.n), 0);
          };
          return permute(v, on_dims(back, shape_of(v), ints<Dim>{}));
        },
        y);
  };
  if constexpr (detail::tree_is_dynamic<Xs>()) {
    return run(tree_map([](auto const& v) { return tensor(clone(detail::as_tensor(detail::plain(v)))); }, xs),
               [](auto const& v) { return v; });
  } else {
    auto const values = tree_map([](auto const& v) { return detail::plain(v); }, xs);
    auto const captured = detail::captures_of(combine);
    auto const all = detail::joined(tree_leaves(values), tree_leaves(captured));
    auto const lift = detail::lift_of(all);
    return run(tree_map(lift, values), lift);
  }
}

} // namespace varve
