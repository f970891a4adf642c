// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/call.hpp>

namespace varve::by_name {
/// What reads and writes by index, by name.
std::span<call_row const> indexing();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/op/all.hpp>

namespace varve::by_name {
inline call_family const index_family{&indexing};

VARVE_LIBRARY std::span<call_row const> indexing() {
  using enum call_forms;
  static call_row const rows[] = {
      {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
       +[](tensor const& x, index_t a, tensor const& i, bool) -> tensor { return gather(x, dims{a}, i); },
       out_of_its_dtype},
      {"scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
       +[](tensor const& x, index_t a, tensor const& i, tensor const& s) -> tensor {
         return scatter_add(x, dims{a}, i, s);
       },
       both},
      {"one_hot(Tensor self, int num_classes=-1) -> Tensor",
       +[](tensor const& x, index_t n) -> tensor { return one_hot(x, dims{n == -1 ? index_t(item(amax(x))) + 1 : n}); },
       "nn.functional.one_hot"},
      {"nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
       +[](tensor const& x, extent n, index_t fill) -> tensor {
         tensor const at = nonzero_static(x, n);
         return fill == -1 ? at : tensor(where(eq(at, -1), fill, at));
       }},
      {"nonzero(Tensor self, *, bool as_tuple=False) -> Tensor",
       +[](tensor const& x, bool tuple) -> argument::list {
         if (!tuple) return {argument(nonzero(x))};
         argument::list r;
         for (tensor const& t : unbind(nonzero(x.dim() ? x : tensor(reshape(x, dims{1}))), dims{1})) r.emplace_back(t);
         return {argument(r)};
       }},
      {"argwhere(Tensor self) -> Tensor", +[](tensor const& x) { return nonzero(x); }},
      {"masked_select(Tensor self, Tensor mask) -> Tensor",
       +[](tensor const& x, tensor const& m) { return masked_select(x, m); }, out_of_its_dtype},
  };
  return rows;
}
} // namespace varve::by_name
#endif
