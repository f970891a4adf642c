// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/erased_function.hpp>
#include <varve/composite/narrow.hpp>
#include <varve/implicit/data.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>

/// @file
/// The implicit function theorem as the derivatives of a custom function.
///
/// A rule R defines a solution y(a, data), which it computes by `forward(a, data)`. It satisfies h(y, data) = 0, or
/// h(y, data) = a if `R::is_linear`; `function` is h. `solved(y, data, b, transposed)` solves J x = b, or with J
/// transposed, where J is the derivative of h by y. So
///
///     J dy = da - (dh / d data) d data
///
/// in forward mode, and reverse mode solves with J transposed once. Both are written in operators and in calls of
/// solutions, so that they have derivatives too.
namespace varve::implicit::detail {

/// h as a function of the data that derivatives are taken by, with the rest behind it.
template <class R, class Choice>
struct by_data {
  [[no_unique_address]] R r;
  [[no_unique_address]] Choice choice;
  template <class Part, class Y, class Data, class... Unread>
  constexpr auto operator()(Part const& part, Y const& y, Data const& data, Unread const&...) const {
    return r.function(y, choice.merged(data, part));
  }
};
template <class Y, class R>
constexpr auto forced_by([[maybe_unused]] Y const& y, [[maybe_unused]] R const& da) {
  if constexpr (is_none<R>) return varve::detail::constant_zeros(y);
  else return da;
}
/// Returns the tangent of a solution. `da` is `none` unless the rule is linear.
template <class R, class Choice, class Y, class Data, class DA, class Tangents>
constexpr auto tangent_of(R const& r, Choice const& choice, Y const& y, Data const& data, DA const& da,
                          Tangents const& tangents) {
  return choose(
      nothing_chosen(choice, data),
      [&](auto const& v) { return r.solved(v, data, forced_by(v, da), std::false_type{}); },
      [&](auto const& v) {
        using P = decltype(choice.part(data, data));
        using T = decltype(choice.part(data, tangents));
        auto const moved = jvp(closure(by_data<R, Choice>{r, choice}, v, data), std::tuple<P>(choice.part(data, data)),
                               std::tuple<T>(choice.part(data, tangents)))
                               .second;
        if constexpr (is_none<DA>) return r.solved(v, data, neg(moved), std::false_type{});
        else return r.solved(v, data, sub(da, moved), std::false_type{});
      },
      y);
}
/// Returns the cotangents of a and of all data, given the one of the solution.
template <class R, class Choice, class Y, class Data, class G>
constexpr auto cotangents_of(R const& r, Choice const& choice, Y const& y, Data const& data, G const& g) {
  auto const u = r.solved(y, data, g, std::true_type{});
  using P = decltype(choice.part(data, data));
  auto const h = by_data<R, Choice>{r, choice};
  auto const run = vjp(closure(h, y, data, u), P(choice.part(data, data)));
  return std::pair(u, choice.template merged<true>(data, std::get<0>(run.second(neg(u)))));
}

/// A rule in the form of a custom function on static values.
template <class R>
struct static_solution {
  [[no_unique_address]] R r;

  template <class A, class... T>
  constexpr auto forward(A const& a, T const&... data) const {
    return r.forward(a, std::tuple<T...>(data...));
  }
  template <class C, class In, class Y>
  constexpr auto context(C const& c, In const& in, Y const& y) const {
    return std::apply([&](auto const&... t) { return c.save_for_backward(y, t...).save_for_forward(y, t...); },
                      tail_of(in));
  }
  template <class C, class G>
  constexpr auto backward(C const& c, G const& g) const {
    auto const& y = head_of(c.saved());
    auto const data = tail_of(c.saved());
    using D = std::remove_const_t<decltype(data)>;
    if constexpr (floating_data::is_empty(std::type_identity<D>{})) {
      if constexpr (R::is_linear) return with_first(r.solved(y, data, g, std::true_type{}), nothing_of(data));
      else return with_first(none, nothing_of(data));
    } else {
      auto const all = cotangents_of(r, floating_data{}, y, data, g);
      if constexpr (R::is_linear) return with_first(all.first, all.second);
      else return with_first(none, all.second);
    }
  }
  template <class C, class DA, class... T>
  constexpr auto jvp(C const& c, DA const& da, T const&... tangents) const {
    auto const& saved = c.saved_for_forward();
    auto const run = [&](auto const& a) {
      return tangent_of(r, floating_data{}, head_of(saved), tail_of(saved), a, std::tuple<T...>(tangents...));
    };
    if constexpr (R::is_linear) return run(da);
    else return run(none);
  }

private:
  template <class... T>
  static constexpr auto nothing_of(std::tuple<T...> const&) {
    return std::make_tuple((static_cast<void>(std::type_identity<T>{}), none)...);
  }
};
/// What the calls of static solutions support.
struct implicit_call {
  static constexpr bool generate_vmap_rule = true;
};

/// A custom function on tensors that `saved_solution` may know.
struct erased_solution : varve::detail::boxed_custom_function {
  void const* mark = nullptr; ///< identifies its type; null if it cannot be saved
  std::shared_ptr<void const> parts{};
  void const* type() const override { return mark; }
};
/// A rule in the form of a custom function on tensors.
template <class R>
struct tensor_solution final : erased_solution {
  using boxed_context = varve::detail::boxed_context;
  R r;

  explicit tensor_solution(R const& rule, void const* type = nullptr, std::shared_ptr<void const> made_of = nullptr)
      : r(rule) {
    mark = type, parts = std::move(made_of);
  }
  char const* name() const override { return R::name; }
  /// A solver of the user's may return its start or data, whose memory the solution must not share.
  boxed_args forward(boxed_args const& x) const override {
    using T = dependent<tensor, R>;
    T const y = r.forward(static_cast<T const&>(x[0]), from(x, 1));
    for (int k = 0; k < x.size(); ++k)
      if (y.shares_storage(x[k])) return boxed_args(T(clone(y)));
    return boxed_args(y);
  }
  boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const override {
    boxed_context c;
    c.saved = y;
    marked_data choice;
    for (int k = 0; k < x.size(); ++k) {
      c.operands.push_back(meta_of(x[k]));
      if (k == 0) continue;
      c.saved.push_back(x[k]);
      choice.marks.push_back(needs[static_cast<std::size_t>(k)] && has_derivatives(x[k].dtype()));
    }
    c.rest = std::make_shared<marked_data const>(std::move(choice));
    return c;
  }
  boxed_args backward(boxed_context const& c, boxed_args const& g) const override {
    using T = dependent<tensor, R>;
    auto const& choice = *static_cast<marked_data const*>(c.rest.get());
    T const& y = static_cast<T const&>(c.saved[0]);
    tensors const data = from(c.saved, 1);
    boxed_args all;
    if (choice.is_empty()) {
      all.push_back(R::is_linear ? T(r.solved(y, data, static_cast<T const&>(g[0]), std::true_type{})) : T());
      for (std::size_t k = 0; k < data.size(); ++k) all.push_back(T());
    } else {
      auto const [u, found] = cotangents_of(r, choice, y, data, static_cast<T const&>(g[0]));
      all.push_back(R::is_linear ? T(u) : T());
      for (auto const& t : found) all.push_back(t);
    }
    varve::detail::fit_gradients<T>(name(), c, all);
    return all;
  }
  boxed_args jvp(boxed_context const& c, boxed_args const& t) const override {
    using T = dependent<tensor, R>;
    auto const& choice = *static_cast<marked_data const*>(c.rest.get());
    auto const run = [&](auto const& a) {
      return boxed_args(tangent_of(r, choice, static_cast<T const&>(c.saved[0]), from(c.saved, 1), a, from(t, 1)));
    };
    if constexpr (R::is_linear) return run(static_cast<T const&>(t[0]));
    else return run(none);
  }
  /// A solver that reads numbers solves lane after lane.
  boxed_args vmap(vmap_info const& info, std::vector<bool> const& mapped, boxed_args const& x) const override {
    if constexpr (R::reads_numbers) {
      using T = dependent<tensor, R>;
      auto const self = std::make_shared<tensor_solution>(*this);
      std::vector<T> lanes;
      for (index_t lane = 0; lane < info.batch_size; ++lane) {
        boxed_args slice;
        for (int k = 0; k < x.size(); ++k)
          slice.push_back(mapped[static_cast<std::size_t>(k)] ? lane_of(x[k], lane) : x[k]);
        lanes.push_back(varve::detail::call_custom<>(self, slice)[0]);
      }
      return boxed_args(T(stack(lanes)));
    } else {
      return {};
    }
  }

private:
  static tensors from(boxed_args const& x, int first) {
    tensors r;
    for (int k = first; k < x.size(); ++k) r.push_back(x[k]);
    return r;
  }
  static tensor lane_of(tensor const& t, index_t lane) {
    using T = dependent<tensor, R>;
    dims sizes = t.sizes();
    return T(reshape(narrow(static_cast<T const&>(t), ints<0>{}, dims{lane}, dims{1}), sizes.erase(0)));
  }
};

/// Calls a rule, so that every transform, mode and trace sees its derivatives.
template <class R, class A, class... T>
constexpr auto solution(R const& r, A const& a, std::tuple<T...> const& data) {
  static_assert((value<T> && ...), "varve: implicit: the data must be values or trees of values");
  return varve::detail::call_with(
      [&](auto const&... t) {
        return custom_function_call<implicit_call, static_solution<R>>{{r}}(varve::detail::plain(a),
                                                                            varve::detail::plain(t)...);
      },
      data);
}
template <class T = tensor>
T solution_on(varve::detail::custom_function_ptr const& f, tensor const& a, tensors const& data) {
  boxed_args x(a);
  for (auto const& t : data) x.push_back(t);
  return T(varve::detail::call_custom<>(f, x)[0]);
}
template <class R>
tensor solution(R const& r, tensor const& a, tensors const& data) {
  return solution_on(std::make_shared<tensor_solution<R>>(r), a, data);
}

} // namespace varve::implicit::detail
