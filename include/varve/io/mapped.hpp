// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/file_bytes.hpp>
#include <varve/value/tensor_of_bytes.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#if __has_include(<sys/mman.h>)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

/// @file
/// Tensors on mapped files, which are read only where they are accessed: `load_npy(path, mapped)`.
namespace varve {

/// A tag that makes functions map a file into memory instead of copying it. Only the parts that are accessed are read,
/// and programs on one machine share them. Writes to the tensors stay in this process and never reach the file.
///
/// The file stays mapped while any tensor on it lives. Until then it must not be written or made shorter: accessing
/// removed parts crashes the program. As without `mapped`, misaligned elements are copied, and so are files that cannot
/// be mapped: pipes, and all files on platforms without `mmap`.
struct mapped_t {};
/// A value of type `mapped_t`, to be passed to functions that load files.
inline constexpr mapped_t mapped{};

namespace detail {
/// The bytes of a mapped file, or a copy of them, with a count of the owners.
struct file_memory {
  reference_count owners;
  void* at = nullptr; // the mapping, or null
  std::size_t size = 0;
  std::string copy;

  std::string_view bytes() const { return at ? std::string_view(static_cast<char const*>(at), size) : copy; }
  static void release(void* memory) {
    auto* const m = static_cast<file_memory*>(memory);
    if (!m->owners.drop()) return;
#if __has_include(<sys/mman.h>)
    if (m->at) ::munmap(m->at, m->size);
#endif
    delete m;
  }
  /// Maps the file so that writes stay in this process. Returns false if it cannot be mapped.
  bool map([[maybe_unused]] std::string const& path) {
#if __has_include(<sys/mman.h>)
    struct ::stat about{};
    // A pipe must not even be opened: whoever waits to write to it would write what nobody reads.
    if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
    int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
      size = static_cast<std::size_t>(about.st_size);
      void* const p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
      if (p != MAP_FAILED) at = p;
    }
    ::close(file);
#endif
    return at != nullptr;
  }
};

/// Makes tensors on the bytes of a file. Each tensor keeps the whole file mapped.
class mapped_file {
public:
  static constexpr bool in_place = true;
  mapped_file(char const* reader, std::string const& path) : memory_(new file_memory, file_memory::release) {
    if (!memory_->map(path)) memory_->copy = bytes_of_file(reader, path);
  }
  std::string_view bytes() const { return memory_->bytes(); }
  /// True if `p` points into the mapped file.
  bool holds(void const* p) const {
    auto const at = reinterpret_cast<std::uintptr_t>(p), first = reinterpret_cast<std::uintptr_t>(memory_->at);
    return memory_->at && at >= first && at - first < memory_->size;
  }
  tensor operator()(std::string_view part, dims const& sizes, dtype type) const {
    auto* const first = const_cast<char*>(part.data());
    auto const across = reinterpret_cast<std::uintptr_t>(first) % static_cast<std::uintptr_t>(itemsize(type));
    if (part.empty() || !holds(first) || across) return copy_of_bytes<tensor>{}(part, sizes, type);
    if (type == dtype::bool_) make_bools(reinterpret_cast<unsigned char*>(first), part.size());
    memory_->owners.add();
    owner one_more(memory_.get(), file_memory::release);
    tensor r = tensor::from_blob(first, sizes, contiguous_strides(sizes), type, file_memory::release, memory_.get());
    (void)one_more.release();
    return r;
  }

private:
  using owner = std::unique_ptr<file_memory, void (*)(void*)>;
  owner memory_;
};
} // namespace detail

} // namespace varve

#pragma GCC diagnostic pop
