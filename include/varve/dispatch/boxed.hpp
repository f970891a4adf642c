// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/operator.hpp>
#include <varve/value/tensor.hpp>

namespace varve {

/// The operands of one dynamic call. Up to four lie in place.
class boxed_args {
public:
  boxed_args() = default;
  template <class... X>
    requires(sizeof...(X) > 0 && (std::is_same_v<std::remove_cvref_t<X>, tensor> && ...))
  explicit boxed_args(X&&... x) {
    (push_back(static_cast<X&&>(x)), ...);
  }
  boxed_args(boxed_args const& o) {
    for (auto const& t : o) push_back(t);
  }
  boxed_args(boxed_args&& o) noexcept { take(o); }
  boxed_args& operator=(boxed_args o) noexcept {
    clear();
    take(o);
    return *this;
  }
  ~boxed_args() { clear(); }

  void push_back(tensor t) {
    if (size_ == capacity_) grow();
    new (data() + size_) tensor(static_cast<tensor&&>(t));
    ++size_;
  }
  int size() const { return size_; }
  tensor const& operator[](int i) const { return data()[i]; }
  tensor& operator[](int i) { return data()[i]; }
  tensor const* begin() const { return data(); }
  tensor const* end() const { return data() + size_; }

private:
  tensor* data() { return heap_ ? heap_ : reinterpret_cast<tensor*>(place_); }
  tensor const* data() const { return heap_ ? heap_ : reinterpret_cast<tensor const*>(place_); }
  void take(boxed_args& o) noexcept {
    if (o.heap_) {
      heap_ = o.heap_;
      capacity_ = o.capacity_;
      size_ = o.size_;
      o.heap_ = nullptr;
      o.capacity_ = in_place;
    } else {
      for (int k = 0; k < o.size_; ++k) {
        new (data() + k) tensor(static_cast<tensor&&>(o.data()[k]));
        o.data()[k].~tensor();
      }
      size_ = o.size_;
    }
    o.size_ = 0;
  }
  void clear() {
    for (int k = 0; k < size_; ++k) data()[k].~tensor();
    if (heap_) ::operator delete(heap_);
    heap_ = nullptr;
    size_ = 0;
    capacity_ = in_place;
  }
  VARVE_COLD void grow() {
    auto* wide = static_cast<tensor*>(::operator new(sizeof(tensor) * static_cast<std::size_t>(capacity_) * 2));
    for (int k = 0; k < size_; ++k) {
      new (wide + k) tensor(static_cast<tensor&&>(data()[k]));
      data()[k].~tensor();
    }
    if (heap_) ::operator delete(heap_);
    heap_ = wide;
    capacity_ *= 2;
  }
  static constexpr int in_place = 4;
  alignas(tensor) unsigned char place_[sizeof(tensor) * in_place];
  tensor* heap_ = nullptr;
  int size_ = 0;
  int capacity_ = in_place;
};

struct op_handle;

/// The rules of one operator for tensors, erased: made when the operator is first used on tensors in a program.
struct op_table {
  char const* name;
  /// Argument names, defaults and aliasing in PyTorch's notation, without the name; empty when the rules give none.
  char const* schema;
  int arity;
  bool differentiable;
  tensor (*eval)(attributes const& at, boxed_args const& x);
  tensor (*jvp)(int i, attributes const& at, tensor const& d, tensor const& y, boxed_args const& x);
  tensor (*vjp)(int i, attributes const& at, tensor const& g, tensor const& y, boxed_args const& x);
  tensor (*batch)(attributes const& at, index_t n, boxed_args const& x, bool const* batched);
  op_handle const* (*handle)();
};

/// An operator with attributes in the dynamic world: what run-time interpreters and modes process. It borrows the attributes of the call.
struct boxed_op {
  op_table const* table;
  attributes const* at;
  char const* name() const { return table->name; }
  /// Lowers: hands the call to the next interpreter of the thread.
  tensor operator()(boxed_args const& x) const;
};

/// Operators by name. An operator is known once the program contains a call of it on tensors.
struct ops {
  /// Null when no operator of that name is known.
  static op_table const* find(char const* name);
};

} // namespace varve
