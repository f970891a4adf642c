// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/composite/index_select.hpp>
#include <varve/core/tree.hpp>
#include <varve/op/randn.hpp>
#include <varve/op/slice.hpp>

#include <iterator>
#include <vector>

namespace varve::optim {

namespace detail {
/// Returns the number of rows, and throws if the values of the tree differ in it.
template <class Tree>
constexpr index_t common_rows(Tree const& data) {
  index_t rows = -1;
  tree_for_each(
      [&](auto const& x) {
        dims const s = to_dims(shape_of(x));
        if (s.n == 0) refuse::argument_is_invalid("batches", "a value of rank 0 has no rows");
        if (rows >= 0 && s[0] != rows) refuse::shapes_do_not_match("batches", s, dims{rows});
        rows = s[0].number();
      },
      data);
  return rows < 0 ? 0 : rows;
}
/// Returns consecutive rows in the given order, beginning with row `from`. There are `Size` rows if it is positive, so
/// that their number is part of the type, else `count` rows.
template <index_t Size, class X>
constexpr auto rows_of(X const& x, std::vector<index_t> const& order, index_t from, index_t count) {
  if constexpr (Size > 0) {
    array<std::int64_t, Size> at{};
    for (index_t k = 0; k < Size; ++k)
      at.data[k] = order.empty() ? from + k : order[static_cast<std::size_t>(from + k)];
    return index_select(x, axis<0>, at);
  } else {
    if (order.empty()) return slice(x, axis<0>, from, from + count); // a view
    return index_select(x, axis<0>, X::from_data(order.data() + from, dims{count}));
  }
}
} // namespace detail

/// Returns the numbers 0, ..., n - 1 in random order, each order equally likely, and advances the generator
/// (`torch.randperm`).
constexpr std::vector<index_t> shuffled_indices(index_t n, generator& g) {
  std::vector<index_t> r(static_cast<std::size_t>(n));
  for (index_t k = 0; k < n; ++k) r[static_cast<std::size_t>(k)] = k;
  for (index_t k = n; k-- > 1;) {
    // a separate stream: random values use the same seeds
    auto const block = kernel::philox(g.seed, g.offset++, 0x62617463);
    std::uint64_t const word = std::uint64_t{block.v[0]} << 32 | block.v[1], many = static_cast<std::uint64_t>(k) + 1;
    // The high half of word * many is uniform below many, up to a bias of 2^-64.
    std::uint64_t const low = (word & 0xFFFFFFFF) * many;
    auto const at = static_cast<std::size_t>(((word >> 32) * many + (low >> 32)) >> 32);
    std::swap(r[static_cast<std::size_t>(k)], r[at]);
  }
  return r;
}

/// The range that `batches` returns.
template <index_t Size, class Data>
class batch_range {
  static constexpr auto rows(Data const& data, std::vector<index_t> const& order, index_t from, index_t count) {
    return tree_map([&](auto const& x) { return detail::rows_of<Size>(x, order, from, count); }, data);
  }

public:
  /// The position of a loop over batches. The iterator owns the order of its rows. It is an input iterator.
  class iterator {
  public:
    using value_type = decltype(batch_range::rows(std::declval<Data const&>(), {}, 0, 0));
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using pointer = void;
    using reference = value_type;

    constexpr iterator() = default;
    constexpr iterator(batch_range const* of, std::vector<index_t> order) : of_(of), order_(std::move(order)) {}
    constexpr value_type operator*() const {
      index_t const from = at_ * of_->size_, left = of_->rows_ - from, count = left < of_->size_ ? left : of_->size_;
      return batch_range::rows(of_->data_, order_, from, count);
    }
    constexpr iterator& operator++() {
      ++at_;
      return *this;
    }
    constexpr void operator++(int) { ++at_; }
    constexpr bool operator==(std::default_sentinel_t) const { return !of_ || at_ >= of_->size(); }

  private:
    batch_range const* of_ = nullptr;
    std::vector<index_t> order_;
    index_t at_ = 0;
  };

  constexpr batch_range(index_t size, Data data)
      : size_(size), rows_(detail::common_rows(data)), data_(std::move(data)), whole_(Size > 0) {
    if (size < 1) refuse::argument_is_invalid("batches", "the size of a batch must be positive");
  }
  /// Returns a range that shuffles the rows anew whenever a loop begins, with the generator `g`. The generator must
  /// outlive the range.
  constexpr batch_range shuffled(generator& g) const {
    batch_range r = *this;
    r.generator_ = &g;
    return r;
  }
  /// Returns a range that shuffles the rows anew whenever a loop begins, with this thread's generator, which
  /// `manual_seed` seeds.
  batch_range shuffled() const { return shuffled(default_generator); }
  /// Returns a range without the last batch if that batch would be smaller than the others. Batches of static values
  /// always drop it.
  constexpr batch_range drop_last() const {
    batch_range r = *this;
    r.whole_ = true;
    return r;
  }
  /// Returns the number of batches.
  constexpr index_t size() const { return (rows_ + (whole_ ? 0 : size_ - 1)) / size_; }
  constexpr iterator begin() const {
    return {this, generator_ ? shuffled_indices(rows_, *generator_) : std::vector<index_t>()};
  }
  constexpr std::default_sentinel_t end() const { return {}; }

private:
  index_t size_, rows_;
  Data data_;
  bool whole_;
  generator* generator_ = nullptr;
};

/// Returns a range of batches of `size` rows from values, or trees of values, whose rows belong together
/// (`torch.utils.data.DataLoader`): `for (auto const& [x, y] : batches(64, inputs, labels).shuffled())`. Without
/// shuffling the batches are views. Throws `shape_error` if the numbers of rows differ.
template <class... X>
auto batches(index_t size, X const&... data) {
  return batch_range<0, std::tuple<X...>>(size, std::tuple<X...>(data...));
}
/// Returns a range of batches of static arrays, with a batch size known at compile time:
/// `batches(axis<64>, inputs, labels)`.
template <index_t Size, class... X>
constexpr auto batches(ints<Size>, X const&... data) {
  return batch_range<Size, std::tuple<X...>>(Size, std::tuple<X...>(data...));
}

} // namespace varve::optim

#pragma GCC diagnostic pop
