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
/// The number of owners, shared between threads.
struct reference_count {
  std::atomic<std::uint32_t> n{1};
  VARVE_INLINE void add() {
    if (single_threaded()) n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else n.fetch_add(1, std::memory_order_relaxed);
  }
  /// Removes an owner. Returns true if it was the last one.
  bool drop() {
    if (single_threaded()) {
      auto const left = n.load(std::memory_order_relaxed) - 1;
      n.store(left, std::memory_order_relaxed);
      return left == 0;
    }
    return n.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
};

/// Bytes of a tensor's block. Small tensors store their data inside the block.
inline constexpr std::size_t block_bytes = 320;

/// Blocks of one size that this thread has freed and will use again. Trivially destructible, so that access needs no
/// guard.
struct block_list {
  static constexpr int most = 4096;
  void* first = nullptr;
  int room = 0;         // free places in the list; 0 until it is adopted and when the thread is ending
  bool adopted = false; // an owner will free the blocks at the end of the thread
};
template <std::size_t Bytes>
inline constinit thread_local block_list free_blocks{};

/// Allocates a block. Blocks of tensors are aligned for SIMD kernels; for smaller ones the alignment of `new` is
/// enough.
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
/// A thread-local object that frees the blocks when the thread ends.
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
/// Puts a new block into the list, for callers that take blocks only from there.
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

/// An observer of tensor memory. It is called for each allocation of the thread on which it is set, and when that
/// memory is freed, on any thread. `memory_tracker_mode` uses it.
struct storage_observer {
  void (*allocated)(storage_observer& self, std::size_t bytes) = nullptr;
  void (*freed)(storage_observer& self, std::size_t bytes) = nullptr;
};
/// The observer of this thread's allocations; normally null.
inline constinit thread_local storage_observer* this_thread_storage_observer = nullptr;

/// True while this thread is in inference mode. Tensors made then never have a version counter or a history.
inline constinit thread_local bool this_thread_inference = false;

/// The number of the transform that this thread began last. It distinguishes what was made before a transform from what
/// is made while it runs. Numbers are unique across threads, and they ascend on each thread.
inline constinit thread_local std::uint32_t this_thread_epoch = 0;
namespace detail {
/// The next number that this thread may use, from a block of numbers that belongs to this thread alone.
inline constinit thread_local std::uint32_t next_epoch_of_thread = 0;
inline std::uint32_t begin_epoch() {
  constexpr std::uint32_t block = 1 << 12;
  static std::atomic<std::uint32_t> blocks{0};
  std::uint32_t& next = next_epoch_of_thread;
  // They also ascend below a transform of another thread that lent its stack.
  bool const behind = static_cast<std::int32_t>(next - this_thread_epoch) <= 0;
  if (next % block == 0 || behind) next = blocks.fetch_add(1, std::memory_order_relaxed) * block + 1;
  return this_thread_epoch = next++;
}
} // namespace detail

/// The memory shared by a tensor and its views, with the version counter that in-place operators raise.
struct storage {
  detail::reference_count refs;
  std::uint32_t version = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
  /// True if the data lie inside a tensor's block, which lives as long as the storage.
  bool embedded = false;
  /// True if the memory belongs to an owner outside the library, who frees it.
  bool borrowed = false;
  /// True if a trace runs on this memory in place of another (`memory_stand_ins`).
  bool stands_in = false;
  /// True if this is a `released_storage`.
  bool releases = false;
  /// The epoch in which it was made.
  std::uint32_t epoch = this_thread_epoch;
  /// The observer to call when the memory is freed; normally null.
  storage_observer* observer = nullptr;

  void allocate(std::size_t n) {
    data = detail::take_data(n);
    bytes = n;
  }
  static constexpr std::size_t block = 64; // the size of blocks of nodes too
  static void* operator new(std::size_t) { return detail::take_block<block>(); }
  static void operator delete(void* p) { detail::give_block<block>(p); }
};
static_assert(sizeof(storage) <= storage::block);

/// Foreign memory with a function that is called when no tensor uses it any more.
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
