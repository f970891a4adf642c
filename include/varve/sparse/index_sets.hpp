// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

/// @file
/// Sets of indices, each stored once. A pattern of n elements is n small integers, one for each set.
namespace varve::detail {

/// A pool of sets of the integers 0, 1, ..., n - 1. A set is named by a number: 0 is the empty set, k + 1 is {k}. Equal
/// sets have equal numbers. Usable in constant expressions.
class index_sets {
public:
  static constexpr int empty = 0;

  constexpr explicit index_sets(int n) : mark_(static_cast<std::size_t>(n), 0) {
    first_.reserve(static_cast<std::size_t>(n) + 2), elements_.reserve(static_cast<std::size_t>(n));
    first_.push_back(0), first_.push_back(0);
    for (int k = 0; k < n; ++k) elements_.push_back(k), first_.push_back(k + 1);
    named_.assign(64, 0), pairs_.assign(64, pair{});
  }
  static constexpr int single(int k) { return k + 1; }
  constexpr int size(int set) const { return first_[set + 1] - first_[set]; }
  constexpr int const* begin(int set) const { return elements_.data() + first_[set]; }
  constexpr int const* end(int set) const { return elements_.data() + first_[set + 1]; }

  /// Returns the union of two sets. O(1) if it was computed before, else linear in their sizes.
  constexpr int unite(int a, int b) {
    if (a == b || b == empty) return a;
    if (a == empty) return b;
    if (a > b) std::swap(a, b);
    std::size_t at = slot_of(a, b);
    if (pairs_[at].a != 0) return pairs_[at].both;
    int const both = merged(a, b);
    if (2 * ++pair_count_ > pairs_.size()) grow_pairs(), at = slot_of(a, b);
    pairs_[at] = {a, b, both};
    return both;
  }
  /// Returns the union of the sets [from, to).
  constexpr int unite(int const* from, int const* to) {
    int r = empty, distinct = 0, last = empty;
    for (int const* s = from; s != to && distinct <= few; ++s)
      if (*s != empty && *s != last) r = *s, last = *s, ++distinct;
    if (distinct < 2) return r;
    if (distinct <= few) {
      r = empty;
      for (; from != to; ++from) r = unite(r, *from);
      return r;
    }
    return of_many(from, to);
  }

private:
  static constexpr int few = 4;
  struct pair {
    int a = 0, b = 0, both = 0;
  };
  list<int> elements_{}, first_{}; // ascending elements of all sets; where each set begins
  list<int> named_{};              // hash table of sets with two or more elements
  list<pair> pairs_{};             // hash table of unions
  std::size_t named_count_ = 0, pair_count_ = 0;
  list<int> mark_, buffer_{};
  int generation_ = 0;

  static constexpr std::size_t mixed(std::uint64_t h) {
    h ^= h >> 29, h *= 0xbf58476d1ce4e5b9u, h ^= h >> 32;
    return static_cast<std::size_t>(h);
  }
  constexpr std::size_t slot_of(int a, int b) const {
    std::size_t const last = pairs_.size() - 1;
    pair const* const all = pairs_.data();
    std::size_t at = mixed(static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint64_t>(b)) & last;
    while (all[at].a != 0 && (all[at].a != a || all[at].b != b)) at = (at + 1) & last;
    return at;
  }
  constexpr void grow_pairs() {
    list<pair> old(4 * pairs_.size(), pair{});
    old.swap(pairs_);
    for (pair const& p : old)
      if (p.a != 0) pairs_[static_cast<std::ptrdiff_t>(slot_of(p.a, p.b))] = p;
  }
  constexpr int merged(int a, int b) {
    int const *x = begin(a), *y = begin(b), *const last_x = end(a), *const last_y = end(b);
    buffer_.clear();
    while (x != last_x && y != last_y) {
      if (*x < *y) buffer_.push_back(*x++);
      else if (*y < *x) buffer_.push_back(*y++);
      else buffer_.push_back(*x), ++x, ++y;
    }
    for (; x != last_x; ++x) buffer_.push_back(*x);
    for (; y != last_y; ++y) buffer_.push_back(*y);
    return named();
  }
  constexpr int of_many(int const* from, int const* to) {
    buffer_.clear();
    ++generation_;
    bool ascending = true;
    int* const mark = mark_.data();
    for (int last = empty; from != to; last = *from++) {
      if (*from == last) continue;
      for (int const *e = begin(*from), *stop = end(*from); e != stop; ++e) {
        if (mark[*e] == generation_) continue;
        mark[*e] = generation_;
        ascending = ascending && (buffer_.empty() || buffer_.back() < *e);
        buffer_.push_back(*e);
      }
    }
    if (!ascending) std::sort(buffer_.begin(), buffer_.end());
    return named();
  }
  constexpr std::size_t hash(int const* e, int const* stop) const {
    std::uint64_t h = 0xcbf29ce484222325u;
    for (; e != stop; ++e) h = (h ^ static_cast<std::uint64_t>(*e)) * 0x100000001b3u;
    return mixed(h);
  }
  /// Returns the number of the set in `buffer_`, which is new if no set has these elements.
  constexpr int named() {
    if (buffer_.empty()) return empty;
    if (buffer_.size() == 1) return single(buffer_[0]);
    std::size_t const last = named_.size() - 1;
    std::size_t at = hash(buffer_.begin(), buffer_.end()) & last;
    for (; named_[static_cast<std::ptrdiff_t>(at)] != 0; at = (at + 1) & last)
      if (int const s = named_[static_cast<std::ptrdiff_t>(at)];
          size(s) == static_cast<int>(buffer_.size()) && std::equal(begin(s), end(s), buffer_.begin()))
        return s;
    int const set = static_cast<int>(first_.size()) - 1;
    for (int const e : buffer_) elements_.push_back(e);
    first_.push_back(static_cast<int>(elements_.size()));
    named_[static_cast<std::ptrdiff_t>(at)] = set;
    if (2 * ++named_count_ > named_.size()) grow_named();
    return set;
  }
  constexpr void grow_named() {
    list<int> old(4 * named_.size(), 0);
    old.swap(named_);
    std::size_t const last = named_.size() - 1;
    for (int const s : old) {
      if (s == 0) continue;
      std::size_t at = hash(begin(s), end(s)) & last;
      while (named_[static_cast<std::ptrdiff_t>(at)] != 0) at = (at + 1) & last;
      named_[static_cast<std::ptrdiff_t>(at)] = s;
    }
  }
};

} // namespace varve::detail
