// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/higher_order.hpp>
#include <varve/dispatch/tensor_dispatch.hpp>
#include <varve/graph/read_sizes.hpp>
#include <varve/interpreter/grad_mode.hpp>
#include <varve/op/create.hpp>
#include <varve/op/item.hpp>

#include <memory>
#include <string>
#include <vector>

namespace varve {

namespace detail {
/// What the sizes of a graph are in one call: of symbols that its arguments tell, and of those that operators have read
/// of data until now. Checked as soon as they are known; shared with functions that outlive the call.
template <class T = tensor>
class sizes_of_call : public size_numbers {
public:
  static std::shared_ptr<sizes_of_call const> of_arguments(graph const& g, boxed_args const& in);
  /// The same, and a symbol that was read.
  std::shared_ptr<sizes_of_call const> with(graph const& g, extent symbol, index_t number) const {
    sizes_of_call r = *this;
    auto const s = static_cast<std::size_t>(g.expressions[symbol].a.number());
    r.symbols_[s] = number, r.told_[s] = true;
    r.settle(g, static_cast<int>(s));
    return std::make_shared<sizes_of_call const>(std::move(r));
  }

  /// What sizes must be, of an argument that has the sizes `found`: those that speak of a number that will be read may
  /// be any.
  dims expected(graph const& g, dims const& sizes, dims const& found) const {
    dims r = of(sizes);
    for (int d = 0; d < r.n && r.n == found.n; ++d)
      if (!is_told(g, sizes[d])) r[d] = found[d];
    return r;
  }

private:
  static constexpr index_t unknown = 99991; // no expression of it is a division by 0
  std::vector<index_t> symbols_;
  std::vector<dependent<bool, T>> told_;

  bool is_told(graph const& g, extent e) const {
    if (!e.is_entry()) return true;
    size_expression const& x = g.expressions[e];
    if (x.op == size_op::symbol) return told_[static_cast<std::size_t>(x.a.number())];
    return is_told(g, x.a) && is_told(g, x.b);
  }
  static bool mentions(graph const& g, extent e, int symbol) {
    if (!e.is_entry()) return false;
    size_expression const& x = g.expressions[e];
    if (x.op == size_op::symbol) return x.a.number() == symbol;
    return mentions(g, x.a, symbol) || mentions(g, x.b, symbol);
  }
  /// All numbers, and the guards that are known by now: all, or those that speak of a symbol.
  void settle(graph const& g, int symbol = -1) {
    static_cast<size_numbers&>(*this) =
        size_numbers(g.expressions.data(), g.expressions.data() + g.expressions.size(), symbols_.data());
    for (size_guard const& asked : g.guards) {
      bool const news = symbol < 0 || mentions(g, asked.left, symbol) || mentions(g, asked.right, symbol);
      if (news && is_told(g, asked.left) && is_told(g, asked.right) && is_told(g, asked.unless) && !holds(asked))
        loop::refuse_sizes("graph", g.expressions.view(), asked, of(asked.right));
    }
  }
};
template <class T>
std::shared_ptr<sizes_of_call<T> const> sizes_of_call<T>::of_arguments(graph const& g, boxed_args const& in) {
  if (!is_symbolic(g)) return nullptr;
  size_expression const *const all = g.expressions.data(), *const last = all + g.expressions.size();
  sizes_of_call r;
  r.symbols_.assign(g.expressions.size(), index_t{unknown});
  r.told_.assign(r.symbols_.size(), false);
  for (int k = 0; k < g.regions[0].inputs && k < in.size(); ++k) {
    node const& n = g.nodes[k];
    dims const found = in[static_cast<int>(n.value)].sizes();
    for (int d = 0; d < n.out.sizes.n && d < found.n; ++d) {
      extent const e = n.out.sizes[d];
      if (!e.is_entry() || g.expressions[e].op != size_op::symbol) continue;
      auto const s = static_cast<std::size_t>(g.expressions[e].a.number());
      if (!r.told_[s]) r.symbols_[s] = found[d], r.told_[s] = true;
    }
  }
  std::vector<dependent<bool, T>> read(r.symbols_.size());
  for (node const& n : g.nodes)
    if (n.op == &handle<local_scalar_t> && n.at[0].n && n.at[0][0].is_entry())
      read[static_cast<std::size_t>(g.expressions[n.at[0][0]].a.number())] = true;
  for (size_expression const* e = all; e != last; ++e)
    if (auto const s = static_cast<std::size_t>(e->a.number()); e->op == size_op::symbol && !r.told_[s] && !read[s])
      refuse::with<value_error>(("varve: graph: no argument has the symbolic size " +
                                 g.expressions.view().text(extent::entry(e - all)) +
                                 " by itself, which would tell what it is")
                                    .c_str());
  r.settle(g);
  return std::make_shared<sizes_of_call const>(std::move(r));
}
/// A constant as a tensor: the plain number it was written as, in another trace as well, or an array.
template <class T>
T constant_of(graph const& g, node const& nd) {
  if (!is_array_constant(nd))
    return on_dtype(nd.out.type, "graph", [&]<class E>() { return T::from_number(static_cast<E>(nd.value)); });
  T const c = T::empty(nd.out.sizes, nd.out.type);
  double const* const from = g.constants.data() + static_cast<std::ptrdiff_t>(nd.value);
  on_dtype(c.dtype(), "graph", [&]<class E>() {
    for (index_t e = 0; e < c.numel(); ++e) static_cast<E*>(c.raw())[e] = static_cast<E>(from[e]);
  });
  return c;
}
/// Is a node at work that is the text of a custom function? Then what a trace writes of it is so too.
inline constinit thread_local bool runs_text = false;
/// Would a derivative pass through a value: eagerly, at a level of `grad`, or by a tangent?
VARVE_COLD inline bool is_differentiated(tensor const& t) {
  if (!t.defined()) return false;
  if (t.requires_grad() && is_grad_enabled()) return true;
  return t.is_wrapped() && ((t.extra().defined() && !is_traced(t.layer())) || is_differentiated(t.inner()));
}
/// What is around a node that is the text of a custom function.
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
/// A region of a value whose lanes lie apart, as a `vmap` around the graph may have them, is a copy. Refused where the
/// graph writes later into what it was taken of, or into the region: neither would see the other's elements.
VARVE_COLD inline void refuse_stale_region(graph const& g, int n) {
  auto const memory = [&](int m) {
    while (g.nodes[m].op->kind == op_kind::mutation ||
           (g.nodes[m].op->kind == op_kind::view && g.nodes[m].op != &handle<clone_t>))
      m = g.edges[g.nodes[m].first];
    return m;
  };
  for (int m = n + 1; m < static_cast<int>(g.nodes.size()); ++m)
    if (g.nodes[m].op->kind == op_kind::mutation && memory(m) == memory(n))
      refuse::argument_is_invalid("as_strided", "mapped values do not lie one after the other, so that the region is a "
                                                "copy, and the program writes into it, or into what it was taken of; "
                                                "take it of clone(x)");
}
/// Runs one region; every operator goes through the thread's stack, so transforms and modes see it.
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
    if (sizes) numbers = sizes->of(nd.at);
    attributes const& attributes_now = sizes ? numbers : nd.at;
    boxed_args x;
    int const given = nd.function >= 0 ? g.functions[nd.function].operands : nd.count;
    for (int k = 0; k < given; ++k) x.push_back(at(g.edges[static_cast<std::size_t>(nd.first + k)])[0]);
    text_guard const text(nd, x);
    set_grad_enabled const as_called(nd.mode == recording::as_around ? this_thread_state.grad_mode
                                                                     : nd.mode == recording::on);
    if (nd.op->kind == op_kind::placeholder) {
      tensor const& v = in[static_cast<int>(nd.value)];
      if (dims const want = sizes ? sizes->expected(g, nd.out.sizes, v.sizes()) : nd.out.sizes; !(v.sizes() == want))
        refuse::shapes_do_not_match("graph (argument)", v.sizes(), want);
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
      at(n).push_back(on_dtype(nd.out.type, "graph",
                               [&]<class E>() { return T::from_number(static_cast<E>(attributes_now[0][0])); }));
    } else if (nd.op->own && std::strcmp(nd.op->name, "getitem") == 0) {
      at(n).push_back(at(g.edges[static_cast<std::size_t>(nd.first)])[static_cast<int>(nd.at[0][0])]);
    } else {
      op_table const* table = table_of(*nd.op);
      if (!table)
        refuse::with<missing_rule>((std::string("varve: graph: operator ") + nd.op->name +
                                    " is not known for tensors; call it on a tensor anywhere in the program")
                                       .c_str());
      tensor const y = boxed_op{table, &attributes_now}(x);
      if (sizes && nd.op == &handle<local_scalar_t> && nd.at[0].n && nd.at[0][0].is_entry())
        sizes = sizes->with(g, nd.at[0][0], number_in(y));
      if (nd.op == &handle<as_strided_t> && !y.shares_storage(x[0])) refuse_stale_region(g, n);
      at(n).push_back(y);
    }
  }
  boxed_args y;
  for (int k = 0; k < f.result_count; ++k) y.push_back(at(g.results[static_cast<std::size_t>(f.result_first + k)])[0]);
  return y;
}
} // namespace detail

/// Runs a graph on tensors, operator by operator, each in the grad mode it was called in; custom functions are called
/// with their own rules. Shapes are checked at entry (`shape_error`). The first argument that has a symbolic size says
/// what it is; others must agree, and the graph must be one for such sizes (its guards). Errors: what operators refuse;
/// `transform_error` where a derivative would be taken of the text of a custom function, which is all that a graph of
/// the compiler has of it.
template <class T = tensor>
boxed_args interpret(graph const& g, boxed_args const& arguments);
#if VARVE_DEFINES
template <class T>
boxed_args interpret(graph const& g, boxed_args const& arguments) {
  return detail::run_region<T>(g, 0, arguments, detail::sizes_of_call<T>::of_arguments(g, arguments));
}
#endif

} // namespace varve
