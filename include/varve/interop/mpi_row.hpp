// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/strided.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace varve::mpi::detail {

/// Elements in a row, as MPI wants them: where they lie, if they lie so, else a copy. (Calls on truth values are
/// compiled and refused; a vector of them is no row.)
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
  /// Puts what was written to where it belongs.
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

/// `f(elements of x, those of the result)`, both in a row; x and result have their own sizes.
template <class R, class T, class F>
void on_rows(strided<R> const& out, strided<T const> const& x, F const& f) {
  row<T const> from(x);
  row<R> to(out);
  f(from, to);
  to.finish();
}

} // namespace varve::mpi::detail
