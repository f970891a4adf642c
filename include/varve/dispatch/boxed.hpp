// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/operator.hpp>
#include <varve/value/tensor.hpp>

#include <atomic>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

/// The operands of one dynamic call. Up to four are stored inline.
class boxed_args {
public:
  boxed_args() = default;
  template <class... X>
    requires(sizeof...(X) > 0 && (std::is_same_v<std::remove_cvref_t<X>, tensor> && ...))
  explicit boxed_args(X&&... x) {
    if constexpr (sizeof...(X) <= in_place) {
      (new (data_ + size_++) tensor(static_cast<X&&>(x)), ...);
    } else {
      (push_back(static_cast<X&&>(x)), ...);
    }
  }
  /// Copies the tensors that `n` pointers point to.
  boxed_args(tensor const* const* x, int n) {
    if (n <= in_place) [[likely]]
      while (size_ < n) new (data_ + size_) tensor(*x[size_]), ++size_;
    else
      while (size_ < n) push_back(*x[size_]);
  }
  /// Makes `n` undefined tensors.
  explicit boxed_args(int n) {
    if (n > in_place) [[unlikely]] {
      while (size_ < n) push_back(tensor());
      return;
    }
    std::memset(place_, 0, sizeof place_); // a tensor is one pointer
    size_ = n;
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

  void push_back(tensor const& t) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    new (data_ + size_++) tensor(t);
  }
  void push_back(tensor&& t) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    new (data_ + size_++) tensor(static_cast<tensor&&>(t));
  }
  int size() const { return size_; }
  /// Replaces an undefined tensor by the result of `make()`. (The result is made elsewhere and moved, because a `make`
  /// that throws would leave a half-made tensor in place.)
  template <class F>
  VARVE_INLINE void fill(int i, F const& make) {
    tensor t = make();
    new (data_ + i) tensor(static_cast<tensor&&>(t));
  }
  tensor const& operator[](int i) const { return data_[i]; }
  tensor& operator[](int i) { return data_[i]; }
  tensor const* begin() const { return data_; }
  tensor const* end() const { return data_ + size_; }

private:
  tensor* place() { return reinterpret_cast<tensor*>(place_); }
  /// Moves all tensors out of `o`. A tensor is one pointer, so its bytes move without its constructor.
  void take(boxed_args& o) noexcept {
    if (o.data_ != o.place()) {
      data_ = o.data_;
      capacity_ = o.capacity_;
      o.data_ = o.place();
      o.capacity_ = in_place;
    } else {
      std::memcpy(place_, o.place_, sizeof place_);
    }
    size_ = o.size_;
    o.size_ = 0;
  }
  void clear() {
    for (int k = 0; k < size_; ++k) data_[k].~tensor();
    size_ = 0;
    if (data_ != place()) [[unlikely]] {
      ::operator delete(data_);
      data_ = place();
      capacity_ = in_place;
    }
  }
  VARVE_COLD void grow() {
    auto* wide = static_cast<tensor*>(::operator new(sizeof(tensor) * static_cast<std::size_t>(capacity_) * 2));
    std::memcpy(static_cast<void*>(wide), static_cast<void const*>(data_),
                sizeof(tensor) * static_cast<std::size_t>(size_));
    if (data_ != place()) ::operator delete(data_);
    data_ = wide;
    capacity_ *= 2;
  }
  static constexpr int in_place = 4;
  alignas(tensor) unsigned char place_[sizeof(tensor) * in_place];
  tensor* data_ = place();
  int size_ = 0;
  int capacity_ = in_place;
};

/// The operands of a call, as borrowed pointers.
struct operand_list {
  tensor const* const* at;
  int count;
  int size() const { return count; }
  tensor const& operator[](int i) const { return *at[i]; }
};

struct op_handle;
struct boxed_hop;
struct dispatch_table;
namespace detail {
struct pointwise_info;
struct kernels_below;
} // namespace detail

/// The rules of one operator for tensors, type-erased. A table is instantiated where a program first uses the operator
/// on tensors.
struct op_table {
  char const* name = nullptr;
  /// Argument names, defaults and aliasing in PyTorch's notation, without the name. Empty if the rules have no schema.
  char const* schema = "";
  int arity = 0;
  bool differentiable = true;
  tensor (*eval)(attributes const& at, boxed_args const& x) = nullptr;
  tensor (*jvp)(int i, attributes const& at, tensor const& d, tensor const& y, boxed_args const& x) = nullptr;
  tensor (*vjp)(int i, attributes const& at, tensor const& g, tensor const& y, boxed_args const& x) = nullptr;
  tensor (*batch)(attributes const& at, extent n, boxed_args const& x, bool const* batched) = nullptr;
  op_handle const* (*handle)() = nullptr;
  /// Returns the result without data: shape, dtype and view layout. This is the kernel of the `meta` backend.
  tensor (*meta)(attributes const& at, boxed_args const& x) = nullptr;
  /// The kernels registered at run time; null if there are none.
  std::atomic<dispatch_table const*>* registered = nullptr;
  /// The values that are saved for `vjp`, by operand.
  saved_values saved{};
  op_kind kind = op_kind::placeholder;
  /// The contiguous kernels of an elementwise operator, which fused programs call block by block. Null for other
  /// operators.
  detail::pointwise_info const* pointwise = nullptr;
  /// For an in-place operator, the operator that computes what it writes; else null.
  op_table const* functional = nullptr;
  /// Returns the attributes of a call by name, checked and completed as the public function does (negative axes, sizes
  /// of -1, omitted attributes), because kernels trust them. Null for operators of a `library`.
  attributes (*checked)(attributes const& at, boxed_args const& x) = nullptr;
  /// True if complex operands reach the operator unchanged: views, other operators that only move elements, operators
  /// of users, and operators that handle complex numbers themselves.
  bool takes_complex = false;
  /// How it computes with complex operands otherwise.
  complex_rule of_complex = complex_rule::refused;
  /// For an operator of a `library` that writes into nothing and returns no view, the handle that graph nodes point to;
  /// else null.
  op_handle const* defined = nullptr;
  /// Returns the values that are saved for `vjp` if they depend on attributes; null if they do not.
  saved_values (*saved_by)(attributes const& at) = nullptr;
  saved_values saved_for(attributes const& at) const { return saved_by ? saved_by(at) : saved; }
  /// Returns the handle that graph nodes point to, or null if the operator cannot be in graphs.
  op_handle const* node() const { return handle ? handle() : defined; }
};

/// An operator with attributes for tensors, which run-time interpreters and modes process. It borrows the attributes of
/// the call.
struct boxed_op {
  op_table const* table;
  attributes const* at;
  /// Not null while a transform does its own part of a call. When that part lowers, kernels of a library below the
  /// transform's key run first.
  detail::kernels_below const* below = nullptr;
  char const* name() const { return table->name; }
  char const* schema() const { return table->schema; }
  /// Lowers the call: passes it to the next interpreter of the thread.
  tensor operator()(boxed_args const& x) const;
};

class argument;
struct named_argument;

/// Operators by name. An operator is known if the program contains a call of it on tensors.
struct ops {
  /// Returns the operator of a name, or null if it is unknown. Operators of varve are also found as `aten::name`, those
  /// of a `library` as `library::name`.
  static op_table const* find(char const* name);
  /// Calls an operator by name. Tensors and numbers are operands; `dims` are attributes, which are checked as by the
  /// public function. Throws `dispatch_error` for unknown names and wrong counts.
  template <class... X>
    requires((value<X> || std::is_same_v<X, dims>) && ...)
  static tensor call(char const* name, X const&... x);
  /// Calls a public function, or one of its overloads (`add.Tensor`), by PyTorch's name. The arguments are known at run
  /// time, by position and by name; omitted ones have the schema's default. Composites, aliases, `name_` and `out=` are
  /// included. Operators of a `library` are called as `library::name`.
  ///
  /// Returns one argument for each result of the schema, where a list is one result. All checks are those of the
  /// function. Throws `dispatch_error` for an unknown name. Throws `value_error`, which shows the schemas, if the
  /// arguments fit none. Defined in `by_name/call.hpp`.
  static std::vector<argument> call(std::string_view name, std::span<argument const> x,
                                    std::span<named_argument const> named);
  static std::vector<argument> call(std::string_view name, std::initializer_list<argument> x,
                                    std::initializer_list<named_argument> named = {});
  /// Returns the schemas of a name, in the order in which they are tried; empty for an unknown name.
  static std::vector<std::string> schemas(std::string_view name);
  /// Returns all names that `call` knows, except those of libraries.
  static std::vector<std::string> names();
};

} // namespace varve
