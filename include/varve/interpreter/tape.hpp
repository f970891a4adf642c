// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/tower.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace varve {

/// An operand of a recorded operator: its primal, and the slot that collects its cotangent (`none_t` or null: none).
template <class P, class S>
struct tracked {
  P const& primal;
  S const& slot;
};

/// A slot that collects the cotangent of one value. It is empty at first, so that absent contributions cost nothing.
template <class V>
struct slot {
  V value;
  bool set;
  constexpr slot() : set(false) {
    if (!std::is_constant_evaluated())
      if constexpr (sizeof(V) <= 64)
        value = V(); // only for g++ 14, which warns because it does not see that `set` guards the value
  }

  template <class Tower, class G>
  constexpr void add(Tower const& tower, G const& g) {
    if constexpr (!is_none<G>) {
      constexpr bool known = std::is_same_v<decltype(lift_to_all(tower, g)), V>;
      static_assert(known, "varve: a cotangent is seen through a transform that the tape does not know; declare what "
                           "brings it in: vjp(closure(f, g), x...)");
      if constexpr (known) {
        if (set) value = lift_to_all(tower, varve::add(value, g));
        else value = lift_to_all(tower, g);
        set = true;
      }
    }
  }
};

/// One recorded operator. It uses function pointers instead of virtual functions, because g++ 12 cannot destroy virtual
/// nodes in constant expressions.
struct tape_node {
  enum action { pull, clear, drop };
  tape_node* previous = nullptr;
  void (*act)(tape_node*, action) = nullptr;
};

/// The memory of a tape: a buffer in place, then blocks from the heap. In constant expressions every node is allocated
/// separately.
class tape_memory {
public:
  constexpr tape_memory() {}
  tape_memory(tape_memory const&) = delete;
  tape_memory& operator=(tape_memory const&) = delete;
  constexpr ~tape_memory() {
    while (last_) {
      tape_node* n = last_;
      last_ = n->previous;
      n->act(n, tape_node::drop);
    }
    if (!std::is_constant_evaluated() && blocks_) release();
  }

  template <class Node, class... A>
  constexpr Node* make(A const&... a) {
    Node* n;
    if (std::is_constant_evaluated()) n = new Node(a...);
    else n = ::new (allocate(sizeof(Node), alignof(Node))) Node(a...);
    n->previous = last_;
    last_ = n;
    return n;
  }
  /// Copies trivially destructible data to memory that lives as long as the tape. For use at run time only.
  template <class T>
  T const* keep(T const& t) {
    return ::new (allocate(sizeof(T), alignof(T))) T(t);
  }
  constexpr tape_node* last() const { return last_; }

private:
  struct block {
    block* next;
  };
  VARVE_NOINLINE void* allocate(std::size_t bytes, std::size_t align) {
    std::size_t at = (used_ + align - 1) & ~(align - 1);
    if (at + bytes > size_) {
      std::size_t const want = bytes + align + 64 > 16384 ? bytes + align + 64 : 16384;
      auto* b = static_cast<block*>(::operator new(want, std::align_val_t{64}));
      b->next = blocks_;
      blocks_ = b;
      memory_ = reinterpret_cast<unsigned char*>(b);
      size_ = want;
      at = 64;
    }
    used_ = at + bytes;
    return (memory_ ? memory_ : place_) + at;
  }
  VARVE_COLD void release() {
    while (blocks_) {
      block* b = blocks_;
      blocks_ = b->next;
      ::operator delete(b, std::align_val_t{64});
    }
  }
  tape_node* last_ = nullptr;
  block* blocks_ = nullptr;
  unsigned char* memory_ = nullptr; // the current block; null: the buffer in place
  std::size_t used_ = 0, size_ = in_place;
  static constexpr std::size_t in_place = 2048;
  alignas(64) unsigned char place_[in_place];
};

/// The operators recorded at one level of reverse mode, and the tower through which its cotangents are seen.
template <class Tower>
class tape : public tape_memory {
public:
  constexpr explicit tape(Tower const& t) : tower(t) {}
  Tower tower;

  /// Pulls cotangents back from the last operator to the first.
  constexpr void pull() const {
    for (tape_node* n = last(); n; n = n->previous) n->act(n, tape_node::pull);
  }
  /// Empties every slot, so that another cotangent can be pulled back.
  constexpr void clear() const {
    for (tape_node* n = last(); n; n = n->previous) n->act(n, tape_node::clear);
  }
};

namespace detail {
template <class P, class S>
struct saved {
  P primal;
  [[no_unique_address]] S slot;
};

/// A leaf: a slot without an operator.
template <class S>
struct leaf_node : tape_node {
  S out;
  constexpr leaf_node() { act = &run; }
  static constexpr void run(tape_node* n, action a) {
    auto* self = static_cast<leaf_node*>(n);
    if (a == clear) self->out.set = false;
    else if (a == drop) destroy(self);
  }
  static constexpr void destroy(leaf_node* self) {
    if (std::is_constant_evaluated()) delete self;
    else self->~leaf_node();
  }
};

template <class Tape, class S, class Op, class Y, class... D>
struct op_node : tape_node {
  S out;
  Tape const* owner;
  [[no_unique_address]] Op op;
  Y y;
  std::tuple<D...> operands;

  constexpr op_node(Tape const* t, Op const& o, Y const& r, D const&... d) : owner(t), op(o), y(r), operands(d...) {
    act = &run;
  }

  static constexpr void run(tape_node* n, action a) {
    auto* self = static_cast<op_node*>(n);
    if (a == pull) {
      if (self->out.set) self->pull_all(std::index_sequence_for<D...>{});
    } else if (a == clear) {
      self->out.set = false;
    } else if (std::is_constant_evaluated()) {
      delete self;
    } else {
      self->~op_node();
    }
  }
  template <std::size_t... I>
  constexpr void pull_all(std::index_sequence<I...>) {
    (pull_one<I>(std::get<I>(operands).slot), ...);
  }
  template <std::size_t I, class T>
  constexpr void pull_one(T const& to) {
    if constexpr (!is_none<T>) {
      if (to)
        [&]<std::size_t... K>(std::index_sequence<K...>) {
          to->add(owner->tower, cotangent<I>(op, out.value, y, std::get<K>(operands).primal...));
        }(std::index_sequence_for<D...>{});
    }
  }
};
} // namespace detail

} // namespace varve
