// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/schema.hpp>
#include <varve/interpreter/enable_mode.hpp>

namespace varve {

/// The base of tensor subclasses: wrapper types with their own meaning of every operator.
///
///   struct logged : tensor_subclass<logged> {
///     tensor value;
///     auto parts() const { return std::tie(value); }                    // the tensors inside: flatten
///     logged with_parts(tensor v) const { return {{}, v}; }              // the same around others: unflatten
///     static tensor dispatch(boxed_op const& op, boxed_args const& x) { ...; return wrap_like(x,
///     op(unwrap_all<logged>(x))); }
///   };
///
/// `make_subclass(logged{{}, v})` returns a tensor with v's shape and dtype that stands for the value. A value that
/// computes its metadata declares `dims const& sizes() const` or `strides()`, which are called on each use. Eager
/// autograd records above the handler, as above other kernels. A subclass of a subclass declares `using base_subclass =
/// logged;`, and its handler is called first.
template <class Derived>
struct tensor_subclass {};

namespace detail {
template <class T>
constexpr subclass_type const* base_of_subclass();
template <class T>
inline constexpr subclass_type subclass_type_of{name_of_type<T>.c_str(), base_of_subclass<T>(), &T::dispatch};
template <class T>
constexpr subclass_type const* base_of_subclass() {
  if constexpr (requires { typename T::base_subclass; }) return &subclass_type_of<typename T::base_subclass>;
  else return nullptr;
}

template <class T>
tensor box_subclass(T value, dims const& sizes, dims const& strides, dtype type, dispatch_key_set extra);

/// The object behind the tensor, which stores the user's value.
template <class T>
struct held_subclass final : subclass_object {
  T value;
  explicit held_subclass(T v) : value(std::move(v)) {}
  subclass_type const& type() const override { return subclass_type_of<T>; }
  void const* address() const override { return &value; }
  int inner_count() const override { return static_cast<int>(std::tuple_size_v<decltype(value.parts())>); }
  tensor const& inner(int i) const override {
    return std::apply(
        [&](auto const&... p) -> tensor const& {
          tensor const* const at[] = {&p...};
          return *at[i];
        },
        value.parts());
  }
  dims const* sizes() const override {
    if constexpr (requires { value.sizes(); }) return &value.sizes();
    else return nullptr;
  }
  dims const* strides() const override {
    if constexpr (requires { value.strides(); }) return &value.strides();
    else return nullptr;
  }
  tensor rebuilt(tensor const* inner) const override {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return box_subclass(value.with_parts(inner[K]...), inner[0].sizes(),
                          inner[0].has_data() ? inner[0].strides() : dims{}, inner[0].dtype(), {});
    }(std::make_index_sequence<std::tuple_size_v<decltype(value.parts())>>{});
  }
};
template <class T>
tensor box_subclass(T value, dims const& sizes, dims const& strides, dtype type, dispatch_key_set extra) {
  auto object = std::make_unique<held_subclass<T>>(std::move(value));
  tensor r = tensor::of_object(object.get(), sizes, strides, type, default_keys | dispatch_key::subclass | extra);
  (void)object.release();
  return r;
}
} // namespace detail

/// Returns a tensor that stands for a subclass value, with the sizes, strides and dtype of its first part and optional
/// additional dispatch keys.
template <class T>
tensor make_subclass(T value, dispatch_key_set extra = {}) {
  tensor const first = std::get<0>(value.parts());
  return detail::box_subclass(std::move(value), first.sizes(), first.is_wrapped() ? dims{} : first.strides(),
                              first.dtype(), extra);
}
/// Returns a tensor that stands for a subclass value, with the given sizes, strides and dtype
/// (`_make_wrapper_subclass`).
template <class T>
tensor make_subclass(T value, dims const& sizes, dtype type, dims const& strides = {}, dispatch_key_set extra = {}) {
  return detail::box_subclass(std::move(value), sizes, strides, type, extra);
}

/// True if a tensor stands for a `T`, or for a subclass derived from it.
template <class T>
bool is(tensor const& t) {
  return t.defined() && t.object() && t.object()->type().derives_from(&detail::subclass_type_of<T>);
}
/// Returns the value for which a tensor stands. Throws `dispatch_error` if it does not stand for a `T`.
template <class T>
T const& unwrap(tensor const& t) {
  if (!t.defined() || !t.object() || &t.object()->type() != &detail::subclass_type_of<T>)
    refuse::with<dispatch_error>(
        (std::string("varve: unwrap: the tensor is no ") + name_of_type<T>.c_str() + "; ask by is<> first").c_str());
  return *static_cast<T const*>(t.object()->address());
}

/// Returns operands with every `T` replaced by its part number `part`; other operands are unchanged. For handlers that
/// compute on the tensors inside.
template <class T>
boxed_args unwrap_all(boxed_args const& x, int part = 0) {
  boxed_args r;
  for (auto const& t : x) r.push_back(is<T>(t) ? t.object()->inner(part) : t);
  return r;
}

/// Makes the result of a handler alias what the schema declares: a mutated operand is returned itself, and a view
/// shares the storage of the operand that it views. Throws `dispatch_error` if the schema mixes new results with
/// aliases.
template <class = void>
tensor return_and_correct_aliasing(boxed_op const& op, boxed_args const& x, tensor const& y) {
  operator_schema const s = operator_schema::parse(std::string(op.name()) + op.schema());
  int aliased = 0;
  for (std::size_t r = 0; r < s.results.size(); ++r) aliased += s.aliased_operand(static_cast<int>(r)) >= 0;
  if (aliased && aliased != static_cast<int>(s.results.size()))
    refuse::with<dispatch_error>(
        ("varve: " + to_string(s) +
         " mixes fresh results and aliases; its aliasing cannot be corrected; let the handler return "
         "what its results alias")
            .c_str());
  if (!aliased) return y;
  int const k = s.aliased_operand(0);
  if (s.results[0].mutated) return x[k];
  if (y.defined() && !y.is_wrapped() && y.object() && !x[k].is_wrapped()) y.alias_storage_of(x[k]);
  return y;
}

} // namespace varve
