// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/config.hpp>

#include <cstddef>
#include <new>

/// @file
/// Memory for the elements of tensors, aligned to 64 bytes. A thread keeps memory that it frees and reuses it. An
/// aligned allocation takes longer than a small operator, and large ones are pages that the system takes back and
/// clears again.
namespace varve {

namespace detail {
/// The memory freed by this thread, by size: four classes for each power of two, from 80 bytes to `greatest`. Trivially
/// destructible, so that access needs no guard.
struct data_memory {
  static constexpr std::size_t most = std::size_t{1} << 27;     // total bytes kept
  static constexpr std::size_t greatest = std::size_t{1} << 26; // bytes of the largest piece that is kept
  static constexpr int classes = 80;
  void* first[classes] = {};
  std::size_t bytes = 0;
  bool adopted = false, ended = false; // an owner frees everything at the end of the thread
  static constexpr int class_of(std::size_t n) {
    std::size_t const last = n <= 65 ? 64 : n - 1;
    int const power = 63 - __builtin_clzll(last);
    return (power - 6) * 4 + static_cast<int>(last >> (power - 2) & 3);
  }
  static constexpr std::size_t bytes_of(int k) { return static_cast<std::size_t>(5 + k % 4) << (k / 4 + 4); }
};
static_assert(data_memory::bytes_of(data_memory::class_of(data_memory::greatest)) == data_memory::greatest &&
              data_memory::class_of(data_memory::greatest) == data_memory::classes - 1);
inline constinit thread_local data_memory this_thread_data{};

/// Returns memory for `n` bytes of elements; throws `std::bad_alloc`. Return it with the same `n`, on any thread.
void* take_data(std::size_t n);
void give_data(void* p, std::size_t n) noexcept;
} // namespace detail

/// Frees the tensor memory that the calling thread keeps for reuse: up to 128 MiB, in pieces of up to 64 MiB. The
/// memory is also freed when the thread ends, and when an allocation of the thread fails otherwise.
void release_memory();

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
struct data_memory_owner {
  ~data_memory_owner() {
    release_memory();
    this_thread_data.ended = true;
  }
};
VARVE_COLD VARVE_LIBRARY void adopt_data_memory() {
  thread_local data_memory_owner owner;
  (void)owner;
  this_thread_data.adopted = true;
}
/// Frees kept pieces of other classes, the largest first, until a piece of class `k` fits. Returns false if that is not
/// possible.
VARVE_COLD VARVE_LIBRARY bool make_room(int k) {
  data_memory& m = this_thread_data;
  for (int other = data_memory::classes - 1; other >= 0; --other)
    while (other != k && m.first[other]) {
      void* const p = m.first[other];
      m.first[other] = *static_cast<void**>(p);
      ::operator delete(p, std::align_val_t{64});
      m.bytes -= data_memory::bytes_of(other);
      if (m.bytes + data_memory::bytes_of(k) <= data_memory::most) return true;
    }
  return false;
}
/// Allocates memory from the system. If that fails, frees the memory that this thread keeps and tries again.
VARVE_NOINLINE VARVE_LIBRARY void* new_data(std::size_t n) {
  if (void* const p = ::operator new(n, std::align_val_t{64}, std::nothrow)) [[likely]]
    return p;
  release_memory();
  return ::operator new(n, std::align_val_t{64});
}
VARVE_LIBRARY void* take_data(std::size_t n) {
  if (!VARVE_RECYCLE_BLOCKS || n > data_memory::greatest) return new_data(n);
  int const k = data_memory::class_of(n);
  data_memory& m = this_thread_data;
  if (void* const p = m.first[k]) [[likely]] {
    m.first[k] = *static_cast<void**>(p);
    m.bytes -= data_memory::bytes_of(k);
    return p;
  }
  return new_data(data_memory::bytes_of(k));
}
VARVE_LIBRARY void give_data(void* p, std::size_t n) noexcept {
  data_memory& m = this_thread_data;
  if (!VARVE_RECYCLE_BLOCKS || n > data_memory::greatest || m.ended) [[unlikely]]
    return ::operator delete(p, std::align_val_t{64});
  if (!m.adopted) [[unlikely]]
    adopt_data_memory();
  int const k = data_memory::class_of(n);
  if (m.bytes + data_memory::bytes_of(k) > data_memory::most && !make_room(k)) [[unlikely]]
    return ::operator delete(p, std::align_val_t{64});
  *static_cast<void**>(p) = m.first[k];
  m.first[k] = p;
  m.bytes += data_memory::bytes_of(k);
}
} // namespace varve::detail
namespace varve {
VARVE_LIBRARY void release_memory() {
  detail::data_memory& m = detail::this_thread_data;
  for (void*& first : m.first)
    while (first) {
      void* const next = *static_cast<void**>(first);
      ::operator delete(first, std::align_val_t{64});
      first = next;
    }
  m.bytes = 0;
}
} // namespace varve
#endif
