// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/read_sizes.hpp>
#include <varve/op/create.hpp>
#include <varve/op/detach.hpp>
#include <varve/op/in_place.hpp>
#include <varve/op/view_inverse.hpp>
#include <varve/pass/apart_from_writes.hpp>
#include <varve/pass/results_apart.hpp>

/// @file
/// Makes in-place code of graphs functional. Both tracers record it as it is; this pass replaces it. `trace` runs the
/// pass at its end. `make_fx` leaves in-place operators in the graph; `compile`, `fuse(graph)` and `emit_cpp` begin
/// with the pass. A write into an argument becomes a `copy_` at the end. `compile` performs it after its program; other
/// users of graphs refuse it. Values seen through static transforms, and arrays, have no in-place operators, since
/// their views are copies.
///
/// The counterpart for calls on tensors is `interpreter/functionalize.hpp`. Both put writes back through views by means
/// of `op/view_inverse.hpp`.
namespace varve {

namespace detail {
/// A rewriter of one graph. Every in-place operator becomes its functional form, and the result is put back through the
/// views into their base. Views that were made before a write are made again if they are read after it. The graph
/// determines which values share memory: a view shares it with its operand, and a `reshape` that strides cannot express
/// is a copy.
class functionalizer {
public:
  constexpr functionalizer(graph const& g, purpose what_for)
      : g_(g), w_(g), shows_(g.nodes.size(), -1), writes_(g.nodes.size(), 0), seen_(g.nodes.size(), 0),
        returned_(g.nodes.size(), 0), overtaken_(g.nodes.size(), 0), hidden_(g.nodes.size(), 0), what_for_(what_for),
        kept_(g.regions.size(), 0) {
    list<char> called(g.regions.size(), 0);
    called[0] = 1;
    for (node const& n : g.nodes)
      for (int k = 0; k < n.regions_count; ++k) called[at(n.regions_first + k)] = 1;
    for (node const& n : g.nodes)
      if (n.op->hop.writes_copy) kept_[at(n.regions_first)] = 1;
    for (std::size_t r = 0; r < g.regions.size(); ++r)
      if (!called[r]) kept_[r] = writes_operand(g.regions[r]);
  }

  constexpr graph run() {
    int r = -1;
    return w_.run(
        [&](int n) {
          region const& all = g_.regions[static_cast<std::size_t>(r)];
          if (kept_[at(r)]) return w_.copy(old(n));
          int const mine = each(n, r > 0);
          if (n + 1 < all.node_first + all.node_count) return mine;
          w_.now[at(n)] = mine;
          end(all);
          return w_.now[at(n)];
        },
        [&] { ++r; });
  }

  // The writer interface for inverses of views.
  template <class Tag, int, class... In>
  constexpr int add_node(attributes const& a, meta const& m, In... in) {
    return add_node(handle<Tag>, a, m, in...);
  }
  constexpr meta meta_of(int n) const { return out(n); }
  constexpr int ones(meta const& m) {
    node one;
    one.op = &constant_handle, one.out = {m.type, {}}, one.value = 1;
    return add_node(handle<expand_t>, attributes(m.sizes), m, w_.append(one, nullptr));
  }

private:
  /// True if a function writes into one of its operands directly.
  constexpr bool writes_operand(region const& f) const {
    for (int n = f.node_first; n < f.node_first + f.node_count; ++n)
      if (old(n).op->kind == op_kind::mutation && old(operand(old(n), 0)).op->kind == op_kind::placeholder) return true;
    return false;
  }
  static constexpr std::size_t at(int n) { return static_cast<std::size_t>(n); }
  constexpr node const& old(int n) const { return g_.nodes[at(n)]; }
  constexpr int operand(node const& n, int k) const { return g_.edges[at(n.first + k)]; }
  static constexpr bool is(node const& n, op_handle const& op) { return n.op == &op; }
  constexpr meta const& out(int n) const { return w_.to.nodes[at(n)].out; } // of a new node

  /// Returns the node whose memory an old node uses; the node itself if it has memory of its own.
  constexpr int base(int n) const {
    while (shows_[at(n)] >= 0) n = shows_[at(n)];
    return n;
  }
  /// Returns the layout of an old node in the memory of its base.
  constexpr layout where(int n) const {
    if (shows_[at(n)] < 0) return contiguous_layout(old(n).out.sizes);
    layout const in = where(shows_[at(n)]);
    node const& nd = old(n);
    return is(nd, handle<slice_t>)        ? rules<slice_t>::layout_of(nd.at, in)
           : is(nd, handle<reshape_t>)    ? rules<reshape_t>::layout_of(nd.at, in)
           : is(nd, handle<permute_t>)    ? rules<permute_t>::layout_of(nd.at, in)
           : is(nd, handle<expand_t>)     ? rules<expand_t>::layout_of(nd.at, in)
           : is(nd, handle<as_strided_t>) ? rules<as_strided_t>::layout_of(nd.at, in)
                                          : in;
  }
  /// Returns the new number of an old node, with all writes so far.
  constexpr int now(int n) {
    int const b = base(n);
    check_overtaken(b);
    if (seen_[at(n)] != writes_[at(b)]) {
      int const in = now(shows_[at(n)]);
      w_.now[at(n)] = old(n).op->kind == op_kind::mutation ? in : w_.append(old(n), &in);
      seen_[at(n)] = writes_[at(b)];
    }
    return w_.now[at(n)];
  }
  template <class... In>
  constexpr int add_node(op_handle const& op, attributes const& a, meta const& m, In... in) {
    node nd;
    nd.op = &op, nd.at = a, nd.out = m, nd.count = sizeof...(In);
    int const all[] = {in...};
    return w_.append(nd, all);
  }
  constexpr int in_dtype(int n, dtype type) {
    return out(n).type == type
               ? n
               : add_node(handle<to_t>, attributes(dims{static_cast<index_t>(type)}), {type, out(n).sizes}, n);
  }

  constexpr int each(int n, bool inner) {
    node const& nd = old(n);
    for (int k = 0; k < nd.count; ++k) {
      if (!is(nd, handle<detach_t>)) check_hidden(operand(nd, k));
      (void)now(operand(nd, k));
    }
    if (nd.op->kind == op_kind::mutation) {
      int const x = operand(nd, 0);
      write(nd, x, inner);
      shows_[at(n)] = x;
      seen_[at(n)] = writes_[at(base(x))];
      return w_.now[at(x)];
    }
    if (is_invertible_view(nd.op)) {
      int const x = operand(nd, 0);
      bool const copies =
          is(nd, handle<reshape_t>) && shows_[at(x)] >= 0 && !rules<reshape_t>::layout_of(nd.at, where(x)).expressible;
      if (!copies) shows_[at(n)] = x, seen_[at(n)] = writes_[at(base(x))];
    }
    if (nd.op == &getitem_handle) returned_[at(n)] = returned_[at(operand(nd, 0))];
    else if (nd.regions_count > 0 && may_return_operands(nd)) find_shared(n);
    return w_.copy(nd);
  }
  /// Returns the node of a function that provides the memory of another one of its nodes.
  constexpr int maker(int n) const {
    while (is_invertible_view(old(n).op) || old(n).op->kind == op_kind::mutation || is(old(n), handle<detach_t>) ||
           old(n).op == &getitem_handle)
      n = operand(old(n), 0);
    return n;
  }
  /// Marks a call if one of its functions returns an operand, or a part of one, or the same value twice.
  constexpr void find_shared(int n) {
    node const& nd = old(n);
    auto const lies_in = [&](int operand_number) {
      returned_[at(n)] = 1;
      sources_.push_back(n), sources_.push_back(base(operand(nd, operand_number)));
    };
    for (int r = 0; r < nd.regions_count; ++r) {
      region const& f = g_.regions[at(nd.regions_first + r)];
      for (int k = 0; k < f.result_count; ++k) {
        int const made_by = maker(g_.results[at(f.result_first + k)]);
        node const& by = old(made_by);
        int const first = nd.function < 0; // after a predicate, or the state of the generator
        if (by.op->kind == op_kind::placeholder) lies_in(first + static_cast<int>(by.value));
        if (by.regions_count > 0 && may_return_operands(by)) // a call inside may return any operand
          for (int i = first; i < nd.count; ++i) lies_in(i);
        for (int j = 0; j < k && by.op->kind != op_kind::hop; ++j)
          if (maker(g_.results[at(f.result_first + j)]) == made_by) returned_[at(n)] = 1;
      }
    }
  }
  /// Returns the call that returned a value, which may be one of several results.
  constexpr int given_by(int n) const { return old(n).op == &getitem_handle ? operand(old(n), 0) : n; }
  /// Marks results that may share memory `b`, which was just written, as outdated; likewise results of calls that
  /// received them.
  constexpr void overtake(int b) {
    for (std::size_t k = 0; k < sources_.size(); k += 2) {
      int const n = sources_[k], in = sources_[k + 1];
      if ((in != b && given_by(in) != b) || overtaken_[at(n)]) continue;
      overtaken_[at(n)] = 1;
      overtake(n);
    }
  }
  constexpr void check_overtaken(int b) const {
    if (overtaken_[at(given_by(b))])
      refuse::argument_is_invalid("functionalize",
                                  "what a branch of cond, a checkpoint or a custom function returned may lie in memory "
                                  "that was written into since; let it return a copy, clone(x)");
  }
  /// True if a node is a view of its memory without its history.
  constexpr bool is_detached(int n) const {
    for (; shows_[at(n)] >= 0; n = shows_[at(n)])
      if (is(old(n), handle<detach_t>)) return true;
    return is(old(n), handle<detach_t>);
  }
  /// Throws if a value with a derivative is read after a write through `detach`. Such a write has no derivative, so the
  /// value would keep its old one.
  constexpr void check_hidden(int n) const {
    if (hidden_[at(base(n))] && !is_detached(n))
      refuse::argument_is_invalid("functionalize",
                                  "a value that has a derivative is read after it was written through detach, which "
                                  "left its derivative as it was; read a detached value, or take the graph of the "
                                  "gradient");
  }
  constexpr void write(node const& nd, int x, bool inner) {
    int const b = base(x);
    if (returned_[at(b)])
      refuse::argument_is_invalid(
          nd.op->name, "what a branch of cond, a checkpoint or a custom function returns may lie in the memory "
                       "that is written into; let it return a copy, clone(x)");
    if (inner && old(b).op->kind == op_kind::placeholder)
      refuse::argument_is_invalid(nd.op->name, "the function of a higher-order operator writes into its operand, or "
                                               "into what it captures; return the new value instead");
    if (nd.mode != recording::as_around)
      refuse::argument_is_invalid(nd.op->name, "it writes in no_grad mode, which no functional operator does: what it "
                                               "wrote would be a constant; write into detach(x) instead");
    int cur = computed(nd, old(x).out);
    int const value = cur;
    bool repeats = false;
    for (int v = x; v != b; v = shows_[at(v)])
      repeats = repeats || repeats_elements(old(v).op, old(v).at, old(shows_[at(v)]).out, old(v).out);
    layout const shown = repeats ? where(x) : layout{};
    if (repeats && varve::repeats_elements(shown.sizes, shown.strides))
      refuse::argument_is_invalid(nd.op->name, "a value that shows elements more than once, as an expanded one does, "
                                               "cannot be written into; clone it first");
    if (repeats)
      cur = add_node(handle<as_strided_scatter_t>, attributes(shown.strides, dims{shown.offset}), old(b).out, now(b),
                     cur);
    for (int v = x; v != b && !repeats; v = shows_[at(v)])
      if (old(v).op->kind != op_kind::mutation)
        cur = put_back(
            *this, view_call{old(v).op, old(v).at, old(shows_[at(v)]).out, old(v).out},
            [&] { return now(shows_[at(v)]); }, cur);
    overtake(b);
    bool const differs = (old(b).count > 0 || old(b).op->kind == op_kind::placeholder) && is_floating(old(b).out.type);
    if (what_for_ == purpose::derivatives && differs && is_detached(x)) hidden_[at(b)] = 1;
    int const writes = ++writes_[at(b)];
    if (old(b).op->kind == op_kind::placeholder && writes == 1) inputs_.push_back(b), inputs_.push_back(w_.now[at(b)]);
    w_.now[at(b)] = cur, seen_[at(b)] = writes;
    w_.now[at(x)] = value, seen_[at(x)] = writes;
  }
  /// Returns what an in-place operator writes, in the dtype and shape of its operand.
  constexpr int computed(node const& nd, meta const& into) {
    int in[4]{};
    meta metas[4]{};
    for (int k = 0; k < nd.count; ++k) {
      in[k] = w_.now[at(operand(nd, k))];
      metas[k] = out(in[k]);
      metas[k].number = old(operand(nd, k)).op->kind == op_kind::constant && metas[k].sizes.n == 0;
    }
    int y = in[1];
    // The value is not a plain number, as a constant is in a graph of tensors; a constant of the compiler has its
    // dtype.
    if (!std::is_constant_evaluated() && is(nd, handle<copy__t>) && metas[1].number && into.sizes.n == 0)
      return add_node(handle<full_t>, attributes(dims{}, dims{static_cast<index_t>(into.type)}), into, y);
    if (!is(nd, handle<copy__t>)) {
      if (!nd.op->functional)
        refuse::argument_is_invalid(
            nd.op->name, "this in-place operator has no functional form to trace; use the operator without underscore");
      op_handle const* const op = nd.op->functional();
      meta const m = op->shape(nd.at, metas, nd.count);
      node f;
      f.op = op, f.at = nd.at, f.out = m, f.count = nd.count;
      for (int k = 0; k < nd.count; ++k) in[k] = in_dtype(in[k], m.type);
      y = w_.append(f, in);
    }
    y = in_dtype(y, into.type);
    dims aligned = out(y).sizes;
    if (aligned == into.sizes) return y;
    if (aligned.n > 0 && aligned.n < into.sizes.n) {
      while (aligned.n < into.sizes.n) aligned.insert(0, 1);
      y = add_node(handle<reshape_t>, attributes(aligned), {into.type, aligned}, y);
    }
    return add_node(handle<expand_t>, attributes(into.sizes), {into.type, into.sizes}, y);
  }
  /// Brings the results up to date, and writes arguments of the program that changed.
  constexpr void end(region const& all) {
    for (int k = 0; k < all.result_count; ++k) {
      int const n = g_.results[at(all.result_first + k)];
      check_hidden(n);
      (void)now(n);
    }
    for (std::size_t k = 0; k < inputs_.size(); k += 2)
      add_node(handle<copy__t>, {}, old(inputs_[k]).out, inputs_[k + 1], w_.now[at(inputs_[k])]);
    inputs_ = {};
  }

  graph const& g_;
  rewriter w_;
  list<int> shows_;         // of an old node: the operand whose memory it uses, -1: none
  list<int> writes_, seen_; // of a base: number of writes so far; of a node: how many of them its new number includes
  list<int> returned_;      // of a base: true if a function returned it and it may share memory with others
  list<int> overtaken_;     // of a call: true if memory that its results may share was written since
  list<int> sources_;       // pairs of a call and memory that its results may share
  list<int> hidden_;        // of a base: true if it was written through `detach`
  purpose what_for_;
  // of the regions: true if it stays as it is: its operand is a copy for it to write, or it is not called and writes
  // into its operand
  list<char> kept_;
  list<int> inputs_; // arguments of the program that were written: old number, and new number before the write
};
/// Returns `r`, which was made from `g`, with a mark on arguments that are both written and reshaped. If such an
/// argument is not row-major, the reshape is a copy, and a write into it does not reach the argument.
constexpr graph written_by_rows(graph const& g, graph r) {
  region const& all = g.regions[0];
  auto const base = [&](int n) -> node const& { return g.nodes[static_cast<std::size_t>(memory_of(g, n))]; };
  auto const any = [&](double argument, auto const& such) {
    bool found = false;
    for (int n = all.node_first; n < all.node_first + all.node_count; ++n)
      found = found || (such(*g.nodes[static_cast<std::size_t>(n)].op) && base(n).op->kind == op_kind::placeholder &&
                        base(n).value == argument);
    return found;
  };
  for (node& n : r.nodes)
    if (&n - r.nodes.data() < r.regions[0].node_count && n.op->kind == op_kind::placeholder)
      n.by_rows = n.by_rows || (any(n.value, [](op_handle const& op) { return op.kind == op_kind::mutation; }) &&
                                any(n.value, [](op_handle const& op) { return &op == &handle<reshape_t>; }));
  return r;
}
constexpr graph functionalized(graph const& g, purpose what_for = purpose::values) {
  if (is_symbolic(g))
    return on_samples("functionalize", g, [what_for](graph const& of, int) {
      functionalizer f(of, what_for);
      graph const r = f.run();
      return written_by_rows(of, with_results_apart(r));
    });
  functionalizer f(g, what_for); // named, as graphs are: g++ 12 loses temporaries that hold storage
  graph const r = f.run();
  return written_by_rows(g, with_results_apart(r));
}
/// Instantiates the tensor tables of the operators that a functionalized graph may call.
template <class>
void functionalizer_operators() {
  (void)registered_table<slice_t, 1>(), (void)registered_table<slice_backward_t, 2>(),
      (void)registered_table<cat_t, 1>(), (void)registered_table<reshape_t, 1>(), (void)registered_table<expand_t, 1>();
  (void)registered_table<permute_t, 1>(), (void)registered_table<as_strided_scatter_t, 2>(),
      (void)registered_table<to_t, 1>(), (void)registered_table<where_t, 0>(), (void)registered_table<clone_t, 0>();
}
} // namespace detail

/// Returns the same program without in-place operators, including those that write through views
/// (`torch.func.functionalize`). Writes into arguments become `copy_` at the end. Arguments must be row-major and must
/// not share memory.
///
/// Throws `value_error` if functions of higher-order operators write into their operands. If derivatives of the result
/// will be taken, it also throws if a value is read with its history after a write through `detach`. Linear in the
/// nodes, and in the views of written values.
template <class G>
  requires std::is_same_v<G, graph>
constexpr graph functionalize(G const& g, purpose what_for) {
  if (!has_mutation(g)) return g;
  if (!std::is_constant_evaluated()) detail::functionalizer_operators<G>();
  return detail::results_apart(g, detail::functionalized(g, what_for));
}
template <class G>
  requires std::is_same_v<G, graph>
constexpr graph functionalize(G const& g) {
  return functionalize(g, purpose::derivatives);
}

namespace detail {
/// Returns the same program with values written into arguments as additional results. `into` receives the numbers of
/// these arguments.
constexpr graph writes_as_results(graph const& g, list<int>& into) {
  graph more = g;
  region& all = more.regions[0];
  more.results = {};
  for (int k = 0; k < all.result_count; ++k)
    more.results.push_back(g.results[static_cast<std::size_t>(all.result_first + k)]);
  for (int n = all.node_first; n < all.node_first + all.node_count; ++n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    if (nd.op->kind != op_kind::mutation) continue;
    into.push_back(
        static_cast<int>(g.nodes[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first)])].value));
    more.results.push_back(g.edges[static_cast<std::size_t>(nd.first + 1)]);
  }
  all.result_first = 0;
  all.result_count = static_cast<int>(more.results.size());
  for (std::size_t r = 1; r < more.regions.size(); ++r) {
    int const first = more.regions[r].result_first;
    more.regions[r].result_first = static_cast<int>(more.results.size());
    for (int k = 0; k < more.regions[r].result_count; ++k)
      more.results.push_back(g.results[static_cast<std::size_t>(first + k)]);
  }
  rewriter w(more);
  return w.run(
      [&](int n) {
        return more.nodes[static_cast<std::size_t>(n)].op->kind == op_kind::mutation
                   ? -1
                   : w.copy(more.nodes[static_cast<std::size_t>(n)]);
      },
      [] {});
}
} // namespace detail

} // namespace varve
