// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Tensors for tests: made in any memory layout, read element by element without the library's kernels, and compared.
#include <varve/op/create.hpp>
#include <varve/value/tensor.hpp>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

namespace sample {
using varve::dims;
using varve::dtype;
using varve::index_t;
using varve::tensor;
using values = std::vector<tensor>;

/// How the elements of a made tensor lie in memory.
enum class memory { row_major, transposed, stepped };

/// Element at a row-major position, as a number.
inline double element(tensor const& t, index_t position) {
  index_t offset = 0;
  for (int k = t.dim() - 1; k >= 0; --k) {
    offset += position % t.sizes()[k] * t.strides()[k];
    position /= t.sizes()[k];
  }
  return varve::detail::on_stored_dtype(
      t.dtype(), "test", [&]<class T>() { return static_cast<double>(static_cast<T const*>(t.raw())[offset]); });
}
inline void set(tensor const& t, index_t position, double v) {
  index_t offset = 0;
  for (int k = t.dim() - 1; k >= 0; --k) {
    offset += position % t.sizes()[k] * t.strides()[k];
    position /= t.sizes()[k];
  }
  varve::detail::on_stored_dtype(t.dtype(), "test",
                                 [&]<class T>() { static_cast<T*>(t.raw())[offset] = static_cast<T>(v); });
}
inline std::vector<double> elements(tensor const& t) {
  std::vector<double> r;
  for (index_t k = 0; k < t.numel(); ++k) r.push_back(element(t, k));
  return r;
}

/// A tensor of a shape in a memory layout; the elements are not set.
inline tensor blank(dims const& sizes, dtype type, memory m = memory::row_major) {
  if (m == memory::row_major || sizes.n == 0) return tensor::empty(sizes, type);
  dims outer = sizes;
  varve::layout l = varve::contiguous_layout(sizes);
  if (m == memory::transposed) {
    for (int k = 0; k < sizes.n; ++k) outer[k] = sizes[sizes.n - 1 - k];
    dims const strides = varve::contiguous_strides(outer);
    for (int k = 0; k < sizes.n; ++k) l.strides[k] = strides[sizes.n - 1 - k];
  } else { // every second element of each dimension, beginning at the second
    for (int k = 0; k < sizes.n; ++k) outer[k] = 2 * sizes[k] + 1;
    dims const strides = varve::contiguous_strides(outer);
    for (int k = 0; k < sizes.n; ++k) {
      l.strides[k] = 2 * strides[k];
      l.offset += strides[k];
    }
  }
  return tensor::empty(outer, type).with_layout(l);
}
inline tensor from(std::vector<double> const& v, dims const& sizes, dtype type = dtype::float64,
                   memory m = memory::row_major) {
  tensor r = blank(sizes, type, m);
  for (index_t k = 0; k < r.numel(); ++k) set(r, k, v.at(static_cast<std::size_t>(k)));
  return r;
}

/// Reproducible numbers in [0, 1).
struct numbers {
  std::uint64_t state;
  explicit numbers(std::uint64_t seed) : state(seed * 0x9E3779B97F4A7C15u + 1) {}
  double operator()() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};
inline tensor uniform(dims const& sizes, numbers& draw, double low = -1, double high = 1, dtype type = dtype::float64,
                      memory m = memory::row_major) {
  tensor r = blank(sizes, type, m);
  for (index_t k = 0; k < r.numel(); ++k) set(r, k, low + (high - low) * draw());
  return r;
}

/// Doubles as a vector, for comparisons with `elements`, and as a tensor of rank 1.
inline std::vector<double> doubles(std::initializer_list<double> v) { return v; }
inline tensor vector_of(std::initializer_list<double> v) {
  return from(v, {static_cast<index_t>(v.size())}, dtype::float64);
}

/// Slice `i` of dimension `axis`, copied.
inline tensor slice_of(tensor const& t, int axis, index_t i) {
  dims s = t.sizes(), strides = t.strides();
  varve::layout l{s.erase(axis), strides.erase(axis), t.where().offset + i * t.strides()[axis], true};
  tensor const part = t.with_layout(l);
  return from(elements(part), part.sizes(), t.dtype());
}

/// a + scale * b, element by element.
inline tensor axpy(tensor const& a, double scale, tensor const& b) {
  tensor r = blank(a.sizes(), a.dtype());
  for (index_t k = 0; k < a.numel(); ++k) set(r, k, element(a, k) + scale * element(b, k));
  return r;
}
inline double inner(tensor const& a, tensor const& b) {
  double s = 0;
  for (index_t k = 0; k < a.numel(); ++k) s += element(a, k) * element(b, k);
  return s;
}

inline bool close(double a, double b, double tolerance) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * (1 + std::abs(a) + std::abs(b));
}
/// Empty when two tensors agree in dtype, shape and elements; else what differs.
inline std::string difference(tensor const& a, tensor const& b, double tolerance = 0) {
  std::ostringstream s;
  if (a.dtype() != b.dtype()) s << varve::name(a.dtype()) << " instead of " << varve::name(b.dtype());
  else if (!(a.sizes() == b.sizes())) s << varve::to_string(a.sizes()) << " instead of " << varve::to_string(b.sizes());
  else
    for (index_t k = 0; k < a.numel(); ++k)
      if (!close(element(a, k), element(b, k), tolerance)) {
        s << "element " << k << " is " << element(a, k) << " instead of " << element(b, k);
        break;
      }
  return s.str();
}
/// 0, 1, 2, ... in a shape.
inline tensor counted(dims const& sizes) {
  tensor r = blank(sizes, dtype::float64);
  for (index_t k = 0; k < r.numel(); ++k) set(r, k, static_cast<double>(k));
  return r;
}
} // namespace sample
