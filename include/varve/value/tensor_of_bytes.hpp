// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/value/tensor.hpp>

#include <cstring>
#include <string_view>

/// @file
/// Tensors made from the bytes in a file.
namespace varve::detail {

/// Replaces bytes other than 0 and 1, which are no valid C++ bools, by 1. Bytes that are valid are not written.
inline void make_bools(unsigned char* bytes, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k)
    if (bytes[k] > 1) bytes[k] = 1;
}
/// A function that makes a row-major tensor from the bytes of its elements, whose number must match the shape. This one
/// copies the bytes. One with `in_place` uses them where they are, if it can (`io/mapped.hpp`).
template <class T>
struct copy_of_bytes {
  static constexpr bool in_place = false;
  T operator()(std::string_view bytes, dims const& sizes, dtype type) const {
    T const t = T::empty(sizes, type);
    if (!bytes.empty()) std::memcpy(t.raw(), bytes.data(), bytes.size());
    if (type == dtype::bool_) make_bools(static_cast<unsigned char*>(t.raw()), bytes.size());
    return t;
  }
};

} // namespace varve::detail

#pragma GCC diagnostic pop
