// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/shape_recorder.hpp>
#include <varve/dispatch/higher_order.hpp>
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/graph/memory_of.hpp>
#include <varve/graph/read_sizes.hpp>
#include <varve/interpreter/grad_mode.hpp>
#include <varve/op/create.hpp>
#include <varve/op/item.hpp>

#include <memory>
#include <string>
#include <vector>

namespace varve {

namespace detail {
/// The values of a graph's size expressions in one call. Arguments, numbers that operators have read from data so far,
/// and results of operators with functions define the symbols. Guards are checked as soon as their sizes are known.
/// Functions that outlive the call share the object. If the graph runs in a trace with symbolic sizes, the values are
/// expressions of these.
template <class T = tensor>
class sizes_of_call {
public:
  static std::shared_ptr<sizes_of_call const> of_arguments(graph const& g, boxed_args const& in);
  /// Returns a copy in which one more symbol has a value, which was read from data.
  std::shared_ptr<sizes_of_call const> with(graph const& g, extent symbol, extent number) const {
    sizes_of_call r = *this;
    int const s = static_cast<int>(g.expressions[symbol].a.number());
    r.tell(s, number);
    r.settle(g, s);
    return std::make_shared<sizes_of_call const>(std::move(r));
  }

  /// Returns `r`, or a copy with the symbols that the sizes `found` of a result define.
  static std::shared_ptr<sizes_of_call const> with_result(std::shared_ptr<sizes_of_call const> r, graph const& g,
                                                          dims const& sizes, dims const& found) {
    for (int d = 0; d < sizes.n && d < found.n; ++d)
      if (extent const e = sizes[d]; e.is_entry() && g.expressions[e].op == size_op::symbol && !r->is_known(e))
        r = r->with(g, e, found[d]);
    return r;
  }

  extent of(extent e) const { return e.is_entry() ? values_[static_cast<std::size_t>(e.entry())] : e; }
  dims of(dims d) const {
    for (int k = 0; k < d.n; ++k) d[k] = of(d[k]);
    return d;
  }
  attributes of(attributes at) const {
    for (int k = 0; k < at.count; ++k) at.fact[k] = of(at.fact[k]);
    return at;
  }
  /// Returns the sizes that an argument with the sizes `found` must have. Sizes that depend on a number that is not
  /// read yet may be any.
  dims expected(dims const& sizes, dims const& found) const {
    dims r = of(sizes);
    for (int d = 0; d < r.n && r.n == found.n; ++d)
      if (!is_known(sizes[d])) r[d] = found[d];
    return r;
  }

private:
  struct symbol {
    extent number = 0;
    bool told = false;
  };
  std::vector<symbol> symbols_;
  std::vector<extent> values_; // of the expressions
  std::vector<dependent<bool, T>> known_;

  void tell(int s, extent number) { symbols_[static_cast<std::size_t>(s)] = {number, true}; }
  bool is_known(extent e) const { return !e.is_entry() || known_[static_cast<std::size_t>(e.entry())]; }
  static bool mentions(graph const& g, extent e, int symbol) {
    if (!e.is_entry()) return false;
    size_expression const& x = g.expressions[e];
    if (x.op == size_op::symbol) return x.a.number() == symbol;
    return mentions(g, x.a, symbol) || mentions(g, x.b, symbol);
  }
  /// Computes all expressions, and checks the guards that are known by now: all of them, or those that mention
  /// `symbol`.
  void settle(graph const& g, int symbol = -1) {
    values_.clear(), known_.clear();
    for (std::size_t k = 0; k < g.expressions.size(); ++k) {
      size_expression const& x = g.expressions.data()[k];
      bool const leaf = x.op == size_op::symbol;
      auto const& s = leaf ? symbols_[static_cast<std::size_t>(x.a.number())] : symbols_[0];
      bool const known = leaf ? s.told : is_known(x.a) && is_known(x.b);
      known_.push_back(known);
      values_.push_back(!known ? extent(0) : leaf ? s.number : combined(x.op, of(x.a), of(x.b)));
    }
    for (size_guard const& asked : g.guards) {
      bool const news = symbol < 0 || mentions(g, asked.left, symbol) || mentions(g, asked.right, symbol);
      if (news && is_known(asked.left) && is_known(asked.right) && is_known(asked.unless)) require(g, asked);
    }
  }
  static extent combined(size_op op, extent a, extent b) {
    if (a.is_number() && b.is_number()) return size_view::combine(op, a.number(), b.number());
    return combined_sizes(op, a, b);
  }
  void require(graph const& g, size_guard const& asked) const {
    extent const a = of(asked.left), b = of(asked.right);
    if (of(asked.unless) == 0) return;
    if (!a.is_number() || !b.is_number()) return varve::check(asked.is, a, b); // a condition of the outer trace
    if (!holds(asked.is, a.number(), b.number()))
      fusion::refuse_sizes("graph", g.expressions.view(), asked, b.number());
  }
};
template <class T>
std::shared_ptr<sizes_of_call<T> const> sizes_of_call<T>::of_arguments(graph const& g, boxed_args const& in) {
  if (!is_symbolic(g)) return nullptr;
  size_expression const *const all = g.expressions.data(), *const last = all + g.expressions.size();
  sizes_of_call r;
  r.symbols_.resize(g.expressions.size());
  for (int k = 0; k < g.regions[0].inputs && k < in.size(); ++k) {
    node const& n = g.nodes[k];
    dims const found = in[static_cast<int>(n.value)].sizes();
    for (int d = 0; d < n.out.sizes.n && d < found.n; ++d) {
      extent const e = n.out.sizes[d];
      if (!e.is_entry() || g.expressions[e].op != size_op::symbol) continue;
      int const s = static_cast<int>(g.expressions[e].a.number());
      if (!r.symbols_[static_cast<std::size_t>(s)].told) r.tell(s, found[d]);
    }
  }
  std::vector<dependent<bool, T>> read(r.symbols_.size());
  for (node const& n : g.nodes)
    if (n.op == &handle<local_scalar_t> && n.at[0].n && n.at[0][0].is_entry())
      read[static_cast<std::size_t>(g.expressions[n.at[0][0]].a.number())] = true;
    else if (n.regions_count > 0 || n.op == &getitem_handle)
      for (extent const e : n.out.sizes)
        if (e.is_entry() && g.expressions[e].op == size_op::symbol)
          read[static_cast<std::size_t>(g.expressions[e].a.number())] = true;
  for (size_expression const* e = all; e != last; ++e)
    if (auto const s = static_cast<std::size_t>(e->a.number());
        e->op == size_op::symbol && !r.symbols_[s].told && !read[s])
      refuse::with<value_error>(("varve: graph: no argument has the symbolic size " +
                                 g.expressions.view().text(extent::entry(e - all)) +
                                 " by itself, which would tell what it is")
                                    .c_str());
  r.settle(g);
  return std::make_shared<sizes_of_call const>(std::move(r));
}
/// Returns a constant as a tensor: an array, or the plain number as which it was written (also in another trace).
template <class T>
T constant_of(graph const& g, node const& nd) {
  if (!is_array_constant(nd))
    return on_dtype(nd.out.type, "graph", [&]<class E>() { return T::from_number(static_cast<E>(nd.value)); });
  T const c = T::empty(nd.out.sizes, nd.out.type);
  double const* const from = g.constants.data() + static_cast<std::ptrdiff_t>(nd.value);
  on_dtype(c.dtype(), "graph", [&]<class E>() {
    for (index_t e = 0; e < c.numel(); ++e) static_cast<E*>(c.raw())[e] = static_cast<E>(from[e]);
  });
  return lifts_literals ? lifts_literals->lifted(c) : c;
}
/// True while a node of the traced body of a custom function runs. Nodes that a trace writes meanwhile are marked too.
inline constinit thread_local bool runs_text = false;
/// True if a derivative would pass through a value: eagerly, at a level of `grad`, or by a tangent.
VARVE_COLD inline bool is_differentiated(tensor const& t) {
  if (!t.defined()) return false;
  if (t.has_history() && is_grad_enabled()) return true;
  return t.is_wrapped() && ((t.extra().defined() && !is_traced(t.layer())) || is_differentiated(t.inner()));
}
/// A mark on the thread while it runs a node of the traced body of a custom function. The constructor throws if the
/// node's operands are differentiated.
class text_guard {
public:
  text_guard(node const& n, boxed_args const& x) : before_(runs_text) {
    if (!n.text) return;
    for (auto const& t : x)
      if (is_differentiated(t))
        refuse::with<transform_error>(
            (std::string("varve: graph: ") + n.op->name +
             " is part of the forward of a custom function, whose own derivative a graph that the "
             "compiler traced does not have; trace at run time (make_fx), or trace(grad(f))")
                .c_str());
    runs_text = true;
  }
  text_guard(text_guard const&) = delete;
  text_guard& operator=(text_guard const&) = delete;
  ~text_guard() { runs_text = before_; }

private:
  bool before_;
};
/// Throws if node `n` copied an `as_strided` region and a later node writes into the region or into its base. Under
/// `vmap` the lanes of a value may be separate in memory; a region that crosses them is then a copy. After a write,
/// region and base would have different elements.
VARVE_COLD inline void refuse_stale_region(graph const& g, int n) {
  for (int m = n + 1; m < static_cast<int>(g.nodes.size()); ++m)
    if (g.nodes[m].op->kind == op_kind::mutation && memory_of(g, m) == memory_of(g, n))
      refuse::argument_is_invalid("as_strided", "mapped values do not lie one after the other, so that the region is a "
                                                "copy, and the program writes into it, or into what it was taken of; "
                                                "take it of clone(x)");
}
constexpr bool has_entry(dims const& of) {
  for (int d = 0; d < of.n; ++d)
    if (of[d].is_entry()) return true;
  return false;
}
constexpr bool has_entry(attributes const& at) {
  for (int k = 0; k < at.count; ++k)
    if (has_entry(at.fact[k])) return true;
  return false;
}
/// True if attributes or operands of a node have symbolic sizes.
inline bool is_symbolic(graph const& g, node const& nd) {
  bool any = has_entry(nd.at);
  for (int k = 0; k < nd.count; ++k)
    any =
        any || has_entry(g.nodes[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + k)])].out.sizes);
  return any;
}
/// Throws if a result is not as long as the program takes it to be. A trace takes sizes of data for neither 0 nor 1. Of
/// a slice that begins behind the end, the program takes the length for negative.
inline void require_sizes_of_data(char const* op, dims const& have, dims want) {
  for (int d = 0; d < want.n; ++d)
    if (want[d].is_number() && want[d] < 0) want[d] = 0;
  if (want == have || has_entry(want) || has_entry(have)) return;
  refuse::with<shape_error>(
      (std::string("varve: ") + op + ": the program takes the result to have shape " + to_string(want) +
       ", and it has " + to_string(have) +
       ": a size that depends on data is 0 or 1, or smaller than the program needs; choose by cond")
          .c_str());
}
/// Runs one region. Every operator goes through the thread's stack, so that transforms and modes see it.
template <class T = tensor>
boxed_args run_region(graph const& g, int r, boxed_args const& in, std::shared_ptr<sizes_of_call<T> const> sizes) {
  region const& f = g.regions[static_cast<std::size_t>(r)];
  if (in.size() != f.inputs)
    refuse::shapes_do_not_match("graph (number of arguments)", dims{in.size()}, dims{f.inputs});
  std::vector<boxed_args> values(static_cast<std::size_t>(f.node_count));
  auto at = [&](int n) -> boxed_args& { return values[static_cast<std::size_t>(n - f.node_first)]; };
  attributes numbers;
  for (int n = f.node_first; n < f.node_first + f.node_count; ++n) {
    node const& nd = g.nodes[static_cast<std::size_t>(n)];
    bool const reads = sizes && nd.op == &handle<local_scalar_t> && nd.at[0].n && nd.at[0][0].is_entry();
    if (sizes) numbers = reads ? attributes(dims{}) : sizes->of(nd.at); // the number is not known yet
    attributes const& attributes_now = sizes ? numbers : nd.at;
    boxed_args x;
    int const given = nd.function >= 0 ? g.functions[nd.function].operands : nd.count;
    for (int k = 0; k < given; ++k) x.push_back(at(g.edges[static_cast<std::size_t>(nd.first + k)])[0]);
    text_guard const text(nd, x);
    set_grad_enabled const as_called(nd.mode == recording::as_around ? this_thread_state.grad_mode
                                                                     : nd.mode == recording::on);
    if (nd.op->kind == op_kind::placeholder) {
      tensor const& v = in[static_cast<int>(nd.value)];
      if (dims const want = sizes ? sizes->expected(nd.out.sizes, v.sizes()) : nd.out.sizes; !(v.sizes() == want))
        refuse::shapes_do_not_match("graph (argument)", v.sizes(), want);
      if (nd.by_rows && !v.is_contiguous())
        refuse::argument_is_invalid("graph",
                                    "it writes into an argument that it reshapes, and takes this one as lying by "
                                    "rows; pass one that does, as contiguous(x) is");
      at(n).push_back(v);
    } else if (nd.op->kind == op_kind::constant) {
      at(n).push_back(constant_of<T>(g, nd));
    } else if (nd.function >= 0) {
      at(n) = g.functions[nd.function].call(x);
    } else if (nd.regions_count) {
      higher_order_operator* const hop = higher_order_operator::find(nd.op->name);
      if (!hop)
        refuse::with<missing_rule>(
            (std::string("varve: graph: there is no higher-order operator ") + nd.op->name).c_str());
      std::vector<boxed_function> functions;
      for (int k = 0; k < nd.regions_count; ++k)
        functions.push_back(closed_function{[&g, sizes, region = nd.regions_first + k](boxed_args const& a) {
          return run_region<T>(g, region, a, sizes);
        }});
      at(n) = (*hop)(std::move(functions), x, attributes_now);
    } else if (nd.op == &sym_numel_handle) {
      extent const count = attributes_now[0][0];
      at(n).push_back(
          !count.is_number() && nd.out.type == dtype::int64
              ? scalar_tensor<T>(count)
              : on_dtype(nd.out.type, "graph", [&]<class E>() { return T::from_number(static_cast<E>(count)); }));
    } else if (nd.op->own && nd.op->planned_as == operator_class::getitem) {
      at(n).push_back(at(g.edges[static_cast<std::size_t>(nd.first)])[static_cast<int>(nd.at[0][0])]);
    } else {
      op_table const* table = table_of(*nd.op);
      if (!table)
        refuse::with<missing_rule>((std::string("varve: graph: operator ") + nd.op->name +
                                    " is not known for tensors; call it on a tensor anywhere in the program")
                                       .c_str());
      bool const symbolic = sizes && !reads && !has_entry(numbers) && is_symbolic(g, nd);
      if (symbolic && table->checked) numbers = table->checked(numbers, x);
      tensor const y = boxed_op{table, &attributes_now}(x);
      if (symbolic && y.defined())
        require_sizes_of_data(nd.op->name, y.sizes(), sizes->expected(nd.out.sizes, y.sizes()));
      if (reads) sizes = sizes->with(g, nd.at[0][0], number_in(y));
      if (nd.op == &handle<as_strided_t> && !y.shares_storage(x[0])) refuse_stale_region(g, n);
      at(n).push_back(y);
    }
    if (sizes && (nd.regions_count > 0 || nd.op == &getitem_handle) && at(n).size() == 1)
      sizes = sizes->with_result(sizes, g, nd.out.sizes, at(n)[0].sizes());
  }
  boxed_args y;
  for (int k = 0; k < f.result_count; ++k) y.push_back(at(g.results[static_cast<std::size_t>(f.result_first + k)])[0]);
  return y;
}
} // namespace detail

/// Runs a graph on tensors, operator by operator, each in the grad mode in which it was called. Custom functions are
/// called with their own rules.
///
/// Shapes are checked at entry (`shape_error`). The first argument that has a symbolic size defines it; other arguments
/// must agree, and the graph's guards must hold. Throws what operators throw. Throws `transform_error` if a derivative
/// would pass through a custom function in a graph that the compiler traced. Such a graph only has the operations of
/// its `forward`.
template <class T = tensor>
boxed_args interpret(graph const& g, boxed_args const& arguments);
#if VARVE_DEFINES
template <class T>
boxed_args interpret(graph const& g, boxed_args const& arguments) {
  return detail::run_region<T>(g, 0, arguments, detail::sizes_of_call<T>::of_arguments(g, arguments));
}
#endif

} // namespace varve
