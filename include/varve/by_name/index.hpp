// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of operators that read and write by index.
std::span<call_row const> indexing();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/composite/calculus.hpp>
#include <varve/composite/index_select.hpp>
#include <varve/indexing/bincount.hpp>
#include <varve/indexing/unravel.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const index_family{&indexing};

/// Returns a mask, broadcastable to `x`, of the positions along an axis that occur in `index`.
inline tensor has_index(tensor const& x, index_t a, tensor const& index) {
  int const k = wrap_axis(a, x.dim());
  extent const n = x.dim() ? x.sizes()[k] : extent(1);
  tensor const at = ravel(to(index, dtype::int64));
  tensor const from_front = where(lt(at, 0), add(at, index_t(n)), at);
  tensor const ones_there = scatter_add(zeros(dims{n}, dtype::int64), dims{0}, from_front, ones_like(at));
  dims thin = x.sizes();
  for (int d = 0; d < thin.n; ++d)
    if (d != k) thin[d] = 1;
  return reshape(ne(ones_there, 0), thin);
}
inline tensor filled_at(tensor const& x, index_t a, tensor const& index, tensor const& v) {
  if (v.dim() != 0) refuse::argument_is_invalid("index_fill", "the value has one element, of rank 0");
  detail::needs_room("index_fill", x, v);
  return where(has_index(x, a, index), as_element("index_fill", x, v), x);
}

/// Returns the insertion positions of values in a sorted sequence; `sorter` gives its order if it is unsorted.
inline tensor placed(tensor const& sorted, tensor const& v, bool int32, bool right,
                     std::optional<std::string> const& side, tensor const& sorter) {
  if (side && *side != "left" && *side != "right")
    refuse::argument_is_invalid("searchsorted", "the side is 'left' or 'right'");
  if (side && *side == "left" && right)
    refuse::argument_is_invalid("searchsorted", "side and right contradict each other");
  tensor const in_order = sorter.defined() ? tensor(gather(sorted, dims{-1}, sorter)) : sorted;
  tensor const at = searchsorted(in_order, v, dims{right || (side && *side == "right")});
  return int32 ? tensor(to(at, dtype::int32)) : at;
}

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
      {"index_select(Tensor self, int dim, Tensor index) -> Tensor",
       +[](tensor const& x, index_t a, tensor const& i) -> tensor { return index_select(x, dims{a}, i); },
       out_of_its_dtype},
      {"take(Tensor self, Tensor index) -> Tensor",
       +[](tensor const& x, tensor const& i) -> tensor {
         if (i.dtype() != dtype::int64) refuse::dtype_is_not_supported("take (int64 index):", name(i.dtype()));
         return take(x, i);
       },
       out_of_its_dtype},
      {"take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
       +[](tensor const& x, tensor const& i, std::optional<index_t> a) -> tensor {
         return a ? tensor(take_along_dim(x, i, dims{*a})) : tensor(gather(ravel(x), dims{0}, ravel(i)));
       },
       out_of_its_dtype},
      {"index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", filled_at, in_place},
      {"index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", filled_at, in_place},
      {"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
       "side=None, Tensor? sorter=None) -> Tensor",
       placed},
      {"bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
       +[](tensor const& v, tensor const& b, bool int32, bool right) { return placed(b, v, int32, right, {}, {}); }},
      {"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
       "Tensor",
       +[](tensor const& x, tensor const& t, bool, bool invert) -> tensor {
         return invert ? tensor(logical_not(isin(x, t))) : tensor(isin(x, t));
       }},
      {"bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
       +[](tensor const& x, tensor const& weights, index_t least) -> tensor { return bincount(x, weights, least); }},
      {"one_hot(Tensor self, int num_classes=-1) -> Tensor",
       +[](tensor const& x, index_t n) -> tensor { return one_hot(x, dims{n == -1 ? index_t(item(amax(x))) + 1 : n}); },
       "nn.functional.one_hot"},
      {"unravel_index(Tensor indices, SymInt[1] shape) -> Tensor[]",
       +[](tensor const& x, dims s) -> std::vector<tensor> { return unravel_index(x, s); }},
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
