// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Runs a recorded case by the name of its operator, and says how what it gives differs from what was recorded.
#include "reader.hpp"

#include <varve/by_name/call.hpp>
#include <varve/graph/interpret.hpp>
#include <varve/op/cat.hpp>
#include <varve/trace/make_fx.hpp>
#include <varve/transform/jvp.hpp>
#include <varve/transform/vjp.hpp>
#include <varve/transform/vmap.hpp>

namespace opinfo {
/// Calls `f(tensor&)` for the tensors of an argument, in order.
template <class F>
void for_tensors(argument& a, F const& f) {
  if (a.is<tensor>()) {
    tensor t = a.as<tensor>();
    f(t);
    a = t;
  } else if (a.is<argument::list>()) {
    argument::list all = a.as<argument::list>();
    for (argument& e : all) for_tensors(e, f);
    a = all;
  }
}
template <class F>
void for_tensors(recorded& c, F const& f) {
  for (argument& a : c.arguments) for_tensors(a, f);
  for (named_argument& a : c.named) for_tensors(a.value, f);
}
inline std::vector<argument> flat(std::vector<argument> const& y) {
  std::vector<argument> r;
  for (argument const& a : y)
    if (a.is<argument::list>())
      for (argument const& e : flat(a.as<argument::list>())) r.push_back(e);
    else r.push_back(a);
  return r;
}
/// Runs it; an operator that writes gets copies.
inline std::vector<argument> called(recorded c) {
  if (c.op.back() == '_') for_tensors(c, [](tensor& t) { t = varve::clone(t); });
  return flat(varve::ops::call(c.op, std::span<argument const>(c.arguments), std::span<named_argument const>(c.named)));
}
inline values tensors_at(recorded c, std::vector<std::size_t> const& places) {
  values all, r;
  for_tensors(c, [&](tensor& t) { all.push_back(t); });
  for (std::size_t k : places) r.push_back(all.at(k));
  return r;
}
/// A case as a function of some of its tensors: its floating outputs, or those of the given numbers.
struct of_places {
  recorded const& c;
  std::vector<std::size_t> const& inputs;
  std::vector<std::size_t> const* outputs;
  values operator()(values const& v) const {
    recorded with = c;
    std::size_t k = 0, place = 0;
    for_tensors(with, [&](tensor& t) {
      if (k < inputs.size() && inputs[k] == place++) t = v[k++];
    });
    auto const y = called(with);
    values r;
    if (outputs)
      for (std::size_t n : *outputs) r.push_back(y.at(n).as<tensor>());
    else
      for (argument const& a : y)
        if (varve::is_floating(a.as<tensor>().dtype())) r.push_back(a.as<tensor>());
    return r;
  }
};
/// Is something in a case float32, if only for a while?
inline double tolerance_of(recorded c) {
  bool single = false;
  auto const look = [&](tensor const& t) { single = single || t.dtype() == dtype::float32; };
  for_tensors(c, look);
  for (auto* list : {&c.outputs, &c.vjp.results, &c.jvp.results})
    for (argument& a : *list) for_tensors(a, look);
  return single || c.op == "float" ? 1e-5 : 1e-8;
}

/// What a result differs in from what was recorded; empty when in nothing.
inline std::string differs(argument const& mine, argument const& theirs, double tolerance) {
  if (theirs.is<tensor>() && mine.is<tensor>()) return difference(mine.as<tensor>(), theirs.as<tensor>(), tolerance);
  if (theirs.kind() != mine.kind()) return "a " + mine.kind() + ", not a " + theirs.kind();
  if (theirs.is<double>() && mine.as<double>() != theirs.as<double>()) return "another number";
  if (theirs.is<varve::extent>() && !(mine.as<varve::extent>() == theirs.as<varve::extent>())) return "another number";
  if (theirs.is<bool>() && mine.as<bool>() != theirs.as<bool>()) return "another truth value";
  return "";
}
inline std::string differ(std::vector<argument> const& mine, std::vector<argument> const& theirs, double tolerance) {
  if (mine.size() != theirs.size())
    return std::to_string(mine.size()) + " results, not " + std::to_string(theirs.size());
  for (std::size_t k = 0; k < mine.size(); ++k)
    if (auto const d = differs(mine[k], theirs[k], tolerance); !d.empty())
      return "result " + std::to_string(k) + ": " + d;
  return "";
}
/// What a check of a case finds wrong, refusals included.
template <class F>
std::string wrong(recorded const& c, F const& check) {
  if (!c.expressible) return "an argument or result has a kind or dtype that varve lacks";
  try {
    return check();
  } catch (varve::error const& e) { return e.what(); } catch (std::exception const& e) {
    return std::string("no error of varve's: ") + e.what();
  }
}
inline std::string wrong_forward(recorded const& c) {
  return wrong(c, [&] { return differ(called(c), flat(c.outputs), tolerance_of(c)); });
}
inline std::string wrong_vjp(recorded const& c) {
  return wrong(c, [&] {
    of_places const f{c, c.vjp.inputs, &c.vjp.outputs};
    values cotangents;
    for (argument const& d : c.vjp.directions) cotangents.push_back(d.as<tensor>());
    auto const g = std::get<0>(varve::vjp(f, tensors_at(c, c.vjp.inputs)).second(cotangents));
    std::vector<argument> mine, theirs;
    for (std::size_t k = 0; k < g.size(); ++k)
      if (!c.vjp.results[k].is_none()) { // None: PyTorch has no gradient there
        mine.emplace_back(g[k]);
        theirs.push_back(c.vjp.results[k]);
      }
    return differ(mine, theirs, tolerance_of(c));
  });
}
inline std::string wrong_jvp(recorded const& c) {
  return wrong(c, [&] {
    of_places const f{c, c.jvp.inputs, nullptr};
    values tangents;
    for (argument const& d : c.jvp.directions) tangents.push_back(d.as<tensor>());
    auto const d = varve::jvp(f, std::tuple(tensors_at(c, c.jvp.inputs)), std::tuple(tangents)).second;
    std::vector<argument> mine, theirs;
    auto const all = flat(c.outputs);
    std::size_t next = 0;
    for (std::size_t k = 0; k < all.size(); ++k) { // PyTorch has zeros for those that are not floating
      if (!varve::is_floating(all[k].as<tensor>().dtype())) continue;
      argument const own = next < d.size() ? argument(d[next]) : argument();
      ++next;
      if (c.jvp.results.at(k).is_none()) continue; // and None where it has no tangent
      mine.push_back(own);
      theirs.push_back(c.jvp.results[k]);
    }
    return differ(mine, theirs, tolerance_of(c));
  });
}
/// The same elements in another order: in the domain of the operator, and other values.
inline tensor turned(tensor const& x) {
  tensor r = tensor::empty(x.sizes(), x.dtype());
  index_t const n = x.numel();
  for (index_t k = 0; k < n; ++k) set(r, k, element(x, (k + 1) % n));
  return r;
}
inline values turned(values const& x) {
  values r;
  for (tensor const& t : x) r.push_back(turned(t));
  return r;
}
/// Other values at which a function is defined: the same in another order or, where that is refused, twice as large.
template <class F>
values other_values(F const& f, values const& x) {
  values r = turned(x);
  try {
    (void)f(r);
  } catch (varve::value_error const&) {
    for (std::size_t k = 0; k < x.size(); ++k)
      for (index_t i = 0; i < x[k].numel(); ++i) set(r[k], i, 2 * element(x[k], i));
  }
  return r;
}
inline std::vector<argument> as_arguments(values const& x) { return std::vector<argument>(x.begin(), x.end()); }
/// `vmap` over two lanes is the loop over them, for all floating operands together and each alone.
inline std::string wrong_vmap(recorded const& c) {
  return wrong(c, [&]() -> std::string {
    std::vector<std::vector<std::size_t>> choices{c.vjp.inputs};
    if (c.vjp.inputs.size() > 1)
      for (std::size_t k : c.vjp.inputs) choices.push_back({k});
    for (auto const& inputs : choices) {
      of_places const f{c, inputs, &c.vjp.outputs};
      values const lanes[2] = {tensors_at(c, inputs), other_values(f, tensors_at(c, inputs))};
      values wide, loop[2];
      for (std::size_t k = 0; k < inputs.size(); ++k)
        wide.push_back(varve::stack(values{lanes[0][k], lanes[1][k]}, dims{0}));
      for (int l = 0; l < 2; ++l) loop[l] = f(lanes[l]);
      values const y = varve::vmap(f)(wide);
      for (int l = 0; l < 2; ++l) {
        values mine;
        for (tensor const& t : y) mine.push_back(varve::select(t, dims{0}, dims{l}));
        if (auto const d = differ(as_arguments(mine), as_arguments(loop[l]), tolerance_of(c)); !d.empty())
          return (inputs.size() == 1 ? "operand " + std::to_string(inputs[0]) + " alone, " : "") + "lane " +
                 std::to_string(l) + ": " + d;
      }
    }
    return "";
  });
}
/// The graph that a run on some values leaves gives for others what the function gives. All tensors are arguments;
/// indices and masks stay what they are.
inline std::string wrong_trace_unguarded(recorded const& c) {
  std::vector<std::size_t> all;
  recorded copy = c;
  for_tensors(copy, [&](tensor const&) { all.push_back(all.size()); });
  of_places const f{c, all, &c.vjp.outputs};
  values const x = tensors_at(c, all);
  auto const of_floating = [&](values const& v) { // indices and masks stay what they are
    values all_of = x;
    for (std::size_t k = 0; k < x.size(); ++k)
      if (varve::is_floating(x[k].dtype())) all_of[k] = v[k];
    return f(all_of);
  };
  values other = other_values(of_floating, x);
  for (std::size_t k = 0; k < x.size(); ++k)
    if (!varve::is_floating(x[k].dtype())) other[k] = x[k];
  varve::graph const g = varve::make_fx(f)(x);
  varve::boxed_args in;
  for (tensor const& t : other) in.push_back(t);
  values y;
  for (tensor const& t : varve::interpret(g, in)) y.push_back(t);
  return differ(as_arguments(y), as_arguments(f(other)), tolerance_of(c));
}
inline std::string wrong_trace(recorded const& c) {
  return wrong(c, [&] { return wrong_trace_unguarded(c); });
}
/// A refusal must be a `varve::error` that leaves all as it was.
inline std::string wrong_refusal(recorded const& c) {
  if (!c.expressible) return "an argument has a kind or dtype that varve lacks";
  std::vector<std::vector<double>> before;
  recorded copy = c;
  for_tensors(copy, [&](tensor& t) { before.push_back(elements(t)); });
  try {
    (void)called(c);
    return "accepted";
  } catch (varve::error const& e) {
    if (std::string(e.what()).find("there is no operator") != std::string::npos) return e.what();
  }
  if (!varve::this_thread_state.quiet()) return "refused, but something is left on the stack";
  std::size_t k = 0;
  std::string r;
  for_tensors(copy, [&](tensor& t) {
    if (elements(t) != before[k++] || t.version() != 0) r = "refused, but an operand has changed";
  });
  return r;
}
} // namespace opinfo
