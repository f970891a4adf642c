// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of random numbers, which all use the thread's generator.
std::span<call_row const> random_numbers();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/nn/dropout.hpp>
#include <varve/op/all.hpp>
#include <varve/random/in_place.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const random_family{&random_numbers};

template <auto const& F, class... A>
tensor filled_in_place(tensor const& x, A... a) {
  F(x, a...);
  return x;
}

VARVE_LIBRARY std::span<call_row const> random_numbers() {
  using type = std::optional<dtype>;
  static call_row const rows[] = {
      {"rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](dims s, type t) -> tensor { return rand(s, t.value_or(get_default_dtype())); }},
      {"randint(SymInt high, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](index_t high, dims s, type t) -> tensor { return randint(0, high, s, t.value_or(dtype::int64)); }},
      {"randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       +[](index_t low, index_t high, dims s, type t) -> tensor {
         return randint(low, high, s, t.value_or(dtype::int64));
       }},
      {"randperm(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](index_t n, type t) -> tensor { return randperm(n, t.value_or(dtype::int64)); }},
      {"rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       +[](tensor const& x, type t) -> tensor { return rand(x.sizes(), t.value_or(x.dtype())); }},
      {"randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       +[](tensor const& x, type t) -> tensor { return randn(x.sizes(), t.value_or(x.dtype())); }},
      {"randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       +[](tensor const& x, index_t high, type t) -> tensor {
         return randint(0, high, x.sizes(), t.value_or(x.dtype()));
       }},
      {"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       +[](tensor const& x, index_t low, index_t high, type t) -> tensor {
         return randint(low, high, x.sizes(), t.value_or(x.dtype()));
       }},
      {"bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", +[](tensor const& p) { return bernoulli(p); }},
      {"bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
       +[](tensor const& x, double p) { return bernoulli(x, p); }},
      {"normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
       +[](tensor const& m, double s) { return normal(m, s); }},
      {"normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
       +[](double m, tensor const& s) { return normal(m, s); }},
      {"normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
       +[](tensor const& m, tensor const& s) { return normal(m, s); }},
      {"normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, "
       "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       +[](double m, double s, dims sizes, type t) -> tensor {
         return normal(m, s, sizes, {}, t.value_or(get_default_dtype()));
       }},
      {"poisson(Tensor self, Generator? generator=None) -> Tensor", +[](tensor const& x) { return poisson(x); }},
      {"multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
       +[](tensor const& x, index_t n, bool again) { return multinomial(x, n, again); }},
      {"dropout(Tensor input, float p=0.5, bool train=True) -> Tensor",
       +[](tensor const& x, double p, bool t) { return dropout(x, p, t); }, "nn.functional.dropout"},
      {"feature_dropout(Tensor input, float p=0.5, bool train=True) -> Tensor",
       +[](tensor const& x, double p, bool t) { return feature_dropout(x, p, t); },
       "nn.functional.dropout2d nn.functional.dropout3d"},
      {"alpha_dropout(Tensor input, float p=0.5, bool train=False) -> Tensor",
       +[](tensor const& x, double p, bool t) { return alpha_dropout(x, p, t); }, "nn.functional.alpha_dropout"},
      {"feature_alpha_dropout(Tensor input, float p=0.5, bool train=False) -> Tensor",
       +[](tensor const& x, double p, bool t) { return feature_alpha_dropout(x, p, t); },
       "nn.functional.feature_alpha_dropout"},
      {"uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)",
       filled_in_place<uniform_, double, double>},
      {"normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)",
       filled_in_place<normal_, double, double>},
      {"log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)",
       filled_in_place<log_normal_, double, double>},
      {"bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
       filled_in_place<bernoulli_, double>},
      {"exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)",
       filled_in_place<exponential_, double>},
      {"geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
       filled_in_place<geometric_, double>},
      {"cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)",
       filled_in_place<cauchy_, double, double>},
      {"random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)", filled_in_place<random_>},
      {"random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
       +[](tensor const& x, index_t to) { return filled_in_place<random_, index_t, index_t>(x, 0, to); }},
      {"random_.from(Tensor(a!) self, int from, int to, *, Generator? generator=None) -> Tensor(a!)",
       filled_in_place<random_, index_t, index_t>},
  };
  return rows;
}
} // namespace varve::by_name
#endif
