// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/aot/joint_graph.hpp>
#include <varve/aot/share_elements.hpp>
#include <varve/interpreter/become_view.hpp>
#include <varve/interpreter/eager.hpp>
#include <varve/interpreter/function_node.hpp>

/// @file
/// The two compiled parts of a function as one node of eager autograd, and the work around them. New values are written
/// into the arguments, and results that are views are made from the tensors that they show.
namespace varve::detail {

/// The pullback of a compiled forward pass: it runs the compiled backward pass on the saved values.
struct compiled_backward {
  boxed_function backward;
  boxed_args saved; // values, then sizes
  std::vector<std::uint32_t> versions;
  std::vector<meta> tangents;
  std::vector<int> places; // position of each gradient among the edges
  int edges = 0;
  boxed_args written{}; // arguments that the backward pass writes
  grad_node* self = nullptr;
  static constexpr bool released = true;
  static constexpr char const* name = "CompiledFunctionBackward";

  boxed_args operator()(boxed_args const& out, bool const*) const {
    if (inside_transform())
      refuse::with<transform_error>(
          "varve: aot: the backward pass of a compiled function was called under a transform, which "
          "would not see into it; call grad or vmap around the function");
    boxed_args in = saved;
    for (int k = 0; k < saved.size(); ++k)
      if (saved[k].writes() != versions[static_cast<std::size_t>(k)])
        refuse_stale(saved[k], name, versions[static_cast<std::size_t>(k)]);
    bool any = false, recorded = false;
    for (int k = 0; k < out.size(); ++k) {
      any = any || out[k].defined();
      recorded = recorded || (out[k].defined() && out[k].has_history());
      meta const& m = tangents[static_cast<std::size_t>(k)];
      in.push_back(out[k].defined() ? out[k] : zeros_of(m));
    }
    boxed_args r;
    for (int k = 0; k < edges; ++k) r.push_back(tensor());
    if (!any) return r;
    bool const again = is_grad_enabled() && (recorded || saved.size() > 0);
    if (is_grad_enabled() && written.size() > 0)
      refuse::with<autograd_error>(
          "varve: aot: the backward pass of a compiled function writes into an argument, and was asked "
          "for with create_graph, which would record it; run the function itself");
    no_grad const off;
    boxed_args const g = backward(in);
    for (std::size_t k = 0; k < places.size(); ++k) {
      tensor v = g[static_cast<int>(k)];
      if (again) v = refusing(v, out);
      r[places[k]] = v;
    }
    for (int k = 0; k < written.size(); ++k) write<tensor>(written[k], g[static_cast<int>(places.size()) + k]);
    return r;
  }
  void release() { saved = written = boxed_args(); }
  void let_go(tensor const& written) {
    for (int k = 0; k < saved.size(); ++k)
      if (saved[k].shares_storage(written)) saved[k] = saved[k].alias();
  }

private:
  /// Returns a gradient that cannot be differentiated again: the attempt throws `autograd_error`.
  template <class T>
  T refusing(T const& g, boxed_args const& out) const {
    T const r = g.alias();
    auto refuse = [](boxed_args const&, bool const*) -> boxed_args {
      refuse::with<autograd_error>(
          "varve: aot: the backward pass of a compiled function cannot be differentiated: its graph "
          "has no second derivative; take it of the function itself");
    };
    r.set_history(edge_to(record_function(refuse, leading_to(self, out), 1, "Error")));
    return r;
  }
  static tensor zeros_of(meta const& m) {
    return [](auto const& sizes, auto type) { return full(sizes, 0, type); }(m.sizes, m.type);
  }
  template <class T>
  static void write(T const& into, T const& value) {
    copy_(into, value);
  }
};

/// A function compiled ahead of time: its compiled graphs, and the effects that graphs do not express.
struct compiled_pair {
  joint_graph of; // without its graph
  boxed_function forward, backward;
  int saved_values = 0;

  /// True if a written argument shares memory with another, or an argument whose view changes is passed twice. The
  /// graph, which was traced with separate arguments, would compute something else then.
  bool writes_into_others(boxed_args const& in) const {
    for (std::size_t k = 0; k < of.inputs.size(); ++k) {
      aot_input const& i = of.inputs[k];
      tensor const& x = in[static_cast<int>(k)];
      bool const moves = i.reshaped || i.set_to_input >= 0 || i.set_to_result >= 0;
      for (int j = 0; j < in.size(); ++j)
        if (j != static_cast<int>(k) &&
            (((i.is_written || i.is_written_backward) && share_elements(x, in[j])) || (moves && x.is(in[j]))))
          return true;
    }
    return false;
  }

  /// Maps arguments and then captured tensors to the results of the function.
  boxed_args operator()(boxed_args const& in) const {
    bool const differentiated = of.has_backward();
    boxed_args y = run_forward(in), saved;
    compiled_backward* pull = nullptr; // owned by the node, which the results share
    int const own = of.shape.forward_results;
    boxed_args results;
    for (int k = 0; k < own; ++k) results.push_back(apart(y[k], k, y, in));
    if (differentiated) {
      for (int k = own; k < y.size(); ++k) saved.push_back(kept(y[k], in));
      pull = record(results, saved, in);
    }
    write_back(results, in);
    if (pull) see_reshaped(*pull, in);
    boxed_args r;
    for (aot_output const& o : of.outputs) r.push_back(output(o, results, in));
    return r;
  }

private:
  boxed_args run_forward(boxed_args const& in) const {
    no_grad const off;
    return forward(in);
  }
  /// True if result k of the graph must fill its memory in row-major order: views that are made of it rely on that.
  bool is_whole(int k) const {
    bool whole = false;
    for (aot_output const& o : of.outputs)
      whole = whole || (o.from == k &&
                        (o.what == aot_output::kind::view_of_value || (o.what == aot_output::kind::value && !o.views)));
    return whole;
  }
  /// Returns a result in memory of its own, as the trace assumed.
  tensor apart(tensor const& t, int k, boxed_args const& y, boxed_args const& in) const {
    if (!t.defined()) return t;
    bool shared = !t.is_contiguous() && is_whole(k);
    for (auto const& x : in) shared = shared || t.shares_storage(x);
    for (int j = 0; j < k; ++j) shared = shared || (y[j].defined() && t.shares_storage(y[j]));
    return shared ? copied(t) : t.alias();
  }
  template <class T>
  static T copied(T const& t) {
    no_grad const off;
    return clone(t);
  }
  /// Returns a value to save: a copy, if it is an argument that will be written.
  tensor kept(tensor const& t, boxed_args const& in) const {
    for (std::size_t k = 0; k < of.inputs.size(); ++k)
      if (of.inputs[k].is_written && t.shares_storage(in[static_cast<int>(k)])) return copied(t); // old value
    return t.alias();
  }
  compiled_backward* record(boxed_args& results, boxed_args const& saved, boxed_args const& in) const {
    compiled_backward pull{backward, saved, {}, {}, of.differentiated, in.size()};
    for (auto const& t : saved) pull.versions.push_back(t.writes());
    for (int k : of.tangents) pull.tangents.push_back(meta_of(results[k]));
    for (std::size_t k = 0; k < of.inputs.size(); ++k)
      if (aot_input const& i = of.inputs[k]; i.is_written_backward) {
        tensor const& x = in[static_cast<int>(k)];
        pull.written.push_back(i.is_written_backward_hidden ? x.data() : x);
      }
    std::vector<edge> edges;
    for (auto const& t : in) edges.push_back(t.has_history() ? edge(eager_history(t)) : edge());
    edge const n = edge_to(record_function(std::move(pull), std::move(edges), static_cast<int>(of.tangents.size()),
                                           compiled_backward::name));
    compiled_backward& made = static_cast<function_node<compiled_backward>*>(n.to())->pullback;
    made.self = n.to();
    for (std::size_t k = 0; k < of.tangents.size(); ++k)
      results[of.tangents[k]].set_history(edge(n.to(), static_cast<std::uint32_t>(k)));
    return &made;
  }
  /// Updates the saved versions of arguments that became other views of their memory, whose elements did not change.
  void see_reshaped(compiled_backward& pull, boxed_args const& in) const {
    for (std::size_t k = 0; k < of.inputs.size(); ++k)
      for (int s = 0; s < pull.saved.size() && of.inputs[k].reshaped && !of.inputs[k].is_written; ++s)
        if (pull.saved[s].shares_storage(in[static_cast<int>(k)]))
          pull.versions[static_cast<std::size_t>(s)] = pull.saved[s].writes();
  }
  void write_back(boxed_args const& results, boxed_args const& in) const {
    int next = 0;
    for (std::size_t k = 0; k < of.inputs.size(); ++k) {
      tensor const& x = in[static_cast<int>(k)];
      if (of.inputs[k].reshaped) reshape<tensor>(x, of.inputs[k].reshaped);
      if (!of.inputs[k].is_written) continue;
      tensor const& now = results[next++];
      set_grad_enabled const seen((is_grad_enabled() || now.has_history()) && !of.inputs[k].is_written_unseen);
      write<tensor>(of.inputs[k].is_written_hidden ? x.data() : x, now);
    }
    no_grad const off;
    for (std::size_t k = 0; k < of.inputs.size(); ++k) {
      aot_input const& i = of.inputs[k];
      if (i.set_to_input >= 0)
        set_(in[static_cast<int>(k)], functional_memory<tensor>::shown(in[i.set_to_input].detach(), i.set_views.get()));
      else if (i.set_to_result >= 0) set_(in[static_cast<int>(k)], results[i.set_to_result]);
    }
  }
  template <class T>
  static void reshape(T const& x, view_chain const& views) {
    become("aot", x, [&](T const& v) { return functional_memory<T>::shown(v, views.get()); });
  }
  template <class T>
  static void write(T const& into, T const& value) {
    copy_(into, value);
  }
  static tensor output(aot_output const& o, boxed_args const& results, boxed_args const& in) {
    using kind = aot_output::kind;
    switch (o.what) {
    case kind::absent:
      return tensor();
    case kind::value:
      return results[o.from];
    case kind::input:
      return in[o.from];
    default: {
      tensor const base = o.what == kind::view_of_input ? in[o.from] : results[o.from];
      set_grad_enabled const as_there(o.requires_grad || (is_grad_enabled() && !base.has_history()));
      tensor const v = functional_memory<tensor>::shown(base, o.views.get());
      if (o.origin != view_origin::usual && v.base().defined()) v.set_origin(o.origin);
      return v;
    }
    }
  }
};

} // namespace varve::detail
