// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/mode_guard.hpp>
#include <varve/value/tensor.hpp>

#include <memory>
#include <string>
#include <vector>

/// @file
/// Fake tensors have the shape, dtype, layout, backend and aliasing of a tensor, but no data. `fake_mode` makes them
/// and runs operators on them.
///
/// A fake tensor is a tensor of the subclass `fake_tensor`. Its handle stores the layout. The object behind it
/// represents the *memory* and is shared by all aliases.
namespace varve {

class fake_mode;

namespace detail {
struct fake_state;

/// The object that represents a memory. Its elements may be known in two cases. A literal has few elements and was
/// never written. A constant has one element, which may have been written with known values.
struct fake_memory final : subclass_object {
  std::shared_ptr<fake_state> of;
  std::size_t bytes;
  std::size_t number; // index among the memories of the mode
  tensor value;       // in memory, contiguous; undefined if unknown
  tensor met;         // elements in one run, contiguous; undefined if unknown (`value_follower`)

  fake_memory(std::shared_ptr<fake_state> s, std::size_t n, tensor v);
  // inline here, else each unit that defines the first one has the table of virtual functions
  inline ~fake_memory() override;
  inline subclass_type const& type() const override;
  void const* address() const override { return this; }
  int inner_count() const override { return 0; }
  tensor const& inner(int) const override { return value; }
  inline tensor constant(tensor const& t) const override;
  inline extent const* symbol_of(tensor const& t) const override;
  inline tensor in_its_mode(tensor (*make)(void const*), void const* f) const override;
  inline tensor either(tensor const& a, tensor const& b) const override;
  inline tensor rebuilt(tensor const*) const override;

  static fake_memory& of_tensor(tensor const& t) { return *static_cast<fake_memory*>(t.object()); }
};
tensor run_on_fakes(boxed_op const& op, boxed_args const& x);
/// True if there is at most one element, whatever the values of symbols.
inline bool has_one_element(dims const& sizes) {
  index_t n = 1;
  for (extent const s : sizes) {
    if (!s.is_number()) return false;
    n *= s.bits;
  }
  return n <= 1;
}
inline constexpr subclass_type fake_tensor_type{"fake_tensor", nullptr, &run_on_fakes};
} // namespace detail

/// True for a fake tensor of any mode.
inline bool is_fake(tensor const& t) {
  return t.defined() && t.object() && &t.object()->type() == &detail::fake_tensor_type;
}
/// Returns the only element of a fake tensor, as a tensor in memory; undefined if it is not known.
inline tensor constant_of(tensor const& t) {
  if (!is_fake(t)) return {};
  tensor const& v = detail::fake_memory::of_tensor(t).value;
  return v.defined() && v.numel() <= 1 && detail::has_one_element(t.sizes()) ? v.with_layout(t.where(), false)
                                                                             : tensor();
}

} // namespace varve
