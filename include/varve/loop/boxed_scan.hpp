// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/boxed_operator.hpp>
#include <varve/loop/boxed_scan_call.hpp>
#include <varve/loop/scan.hpp>

/// @file
/// `scan` on tensors. Operands come in packs of run-time size and the type of the step is erased; otherwise the rules
/// are those of `rules<scan_t>`.
namespace varve {

namespace detail {
/// A call of one of the three loops, `scan`, `map` or `while_loop`, at a level of `grad`.
template <class Tag>
struct recorded_loop : boxed_scan {
  using tag = Tag;
  static constexpr char const* backward_name = Tag::backward_name;
};

/// A loop as `boxed_operator` takes it.
struct boxed_loop : boxed_scan {
  static constexpr bool passes_results = false; // a loop copies what its functions return
  static boxed_loop of(boxed_hop const& c, layer* l) { return {boxed_scan::of(c, l)}; }
  template <class In, class F>
  static auto on_packs(In const&, boxed_args const& x, F const& f) {
    return f(x);
  }
  template <class Tag, class In, class P>
  P record(In const& in, P const& x) const {
    boxed_scan loop = *this;
    P captures, first = opened(in, x), going;
    {
      lowered const off;
      first = operands_of_step(first, 0);
      going = P(this->going({}, first));
    }
    auto const step = traced(f, first, captures, 1, going[0]);
    step.refuse_writes(true);
    loop.f = step.call, loop.reach = step.reach;
    if (condition) {
      auto const c = traced(condition, first, captures);
      if (c.draws)
        refuse::argument_is_invalid(op->name(), "the condition draws random numbers, which its gradient would draw "
                                                "anew; draw them in the body, and carry them");
      loop.condition = c.call;
    }
    P const all = joined(x, captures);
    if (auto const t = in.open_tracked(all); !t.any) return loop(t.primal); // no operand is recorded
    if (!step.draws) return rules<Tag>::grad(recording_level<>{in}, recorded_loop<Tag>{loop}, all);
    P const y =
        rules<Tag>::grad(recording_level<>{in}, recorded_loop<Tag>{loop.drawing()}, joined(rng_state_below<P>(), all));
    return part(y, 1, y.size());
  }
  template <class Tag, class P>
  static P trace(trace_layer& around, boxed_hop const& c, P const& x) {
    auto loop = boxed_scan::of(c, nullptr);
    traced_call<P> call(around, x);
    if (!loop.condition && !loop.counted && loop.rows(call.real()) == 0) {
      P const like = call.below([&] { return loop(call.real()); });
      return around.within([&] { return of_no_step(loop, x, like); });
    }
    P const step = call.below([&] { return loop.operands_of_step(call.real(), 0); });
    P const going = call.below([&] { return P(loop.going(around.lanes, step)); });
    loop.f = call.graph_of(loop.f, step, going[0]);
    if (loop.condition) loop.condition = call.graph_of(loop.condition, step);
    return call.record(&hop_handle<Tag>, loop.at(), loop.functions(), {step, step}, [&](P const& all) {
      boxed_scan run = loop;
      run.condition = for_lanes(run.condition, around.lanes);
      return run(all);
    });
  }

private:
  /// Returns the results of a loop over no rows, without a loop: they are valid for a program with these lengths only.
  template <class P>
  static P of_no_step(boxed_scan const& op, P const& x, P const& like) {
    using T = std::remove_cvref_t<decltype(x[0])>;
    P r;
    for (int k = 0; k < like.size(); ++k)
      r.push_back(k < op.carried ? T(clone(x[k])) : T(varve::full(dims(like[k].sizes()), 0, like[k].dtype())));
    return r;
  }
};
/// Returns the boxed operator of a tag.
template <class Tag>
higher_order_operator& loop_operator();
#if VARVE_DEFINES
template <class Tag>
higher_order_operator& loop_operator() {
  static auto* const op = new boxed_operator<Tag, boxed_loop>; // never destroyed, so that it outlives every call
  (void)&known_from_start<&loop_operator<Tag>>;
  return *op;
}
template <class>
higher_order_operator& scan_operator() {
  return loop_operator<scan_t>();
}
#endif

/// Returns a tree like another, with leaves from a pack; `none` stays `none`.
template <class T>
auto filled(T const& like, boxed_args const& leaves, int& at) {
  return tree_map(
      [&](auto const& v) {
        if constexpr (is_none<std::remove_cvref_t<decltype(v)>>) return none;
        else return leaves[at++];
      },
      like);
}
/// Converts a tree of values to a tree of tensors; `none` stays `none`.
template <class T>
auto as_tensors(T const& tree) {
  return tree_map(
      [](auto const& v) {
        if constexpr (is_none<std::remove_cvref_t<decltype(v)>>) return none;
        else return tensor(as_tensor(plain(v)));
      },
      tree);
}
/// Returns the number of steps of `scan` or `map`. The operands after the `carried` ones are walked through and must
/// all have `given` rows. `given` is the number of rows of the first of them, or the given number of steps.
extent steps_of(char const* who, boxed_args const& x, bool carries, int carried, extent given);
template <int Dim, class F, class Init, class Xs>
auto scan_on_tensors(F const& f, Init const& init, Xs const& xs, bool reverse) {
  static_assert(leaf_level<Init>() == 0 && leaf_level<Xs>() == 0,
                "varve: scan: tensors and values of a static transform cannot be mixed; pass tensors alone");
  constexpr bool carries = !std::is_same_v<Init, std::tuple<>>;
  constexpr char const* who = carries ? scan_t::op_name : "map";
  auto const carried = as_tensors(init);
  auto const captured = as_tensors(captures_of(f));
  auto const call = [&](auto const& c, [[maybe_unused]] auto const& x, auto const& v) {
    auto const& bare = without_captures(f);
    return call_with(
        [&](auto const&... u) {
          if constexpr (is_steps<Xs>) return bare(c, u...);
          else return bare(c, x, u...);
        },
        v);
  };
  auto const walked = [&] {
    if constexpr (is_steps<Xs>) return none;
    else if constexpr (Dim == 0) return as_tensors(xs);
    else return tree_map([](auto const& v) { return permute(v, axis_to_front(v.sizes(), dims{Dim})); }, as_tensors(xs));
  }();
  using Y = decltype(call(carried, walked, captured));
  static_assert(gives_pair<Y>,
                "varve: scan: the step must give a std::pair: what is carried on, and the outputs (or varve::none)");
  decltype(as_tensors(std::declval<typename Y::second_type>())) outputs{}; // the last ones: for the structure
  boxed_args x = flatten(carried);
  int const c = x.size();
  if constexpr (!is_steps<Xs>) x = joined(x, flatten(walked));
  int const w = x.size() - c;
  extent const given = [&]() -> extent {
    if constexpr (is_steps<Xs>) return to_dims(length_of(xs))[0];
    else return w > 0 ? walked_size(x[c].sizes())[0] : extent(0);
  }();
  extent const length = steps_of(who, x, carries, c, given);
  boxed_function const step = [&](boxed_args const& a) {
    int at = 0;
    auto const now = filled(carried, a, at);
    auto const row = [&] {
      if constexpr (is_steps<Xs>) return none;
      else return filled(walked, a, at);
    }();
    Y const y = call(now, row, filled(captured, a, at));
    outputs = as_tensors(y.second);
    boxed_args r = flatten(y.first);
    tree_for_each(
        [&](auto const& v) {
          if constexpr (!is_none<std::remove_cvref_t<decltype(v)>>) r.push_back(v);
        },
        outputs);
    return r;
  };
  boxed_args const y =
      boxed_scan{
          &loop_operator<std::conditional_t<carries, scan_t, map_t>>(), step, {}, c, w, reverse, false, length, true}(
          joined(x, flatten(captured)));
  int at = 0;
  auto const last = filled(carried, y, at);
  return std::pair(last, filled(outputs, y, at));
}
} // namespace detail

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
VARVE_LIBRARY extent steps_of(char const* who, boxed_args const& x, bool carries, int carried, extent given) {
  for (int k = carried; k < x.size(); ++k)
    if (walked_size(x[k].sizes())[0] != given) refuse::lengths_differ(who, dims{given}, x[k].sizes());
  if (carries && carried == 0) refuse::argument_is_invalid(who, "init holds no value; a step must carry one at least");
  if (given < 0 || (given == 0 && x.size() == carried))
    refuse::argument_is_invalid(who, "there is nothing to walk through: the length is 0");
  return given;
}
} // namespace varve::detail
#endif
