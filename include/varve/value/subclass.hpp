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

/// A type of wrapper tensors, as data: its name, the type it extends, what it does with operators. Its address is its
/// identity.
struct subclass_type {
  char const* name;
  /// The subclass it derives from, or null: the more derived is asked first (MD-10).
  subclass_type const* base;
  /// Its handler; an undefined tensor declines (`not_implemented`).
  tensor (*dispatch)(boxed_op const& op, boxed_args const& args);

  /// Is it `o`, or derived from it?
  bool derives_from(subclass_type const* o) const {
    for (auto const* t = this; t; t = t->base)
      if (t == o) return true;
    return false;
  }
};

/// Base of the objects that wrapper tensors stand for: shared by the handles, deleted with the last.
class subclass_object {
public:
  subclass_object() = default;
  subclass_object(subclass_object const&) = delete;
  subclass_object& operator=(subclass_object const&) = delete;
  virtual ~subclass_object() = default;
  virtual subclass_type const& type() const = 0;
  /// The user's value.
  virtual void const* address() const = 0;
  /// Number of tensors inside, and the i-th: the flatten protocol. Rebuilding is `rebuilt`.
  virtual int inner_count() const = 0;
  virtual tensor const& inner(int i) const = 0;
  /// Sizes and strides that the object computes when asked, in place of those given when it was made; null: it computes
  /// none (MD-20).
  virtual dims const* sizes() const { return nullptr; }
  virtual dims const* strides() const { return nullptr; }
  /// What `item()` reads of a tensor of one element that stands for it: a tensor in memory. As a rule there is none
  /// (`transform_error`).
  virtual tensor constant(tensor const& of) const;
  /// ... and a symbol that stands for it, for `item(of)` (FK-7); null if the number is that of `constant`.
  virtual extent const* symbol_of(tensor const&) const { return nullptr; }
  /// A tensor stands for another object from now on (`set_`).
  virtual void was_replaced() {}
  /// Calls `make(f)`, a factory that a transform or a backward pass needs beside it: under the mode it belongs to.
  virtual tensor in_its_mode(tensor (*make)(void const*), void const* f) const;
  /// Stands for one of two values, of which data that are not there choose; undefined: they must be alike.
  virtual tensor either(tensor const&, tensor const&) const;
  /// An object with the same context around other tensors, as a tensor.
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
