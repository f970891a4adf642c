// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <memory>
#include <type_traits>

namespace varve {

/// The part of `std::vector` that the tracer and the planner need, at a fifth of its cost in constant expressions.
/// Every function call counts there, and `std::vector` makes an element by a chain of six calls. An index may be any
/// integer type. Loops over nodes and instances use plain pointers to the elements, which saves a call per element.
template <class T>
class list {
public:
  constexpr list() = default;
  constexpr list(std::size_t n, T const& x) { assign(n, x); }
  constexpr list(T const* from, T const* to) {
    reserve(static_cast<std::size_t>(to - from));
    for (; from != to; ++from) push_back(*from);
  }
  constexpr list(list const& o) : list(o.data_, o.data_ + o.size_) {}
  constexpr list(list&& o) noexcept : data_(o.data_), size_(o.size_), room_(o.room_) {
    o.data_ = nullptr;
    o.size_ = o.room_ = 0;
  }
  constexpr list& operator=(list const& o) {
    if (this != &o) {
      clear();
      reserve(o.size_);
      for (T const& x : o) push_back(x);
    }
    return *this;
  }
  constexpr list& operator=(list&& o) noexcept {
    T* const mine = data_; // not by `std::swap`, which instantiates a dozen classes for each T
    data_ = o.data_, o.data_ = mine;
    std::swap(size_, o.size_), std::swap(room_, o.room_);
    return *this;
  }
  constexpr ~list() { release(); }
  constexpr void swap(list& o) noexcept { *this = static_cast<list&&>(o); }

  constexpr std::size_t size() const { return size_; }
  constexpr std::size_t capacity() const { return room_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr T const* data() const { return data_; }
  constexpr T* begin() { return data_; }
  constexpr T const* begin() const { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr T const* end() const { return data_ + size_; }
  constexpr T& operator[](std::ptrdiff_t k) { return data_[k]; }
  constexpr T const& operator[](std::ptrdiff_t k) const { return data_[k]; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr T const& back() const { return data_[size_ - 1]; }

  constexpr void push_back(T const& x) {
    if (size_ == room_) {
      T const copy = x;                                                     // x may be an element of this list
      reserve(room_ ? room_ * (std::is_constant_evaluated() ? 4 : 2) : 16); // each copy costs compile time
      put(copy);
    } else if constexpr (plain) {
      data_[size_++] = x; // not by `put`, which would be a call
    } else {
      std::construct_at(data_ + size_, x);
      ++size_;
    }
  }
  constexpr void pop_back() {
    --size_;
    if constexpr (!plain_copies) std::destroy_at(data_ + size_);
  }
  constexpr void clear() {
    if constexpr (plain_copies) size_ = 0;
    else
      while (size_) pop_back();
  }
  constexpr void assign(std::size_t n, T const& x) {
    clear();
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
      if (!room_ && n && x == T()) { // zeroed memory costs clang nothing
        data_ = new T[n]{}, size_ = room_ = n;
        return;
      }
    reserve(n);
    if constexpr (plain)
      while (size_ < n) data_[size_++] = x;
    else
      while (size_ < n) put(x);
  }
  constexpr void resize(std::size_t n) {
    while (size_ > n) pop_back();
    reserve(n);
    while (size_ < n) put(T());
  }
  constexpr void reserve(std::size_t n) {
    if (n <= room_) return;
    T* p = nullptr;
    if constexpr (plain) p = new T[n]; // g++ is slow for each element of `new T[n]{}`
    else p = std::allocator<T>().allocate(n);
    for (std::size_t k = 0; k < size_; ++k) {
      if constexpr (plain) p[k] = data_[k];
      else std::construct_at(p + k, static_cast<T&&>(data_[k]));
    }
    std::size_t const size = size_;
    release();
    data_ = p, size_ = size, room_ = n;
  }

private:
  // Built-in traits of the compiler, because each trait of the standard library instantiates about ten classes of T.
  static constexpr bool plain = __is_trivially_constructible(T);   // elements need no construction
  static constexpr bool plain_copies = __is_trivially_copyable(T); // elements need no destruction
  T* data_ = nullptr;
  std::size_t size_ = 0, room_ = 0;

  constexpr void put(T const& x) {
    if constexpr (plain) data_[size_] = x;
    else std::construct_at(data_ + size_, x);
    ++size_;
  }
  constexpr void release() {
    if constexpr (plain) {
      delete[] data_;
    } else if (data_) {
      clear();
      std::allocator<T>().deallocate(data_, room_);
    }
  }
};

} // namespace varve
