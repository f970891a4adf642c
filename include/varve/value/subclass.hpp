// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/storage.hpp>

namespace varve {

class tensor;
class subclass_object;
struct extent;
struct dims;
struct boxed_op;
class boxed_args;

namespace detail {
void keep_object(subclass_object* o) noexcept;
void drop_object(subclass_object* o) noexcept;
} // namespace detail

/// A type of wrapper tensors: its name, its base type, its handler of operators. Its address is its identity.
struct subclass_type {
  char const* name;
  /// The subclass it derives from, or null. The handler of the more derived type is called first.
  subclass_type const* base;
  /// Handles an operator. Returning an undefined tensor declines the call (`not_implemented`).
  tensor (*dispatch)(boxed_op const& op, boxed_args const& args);

  /// True if this type is `o` or derives from it.
  bool derives_from(subclass_type const* o) const {
    for (auto const* t = this; t; t = t->base)
      if (t == o) return true;
    return false;
  }
};

/// Base of the objects that wrapper tensors stand for. The handles share it; the last one deletes it.
class subclass_object {
public:
  subclass_object() = default;
  subclass_object(subclass_object const&) = delete;
  subclass_object& operator=(subclass_object const&) = delete;
  virtual ~subclass_object() = default;
  virtual subclass_type const& type() const = 0;
  /// Returns the address of the user's value.
  virtual void const* address() const = 0;
  /// Returns the number of inner tensors. With `inner(i)` this is the flatten protocol; `rebuilt` is its inverse.
  virtual int inner_count() const = 0;
  virtual tensor const& inner(int i) const = 0;
  /// Returns sizes (`strides()`: strides) that the object computes on demand, in place of those it was made with. Null
  /// if it computes none.
  virtual dims const* sizes() const { return nullptr; }
  virtual dims const* strides() const { return nullptr; }
  /// Returns the tensor in memory that `item()` reads for a one-element tensor of this object. By default there is none
  /// (`transform_error`).
  virtual tensor constant(tensor const& of) const;
  /// Returns the symbol that `item(of)` yields; null if the number is that of `constant`.
  virtual extent const* symbol_of(tensor const&) const { return nullptr; }
  /// Called when a tensor of this object starts to stand for another object (`set_`).
  virtual void was_replaced() {}
  /// Calls `make(f)`, a factory needed by a transform or a backward pass, under the mode that the object belongs to.
  virtual tensor in_its_mode(tensor (*make)(void const*), void const* f) const;
  /// Returns a tensor for the result of a choice between two values that depends on absent data. Returns an undefined
  /// tensor if the values must be the same.
  virtual tensor either(tensor const&, tensor const&) const;
  /// Returns a tensor of a new object with the same context and the given inner tensors.
  virtual tensor rebuilt(tensor const* inner) const = 0;

private:
  friend void detail::keep_object(subclass_object*) noexcept;
  friend void detail::drop_object(subclass_object*) noexcept;
  detail::reference_count refs_;
};

namespace detail {
inline void keep_object(subclass_object* o) noexcept {
  if (o) o->refs_.add();
}
inline void drop_object(subclass_object* o) noexcept {
  if (o && o->refs_.drop()) delete o;
}
} // namespace detail

} // namespace varve
