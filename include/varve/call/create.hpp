// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/call.hpp>

namespace varve::by_name {
/// Functions that make tensors, by name.
std::span<call_row const> factories();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/call/adapt.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
inline call_family const create_family{&factories};

inline tensor filled(dims const& s, tensor const& v, dtype t) {
  return with_number(v, [&](auto n) -> tensor { return full(s, n, t); });
}
/// The dtype that a number alone gives.
inline dtype of_number(tensor const& v) { return is_floating(v.dtype()) ? get_default_dtype() : v.dtype(); }
inline tensor like(tensor const& x, std::optional<dtype> const& t, tensor const& v) {
  tensor const in = t ? tensor(to(detach(x), *t)) : x;
  return with_number(v, [&](auto n) -> tensor { return full_like(in, n); });
}
inline tensor new_of(tensor const& x, dims const& s, std::optional<dtype> const& t, tensor const& v) {
  tensor const in = t ? tensor(to(detach(x), *t)) : x;
  return with_number(v, [&](auto n) -> tensor { return new_full(in, s, n); });
}
inline tensor number(int n) { return tensor::from_number(n); }

VARVE_LIBRARY std::span<call_row const> factories() {
  using type = std::optional<dtype>;
  static call_row const rows[] = {
      {"zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](dims s, type t) { return zeros(s, t.value_or(get_default_dtype())); }},
      {"ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](dims s, type t) { return ones(s, t.value_or(get_default_dtype())); }},
      {"empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       +[](dims s, type t) { return empty(s, t.value_or(get_default_dtype())); }},
      {"full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       +[](dims s, tensor const& v, type t) { return filled(s, v, t.value_or(of_number(v))); }},
      {"arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](argument const& end, type t) -> tensor {
         if (!end.is<extent>()) refuse::argument_is_invalid("arange", "the end must be a whole number");
         return arange(end.as<extent>(), t.value_or(dtype::int64));
       }},
      {"eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
       "Tensor",
       +[](index_t n, type t) { return eye(n, t.value_or(get_default_dtype())); }},
      {"randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](dims s, type t) -> tensor { return randn(s, t.value_or(get_default_dtype())); }},
      {"scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](tensor const& v, type t) { return filled({}, v, t.value_or(get_default_dtype())); }},
      {"zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       +[](tensor const& x, type t) { return like(x, t, number(0)); }},
      {"ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       +[](tensor const& x, type t) { return like(x, t, number(1)); }},
      {"full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       +[](tensor const& x, tensor const& v, type t) { return like(x, t, v); }},
      {"new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       +[](tensor const& x, dims s, type t) { return new_of(x, s, t, number(0)); }},
      {"new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       +[](tensor const& x, dims s, type t) { return new_of(x, s, t, number(1)); }},
      {"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       +[](tensor const& x, dims s, tensor const& v, type t) { return new_of(x, s, t, v); }},
      {"item(Tensor self) -> Scalar",
       +[](tensor const& x) -> argument {
         if (x.dtype() == dtype::bool_) return x.item<bool>();
         if (is_floating(x.dtype())) return x.item<double>();
         return item(x);
       }},
  };
  return rows;
}
} // namespace varve::by_name
#endif
