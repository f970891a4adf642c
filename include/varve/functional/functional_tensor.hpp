// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/functional_core.hpp>
#include <varve/interpreter/mirror_autograd_meta.hpp>
#include <varve/interpreter/mode_guard.hpp>

#include <memory>
#include <string>

/// @file
/// Values of the functional mode. Each represents memory and stores the value of that memory (`FunctionalTensor`).
namespace varve {

namespace detail {
tensor run_functional_without_mode(boxed_op const& op, boxed_args const& x);
inline constexpr subclass_type functional_tensor_type{"functional_tensor", nullptr, &run_functional_without_mode};

/// One alias of a memory, with the value that it had when it was read last.
template <class T>
struct functional_object final : subclass_object, functional_alias<T> {
  T now;

  functional_object(std::shared_ptr<functional_memory<T>> m, view_chain a, layout const& l, T const& y)
      : functional_alias<T>(std::move(m), std::move(a), l), now(y) {}
  T current() {
    return this->up_to_date(now, [&](T const& y) { now = y; });
  }
  subclass_type const& type() const override { return functional_tensor_type; }
  /// Freezes the memory that the object showed: a later write could not be assigned to a tensor.
  void was_replaced() override { this->memory->frozen = true; }
  void const* address() const override { return this; }
  int inner_count() const override { return 1; }
  tensor const& inner(int) const override { return now; }
  tensor constant(tensor const&) const override {
    T const y = const_cast<functional_object*>(this)->current();
    return y.object() ? y.object()->constant(y) : y;
  }
  extent const* symbol_of(tensor const&) const override {
    T const y = const_cast<functional_object*>(this)->current();
    return y.object() ? y.object()->symbol_of(y) : nullptr;
  }
  tensor in_its_mode(tensor (*make)(void const*), void const* f) const override {
    return now.object() ? now.object()->in_its_mode(make, f) : make(f);
  }
  tensor rebuilt(tensor const*) const override {
    refuse::with<dispatch_error>(
        "varve: a functional tensor cannot be made anew around another value; write into it by copy_ "
        "under its functional_mode");
  }
  static functional_object& of(tensor const& t) { return *static_cast<functional_object*>(t.object()); }
};
VARVE_COLD inline tensor run_functional_without_mode(boxed_op const& op, boxed_args const&) {
  refuse::with<dispatch_error>((std::string("varve: ") + op.name() +
                                ": a value of a program that was being made (by export_program, aot_function or a "
                                "functional_mode) is used after it; return it from the function. Under a "
                                "functional_mode of your own: use it under its functional_mode_guard, or its value by "
                                "from_functional_tensor")
                                   .c_str());
}
} // namespace detail

/// True for a value of a `functional_mode`.
inline bool is_functional_tensor(tensor const& t) {
  return t.defined() && t.object() && &t.object()->type() == &detail::functional_tensor_type;
}

namespace detail {
template <class T>
functional_object<T>& functional_object_of(char const* who, T const& t) {
  if (!is_functional_tensor(t))
    refuse::with<value_error>((std::string("varve: ") + who + ": the tensor is no functional one; make it by " +
                               "functional_mode::to_functional_tensor, and ask by is_functional_tensor")
                                  .c_str());
  return functional_object<T>::of(t);
}
} // namespace detail

/// Brings a functional tensor, or a value of `functionalize`, up to date. Pending writes into its memory are applied by
/// operators that no functional mode sees. Throws `value_error` for other tensors.
template <class T = tensor>
void sync(T const& t) {
  if (t.is_wrapped())
    for (layer const* l = this_thread_state.transforms.top; l; l = l->below)
      if (l->id == t.layer() && l->kind->role == layer_role::functionalize) return void(t.current());
  (void)detail::functional_object_of("sync", t).current();
}
/// Returns the current value of a functional tensor, without a link to its memory. Throws `value_error` for other
/// tensors.
template <class T = tensor>
T from_functional_tensor(T const& t) {
  return detail::functional_object_of("from_functional_tensor", t).current();
}
/// Makes the memory of a functional tensor read-only: later writes through any alias are refused.
template <class T = tensor>
void freeze_functional_tensor(T const& t) {
  detail::functional_object_of("freeze_functional_tensor", t).memory->frozen = true;
}

/// The number of writes into the memory of a functional tensor since it was made: all, and those made while no gradient
/// was recorded.
struct functional_mutations {
  std::uint64_t all = 0, without_grad = 0;
  bool any() const { return all > 0; }
  bool all_without_grad() const { return any() && all == without_grad; }
};
/// Returns the writes into the memory of a functional tensor. Throws `value_error` for other tensors.
template <class T = tensor>
functional_mutations mutations_of(T const& t) {
  auto const& m = *detail::functional_object_of("mutations_of", t).memory;
  return {m.generation, m.without_grad};
}

} // namespace varve
