// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/tensor_dispatch.hpp>

#include <cstring>
#include <string>

/// @file
/// Nodes of recorded operators. An `operator_node` stores only what the `vjp` rules of its tracked operands read, as
/// declared by each operator (`saved_values`). Such a node takes one block of 128 bytes, and an in-place operator
/// conflicts only with values that will be read. Every operator's declaration is tested: a value that is not declared
/// is missing in the backward pass.
namespace varve::detail {

/// A tensor that a node saves for its backward pass, and its version at that time.
struct saved_value {
  static constexpr std::uint8_t result = 15;
  tensor value;
  std::uint32_t version;
  std::uint8_t of;       // index of the operand, or `result`
  bool checked;          // whether its elements will be read
  bool recorded = false; // whether an operator made it, to which its history leads
  packed_value* packed = nullptr;
};

[[noreturn]] VARVE_COLD inline void refuse_released(char const* name) {
  refuse::with<autograd_error>(
      (std::string("varve: ") + name +
       ": trying to run backward through the graph a second time; its saved values were freed by the "
       "first. Say retain_graph there")
          .c_str());
}
[[noreturn]] VARVE_COLD inline void refuse_stale(tensor const& t, char const* name, std::uint32_t saved) {
  refuse::with<autograd_error>(
      (std::string("varve: a value needed for a gradient was modified by an in-place operator: a tensor of ") +
       varve::name(t.dtype()) + to_string(t.sizes()) + ", operand or result of " + name + ", is at version " +
       std::to_string(t.writes()) + "; expected version " + std::to_string(saved) +
       ". anomaly_mode names the call; clone the value, or use the functional operator")
          .c_str());
}

[[noreturn]] VARVE_COLD inline void refuse_detached(char const* name) {
  refuse::with<autograd_error>(
      (std::string("varve: ") + name +
       ": an operand that is needed for a gradient was detached in place, by detach_; use detach")
          .c_str());
}

/// Refuses to save a tensor made in inference mode for eager autograd, since later writes into it would not be
/// detected.
inline void refuse_inference(tensor const& t, char const* name) {
  if (t.defined() && t.is_inference()) [[unlikely]]
    refuse::with<autograd_error>(
        (std::string("varve: ") + name +
         ": a tensor made in inference mode cannot be saved for backward; clone it outside of inference mode first")
            .c_str());
}

/// The level of `grad` whose graph this thread runs while it records. Values that its nodes saved one level below are
/// wrapped for the level again. `layer` is 0 if there is no such level.
struct level_seen_again {
  std::uint64_t layer = 0;
  int level = 0;
};
inline constinit thread_local level_seen_again this_thread_sees_again{};

/// The node of one operator on tensors. It stores what the `vjp` rules of its tracked operands read, and at most the
/// shape of each other operand. After it in memory follow its edges, its saved values and its attributes, each as its
/// length and entries.
struct operator_node : grad_node {
  op_table const* table;
  std::uint8_t kept = 0, operands, facts;
  bool eager;
  std::uint32_t bytes;

  static grad_node_type const type_;
  operator_node(op_table const* t, int n, int f, bool e, std::size_t b)
      : grad_node(&type_), table(t), operands(static_cast<std::uint8_t>(n)), facts(static_cast<std::uint8_t>(f)),
        eager(e), bytes(static_cast<std::uint32_t>(b)) {
    count = static_cast<std::uint16_t>(n);
    next = reinterpret_cast<edge*>(this + 1);
    sequence = this_thread_state.next_node++;
  }
  saved_value* saved() { return reinterpret_cast<saved_value*>(next + operands); }

  static constexpr std::size_t small_size = 128, medium_size = 192;
  static void* take(std::size_t n) {
    return n <= small_size    ? take_block<small_size>()
           : n <= medium_size ? take_block<medium_size>()
           : n <= block_bytes ? take_block<>()
                              : ::operator new(n);
  }

  /// Records a call. `edge_of(i)` returns the edge of operand i, or null if it is not tracked; an array of edges is
  /// accepted as well. `x` are the operands one level below and `y` is the result there.
  template <class X, class EdgeOf>
  static operator_node* make(boxed_op const& op, tensor const& y, X const& x, EdgeOf const& edge_of,
                             bool eager = false) {
    edge const* found[saved_values::most];
    edge const* const* edges = found;
    if constexpr (std::is_pointer_v<EdgeOf>) edges = edge_of;
    else
      for (int i = 0; i < x.size(); ++i) found[i] = edge_of(i);
    if constexpr (std::is_same_v<X, operand_list>) {
      return make_of(op, y, x, edges, eager);
    } else {
      tensor const* in[saved_values::most];
      for (int i = 0; i < x.size(); ++i) in[i] = &x[i];
      return make_of(op, y, {in, x.size()}, edges, eager);
    }
  }
  /// Records a call with operands and edges in arrays. Compiled once for all callers.
  VARVE_NOINLINE static operator_node* make_of(boxed_op const& op, tensor const& y, operand_list x,
                                               edge const* const* edges, bool eager) {
    op_table const& t = *op.table;
    int const n = x.size();
    unsigned reads = 0;
    saved_values const& saved = t.saved_by ? t.saved_by(*op.at) : t.saved;
    for (int i = 0; i < n; ++i)
      if (edges[i]) reads |= saved.of[i];
    int count = static_cast<int>(reads >> saved_value::result & 1);
    unsigned stands_in = 0; // operands with the same shape as the cotangent
    dims const& sizes = y.sizes();
    dtype const type = y.dtype();
    for (int i = 0; i < n; ++i) {
      if (!(reads >> i & 1) && x[i].dtype() == type && known_equal(x[i].sizes(), sizes)) stands_in |= 1u << i;
      else ++count;
    }
    std::size_t words = 0;
    int const facts = op.at->count;
    for (int k = 0; k < facts; ++k) words += static_cast<std::size_t>(op.at->fact[k].n) + 1;
    std::size_t const all = sizeof(operator_node) + sizeof(edge) * static_cast<std::size_t>(n) +
                            sizeof(saved_value) * static_cast<std::size_t>(count) + sizeof(index_t) * words;
    auto* const r = new (take(all)) operator_node(&t, n, facts, eager, all);
    for (int i = 0; i < n; ++i) {
      new (r->next + i) edge();
      if (edges[i]) r->next[i].join(*edges[i]);
    }
    struct unfinished {
      operator_node* n;
      ~unfinished() {
        if (n) destroy(n);
      }
    } guard{r}; // hooks of saved tensors may throw
    for (int i = 0; count && i < n; ++i) {
      if (stands_in >> i & 1) continue;
      // Of an operand that is not read, only the shape is stored. A later write in place may give the operand itself a
      // history that leads to this node. Plain numbers are stored as they are.
      bool const read = reads >> i & 1;
      r->keep(read || x[i].is_number() ? x[i] : tensor::meta(x[i].sizes(), x[i].dtype()), i, read,
              edges[i] && !edges[i]->to()->type->is_leaf);
    }
    if (reads >> saved_value::result & 1)
      r->keep(eager ? y.alias() : y, saved_value::result, true); // not y itself, which will own the node
    guard.n = nullptr;
    if (!facts) return r;
    auto* w = reinterpret_cast<index_t*>(r->saved() + r->kept);
    for (int k = 0; k < facts; ++k) {
      dims const& d = op.at->fact[k];
      *w++ = d.n;
      for (extent i : d) *w++ = i.bits;
    }
    return r;
  }
  void keep(tensor const& t, int of, bool checked, bool recorded = false) {
    std::uint32_t const version = checked ? t.writes() : 0;
    t.note_kept();
    bool const packs = checked && !t.is_wrapped() && !t.is_number(); // plain numbers are not tensors
    auto* hooks = packs ? this_thread_state.saved_hooks : nullptr;
    // Hooks at a level skip values with a history, which eager autograd records below the level.
    if (hooks && (hooks->at_level == eager || (hooks->at_level && t.has_history()))) hooks = nullptr;
    packed_value* const p = hooks ? pack(*hooks, t) : nullptr;
    new (saved() + kept++) saved_value{p ? tensor() : t, version, static_cast<std::uint8_t>(of), checked, recorded, p};
  }
  VARVE_COLD static packed_value* pack(saved_hooks_scope& hooks, tensor const& t) {
    std::uint32_t const before = t.version();
    saved_hooks_scope* const outer = this_thread_state.saved_hooks;
    this_thread_state.saved_hooks = nullptr; // what packing records is saved without hooks
    struct restore {
      saved_hooks_scope* s;
      ~restore() { this_thread_state.saved_hooks = s; }
    } const after{outer};
    packed_value* const p = hooks.pack(t);
    if (t.version() != before) {
      delete p;
      refuse::with<autograd_error>("varve: saved_tensors_hooks: the pack hook modified its input in place");
    }
    return p;
  }

  attributes attributes_of() const {
    attributes at;
    auto const* w = reinterpret_cast<index_t const*>(const_cast<operator_node*>(this)->saved() + kept);
    for (int k = 0; k < facts; ++k) {
      dims& d = at.fact[at.count++];
      d.n = static_cast<int>(*w++);
      for (int i = 0; i < d.n; ++i) d.v[i] = *w++;
    }
    return at;
  }
  /// Returns a saved value as it was. Throws `autograd_error` if it was modified since.
  tensor unpacked(saved_value const& s) {
    if (s.packed) [[unlikely]] {
      // A value unpacked by hooks gets the history of the original value.
      tensor t = s.packed->unpack();
      if (!eager) return this_thread_sees_again.layer ? seen_again(s, t) : t;
      if (!this_thread_state.grad_mode || !has_derivatives(t.dtype()) || t.is_wrapped()) return t;
      edge e = s.of == saved_value::result ? edge(this, 0) : next[s.of];
      t = t.alias();
      if (e) t.set_history(static_cast<edge&&>(e));
      return t;
    }
    if (s.checked && s.value.writes() != s.version) refuse_stale(s.value, table->name, s.version);
    if (s.checked && s.recorded && eager && !s.value.history()) refuse_detached(table->name);
    if (!eager && this_thread_sees_again.layer) [[unlikely]]
      return seen_again(s, s.value);
    if (s.of != saved_value::result || !eager || !this_thread_state.grad_mode) return s.value;
    tensor y = s.value.alias();
    y.set_history(edge(this, 0));
    return y;
  }
  /// Returns a saved value as the level saw it, with the history that it had there.
  VARVE_COLD tensor seen_again(saved_value const& s, tensor const& value) {
    edge e = s.of == saved_value::result ? edge(this, 0) : next[s.of];
    if (!e || !s.checked || !this_thread_state.grad_mode) return value;
    return tensor::wrap(value, this_thread_sees_again.layer, this_thread_sees_again.level, {}, static_cast<edge&&>(e),
                        value.sizes());
  }
  static boxed_args saved_of(grad_node& n) {
    auto& self = static_cast<operator_node&>(n);
    boxed_args r;
    for (int k = 0; k < self.kept; ++k) {
      saved_value const& s = self.saved()[k];
      if (!s.checked) continue;
      if (self.released) refuse_released(self.table->name);
      r.push_back(self.unpacked(s));
    }
    return r;
  }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const* wanted) {
    auto& self = static_cast<operator_node&>(n);
    boxed_args r(self.operands);
    if (!g[0].defined()) return r;
    if (!self.table->vjp) [[unlikely]] // a library's operator may have no kernel for autograd
      no_rule(self.table->name, "grad");
    for (int k = 0; self.released && k < self.kept; ++k)
      if (self.saved()[k].checked) refuse_released(self.table->name);
    boxed_args x(self.operands);
    saved_value const* s = self.saved();
    saved_value const* const end = s + self.kept;
    for (int i = 0; i < self.operands; ++i)
      x.fill(i, [&] { return s != end && s->of == i ? self.unpacked(*s++) : g[0]; });
    tensor const y = s != end ? self.unpacked(*s) : tensor();
    tensor const& seen = y.defined() ? y : g[0]; // a rule that reads the result has saved it
    auto const pull = [&](attributes const& at) {
      for (int i = 0; i < self.operands; ++i)
        if (wanted[i]) r.fill(i, [&] { return self.table->vjp(i, at, g[0], seen, x); });
    };
    if (self.facts) pull(self.attributes_of());
    else pull(no_attributes);
    return r;
  }
  static void release(grad_node& n) {
    auto& self = static_cast<operator_node&>(n);
    if (self.released) return;
    self.released = true;
    for (int k = 0; k < self.kept; ++k) {
      saved_value& s = self.saved()[k];
      if (!s.checked) continue; // a shape may be used again
      s.value = tensor();
      delete s.packed;
      s.packed = nullptr;
    }
  }
  static void let_go(grad_node& n, tensor const& written) {
    auto& self = static_cast<operator_node&>(n);
    for (int k = 0; k < self.kept; ++k) {
      tensor& t = self.saved()[k].value;
      if (self.saved()[k].checked && t.defined() && t.shares_storage(written)) t = t.alias();
    }
  }
  static void destroy(grad_node* n) {
    auto* self = static_cast<operator_node*>(n);
    for (int k = 0; k < self->kept; ++k) {
      delete self->saved()[k].packed;
      self->saved()[k].~saved_value();
    }
    for (int i = 0; i < self->operands; ++i) self->next[i].~edge();
    if (self->extra) drop_extra(self->extra);
    std::size_t const n_bytes = self->bytes;
    self->~operator_node();
    if (n_bytes <= small_size) give_block<small_size>(n);
    else if (n_bytes <= medium_size) give_block<medium_size>(n);
    else if (n_bytes <= block_bytes) give_block<>(n);
    else ::operator delete(static_cast<void*>(n));
  }
  /// Writes the name of the node, such as "AddBackward0" for "add".
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
inline constexpr grad_node_type operator_node::type_{
    &operator_node::backward, &operator_node::release, &operator_node::destroy, &operator_node::name_of, false,
    &operator_node::saved_of, &operator_node::let_go};

/// Returns an edge to a node that was just made. The edge takes over the maker's reference.
inline edge edge_to(grad_node* fresh, std::uint32_t nr = 0) { return edge::taking(fresh, nr); }

} // namespace varve::detail
