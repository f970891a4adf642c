// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/storage.hpp>

#include <cstdint>

/// @file
/// The graph that reverse mode records on tensors. Its nodes are recorded calls, and its edges lead to the nodes that
/// made their operands. The levels of `grad` and eager autograd share one graph; `interpreter/engine.hpp` runs it.
///
/// Eager autograd is `grad_interpreter<eager_level>` (`interpreter/eager.hpp`), whose values are not wrapped. A level
/// of `grad` stores histories on its wrappers, eager autograd on the tensors themselves. A tensor's key set has one
/// extra bit: the tensor, or the tensor it is a view of, may have a history. Without the bit no history is looked up.
/// The autograd key has no kernel until a program first requests a gradient (`autograd_hooks`).
namespace varve {

class boxed_args;
class tensor;
struct grad_node;

/// The operations of one kind of node.
struct grad_node_type {
  /// Maps cotangents of the results to cotangents of the operands, one for each edge. `wanted(k)` is true for those
  /// that are needed; undefined cotangents stand for zeros.
  boxed_args (*backward)(grad_node& self, boxed_args& g, bool const* wanted);
  /// Frees what was saved for the backward pass.
  void (*release)(grad_node& self);
  void (*destroy)(grad_node* self);
  /// Writes the name without attributes ("AddBackward0") into a buffer of 64 characters.
  void (*name)(grad_node const& self, char* out);
  /// True if the node collects the gradient of a leaf and is no recorded call.
  bool is_leaf = false;
  /// Returns the values saved for the backward pass, as `backward` would read them; null if this kind saves nothing.
  boxed_args (*saved)(grad_node& self) = nullptr;
  /// Drops the history of saved values that share memory with `written`, since a write has made them stale.
  void (*let_go)(grad_node& self, tensor const& written) = nullptr;
};

/// The destination of a cotangent: result `nr` of a node. Null for a constant. An edge shares ownership of its node.
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
  /// Returns an edge that takes over an existing reference to the node.
  static edge taking(grad_node* to, std::uint32_t nr) noexcept {
    edge e;
    e.to_ = to;
    e.nr_ = nr;
    return e;
  }
  /// Makes this null edge equal to another edge.
  void join(edge const& o) noexcept;
  /// Releases the reference to the node without dropping it; the caller owns it afterwards.
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

/// Data attached to a node: hooks, retained gradients, the call that made it.
struct grad_node_extra {
  virtual ~grad_node_extra() = default;
  /// Run hooks, in this order when the node runs: `arrived` those of the results, and retained gradients; `before` the
  /// node's pre-hooks; `after` its post-hooks.
  virtual void arrived(grad_node&, boxed_args& g) = 0;
  virtual void before(grad_node&, boxed_args& g) = 0;
  virtual void after(grad_node&, boxed_args& out, boxed_args const& g) = 0;
  /// Stops retaining the gradient of a result. Returns true if it was retained.
  virtual bool release_retained(std::uint32_t nr) = 0;
  /// Returns the retained gradient of a result; null if it is not retained.
  virtual tensor const* retained_at(std::uint32_t nr) const = 0;
  /// Returns the call that recorded the node, for messages; empty if calls were not noted.
  virtual char const* call() const = 0;
};

/// One recorded call (`grad_fn`), reference-counted. `next` are the edges of its operands.
struct grad_node {
  detail::reference_count refs;
  std::uint16_t count = 0;
  /// The number of results, which is the number of cotangents that the node takes.
  std::uint16_t results = 1;
  grad_node_type const* type;
  edge* next = nullptr;
  /// The number of the node in the order in which its thread recorded nodes; the engine runs later nodes first. While
  /// the node is being freed, this is the address of the next node to free.
  std::uint64_t sequence = 0;
  /// A mark that the engine uses during a run.
  std::atomic<std::uint32_t> mark{0};
  /// True if the saved values were freed; a second backward pass is then refused.
  bool released = false;
  /// Hooks, retained gradients and metadata; normally null.
  grad_node_extra* extra = nullptr;

  explicit grad_node(grad_node_type const* t) : type(t) {}
  grad_node(grad_node const&) = delete;
  grad_node& operator=(grad_node const&) = delete;
};

namespace detail {
inline constinit thread_local grad_node* dying_nodes = nullptr;
inline constinit thread_local bool nodes_are_dying = false;
inline void drop_extra(grad_node_extra* e) { delete e; }

/// Drops a node without recursion, so that chains of any length can be freed.
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
