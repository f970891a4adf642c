// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/storage.hpp>

#include <cstdint>

/// @file
/// The graph that reverse mode records on tensors: nodes, which are recorded calls, and edges to the nodes that made
/// their operands. One graph serves the levels of `grad` and eager autograd; `interpreter/engine.hpp` runs it.
///
/// Eager autograd is `grad_interpreter<eager_level>` (`interpreter/eager.hpp`), whose values are seen as they are. What
/// differs from a level of `grad` is where a history hangs: on the wrapper of the level, or on the tensor itself. A
/// tensor's key set has one bit beside the keys: it, or the tensor it is a view of, may have a history. Without the bit
/// nobody asks, and the autograd key has no kernel at all until a program asks for its first gradient
/// (`autograd_hooks`).
namespace varve {

class boxed_args;
class tensor;
struct grad_node;

/// What a kind of node can do.
struct grad_node_type {
  /// Cotangents of the results to cotangents of the operands, one for each edge. `wanted(k)` tells which are asked for;
  /// undefined ones stand for zeros.
  boxed_args (*backward)(grad_node& self, boxed_args& g, bool const* wanted);
  /// Frees what was saved for the backward pass.
  void (*release)(grad_node& self);
  void (*destroy)(grad_node* self);
  /// Name without attributes ("AddBackward0"), written into a buffer of 64 characters.
  void (*name)(grad_node const& self, char* out);
  /// Is it where gradients are collected, and no recorded call?
  bool is_leaf = false;
  /// What was saved for the backward pass, as that would find it; null where a kind saves nothing.
  boxed_args (*saved)(grad_node& self) = nullptr;
  /// What it saved of a memory that was written since is stale: it keeps no history of that any more.
  void (*let_go)(grad_node& self, tensor const& written) = nullptr;
};

/// Where a cotangent goes: result `nr` of a node. Null for a constant. It owns a share of the node.
class edge {
public:
  constexpr edge() noexcept = default;
  edge(grad_node* to, std::uint32_t nr) noexcept;
  edge(edge const& o) noexcept : edge(o.to_, o.nr_) {}
  edge(edge&& o) noexcept : to_(o.to_), nr_(o.nr_) { o.to_ = nullptr; }
  edge& operator=(edge o) noexcept {
    auto* const t = to_;
    to_ = o.to_;
    nr_ = o.nr_;
    o.to_ = t;
    return *this;
  }
  ~edge();
  grad_node* to() const noexcept { return to_; }
  std::uint32_t nr() const noexcept { return nr_; }
  explicit operator bool() const noexcept { return to_; }
  /// An edge that takes over a share.
  static edge taking(grad_node* to, std::uint32_t nr) noexcept {
    edge e;
    e.to_ = to;
    e.nr_ = nr;
    return e;
  }
  /// Becomes the same as another; it is null.
  void join(edge const& o) noexcept;
  /// Gives up the share without ending it: it is the caller's.
  grad_node* release() noexcept {
    auto* const t = to_;
    to_ = nullptr;
    return t;
  }
  friend bool operator==(edge const& a, edge const& b) noexcept { return a.to_ == b.to_ && a.nr_ == b.nr_; }

private:
  grad_node* to_ = nullptr;
  std::uint32_t nr_ = 0;
};

/// What is attached to a node: hooks, retained gradients, the call that made it.
struct grad_node_extra {
  virtual ~grad_node_extra() = default;
  /// In the order of a run (AG-9): hooks of the results and retained gradients; the node's pre-hooks; after the node
  /// its post-hooks.
  virtual void arrived(grad_node&, boxed_args& g) = 0;
  virtual void before(grad_node&, boxed_args& g) = 0;
  virtual void after(grad_node&, boxed_args& out, boxed_args const& g) = 0;
  /// Gives up the gradient of a result that was to be retained; was it?
  virtual bool release_retained(std::uint32_t nr) = 0;
  /// That gradient; null when it is not retained.
  virtual tensor const* retained_at(std::uint32_t nr) const = 0;
  /// The call that recorded the node, for messages; empty when nobody asked for it.
  virtual char const* call() const = 0;
};

/// One recorded call (`grad_fn`), counted by those who refer to it. `next` are the edges of its operands.
struct grad_node {
  detail::reference_count refs;
  std::uint16_t count = 0;
  /// Number of results, that is of cotangents it takes.
  std::uint16_t results = 1;
  grad_node_type const* type;
  edge* next = nullptr;
  /// Nodes of a thread are numbered as they are made: the engine runs later ones first (AG-5). While the node is being
  /// freed: the next one to be.
  std::uint64_t sequence = 0;
  /// Where the engine's run keeps it.
  std::atomic<std::uint32_t> mark{0};
  /// A second backward pass is refused: what it needs was freed (AG-4).
  bool released = false;
  /// Hooks, retained gradients, metadata; null as a rule.
  grad_node_extra* extra = nullptr;

  explicit grad_node(grad_node_type const* t) : type(t) {}
  grad_node(grad_node const&) = delete;
  grad_node& operator=(grad_node const&) = delete;
};

namespace detail {
inline constinit thread_local grad_node* dying_nodes = nullptr;
inline constinit thread_local bool nodes_are_dying = false;
inline void drop_extra(grad_node_extra* e) { delete e; }

/// Gives a share back. A chain of any length is freed without recursion.
VARVE_NOINLINE inline void free_nodes(grad_node* n) {
  n->sequence = reinterpret_cast<std::uintptr_t>(dying_nodes);
  dying_nodes = n;
  if (nodes_are_dying) return;
  nodes_are_dying = true;
  while (grad_node* const next = dying_nodes) {
    dying_nodes = reinterpret_cast<grad_node*>(static_cast<std::uintptr_t>(next->sequence));
    next->type->destroy(next);
  }
  nodes_are_dying = false;
}
inline void drop_node(grad_node* n) {
  if (n->refs.drop()) free_nodes(n);
}
} // namespace detail

inline edge::edge(grad_node* to, std::uint32_t nr) noexcept : to_(to), nr_(nr) {
  if (to_) to_->refs.add();
}
inline void edge::join(edge const& o) noexcept {
  to_ = o.to_;
  nr_ = o.nr_;
  to_->refs.add();
}
inline edge::~edge() {
  if (to_) detail::drop_node(to_);
}

} // namespace varve
