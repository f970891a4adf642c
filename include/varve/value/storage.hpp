// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>
#include <varve/core/single_threaded.hpp>
#include <varve/value/data_memory.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace varve {

namespace detail {
/// Count of owners, shared between threads.
struct reference_count {
  std::atomic<std::uint32_t> n{1};
  VARVE_INLINE void add() {
    if (single_threaded()) n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else n.fetch_add(1, std::memory_order_relaxed);
  }
  /// True when the last owner has gone.
  bool drop() {
    if (single_threaded()) {
      auto const left = n.load(std::memory_order_relaxed) - 1;
      n.store(left, std::memory_order_relaxed);
      return left == 0;
    }
    return n.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
};

/// Bytes of a tensor's block; small tensors keep their data inside.
inline constexpr std::size_t block_bytes = 320;

/// Blocks of one size given back by this thread, for its next ones. Trivially destructible, so that reading it needs no
/// guard.
struct block_list {
  static constexpr int most = 4096;
  void* first = nullptr;
  int room = 0;         // for how many more; none before the list is adopted, and when the thread is ending
  bool adopted = false; // its end gives the blocks back
};
template <std::size_t Bytes>
inline constinit thread_local block_list free_blocks{};

/// Tensors' blocks hold data for SIMD kernels; smaller ones need no more than what `new` gives.
template <std::size_t Bytes>
void* new_block() {
  if constexpr (Bytes == block_bytes) return ::operator new(Bytes, std::align_val_t{64});
  else return ::operator new(Bytes);
}
template <std::size_t Bytes>
void delete_block(void* b) {
  if constexpr (Bytes == block_bytes) ::operator delete(b, std::align_val_t{64});
  else ::operator delete(b);
}
/// Gives the blocks back when the thread ends.
template <std::size_t Bytes>
struct block_list_owner {
  ~block_list_owner() {
    block_list& l = free_blocks<Bytes>;
    l.room = 0;
    while (l.first) {
      void* next = *static_cast<void**>(l.first);
      delete_block<Bytes>(l.first);
      l.first = next;
    }
  }
};

template <std::size_t Bytes>
VARVE_COLD void adopt_block_list() {
  thread_local block_list_owner<Bytes> owner;
  (void)owner;
  free_blocks<Bytes>.adopted = true;
  free_blocks<Bytes>.room = block_list::most;
}

template <std::size_t Bytes = block_bytes>
inline void* take_block() {
  block_list& l = free_blocks<Bytes>;
  if (l.first) {
    void* b = l.first;
    l.first = *static_cast<void**>(b);
    ++l.room;
    return b;
  }
  return new_block<Bytes>();
}
/// Puts a new block into the list, for who takes from there alone.
template <std::size_t Bytes = block_bytes>
VARVE_NOINLINE void provide_block() {
  void* const b = new_block<Bytes>();
  block_list& l = free_blocks<Bytes>;
  *static_cast<void**>(b) = l.first;
  l.first = b;
  --l.room;
}

template <std::size_t Bytes = block_bytes>
inline void give_block(void* b) {
  block_list& l = free_blocks<Bytes>;
  if (l.room <= 0) [[unlikely]] {
    if (!VARVE_RECYCLE_BLOCKS || l.adopted) return delete_block<Bytes>(b);
    adopt_block_list<Bytes>();
  }
  *static_cast<void**>(b) = l.first;
  l.first = b;
  --l.room;
}
} // namespace detail

/// Told of the memory of tensors: of what a thread allocates while it is the thread's, and of the freeing of that, by
/// whichever thread. `memory_tracker_mode` hangs in here.
struct storage_observer {
  void (*allocated)(storage_observer& self, std::size_t bytes) = nullptr;
  void (*freed)(storage_observer& self, std::size_t bytes) = nullptr;
};
/// Who is told of what this thread allocates; null as a rule.
inline constinit thread_local storage_observer* this_thread_storage_observer = nullptr;

/// Is this thread in inference mode? What it makes has neither version counter nor history, for ever (AG-20).
inline constinit thread_local bool this_thread_inference = false;

/// The number of the transform that this thread began last: what was made before one is told from what is made while
/// it runs. No two transforms have one number, on whatever threads; on one thread they ascend.
inline constinit thread_local std::uint32_t this_thread_epoch = 0;
namespace detail {
/// Numbers that this thread may give out, as a block of which no other thread has any.
inline constinit thread_local std::uint32_t next_epoch_of_thread = 0;
inline std::uint32_t begin_epoch() {
  constexpr std::uint32_t block = 1 << 12;
  static std::atomic<std::uint32_t> blocks{0};
  std::uint32_t& next = next_epoch_of_thread;
  // Below a transform of another thread, which lent its stack, they ascend too.
  bool const behind = static_cast<std::int32_t>(next - this_thread_epoch) <= 0;
  if (next % block == 0 || behind) next = blocks.fetch_add(1, std::memory_order_relaxed) * block + 1;
  return this_thread_epoch = next++;
}
} // namespace detail

/// Memory shared by a tensor and its views, with their version counter that in-place operators raise (DT-1, DT-2).
struct storage {
  detail::reference_count refs;
  std::uint32_t version = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
  /// Lies inside a tensor's block, which lives as long as the storage.
  bool embedded = false;
  /// Belongs to somebody else, who frees it.
  bool borrowed = false;
  /// A trace runs on it in place of another (`memory_stand_ins`).
  bool stands_in = false;
  /// Is a `released_storage`.
  bool releases = false;
  /// When it was made.
  std::uint32_t epoch = this_thread_epoch;
  /// Who wants to know when it is freed; null as a rule.
  storage_observer* observer = nullptr;

  void allocate(std::size_t n) {
    data = detail::take_data(n);
    bytes = n;
  }
  static constexpr std::size_t block = 64; // as blocks of nodes
  static void* operator new(std::size_t) { return detail::take_block<block>(); }
  static void operator delete(void* p) { detail::give_block<block>(p); }
};
static_assert(sizeof(storage) <= storage::block);

/// Memory of somebody else, who is told when nobody needs it any more.
struct released_storage : storage {
  void (*release)(void* owner) = nullptr;
  void* owner = nullptr;
};
static_assert(sizeof(released_storage) <= storage::block);

namespace detail {
inline void tell_allocated(storage* s) {
  if (!this_thread_storage_observer) [[likely]]
    return;
  s->observer = this_thread_storage_observer;
  s->observer->allocated(*s->observer, s->bytes);
}
inline void tell_freed(storage* s) {
  if (s->observer) [[unlikely]]
    s->observer->freed(*s->observer, s->bytes);
}
} // namespace detail

} // namespace varve
