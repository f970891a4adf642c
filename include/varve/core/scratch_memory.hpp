// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <cstddef>
#include <new>

/// @file
/// Scratch memory of a thread, for temporaries whose sizes are known only when a program runs.
///
/// The memory grows and is kept. Nested calls take their blocks from it as from a stack.
namespace varve::fusion {

namespace detail {
/// A piece of memory from which blocks are taken one after the other.
struct alignas(64) scratch_chunk {
  scratch_chunk* below;
  std::size_t room, used;

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  static scratch_chunk* make(std::size_t room, scratch_chunk* below) {
    return new (::operator new(sizeof(scratch_chunk) + room, std::align_val_t{64})) scratch_chunk{below, room, 0};
  }
  static void free(scratch_chunk* c) { ::operator delete(static_cast<void*>(c), std::align_val_t{64}); }
};
/// The chunks of this thread, newest first. Only the newest is kept while no block is in use.
struct scratch_chunks {
  scratch_chunk* top = nullptr;
  bool ended = false; // the thread is ending, so no chunk is kept
};
inline constinit thread_local scratch_chunks this_thread_scratch{};

struct scratch_owner {
  ~scratch_owner() {
    scratch_chunks& all = this_thread_scratch;
    all.ended = true;
    if (all.top && all.top->used == 0) scratch_chunk::free(all.top), all.top = nullptr;
  }
};
/// Adds a chunk that is at least twice as large as the newest one.
VARVE_COLD inline void grow_scratch(std::size_t bytes) {
  thread_local scratch_owner owner;
  (void)owner;
  scratch_chunks& all = this_thread_scratch;
  std::size_t room = std::size_t{1} << 16;
  if (all.top) room = 2 * all.top->room;
  while (room < bytes) room *= 2;
  scratch_chunk* const fresh = scratch_chunk::make(room, all.top);
  if (all.top && all.top->used == 0) fresh->below = all.top->below, scratch_chunk::free(all.top);
  all.top = fresh;
}
} // namespace detail

/// A block of the thread's scratch memory, aligned to 64 bytes. It is valid as long as the object lives. Blocks of one
/// thread must nest, as calls do. Memory is allocated (`std::bad_alloc`) only when a thread needs more than ever
/// before, and is kept until the thread ends.
class scratch_block {
public:
  explicit scratch_block(std::size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    detail::scratch_chunks& all = detail::this_thread_scratch;
    if (!all.top || all.top->room - all.top->used < bytes) [[unlikely]]
      detail::grow_scratch(bytes);
    chunk_ = all.top, begin_ = chunk_->used;
    chunk_->used += bytes;
  }
  ~scratch_block() {
    chunk_->used = begin_;
    if (begin_ == 0 &&
        (chunk_->below || detail::this_thread_scratch.top != chunk_ || detail::this_thread_scratch.ended)) [[unlikely]]
      tidy();
  }
  scratch_block(scratch_block const&) = delete;
  scratch_block& operator=(scratch_block const&) = delete;
  std::byte* data() const { return chunk_->data() + begin_; }

private:
  /// Frees the empty chunks below the newest one.
  VARVE_COLD static void tidy() {
    detail::scratch_chunks& all = detail::this_thread_scratch;
    for (detail::scratch_chunk** at = &all.top->below; *at;) {
      detail::scratch_chunk* const c = *at;
      if (c->used == 0) *at = c->below, detail::scratch_chunk::free(c);
      else at = &c->below;
    }
    if (all.ended && all.top->used == 0) {
      detail::scratch_chunk* const last = all.top;
      all.top = last->below;
      detail::scratch_chunk::free(last);
    }
  }
  detail::scratch_chunk* chunk_;
  std::size_t begin_;
};

/// The most bytes of temporaries that lie on the stack. Programs that need more use the thread's scratch memory,
/// because stacks end at a few megabytes, without an error message.
inline constexpr std::size_t most_on_stack = std::size_t{1} << 18;
/// Uninitialized memory for temporaries of a size known at compile time, aligned to 64 bytes.
template <std::size_t Bytes, bool = (Bytes > most_on_stack)>
class temporaries {
public:
  std::byte* data() { return memory_; }

private:
  alignas(64) std::byte memory_[Bytes > 0 ? Bytes : 1];
};
template <std::size_t Bytes>
class temporaries<Bytes, true> {
public:
  std::byte* data() { return block_.data(); }

private:
  scratch_block block_{Bytes};
};

} // namespace varve::fusion
