// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstring>
#include <string>
#include <vector>
#include <varve/dispatch/tensor_dispatch.hpp>

namespace varve::detail {

/// A tensor that a node keeps for its backward pass, and the version it had then (DT-18).
struct saved_value {
  static constexpr std::uint8_t result = 15;
  tensor value;
  std::uint32_t version;
  std::uint8_t of;      // the operand, or `result`
  bool checked;         // its elements will be read
  bool recorded = false; // an operator made it, and its history leads there
};

[[noreturn]] VARVE_COLD inline void refuse_released(char const* name) {
  throw autograd_error((std::string("varve: ") + name + ": trying to run backward through the graph a second time; its saved values were freed by the first. Say retain_graph there").c_str());
}
[[noreturn]] VARVE_COLD inline void refuse_stale(tensor const& t, char const* name, std::uint32_t saved) {
  throw autograd_error((std::string("varve: a value needed for a gradient was modified by an in-place operator: a tensor of ") + varve::name(t.dtype()) + to_string(t.sizes()) + ", operand or result of " + name +
                        ", is at version " + std::to_string(t.version()) + "; expected version " + std::to_string(saved) + ". anomaly_mode names the call; clone the value, or use the functional operator")
                           .c_str());
}

[[noreturn]] VARVE_COLD inline void refuse_detached(char const* name) {
  throw autograd_error((std::string("varve: ") + name + ": an operand that is needed for a gradient was detached in place, by detach_; use detach").c_str());
}

/// The version a saved value is checked against. Tensors made in inference mode have none; transforms may save them.
inline std::uint32_t version_of(tensor const& t) {
  tensor const* in = &t;
  while (in->is_wrapped()) in = &in->inner();
  return in->is_inference() ? 0 : in->version();
}
/// Eager autograd may not save a tensor made in inference mode: nothing would tell that it was written into (AG-20).
inline void refuse_inference(tensor const& t, char const* name) {
  if (t.defined() && t.is_inference()) [[unlikely]]
    throw autograd_error((std::string("varve: ") + name + ": a tensor made in inference mode cannot be saved for backward; clone it outside of inference mode first").c_str());
}

/// One operator on tensors as a node: it keeps what the `vjp` rules of its tracked operands read, and of the others at most a shape.
struct operator_node : grad_node {
  op_table const* table;
  std::uint8_t kept = 0, operands = 0, facts = 0;
  bool eager = false;
  std::uint32_t bytes;
  saved_value* saved;
  index_t* fact; // for each attribute its length and entries

  static grad_node_type const type_;
  operator_node(op_table const* t, std::uint32_t n) : grad_node(&type_), table(t), bytes(n) {}

  static constexpr std::size_t small_bytes = 192;
  static void* take(std::size_t n) { return n <= small_bytes ? take_block<small_bytes>() : n <= block_bytes ? take_block<>() : ::operator new(n, std::align_val_t{64}); }

  /// Records a call: `edge_of(i)` is the edge of operand i, null where none is tracked. `x` are the operands one level below, `y` the result there.
  template <class EdgeOf>
  static operator_node* make(boxed_op const& op, tensor const& y, boxed_args const& x, EdgeOf const& edge_of) {
    op_table const& t = *op.table;
    unsigned keep = 0;
    for (int i = 0; i < x.size(); ++i)
      if (edge_of(i)) keep |= t.saved.of[i];
    int const n = x.size();
    dtype const type = y.dtype();
    int count = (keep >> saved_value::result) & 1;
    std::uint32_t stands_in = 0; // operands whose shape the cotangent has as well
    for (int i = 0; i < n; ++i) {
      bool const read = keep >> i & 1;
      if (!read && x[i].dtype() == type && x[i].sizes() == y.sizes()) stands_in |= 1u << i;
      else ++count;
    }
    std::size_t words = 0;
    for (int k = 0; k < op.at->count; ++k) words += static_cast<std::size_t>(op.at->fact[k].n) + 1;
    std::size_t const edges = sizeof(edge) * static_cast<std::size_t>(n), values = sizeof(saved_value) * static_cast<std::size_t>(count);
    std::size_t const all = sizeof(operator_node) + edges + values + sizeof(index_t) * words;
    auto* const memory = static_cast<unsigned char*>(take(all));
    auto* const r = new (memory) operator_node(&t, static_cast<std::uint32_t>(all));
    r->next = reinterpret_cast<edge*>(memory + sizeof(operator_node));
    r->saved = reinterpret_cast<saved_value*>(memory + sizeof(operator_node) + edges);
    r->fact = reinterpret_cast<index_t*>(memory + sizeof(operator_node) + edges + values);
    r->count = static_cast<std::uint16_t>(n);
    r->operands = static_cast<std::uint8_t>(n);
    r->sequence = this_thread_state.next_node++;
    for (int i = 0; i < n; ++i) {
      edge const* const e = edge_of(i);
      new (r->next + i) edge(e ? *e : edge());
    }
    for (int i = 0; i < n; ++i) {
      if (stands_in >> i & 1) continue;
      bool const read = keep >> i & 1;
      // Of an operand that is not read the shape is kept apart: the operand itself may come to have a history that leads here, when it is written in place.
      edge const* const e = edge_of(i);
      r->keep(read ? x[i] : tensor::meta(x[i].sizes(), x[i].dtype()), static_cast<std::uint8_t>(i), read, e && !e->to()->type->is_leaf);
    }
    if (keep >> saved_value::result & 1) r->keep(y, saved_value::result, true, false);
    r->facts = static_cast<std::uint8_t>(op.at->count);
    index_t* w = r->fact;
    for (int k = 0; k < op.at->count; ++k) {
      dims const& d = op.at->fact[k];
      *w++ = d.n;
      for (index_t i : d) *w++ = i;
    }
    return r;
  }
  void keep(tensor const& t, std::uint8_t of, bool checked, bool recorded) {
    new (saved + kept++) saved_value{t, checked ? version_of(t) : 0, of, checked, recorded};
  }

  attributes attributes_of() const {
    attributes at;
    index_t const* w = fact;
    for (int k = 0; k < facts; ++k) {
      dims& d = at.fact[at.count++];
      d.n = static_cast<int>(*w++);
      for (int i = 0; i < d.n; ++i) d.v[i] = *w++;
    }
    return at;
  }
  /// A saved value as it was, or an error that says what overtook it.
  tensor unpacked(saved_value const& s) {
    if (s.checked && version_of(s.value) != s.version) refuse_stale(s.value, table->name, s.version);
    if (s.checked && s.recorded && eager && !s.value.history()) refuse_detached(table->name);
    if (s.of != saved_value::result || !eager || !this_thread_state.grad_mode) return s.value;
    tensor y = s.value.alias();
    y.set_history(edge(this, 0));
    return y;
  }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const* wanted) {
    auto& self = static_cast<operator_node&>(n);
    boxed_args r;
    if (!g[0].defined()) {
      for (int i = 0; i < self.operands; ++i) r.push_back(tensor());
      return r;
    }
    boxed_args x;
    tensor y = g[0];
    for (int k = 0; self.released && k < self.kept; ++k)
      if (self.saved[k].checked) refuse_released(self.table->name);
    for (int i = 0, k = 0; i < self.operands; ++i) x.push_back(k < self.kept && self.saved[k].of == i ? self.unpacked(self.saved[k++]) : g[0]);
    if (self.kept && self.saved[self.kept - 1].of == saved_value::result) y = self.unpacked(self.saved[self.kept - 1]);
    attributes const at = self.facts ? self.attributes_of() : attributes{};
    for (int i = 0; i < self.operands; ++i) r.push_back(wanted[i] ? self.table->vjp(i, at, g[0], y, x) : tensor());
    return r;
  }
  static void release(grad_node& n) {
    auto& self = static_cast<operator_node&>(n);
    if (self.released) return;
    self.released = true;
    for (int k = 0; k < self.kept; ++k)
      if (self.saved[k].checked) self.saved[k].value = tensor(); // a shape alone may serve again (AG-4)
  }
  static void destroy(grad_node* n) {
    auto* self = static_cast<operator_node*>(n);
    for (int k = 0; k < self->kept; ++k) self->saved[k].~saved_value();
    for (int i = 0; i < self->operands; ++i) self->next[i].~edge();
    if (self->extra) drop_extra(self->extra);
    std::size_t const n_bytes = self->bytes;
    self->~operator_node();
    if (n_bytes <= small_bytes) give_block<small_bytes>(n);
    else if (n_bytes <= block_bytes) give_block<>(n);
    else ::operator delete(static_cast<void*>(n), std::align_val_t{64});
  }
  /// "AddBackward0" of "add".
  static void name_of(grad_node const& n, char* out) {
    char const* s = static_cast<operator_node const&>(n).table->name;
    int k = 0;
    bool upper = true;
    for (; *s && k < 50; ++s) {
      if (*s == '_' || *s == ':') upper = true;
      else out[k++] = upper && *s >= 'a' && *s <= 'z' ? static_cast<char>(*s - 'a' + 'A') : *s, upper = false;
    }
    std::strcpy(out + k, "Backward0");
  }
};
inline constexpr grad_node_type operator_node::type_{&operator_node::backward, &operator_node::release, &operator_node::destroy, &operator_node::name_of};

/// A node whose pullback is a function: cotangents of the results to cotangents of the operands.
template <class F>
struct function_node : grad_node {
  F pullback;
  std::vector<edge> edges;
  std::string label;

  static grad_node_type const type_;
  function_node(F f, std::vector<edge> e, std::uint16_t n, char const* l) : grad_node(&type_), pullback(std::move(f)), edges(std::move(e)), label(l) {
    next = edges.data();
    count = static_cast<std::uint16_t>(edges.size());
    results = n;
    sequence = this_thread_state.next_node++;
  }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const* wanted) {
    auto& self = static_cast<function_node&>(n);
    if constexpr (requires { self.pullback.released; }) {
      if (self.released) refuse_released(self.label.c_str());
    }
    return self.pullback(g, wanted);
  }
  static void release(grad_node& n) {
    auto& self = static_cast<function_node&>(n);
    self.released = true;
    if constexpr (requires { self.pullback.release(); }) self.pullback.release();
  }
  static void destroy(grad_node* n) {
    if (n->extra) drop_extra(n->extra);
    delete static_cast<function_node*>(n);
  }
  static void name_of(grad_node const& n, char* out) {
    std::strncpy(out, static_cast<function_node const&>(n).label.c_str(), 63);
    out[63] = 0;
  }
};
template <class F>
inline constexpr grad_node_type function_node<F>::type_{&function_node::backward, &function_node::release, &function_node::destroy, &function_node::name_of};
/// Records a function of operands with the given edges; the node is the caller's to share.
template <class F>
grad_node* record_function(F pullback, std::vector<edge> edges, int results, char const* label) {
  return new function_node<F>(std::move(pullback), std::move(edges), static_cast<std::uint16_t>(results), label);
}
/// An edge to a node that was just made: it takes the maker's share.
inline edge edge_to(grad_node* fresh, std::uint32_t nr = 0) {
  edge e(fresh, nr);
  drop_node(fresh);
  return e;
}

} // namespace varve::detail
