// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of the factories of tensors.
std::span<call_row const> factories();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/composite/ranges.hpp>
#include <varve/op/all.hpp>
#include <varve/signal/windows.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const create_family{&factories};

inline tensor filled(dims const& s, tensor const& v, dtype t) {
  return with_number(v, [&](auto n) -> tensor { return full(s, n, t); });
}
/// Returns the default dtype for a plain number.
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

/// Returns evenly spaced numbers. Without a dtype, it follows from the kinds of the arguments.
inline tensor stepped(argument const& start, argument const& end, argument const& step, std::optional<dtype> t) {
  auto const whole = [](argument const& a) { return a.is<bool>() ? extent(a.as<bool>()) : a.as<extent>(); };
  auto const real = [&](argument const& a) {
    return a.is<double>() ? a.as<double>() : static_cast<double>(index_t(whole(a)));
  };
  if (start.is<double>() || end.is<double>() || step.is<double>())
    return arange(real(start), real(end), real(step), t.value_or(get_default_dtype()));
  return arange(index_t(whole(start)), index_t(whole(end)), index_t(whole(step)), t.value_or(dtype::int64));
}

/// Returns evenly spaced numbers between two tensors of rank 0; one may be a plain number.
inline tensor spaced_between(tensor const& a, tensor const& b, index_t n, std::optional<dtype> t) {
  return linspace(a, b, n, t.value_or(get_default_dtype()));
}
inline tensor spaced_in_powers(tensor const& a, tensor const& b, index_t n, double base, std::optional<dtype> t) {
  return logspace(a, b, n, base, t.value_or(get_default_dtype()));
}

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
         if (end.is<extent>()) return arange(end.as<extent>(), t.value_or(dtype::int64));
         return stepped(extent(0), end, extent(1), t);
       }},
      {"arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       +[](argument const& start, argument const& end, type t) { return stepped(start, end, extent(1), t); }},
      {"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       +[](argument const& start, argument const& end, argument const& step, type t) {
         return stepped(start, end, step, t);
       }},
      {"linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       +[](double a, double b, index_t n, type t) { return linspace(a, b, n, t.value_or(get_default_dtype())); }},
      {"logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? "
       "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       +[](double a, double b, index_t n, double base, type t) {
         return logspace(a, b, n, base, t.value_or(get_default_dtype()));
       }},
      {"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       spaced_between},
      {"linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       spaced_between},
      {"linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       spaced_between},
      {"logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, ScalarType? dtype=None, "
       "Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       spaced_in_powers},
      {"logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, "
       "Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       spaced_in_powers},
      {"logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, ScalarType? dtype=None, "
       "Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       spaced_in_powers},
      {"tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       +[](index_t n, index_t m, index_t o, type t) { return tril_indices(n, m, o, false, t.value_or(dtype::int64)); }},
      {"triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       +[](index_t n, index_t m, index_t o, type t) { return triu_indices(n, m, o, t.value_or(dtype::int64)); }},
      {"eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](index_t n, index_t m, type t) { return eye(n, m, t.value_or(get_default_dtype())); }},
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
      {"signal.windows.bartlett(int M, *, bool sym=True, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None) -> Tensor",
       +[](index_t m, bool s, type t) { return windows::bartlett(m, s, t.value_or(get_default_dtype())); }},
      {"signal.windows.blackman(int M, *, bool sym=True, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None) -> Tensor",
       +[](index_t m, bool s, type t) { return windows::blackman(m, s, t.value_or(get_default_dtype())); }},
      {"signal.windows.cosine(int M, *, bool sym=True, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None) -> Tensor",
       +[](index_t m, bool s, type t) { return windows::cosine(m, s, t.value_or(get_default_dtype())); }},
      {"signal.windows.hamming(int M, *, bool sym=True, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None) -> Tensor",
       +[](index_t m, bool s, type t) { return windows::hamming(m, s, t.value_or(get_default_dtype())); }},
      {"signal.windows.hann(int M, *, bool sym=True, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None) -> Tensor",
       +[](index_t m, bool s, type t) { return windows::hann(m, s, t.value_or(get_default_dtype())); }},
      {"signal.windows.nuttall(int M, *, bool sym=True, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None) -> Tensor",
       +[](index_t m, bool s, type t) { return windows::nuttall(m, s, t.value_or(get_default_dtype())); }},
      {"signal.windows.kaiser(int M, *, float beta=12.0, bool sym=True, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None) -> Tensor",
       +[](index_t m, double b, bool s, type t) { return windows::kaiser(m, b, s, t.value_or(get_default_dtype())); }},
      {"signal.windows.gaussian(int M, *, float std=1.0, bool sym=True, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None) -> Tensor",
       +[](index_t m, double a, bool s, type t) {
         return windows::gaussian(m, a, s, t.value_or(get_default_dtype()));
       }},
      {"signal.windows.general_hamming(int M, *, float alpha=0.54, bool sym=True, ScalarType? dtype=None, Layout? "
       "layout=None, "
       "Device? device=None) -> Tensor",
       +[](index_t m, double a, bool s, type t) {
         return windows::general_hamming(m, a, s, t.value_or(get_default_dtype()));
       }},
      {"signal.windows.exponential(int M, *, float tau=1.0, bool sym=True, ScalarType? dtype=None, Layout? "
       "layout=None, "
       "Device? device=None) -> Tensor",
       +[](index_t m, double a, bool s, type t) {
         return windows::exponential(m, a, s, t.value_or(get_default_dtype()));
       }},
      {"signal.windows.general_cosine(int M, *, float[] a, bool sym=True, ScalarType? dtype=None, Layout? "
       "layout=None, Device? device=None) -> Tensor",
       +[](index_t m, argument const& a, bool s, type t) {
         std::vector<double> weights;
         for (argument const& e : a.as<argument::list>()) weights.push_back(detail::parameter<double>::of(e));
         return windows::general_cosine(m, weights, s, t.value_or(get_default_dtype()));
       }},
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
