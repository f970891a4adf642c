// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/strided.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace varve::mpi::detail {

/// Contiguous elements for MPI: in place if they are contiguous, else a copy. Calls on bool are compiled, though
/// refused at run time. Copies of bools use bytes, since `std::vector<bool>` is not contiguous.
template <class T>
class row {
  using element =
      std::conditional_t<std::is_same_v<std::remove_const_t<T>, bool>, std::uint8_t, std::remove_const_t<T>>;

public:
  explicit row(strided<T> const& x) : of_(x), size_(static_cast<std::size_t>(numel(x.sizes))) {
    in_place_ = layout{x.sizes, x.strides, 0, true}.contiguous() && sizeof(T) == sizeof(element);
    if (in_place_) return;
    copy_.reserve(size_);
    for_each_index(x.sizes, [&](dims const& i) { copy_.push_back(static_cast<element>(x.at(i))); });
  }
  std::size_t size() const { return size_; }
  auto* data() {
    if constexpr (std::is_const_v<T>) return static_cast<void const*>(in_place_ ? pointer() : copy_.data());
    else return static_cast<void*>(in_place_ ? pointer() : copy_.data());
  }
  /// Copies the written elements back to their places.
  void finish() {
    if (in_place_) return;
    std::size_t k = 0;
    for_each_index(of_.sizes, [&](dims const& i) { of_.at(i) = static_cast<T>(copy_[k++]); });
  }

private:
  auto* pointer() const {
    if constexpr (std::is_const_v<T>) return static_cast<void const*>(of_.data);
    else return static_cast<void*>(of_.data);
  }
  strided<T> of_;
  std::size_t size_;
  std::vector<element> copy_;
  bool in_place_ = false;
};

/// Calls `f(elements of x, elements of the result)` with both contiguous. They may have different sizes.
template <class R, class T, class F>
void on_rows(strided<R> const& out, strided<T const> const& x, F const& f) {
  row<T const> from(x);
  row<R> to(out);
  f(from, to);
  to.finish();
}

} // namespace varve::mpi::detail
