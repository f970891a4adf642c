// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Ways to call a function. Each has a meaning, a letter; those of one letter must agree:
///   I  the function itself              B, F  over lanes of all arguments, of the first
///   G  the gradient of `contracted`     J     the Jacobian of the first result   (by the first argument)
///   M  the function under a mode that takes cos for sin
/// A stack is a list of them, the outermost first; its meaning is the letters without I.
#include "run.hpp"

#include <varve/aot.hpp>
#include <varve/export.hpp>
#include <varve/export/program_text.hpp>
#include <varve/fake.hpp>
#include <varve/functional.hpp>

namespace random_programs {
/// What a way is, as far as that decides where it may stand.
enum trait : unsigned {
  forward = 1,    // forward mode
  again = 2,      // calls f more often than once: no random numbers agree
  wraps = 4,      // f sees values of a transform
  plain = 8,      // it takes no such values
  traces = 16,    // f is traced: no mode may be switched on in it
  watches = 32,   // a mode is on in f
  records = 64,   // f is recorded by eager autograd
  reverse = 128,  // a level of reverse mode
  hooks = 256,    // f runs in a scope of saved tensor hooks, which such levels refuse
  lifts = 512,    // f may use none but its arguments
  sharing = 2048, // results share memory with arguments, and with each other, as those of f do
  copies = 8192,  // ... but for those that f writes
  lanes = 4096,   // f sees arguments that lie otherwise
  unrolls = 1024  // runs f, or back through it, for each element: a trace of such a way in another grows beyond measure
                  // (`growth`)
};
/// A way to call a function.
struct way {
  char letter;
  char const* name;
  /// Text of the call: `f` is the function, `v` the values.
  char const* text;
  values (*call)(function const& f, values const& v);
  unsigned traits = 0;
  bool is(unsigned any) const { return traits & any; }
};
using stack = std::vector<way const*>;
/// Can one way be called in another, which is further out? The library refuses all others.
inline bool goes_in(way const& w, way const& around) {
  if (w.is(plain) && around.is(wraps)) return false;
  if (w.is(lifts) && w.is(plain) && around.is(records | watches)) return false; // a fused function
  if (w.is(watches) && around.is(traces)) return false;
  return !(w.is(reverse) && around.is(hooks));
}

namespace ways {
/// The graph of a function. What a mode around it does would be in the graph, and be done again where that runs.
template <class... How>
vv::graph traced(function const& f, values const& v, How... how) {
  if (vv::is_user_mode_active()) throw vv::value_error("varve: random programs: a mode would be at work twice");
  return vv::make_fx(f, how...)(v);
}
inline values rest(values const& v) { return {v.begin() + 1, v.end()}; }
inline values behind(tensor const& x, values const& others) {
  values r{x};
  r.insert(r.end(), others.begin(), others.end());
  return r;
}
/// f as a function of its first argument.
inline auto of_first(function const& f, values const& v) {
  return [f, others = rest(v)](tensor const& x) { return f(behind(x, others)); };
}
inline auto scalar(function const& f, values const& v) {
  return [f, others = rest(v)](tensor const& x) { return contracted(f(behind(x, others))); };
}
inline auto first_result(function const& f, values const& v) {
  return [f, others = rest(v)](tensor const& x) { return tensor(f(behind(x, others)).at(0)); };
}
inline vv::boxed_args boxed(values const& v) {
  vv::boxed_args b;
  for (tensor const& t : v) b.push_back(t);
  return b;
}
inline values unboxed(vv::boxed_args const& b) {
  values v;
  for (tensor const& t : b) v.push_back(t);
  return v;
}
inline tensor unit(tensor const& like, index_t k) {
  tensor const n = vv::reshape(vv::arange(like.numel()), like.sizes());
  return vv::to(n == static_cast<std::int64_t>(k), like.dtype());
}
inline tensor stacked(values const& v, dims const& shape, int axis = 0) {
  if (v.empty()) throw vv::value_error("varve: random programs: nothing to stack");
  return vv::reshape(vv::stack(v, axis), shape);
}
inline dims joined(dims a, dims const& b) {
  for (int k = 0; k < b.n; ++k) a.push_back(b[k]);
  return a;
}
/// A leaf that is what x is; x itself where something records it already, so that derivatives nest.
inline tensor leaf_of(tensor const& x) {
  if (x.is_wrapped()) throw vv::value_error("varve: random programs: no eager autograd inside of a transform");
  if (x.requires_grad()) return x;
  tensor const leaf = vv::clone(vv::detach(x));
  leaf.requires_grad_();
  return leaf;
}
/// The lanes of values, by a loop.
inline values looped(function const& f, values const& v, bool first_only) {
  std::vector<values> columns;
  for (index_t k = 0; k < v[0].size(0); ++k) {
    values lane;
    for (std::size_t j = 0; j < v.size(); ++j)
      lane.push_back(first_only && j > 0 ? v[j] : tensor(vv::select(v[j], 0, k)));
    values const y = f(lane);
    columns.resize(y.size());
    for (std::size_t j = 0; j < y.size(); ++j) columns[j].push_back(y[j]);
  }
  values r;
  for (values const& c : columns) r.push_back(vv::stack(c, 0));
  return r;
}
inline tensor front_to_back(tensor const& t) {
  dims p;
  for (int k = 1; k < t.dim(); ++k) p.push_back(k);
  p.push_back(0);
  return vv::permute(t, p);
}
inline tensor back_to_front(tensor const& t) {
  dims p{t.dim() - 1};
  for (int k = 0; k + 1 < t.dim(); ++k) p.push_back(k);
  return vv::permute(t, p);
}
template <class F>
values each(values v, F const& f) {
  for (tensor& t : v) t = f(t);
  return v;
}
/// A mode that sees and changes nothing.
struct watching {
  static constexpr bool supports_higher_order_operators = true;
  auto process(auto const& op, auto const&... x) { return op(x...); }
};
/// A mode that takes cos for sin.
struct swapped {
  static constexpr bool supports_higher_order_operators = true;
  auto process(auto const& op, auto const&... x) {
    if constexpr (sizeof...(x) == 1 && std::is_same_v<std::remove_cvref_t<decltype(op(x...))>, tensor>) {
      if (std::string(op.name()) == "sin") {
        if constexpr ((std::is_same_v<decltype(x), vv::boxed_args const&> && ...)) return tensor(vv::cos(x[0]...));
        else return tensor(vv::cos(x...));
      }
      return tensor(op(x...));
    } else {
      return op(x...);
    }
  }
};
inline values same(function const& f, values const& v) { return f(v); }
inline values batch_of_one(function const& f, values const& v) {
  auto const lanes = each(v, [](tensor const& t) { return vv::unsqueeze(t, 0); });
  return each(vv::vmap(f)(lanes), [](tensor const& t) { return vv::select(t, 0, 0); });
}
inline values rows_by_vjp(function const& f, values const& v) {
  auto const run = vv::vjp(first_result(f, v), v[0]);
  values rows;
  for (index_t k = 0; k < run.first.numel(); ++k) rows.push_back(std::get<0>(run.second(unit(run.first, k))));
  return {stacked(rows, joined(run.first.sizes(), v[0].sizes()))};
}
inline values columns_by_jvp(function const& f, values const& v) {
  values columns;
  dims sizes;
  for (index_t k = 0; k < v[0].numel(); ++k) {
    auto const y = vv::jvp(first_result(f, v), std::tuple(v[0]), std::tuple(unit(v[0], k)));
    sizes = y.first.sizes();
    columns.push_back(y.second);
  }
  if (columns.empty()) throw vv::value_error("varve: random programs: nothing to stack");
  return {vv::reshape(vv::stack(columns, sizes.n), joined(sizes, v[0].sizes()))};
}
inline values rows_by_backward(function const& f, values const& v) {
  tensor const leaf = leaf_of(v[0]), y = first_result(f, v)(leaf);
  bool const nested = v[0].requires_grad();
  values rows;
  for (index_t k = 0; k < y.numel(); ++k)
    rows.push_back(y.requires_grad()
                       ? vv::autograd::grad<>({y}, {leaf}, {unit(y, k)}, {.retain_graph = true, .create_graph = nested},
                                              vv::autograd::unused::zeros)[0]
                       : tensor(vv::zeros_like(leaf)));
  return {stacked(rows, joined(y.sizes(), v[0].sizes()))};
}
inline values gradient_by_columns(function const& f, values const& v) {
  values columns;
  for (index_t k = 0; k < v[0].numel(); ++k)
    columns.push_back(vv::jvp(scalar(f, v), std::tuple(v[0]), std::tuple(unit(v[0], k))).second);
  return {stacked(columns, v[0].sizes())};
}
inline values gradient_by_backward(function const& f, values const& v) {
  tensor const leaf = leaf_of(v[0]), y = scalar(f, v)(leaf);
  if (!y.requires_grad()) return {vv::zeros_like(v[0])};
  if (v[0].requires_grad())
    return {vv::autograd::grad<>({y}, {leaf}, {}, {.create_graph = true}, vv::autograd::unused::zeros)[0]};
  y.backward();
  return {leaf.grad().defined() ? leaf.grad() : tensor(vv::zeros_like(v[0]))};
}
inline values gradient_recorded_twice(function const& f, values const& v) {
  tensor const leaf = leaf_of(v[0]), y = scalar(f, v)(leaf);
  if (!y.requires_grad()) return {vv::zeros_like(v[0])};
  tensor const g = vv::autograd::grad<>({y}, {leaf}, {}, {.create_graph = true}, vv::autograd::unused::zeros)[0];
  return {v[0].requires_grad() ? g : tensor(vv::detach(g))};
}
inline values gradient_by_linearize(function const& f, values const& v) {
  auto const run = vv::linearize(scalar(f, v), v[0]);
  values columns;
  for (index_t k = 0; k < v[0].numel(); ++k) columns.push_back(run.second(unit(v[0], k)));
  return {stacked(columns, v[0].sizes())};
}
/// Nothing is written below; what was written into arguments is, when all is done.
inline values below_functional_mode(function const& f, values const& v) {
  vv::functional_mode mode;
  values in, y;
  std::vector<std::uint32_t> versions;
  for (tensor const& t : v)
    if (t.requires_grad()) throw vv::value_error("varve: random programs: values of the mode have no history");
  {
    vv::functional_mode_guard const on(mode);
    for (tensor const& t : v) {
      auto const same = std::find_if(v.begin(), v.end(), [&](tensor const& o) { return o.is(t); });
      auto const k = static_cast<std::size_t>(same - v.begin());
      in.push_back(k < in.size() ? in[k] : mode.to_functional_tensor(t));
      versions.push_back(in.back().version());
    }
    for (tensor const& t : f(in)) y.push_back(vv::is_functional_tensor(t) ? vv::from_functional_tensor(t) : t);
  }
  for (std::size_t k = 0; k < v.size(); ++k)
    if (vv::mutations_of(in[k]).any()) // through data() no version counts
      vv::copy_(in[k].version() == versions[k] ? v[k].data() : v[k], vv::from_functional_tensor(in[k]));
  return y;
}
/// A program that was made for arguments twice as long, and is then asked for these.
inline values after_other_sizes(function const& f, values const& v) {
  auto const compiled = vv::compile(f, vv::backends::aot_eager);
  try {
    compiled(each(v, [](tensor const& t) {
      tensor const own = vv::detach(t);
      return t.dim() ? tensor(vv::cat(values{own, own}, 0)) : tensor(vv::clone(own));
    }));
  } catch (varve::error const&) {} // of these sizes it may be none
  return compiled(v);
}
/// The function as a program that is written and read again.
inline values exported(function const& f, values const& v) {
  if (vv::is_user_mode_active()) throw vv::value_error("varve: random programs: a mode would be at work twice");
  vv::exported_program const p = vv::export_program(f)(v);
  for (auto const& n : p.graph)
    if (n.function >= 0) return p(v); // custom functions have no text
  std::string const text = vv::to_text(p);
  try {
    vv::exported_program read = vv::program_from_text(text);
    read.state = p.state;
    return read(v);
  } catch (vv::value_error const& e) {
    if (std::string(e.what()).find("the graph is none") == std::string::npos) throw;
    throw std::logic_error(std::string("what was saved cannot be loaded: ") + e.what());
  }
}
} // namespace ways

/// Every way. The first of a letter is what others are compared with.
inline std::vector<way> const& all_ways() {
  using namespace ways;
  using f_t = function const&;
  using v_t = values const&;
  static std::vector<way> const all{
      {'I', "call", "return f(v);", same, sharing},
      {'I', "functionalize", "return vv::functionalize(f)(v);",
       [](f_t f, v_t v) -> values { return vv::functionalize(f)(v); }, wraps | sharing | copies},
      {'I', "compile", "return vv::compile(f)(v);", [](f_t f, v_t v) -> values { return vv::compile(f)(v); },
       wraps | traces},
      {'I', "compile, second call", "auto const c = vv::compile(f); c(v); return c(v);",
       [](f_t f, v_t v) -> values {
         auto const c = vv::compile(f);
         c(v);
         return c(v);
       },
       again | wraps | traces},
      {'I', "compile ahead of time", "return vv::compile(f, vv::backends::aot_eager)(v);",
       [](f_t f, v_t v) -> values { return vv::compile(f, vv::backends::aot_eager)(v); }, wraps | traces | sharing},
      {'I', "compile ahead of time, fused", "return vv::compile(f, vv::backends::fused)(v);",
       [](f_t f, v_t v) -> values { return vv::compile(f, vv::backends::fused)(v); }, wraps | traces | sharing},
      {'I', "compile ahead of time, for other sizes before", "return after_other_sizes(f, v);", after_other_sizes,
       again | wraps | traces},
      {'I', "exported", "return exported(f, v);", exported, again | plain | traces},
      {'I', "interpret(make_fx)", "return unboxed(vv::interpret(vv::make_fx(f)(v), boxed(v)));",
       [](f_t f, v_t v) -> values { return unboxed(vv::interpret(traced(f, v), boxed(v))); },
       again | wraps | lifts | sharing},
      {'I', "interpret(optimize(make_fx))", "return unboxed(vv::interpret(vv::optimize(vv::make_fx(f)(v)), boxed(v)));",
       [](f_t f, v_t v) -> values { return unboxed(vv::interpret(vv::optimize(traced(f, v)), boxed(v))); },
       again | wraps | lifts | sharing},
      {'I', "interpret(functionalize(make_fx))",
       "return unboxed(vv::interpret(vv::functionalize(vv::make_fx(f)(v)), boxed(v)));",
       [](f_t f, v_t v) -> values { return unboxed(vv::interpret(vv::functionalize(traced(f, v)), boxed(v))); },
       again | wraps | lifts | sharing},
      {'I', "fuse(make_fx)", "return unboxed(vv::fuse(vv::make_fx(f)(v))(boxed(v)));",
       [](f_t f, v_t v) -> values { return unboxed(vv::fuse(traced(f, v))(boxed(v))); }, again | wraps | lifts | plain},
      {'I', "interpret(make_fx on fakes)",
       "return unboxed(vv::interpret(vv::make_fx(f, vv::tracing::fake)(v), boxed(v)));",
       [](f_t f, v_t v) -> values { return unboxed(vv::interpret(traced(f, v, vv::tracing::fake), boxed(v))); },
       again | wraps | lifts | sharing},
      {'I', "interpret(make_fx of symbolic sizes)",
       "return unboxed(vv::interpret(vv::make_fx(f, vv::tracing::symbolic)(v), boxed(v)));",
       [](f_t f, v_t v) -> values { return unboxed(vv::interpret(traced(f, v, vv::tracing::symbolic), boxed(v))); },
       again | wraps | lifts | sharing},
      {'I', "functional mode", "return below_functional_mode(f, v);", below_functional_mode, again | wraps | plain},
      {'I', "checkpoint", "return checkpoint(f, v);",
       [](f_t f, v_t v) -> values {
         return carried::spread(v, [&](auto const&... x) { return vv::checkpoint(carried::taken(f), x...); });
       },
       hooks},
      {'I', "vmap of one lane", "return batch_of_one(f, v);", batch_of_one, wraps | lanes},
      {'I', "value of jvp", "return vv::jvp(of_first(f, v), std::tuple(v[0]), std::tuple(vv::ones_like(v[0]))).first;",
       [](f_t f, v_t v) -> values {
         return vv::jvp(of_first(f, v), std::tuple(v[0]), std::tuple(vv::ones_like(v[0]))).first;
       },
       wraps},
      {'I', "value of vjp", "return vv::vjp(of_first(f, v), v[0]).first;",
       [](f_t f, v_t v) -> values { return vv::vjp(of_first(f, v), v[0]).first; }, wraps | reverse},
      {'I', "a mode that watches", "watching m; vv::mode_guard const on(m); return f(v);",
       [](f_t f, v_t v) -> values {
         watching m;
         vv::mode_guard const on(m);
         return f(v);
       },
       watches | sharing},

      {'B', "loop", "return looped(f, v, false);", [](f_t f, v_t v) -> values { return looped(f, v, false); }, again},
      {'B', "vmap", "return vv::vmap(f)(v);", [](f_t f, v_t v) -> values { return vv::vmap(f)(v); }, wraps},
      {'B', "vmap of the last axis",
       "return each(vv::vmap(f, vv::in_dims<-1>, vv::out_dims<-1>)(each(v, front_to_back)), back_to_front);",
       [](f_t f, v_t v) -> values {
         return each(vv::vmap(f, vv::in_dims<-1>, vv::out_dims<-1>)(each(v, front_to_back)), back_to_front);
       },
       wraps},
      {'B', "vmap in chunks", "return vv::vmap(f, vv::chunk_size{2})(v);",
       [](f_t f, v_t v) -> values { return vv::vmap(f, vv::chunk_size{2})(v); }, again | wraps},
      {'B', "map", "return vv::map(f, v);", [](f_t f, v_t v) -> values { return vv::map(f, v); }},

      {'F', "loop over the first", "return looped(f, v, true);",
       [](f_t f, v_t v) -> values { return looped(f, v, true); }, again},
      {'F', "vmap of the first", "return vv::vmap(of_first(f, v))(v[0]);",
       [](f_t f, v_t v) -> values { return vv::vmap(of_first(f, v))(v[0]); }, wraps},
      {'F', "vmap of the first, others passed",
       "return vv::vmap([f](tensor const& x, values const& r) { return f(behind(x, r)); }, vv::in_dims<0, "
       "vv::none>)(v[0], rest(v));",
       [](f_t f, v_t v) -> values {
         return vv::vmap([f](tensor const& x, values const& r) { return f(behind(x, r)); },
                         vv::in_dims<0, vv::none>)(v[0], rest(v));
       },
       wraps},
      {'F', "map of the first", "return vv::map(of_first(f, v), v[0]);",
       [](f_t f, v_t v) -> values { return vv::map(of_first(f, v), v[0]); }},

      {'G', "grad", "return {vv::grad(scalar(f, v))(v[0])};",
       [](f_t f, v_t v) -> values { return {vv::grad(scalar(f, v))(v[0])}; }, wraps | reverse},
      {'G', "grad, others passed",
       "return {vv::grad([f](tensor const& x, values const& r) { return contracted(f(behind(x, r))); })(v[0], "
       "rest(v))};",
       [](f_t f, v_t v) -> values {
         return {
             vv::grad([f](tensor const& x, values const& r) { return contracted(f(behind(x, r))); })(v[0], rest(v))};
       },
       wraps | reverse},
      {'G', "value_and_grad", "return {vv::value_and_grad(scalar(f, v))(v[0]).second};",
       [](f_t f, v_t v) -> values { return {vv::value_and_grad(scalar(f, v))(v[0]).second}; }, wraps | reverse},
      {'G', "vjp", "return {std::get<0>(vv::vjp(scalar(f, v), v[0]).second(vv::ones({}, vv::dtype::float64)))};",
       [](f_t f, v_t v) -> values {
         return {std::get<0>(vv::vjp(scalar(f, v), v[0]).second(vv::ones({}, dtype::float64)))};
       },
       wraps | reverse},
      {'G', "backward", "return gradient_by_backward(f, v);", gradient_by_backward, plain | records},
      {'G', "autograd::grad", "return gradient_recorded_twice(f, v);", gradient_recorded_twice, plain | records},
      {'G', "jacrev", "return {vv::jacrev(scalar(f, v))(v[0])};",
       [](f_t f, v_t v) -> values { return {vv::jacrev(scalar(f, v))(v[0])}; }, wraps | reverse},
      {'G', "jacfwd", "return {vv::jacfwd(scalar(f, v))(v[0])};",
       [](f_t f, v_t v) -> values { return {vv::jacfwd(scalar(f, v))(v[0])}; }, forward | wraps},
      {'G', "jvp, by columns", "return gradient_by_columns(f, v);", gradient_by_columns,
       forward | again | wraps | unrolls},
      {'G', "linearize", "return gradient_by_linearize(f, v);", gradient_by_linearize,
       forward | again | wraps | traces | unrolls},

      {'J', "vjp, by rows", "return rows_by_vjp(f, v);", rows_by_vjp, wraps | reverse | unrolls},
      {'J', "jacrev", "return {vv::jacrev(first_result(f, v))(v[0])};",
       [](f_t f, v_t v) -> values { return {vv::jacrev(first_result(f, v))(v[0])}; }, wraps | reverse},
      {'J', "jacfwd", "return {vv::jacfwd(first_result(f, v))(v[0])};",
       [](f_t f, v_t v) -> values { return {vv::jacfwd(first_result(f, v))(v[0])}; }, forward | wraps},
      {'J', "jacrev in chunks", "return {vv::jacrev(first_result(f, v), vv::chunk_size{2})(v[0])};",
       [](f_t f, v_t v) -> values { return {vv::jacrev(first_result(f, v), vv::chunk_size{2})(v[0])}; },
       wraps | reverse | unrolls},
      {'J', "jvp, by columns", "return columns_by_jvp(f, v);", columns_by_jvp, forward | again | wraps | unrolls},
      {'J', "backward, by rows", "return rows_by_backward(f, v);", rows_by_backward, plain | records | unrolls},

      {'M', "a mode", "swapped m; vv::mode_guard const on(m); return f(v);",
       [](f_t f, v_t v) -> values {
         swapped m;
         vv::mode_guard const on(m);
         return f(v);
       },
       watches},
      {'M', "with", "swapped m; return vv::with(m, f, v);",
       [](f_t f, v_t v) -> values {
         swapped m;
         return vv::with(m, f, v);
       },
       watches},
  };
  return all;
}
inline way const* first_way(char letter) {
  for (way const& w : all_ways())
    if (w.letter == letter) return &w;
  return nullptr;
}
/// The function called in the ways of a stack.
inline function applied(stack const& s, function f) {
  for (auto w = s.rbegin(); w != s.rend(); ++w)
    f = [call = (*w)->call, inner = std::move(f)](values const& v) { return call(inner, v); };
  return f;
}
inline std::string meaning(stack const& s) {
  std::string r;
  for (way const* w : s)
    if (w->letter != 'I') r += w->letter;
  return r;
}
inline std::string name(stack const& s) {
  std::string r;
  for (way const* w : s) r += (r.empty() ? "" : " of ") + std::string(w->name);
  return r.empty() ? "call" : r;
}
/// The first way of each letter.
inline stack reference(std::string const& meaning) {
  stack s;
  for (char c : meaning) s.push_back(first_way(c));
  return s;
}
} // namespace random_programs
