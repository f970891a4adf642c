// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of operators that write by index, and of indices of several dimensions.
std::span<call_row const> scattering();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/indexing/advanced.hpp>
#include <varve/indexing/scatter.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const scatter_family{&scattering};

inline tensor scattered(tensor const& x, index_t a, tensor const& i, tensor const& s) {
  return scatter(x, dims{a}, i, s);
}
/// Expands a number to all positions of an index.
inline tensor number_for(tensor const& x, tensor const& i, tensor const& v) {
  return expand(as_element("scatter", x, v), i.dim() || i.numel() != 1 ? i.sizes() : dims{});
}
inline tensor scattered_by(tensor const& x, index_t a, tensor const& i, tensor const& s, std::string const& how) {
  if (how == "add") return scatter_add(x, dims{a}, i, s);
  if (how == "multiply") return scatter_by(x, dims{a}, i, s, by_rule<scatter_rule::multiply>.to_dims());
  refuse::argument_is_invalid("scatter", "the reduction is 'add' or 'multiply'");
}
inline index_reduction reduction_of(std::string const& how) {
  using enum index_reduction;
  if (how == "sum") return sum;
  if (how == "prod") return prod;
  if (how == "mean") return mean;
  if (how == "amax") return amax;
  if (how == "amin") return amin;
  refuse::argument_is_invalid("scatter_reduce", "the reduction is 'sum', 'prod', 'mean', 'amax' or 'amin'");
}
inline tensor added_slices(tensor const& x, index_t a, tensor const& i, tensor const& s, tensor const& alpha) {
  bool const plain = alpha.item<double>() == 1;
  return index_add(x, dims{a}, i, plain ? s : tensor(to(mul(s, alpha), s.dtype())));
}

/// Returns a Python slice, which a text describes as `a:b:c`.
inline tensor sliced(tensor const& x, int a, std::string const& text) {
  dims part{0, end, 1};
  int k = 0, digits = 0;
  index_t number = 0, sign = 1;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    char const c = i < text.size() ? text[i] : ':';
    if (c == ':') {
      if (digits > 0 && k < 3) part[k] = sign * number;
      if (k > 2 || (sign < 0 && digits == 0)) refuse::argument_is_invalid("index", "a text is a slice, 'a:b:c'");
      ++k, digits = 0, number = 0, sign = 1;
    } else if (c == '-' && digits == 0 && sign > 0) sign = -1;
    else if (c >= '0' && c <= '9' && digits < 15) number = number * 10 + (c - '0'), ++digits;
    else refuse::argument_is_invalid("index", "a text is a slice, 'a:b:c'");
  }
  return slice(x, dims{a}, part[0], part[1], part[2]);
}
inline tensor tensor_of_list(argument::list const& all) {
  std::vector<tensor> parts;
  for (argument const& e : all)
    parts.push_back(e.is<argument::list>() ? tensor_of_list(e.as<argument::list>())
                    : e.is<bool>()         ? tensor(ne(add(zeros(dims{}, dtype::int64), e.as<bool>() ? 1 : 0), 0))
                                           : tensor(add(zeros(dims{}, dtype::int64), detail::held<extent>(e, "int"))));
  return parts.empty() ? zeros(dims{0}, dtype::int64) : tensor(stack(parts, dims{0}));
}
/// Returns `x[index]`. The index is a number, None, a tensor, a list of integers, a text `a:b:c`, or a list of these.
inline tensor subscripted(tensor const& in, argument const& index) {
  bool several = false;
  if (index.is<argument::list>())
    for (argument const& e : index.as<argument::list>()) several = several || !(e.is<extent>() || e.is<bool>());
  argument::list const parts = several ? index.as<argument::list>() : argument::list{index};
  std::vector<tensor> at;
  bool any = false;
  int axis = 0; // the axis of the next part
  tensor x = in;
  for (argument const& e : parts)
    if (e.is<extent>()) x = select(x, dims{axis}, dims{e.as<extent>()});
    else if (e.is_none()) x = unsqueeze(x, dims{axis++}), at.emplace_back();
    else if (e.is<std::string>()) x = sliced(x, axis++, e.as<std::string>()), at.emplace_back();
    else {
      at.push_back(e.is<argument::list>() ? tensor_of_list(e.as<argument::list>()) : detail::held<tensor>(e, "index"));
      axis += at.back().dtype() == dtype::bool_ ? at.back().dim() : 1;
      any = true;
    }
  return any ? index_by(x, at) : x;
}

VARVE_LIBRARY std::span<call_row const> scattering() {
  using enum call_forms;
  using several = std::vector<tensor>;
  static call_row const rows[] = {
      {"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scattered, both},
      {"scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
       +[](tensor const& x, index_t a, tensor const& i, tensor const& v) {
         return scattered(x, a, i, number_for(x, i, v));
       },
       both},
      {"scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", scattered_by, both},
      {"scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
       +[](tensor const& x, index_t a, tensor const& i, tensor const& v, std::string const& how) {
         return scattered_by(x, a, i, number_for(x, i, v), how);
       },
       both},
      {"scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
       "Tensor",
       +[](tensor const& x, index_t a, tensor const& i, tensor const& s, std::string const& how, bool self) -> tensor {
         return scatter_reduce(x, dims{a}, i, s, reduction_of(how), self);
       },
       both},
      {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", added_slices, both},
      {"index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
       +[](tensor const& x, index_t a, tensor const& i, tensor const& s) -> tensor {
         return index_copy(x, dims{a}, i, s);
       },
       both},
      {"index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> "
       "Tensor",
       +[](tensor const& x, index_t a, tensor const& i, tensor const& s, std::string const& how, bool self) -> tensor {
         return index_reduce(x, dims{a}, i, s, reduction_of(how), self);
       },
       both},
      {"put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
       +[](tensor const& x, tensor const& i, tensor const& s, bool accumulate) -> tensor {
         return put(x, i, s, accumulate);
       },
       in_place},
      {"masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", of_three<masked_scatter_t>, in_place},
      {"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
       +[](tensor const& x, several const& i) { return index_by(x, i); }},
      {"index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
       +[](tensor const& x, several const& i, tensor const& v, bool accumulate) {
         return index_put(x, i, v, accumulate);
       },
       in_place},
      {"_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
       +[](tensor const& x, several const& i) { return index_by(x, i); }},
      {"_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
       +[](tensor const& x, tensor const& m, several const& i, tensor const& f) { return masked_index(x, m, i, f); }},
      {"_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
       +[](tensor const& x, tensor const& m, several const& i, tensor const& v) {
         return masked_index_put(x, m, i, v);
       }},
      {"__getitem__(Tensor self, Any index) -> Tensor", subscripted},
  };
  return rows;
}
} // namespace varve::by_name
#endif
