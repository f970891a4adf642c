// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/op/all.hpp>

#if __has_include(<dlpack/dlpack.h>)
#include <cstdint>
#include <dlpack/dlpack.h>
#include <memory>
#endif

/// @file
/// Exchange of tensors with NumPy, PyTorch, JAX and others without a copy, through DLPack (Debian: libdlpack-dev). It
/// uses `DLManagedTensor`, the unversioned form. If DLPack's header is not installed, this header declares nothing.
namespace varve {

#if __has_include(<dlpack/dlpack.h>)
namespace detail {
/// The DLPack type of every dtype. 6 is DLPack's bool, which older headers do not name.
inline constexpr struct dlpack_type {
  dtype type;
  std::uint8_t code, bits;
} dlpack_types[] = {
    {dtype::bool_, 6, 8},           {dtype::uint8, kDLUInt, 8},         {dtype::int8, kDLInt, 8},
    {dtype::int16, kDLInt, 16},     {dtype::int32, kDLInt, 32},         {dtype::int64, kDLInt, 64},
    {dtype::float16, kDLFloat, 16}, {dtype::bfloat16, kDLBfloat, 16},   {dtype::float32, kDLFloat, 32},
    {dtype::float64, kDLFloat, 64}, {dtype::complex64, kDLComplex, 64}, {dtype::complex128, kDLComplex, 128}};
[[noreturn]] inline void refuse_dlpack(std::string const& what) {
  refuse::with<value_error>(("varve: from_dlpack: " + what).c_str());
}
inline dtype dtype_of_dlpack(DLDataType t) {
  for (auto const& known : dlpack_types)
    if (t.lanes == 1 && t.code == known.code && t.bits == known.bits) return known.type;
  refuse::with<dtype_error>(("varve: from_dlpack: elements of type code " + std::to_string(t.code) + ", " +
                             std::to_string(t.bits) + " bits and " + std::to_string(t.lanes) + " lanes are not known")
                                .c_str());
}
/// Returns the sizes and strides of a foreign tensor, after checking them.
inline layout layout_of_dlpack(DLTensor const& t, dtype type) {
  constexpr std::int64_t most = std::int64_t{1} << 60; // beyond any memory
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape))
    refuse_dlpack("there are no sizes for " + std::to_string(t.ndim) + " axes");
  if (t.ndim > max_rank) refuse::rank_exceeds_eight_dimensions(t.ndim);
  layout l{};
  bool empty = false;
  for (int k = 0; k < t.ndim; ++k) {
    if (t.shape[k] < 0 || t.shape[k] > most)
      refuse_dlpack("axis " + std::to_string(k) + " has the size " + std::to_string(t.shape[k]));
    l.sizes.push_back(t.shape[k]);
    empty = empty || t.shape[k] == 0;
  }
  std::int64_t last = 0, n = 1;
  bool fits = true;
  for (int k = 0; k < t.ndim; ++k) fits = fits && (empty || !__builtin_mul_overflow(n, t.shape[k], &n));
  if (!fits || (!empty && n > most / itemsize(type)))
    refuse_dlpack("the shape " + to_string(l.sizes) + " has no memory");
  l.strides = contiguous_strides(l.sizes);
  for (int k = 0; t.strides && k < t.ndim; ++k) {
    std::int64_t const step = t.strides[k];
    if (step < 0 && t.shape[k] > 1)
      refuse_dlpack("axis " + std::to_string(k) + " has the stride " + std::to_string(step) +
                    "; negative ones are not supported, so copy it first");
    l.strides[k] = t.shape[k] > 1 ? step : index_t(l.strides[k]);
    std::int64_t span = 0;
    if (!empty && t.shape[k] > 1 &&
        (__builtin_mul_overflow(step, t.shape[k] - 1, &span) || __builtin_add_overflow(last, span, &last) ||
         last > most / itemsize(type)))
      refuse_dlpack("axis " + std::to_string(k) + " has the stride " + std::to_string(step) + ", beyond any memory");
  }
  return l;
}
} // namespace detail

/// Returns a tensor on the memory of another library, and takes ownership: the deleter runs once, when no tensor uses
/// the memory any longer. Writes are visible on both sides, but writes by the other library do not increase version
/// counters. Throws `value_error` for devices other than the CPU and for negative strides, `dtype_error` or
/// `rank_error`. If it throws, ownership stays with the caller.
template <std::same_as<tensor> T = tensor>
T from_dlpack(DLManagedTensor* managed) {
  if (!managed) detail::refuse_dlpack("there is no tensor");
  DLTensor const& t = managed->dl_tensor;
  if (t.device.device_type != kDLCPU)
    detail::refuse_dlpack("it lies on the device of type " + std::to_string(static_cast<int>(t.device.device_type)) +
                          "; bring it to the CPU first");
  dtype const type = detail::dtype_of_dlpack(t.dtype);
  layout const l = detail::layout_of_dlpack(t, type);
  bool const empty = numel(l.sizes) == 0;
  if (!t.data && !empty) detail::refuse_dlpack("there is no memory for the shape " + to_string(l.sizes));
  void* const data = t.data ? static_cast<unsigned char*>(t.data) + t.byte_offset : nullptr;
  auto const unit = static_cast<std::uintptr_t>(category(type) == 3 ? itemsize(type) / 2 : itemsize(type));
  if (!empty && reinterpret_cast<std::uintptr_t>(data) % unit != 0)
    detail::refuse_dlpack("its elements lie across their alignment, at offset " + std::to_string(t.byte_offset));
  return T::from_blob(
      data, l.sizes, l.strides, type,
      [](void* owner) {
        auto* const m = static_cast<DLManagedTensor*>(owner);
        if (m->deleter) m->deleter(m);
      },
      managed);
}

/// Returns a tensor for another library, which must call the deleter when it is done. The memory lives until then;
/// strides and offset are those of the tensor. Throws `autograd_error` if the tensor requires a gradient, because
/// autograd would not notice writes: use `to_dlpack(x.detach())`. Throws `transform_error` for values that a transform
/// wraps.
template <std::same_as<tensor> T>
DLManagedTensor* to_dlpack(T const& x) {
  if (x.has_history())
    refuse::with<autograd_error>(
        "varve: to_dlpack: the tensor requires a gradient, which others do not see; export x.detach()");
  struct exported {
    DLManagedTensor managed{};
    std::int64_t sizes[max_rank]{}, strides[max_rank]{};
    T x;
  };
  auto e = std::make_unique<exported>();
  e->x = x;
  DLTensor& t = e->managed.dl_tensor;
  t.data = x.raw();
  t.device.device_type = kDLCPU;
  t.ndim = x.dim();
  for (auto const& known : detail::dlpack_types)
    if (known.type == x.dtype()) t.dtype.code = known.code, t.dtype.bits = known.bits;
  t.dtype.lanes = 1;
  for (int k = 0; k < x.dim(); ++k) e->sizes[k] = x.sizes()[k].number(), e->strides[k] = x.strides()[k].number();
  t.shape = e->sizes, t.strides = e->strides;
  e->managed.manager_ctx = e.get();
  e->managed.deleter = [](DLManagedTensor* self) { delete static_cast<exported*>(self->manager_ctx); };
  return &e.release()->managed;
}
#endif

} // namespace varve

#pragma GCC diagnostic pop
