// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of views, joins and splits.
std::span<call_row const> views();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/by_name/adapt.hpp>
#include <varve/composite/diagonals.hpp>
#include <varve/composite/index_select.hpp>
#include <varve/composite/pad.hpp>
#include <varve/composite/repeat.hpp>
#include <varve/composite/stacks.hpp>
#include <varve/composite/windows.hpp>
#include <varve/op/all.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const view_family{&views};

/// Returns `reshape` as a view, which `view` promises. Refuses strides that do not allow it.
inline tensor viewed_as(tensor const& x, dims const& sizes) {
  if (!detail::reshaped(detail::memory_layout(x), detail::resolve_shape(sizes, x.sizes())).expressible)
    refuse::argument_is_invalid("view", "the strides of the tensor do not allow this shape; use reshape");
  return reshape(x, sizes);
}
inline tensor copied(tensor const& x) { return clone(x); }

using tensors = std::vector<tensor>;
inline tensor transposed(tensor const& x) {
  if (x.dim() > 2) refuse::argument_is_invalid("t", "at most two dimensions are expected");
  return x.dim() == 2 ? tensor(permute(x, dims{1, 0})) : x;
}
inline tensor matrices_transposed(tensor const& x) {
  if (x.dim() == 1) refuse::argument_is_invalid("mT", "matrices are expected, not vectors");
  return x.dim() ? tensor(transpose(x, dims{-2}, dims{-1})) : x;
}
inline tensors copies(tensors x) {
  for (tensor& t : x) t = clone(t);
  return x;
}
/// Splits like `hsplit`, `vsplit` and `dsplit`: into equal parts, or at given positions.
template <int Axis, int Least>
tensors split_evenly(tensor const& x, index_t n) {
  if (x.dim() < Least) refuse::argument_is_invalid("split", "the tensor has too few dimensions");
  index_t const axis = Axis == 1 && x.dim() == 1 ? 0 : Axis;
  if (n < 1 || x.sizes()[static_cast<int>(axis)] % n != 0)
    refuse::argument_is_invalid("split", "the axis cannot be divided into so many equal parts");
  return tensor_split(x, dims{n}, dims{axis});
}
template <int Axis, int Least>
tensors split_between(tensor const& x, dims at) {
  if (x.dim() < Least) refuse::argument_is_invalid("split", "the tensor has too few dimensions");
  return split_at(x, at, dims{Axis == 1 && x.dim() == 1 ? 0 : Axis});
}

/// Repeats each slice as often as its own count says.
inline tensor repeated_by(tensor const& x, tensor const& n, index_t a) {
  if (n.dim() > 1 || is_floating(n.dtype()))
    refuse::argument_is_invalid("repeat_interleave", "the repeats are a vector of integers");
  std::vector<index_t> at;
  index_t const slices = x.dim() ? index_t(x.sizes()[wrap_axis(a, x.dim())]) : 1;
  if (n.numel() != 1 && n.numel() != slices)
    refuse::argument_is_invalid("repeat_interleave", "there must be a number for each slice, or one");
  tensor const each = expand(reshape(n, dims{-1}), dims{slices});
  index_t k = 0;
  for (tensor const& t : unbind(each)) {
    index_t const count = item(t);
    if (count < 0) refuse::argument_is_invalid("repeat_interleave", "repeats must not be negative");
    at.insert(at.end(), static_cast<std::size_t>(count), k++);
  }
  return index_select(x, dims{a}, tensor::from_data(at.data(), dims{static_cast<index_t>(at.size())}));
}
inline tensor on_diagonal(tensor const& x, index_t o, index_t a, index_t b) {
  return diagonal(x, dims{o}, dims{a}, dims{b});
}
/// Returns several ranges as coordinate grids, with `ij` or `xy` indexing.
inline tensors grids(tensors x, std::string const& indexing) {
  if (indexing != "ij" && indexing != "xy") refuse::argument_is_invalid("meshgrid", "indexing is 'ij' or 'xy'");
  bool const turned = indexing == "xy" && x.size() > 1;
  if (turned) std::swap(x[0], x[1]);
  dims all;
  for (tensor const& t : x) {
    if (t.dim() > 1 || t.dtype() != x[0].dtype())
      refuse::argument_is_invalid("meshgrid", "vectors of one dtype are expected");
    all.push_back(t.numel());
  }
  for (int k = 0; k < all.n; ++k) {
    dims thin = all;
    for (int d = 0; d < all.n; ++d)
      if (d != k) thin[d] = 1;
    tensor& t = x[static_cast<std::size_t>(k)];
    t = expand(reshape(t, thin), all);
  }
  if (turned) std::swap(x[0], x[1]);
  return x;
}
/// Returns a mask, which broadcasts, of the position `i` along an axis.
inline tensor counted_along(tensor const& x, index_t a, extent i) {
  dims thin = x.sizes();
  int const k = wrap_axis(a, x.dim());
  for (int d = 0; d < thin.n; ++d)
    if (d != k) thin[d] = 1;
  return eq(reshape(arange(x.sizes()[k]), thin), index_t(i < 0 ? i + x.sizes()[k] : i));
}
inline tensor select_scattered(tensor const& x, tensor const& y, index_t a, extent i) {
  tensor const at = counted_along(x, a, i);
  dims thin = x.sizes();
  thin[wrap_axis(a, x.dim())] = 1;
  dims const want = tensor(select(x, dims{a}, dims{i})).sizes();
  if (!(y.sizes() == want)) refuse::shapes_do_not_match("select_scatter", want, y.sizes());
  detail::needs_room("select_scatter", x, y);
  return where(at, to(reshape(y, thin), x.dtype()), x);
}

/// Pads axes to whole chunks, makes the chunks an axis of their own, and joins the tensors along the next axis.
inline tensor chunks_joined(tensors x, index_t a, index_t n) {
  if (x.empty() || n < 1)
    refuse::argument_is_invalid("_chunk_cat", "tensors, and a positive number of chunks, are expected");
  int const k = wrap_axis(a, x[0].dim());
  for (tensor& t : x) {
    if (t.dim() <= k || t.dtype() != x[0].dtype() || t.numel() == 0)
      refuse::argument_is_invalid("_chunk_cat", "tensors of one dtype, with elements, that have the axis are expected");
    for (int d = 0; d < k; ++d)
      if (!(t.sizes()[d] == x[0].sizes()[d])) refuse::shapes_do_not_match("_chunk_cat", x[0].sizes(), t.sizes());
    dims pad, whole = t.sizes().sub(0, k);
    for (int d = t.dim() - 1; d > k; --d) pad.push_back(0).push_back(0);
    pad.push_back(0).push_back((n - t.sizes()[k] % n) % n);
    whole.push_back(n), whole.push_back(-1);
    if (pad.n > 8) { // more axes than a padding can have
      dims flat = t.sizes().sub(0, k + 1);
      t = reshape(t, flat.push_back(-1));
      pad = dims{0, 0, 0, (n - t.sizes()[k] % n) % n};
    }
    t = reshape(constant_pad_nd(t, pad), whole);
  }
  return cat(x, dims{k + 1});
}
/// Pads with a mode by name; without a value, constant padding uses 0.
inline tensor padded(tensor const& x, dims margins, std::string const& mode, tensor const& v) {
  if (mode == "constant") {
    if (!v.defined()) return constant_pad_nd(x, margins);
    return with_number(v, [&](auto n) -> tensor { return constant_pad_nd(x, margins, n); });
  }
  if (v.defined() && v.item<double>() != 0)
    refuse::argument_is_invalid("pad", "only the mode 'constant' takes a value");
  char const* const names[] = {"reflect", "replicate", "circular"};
  for (int k = 0; k < 3; ++k)
    if (mode == names[k]) return pad(x, margins, dims{k + 1});
  refuse::argument_is_invalid("pad", "the mode is 'constant', 'reflect', 'replicate' or 'circular'");
}
/// Returns all combinations of r elements of a vector, in order.
inline tensor chosen(tensor const& x, index_t r, bool again) {
  if (x.dim() != 1 || r < 0)
    refuse::argument_is_invalid("combinations", "a vector, and a count that is not negative, are expected");
  if (r == 0) return zeros(dims{0}, x.dtype());
  index_t const n = x.numel();
  dims all;
  for (index_t k = 0; k < r; ++k) all.push_back(n);
  tensor rising = ones(all, dtype::bool_); // true where positions increase
  for (int k = 0; k + 1 < all.n; ++k) {
    dims first = all, second = all;
    for (int d = 0; d < all.n; ++d) first[d] = d == k ? n : 1, second[d] = d == k + 1 ? n : 1;
    tensor const u = reshape(arange(n), first), v = reshape(arange(n), second);
    rising = mul(rising, again ? tensor(le(u, v)) : tensor(lt(u, v)));
  }
  index_t count = 1; // n over r; n + r - 1 over r if repetition is allowed
  for (index_t k = 0; k < r; ++k) count = count * (again ? n + k : n - k) / (k + 1);
  tensor const at = nonzero_static(rising, count < 0 ? index_t{0} : count);
  return reshape(index_select(x, dims{0}, reshape(at, dims{-1})), at.sizes());
}

VARVE_LIBRARY std::span<call_row const> views() {
  using enum call_forms;
  static call_row const rows[] = {
      {"reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
       +[](tensor const& x, dims s) -> tensor { return reshape(x, s); }},
      {"reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
       +[](tensor const& x, tensor const& o) -> tensor { return reshape(x, o.sizes()); }},
      {"view(Tensor(a) self, SymInt[] size) -> Tensor(a)", viewed_as},
      {"view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
       +[](tensor const& x, tensor const& o) -> tensor { return viewed_as(x, o.sizes()); }},
      {"permute(Tensor(a) self, int[] dims) -> Tensor(a)",
       +[](tensor const& x, dims a) -> tensor { return permute(x, a); }},
      {"transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
       +[](tensor const& x, index_t a, index_t b) -> tensor { return transpose(x, dims{a}, dims{b}); },
       "swapaxes swapdims"},
      {"squeeze(Tensor(a) self) -> Tensor(a)", +[](tensor const& x) -> tensor { return squeeze(x); }},
      {"squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
       +[](tensor const& x, index_t a) -> tensor { return squeeze(x, dims{a}); }},
      {"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
       +[](tensor const& x, dims a) -> tensor { return a.empty() ? x : tensor(squeeze(x, a)); }},
      {"unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
       +[](tensor const& x, index_t a) -> tensor { return unsqueeze(x, dims{a}); }},
      {"expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
       +[](tensor const& x, dims s, bool) -> tensor { return expand(x, s); }},
      {"expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
       +[](tensor const& x, tensor const& o) -> tensor { return expand(x, o.sizes()); }},
      {"broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
       +[](tensor const& x, dims s) -> tensor { return expand(x, s); }},
      {"slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
       +[](tensor const& x, index_t a, std::optional<extent> from, std::optional<extent> to, extent step) -> tensor {
         return slice(x, dims{a}, from.value_or(0), to.value_or(end), step);
       }},
      {"select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
       +[](tensor const& x, index_t a, extent i) -> tensor { return select(x, dims{a}, dims{i}); }},
      {"as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
       +[](tensor const& x, dims s, dims t, std::optional<extent> o) -> tensor {
         return as_strided(x, s, t, dims{o.value_or(0)});
       }},
      {"as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
       "Tensor",
       +[](tensor const& x, tensor const& y, dims s, dims t, std::optional<extent> o) -> tensor {
         if (!(y.sizes() == s)) refuse::shapes_do_not_match("as_strided_scatter", y.sizes(), s);
         return as_strided_scatter(x, y, t, dims{o.value_or(0)});
       },
       out},
      {"cat(Tensor[] tensors, int dim=0) -> Tensor",
       +[](std::vector<tensor> const& x, index_t a) -> tensor { return cat(x, dims{a}); }, out, "concat concatenate"},
      {"stack(Tensor[] tensors, int dim=0) -> Tensor",
       +[](std::vector<tensor> const& x, index_t a) -> tensor { return stack(x, dims{a}); }, out},
      {"unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]",
       +[](tensor const& x, index_t a) { return unbind(x, dims{a}); }},
      {"split.Tensor(Tensor(a) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
       +[](tensor const& x, index_t n, index_t a) { return split(x, dims{n}, dims{a}); }, "unsafe_split"},
      {"chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]",
       +[](tensor const& x, index_t n, index_t a) { return chunk(x, dims{n}, dims{a}); }, "unsafe_chunk"},
      {"flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
       +[](tensor const& x, index_t a, index_t b) -> tensor { return flatten(x, dims{a}, dims{b}); }},
      {"ravel(Tensor(a) self) -> Tensor(a)", +[](tensor const& x) -> tensor { return contiguous(ravel(x)); }},
      {"unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
       +[](tensor const& x, index_t a, dims s) -> tensor { return unflatten(x, dims{a}, s); }},
      {"movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
       +[](tensor const& x, dims a, dims b) -> tensor { return movedim(x, a, b); }, "moveaxis"},
      {"movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
       +[](tensor const& x, index_t a, index_t b) -> tensor { return movedim(x, dims{a}, dims{b}); }, "moveaxis"},
      {"t(Tensor(a) self) -> Tensor(a)", transposed},
      {"T(Tensor(a) self) -> Tensor(a)",
       +[](tensor const& x) -> tensor {
         dims order;
         for (int k = x.dim() - 1; k >= 0; --k) order.push_back(k);
         return permute(x, order);
       }},
      {"t_copy(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return clone(transposed(x)); }, out},
      {"mT(Tensor(a) self) -> Tensor(a)", matrices_transposed},
      {"narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
       +[](tensor const& x, index_t a, extent i, extent n) -> tensor { return narrow(x, dims{a}, dims{i}, dims{n}); }},
      {"narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
       +[](tensor const& x, index_t a, extent i, extent n) -> tensor {
         return clone(narrow(x, dims{a}, dims{i}, dims{n}));
       },
       out},
      {"narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
       +[](tensor const& x, index_t a, tensor const& i, extent n) -> tensor {
         return narrow(x, dims{a}, dims{item(i)}, dims{n});
       }},
      {"slice(Tensor(a) self, SymInt start) -> Tensor(a)",
       +[](tensor const& x, extent i) -> tensor { return slice(x, dims{0}, i, end); }},
      {"atleast_1d(Tensor self) -> Tensor", of_one<atleast_1d_t>},
      {"atleast_2d(Tensor self) -> Tensor", of_one<atleast_2d_t>},
      {"atleast_3d(Tensor self) -> Tensor", of_one<atleast_3d_t>},
      {"hstack(Tensor[] tensors) -> Tensor", +[](tensors const& x) -> tensor { return hstack(x); }, out},
      {"vstack(Tensor[] tensors) -> Tensor", +[](tensors const& x) -> tensor { return vstack(x); }, out, "row_stack"},
      {"dstack(Tensor[] tensors) -> Tensor", +[](tensors const& x) -> tensor { return dstack(x); }, out},
      {"column_stack(Tensor[] tensors) -> Tensor", +[](tensors const& x) -> tensor { return column_stack(x); }, out},
      {"split.sizes(Tensor(a) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
       +[](tensor const& x, dims n, index_t a) { return split_with_sizes(x, n, dims{a}); }},
      {"split_with_sizes(Tensor(a) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
       +[](tensor const& x, dims n, index_t a) { return split_with_sizes(x, n, dims{a}); }},
      {"split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
       +[](tensor const& x, dims n, index_t a) { return copies(split_with_sizes(x, n, dims{a})); }},
      {"tensor_split.sections(Tensor(a) self, SymInt sections, int dim=0) -> Tensor(a)[]",
       +[](tensor const& x, index_t n, index_t a) { return tensor_split(x, dims{n}, dims{a}); }},
      {"tensor_split.indices(Tensor(a) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
       +[](tensor const& x, dims at, index_t a) { return split_at(x, at, dims{a}); }},
      {"tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0) -> "
       "Tensor(a)[]",
       +[](tensor const& x, tensor const& at, index_t a) -> tensors {
         if (at.dim() == 0) return tensor_split(x, dims{item(at)}, dims{a});
         dims places;
         for (tensor const& i : unbind(at)) places.push_back(item(i));
         return split_at(x, places, dims{a});
       }},
      {"hsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", split_evenly<1, 1>},
      {"hsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", split_between<1, 1>},
      {"vsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", split_evenly<0, 2>},
      {"vsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", split_between<0, 2>},
      {"dsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", split_evenly<2, 3>},
      {"dsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", split_between<2, 3>},
      {"repeat(Tensor self, SymInt[] repeats) -> Tensor",
       +[](tensor const& x, dims r) -> tensor { return repeat(x, r); }},
      {"tile(Tensor self, SymInt[] dims) -> Tensor", +[](tensor const& x, dims r) -> tensor { return tile(x, r); }},
      {"block_diag(Tensor[] tensors) -> Tensor",
       +[](tensors const& x) -> tensor { return x.empty() ? zeros(dims{1, 0}) : tensor(block_diag(x)); }, variadic},
      {"nn.functional.pad(Tensor input, SymInt[] pad, str mode='constant', Scalar? value=None) -> Tensor", padded,
       "pad"},
      {"roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
       +[](tensor const& x, dims s, dims a) -> tensor { return roll(x, s, a); }},
      {"broadcast_tensors(Tensor[] tensors) -> Tensor[]",
       +[](tensors x) -> tensors {
         dims all;
         for (tensor const& t : x) all = broadcast(all, t.sizes());
         for (tensor& t : x) t = expand(t, all);
         return x;
       },
       variadic},
      {"diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", on_diagonal},
      {"diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
       +[](tensor const& x, index_t o, index_t a, index_t b) -> tensor { return clone(on_diagonal(x, o, a, b)); }, out},
      {"linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", on_diagonal,
       "linalg.diagonal"},
      {"diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
       +[](tensor const& x, tensor const& y, index_t o, index_t a, index_t b) -> tensor {
         return diagonal_scatter(x, y, dims{o}, dims{a}, dims{b});
       },
       out},
      {"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
       +[](tensor const& x, index_t o, index_t a, index_t b) -> tensor {
         return diag_embed(x, dims{o}, dims{a}, dims{b});
       },
       out},
      {"diag(Tensor self, int diagonal=0) -> Tensor",
       +[](tensor const& x, index_t o) -> tensor { return clone(diag(x, dims{o})); }, out},
      {"diagflat(Tensor self, int offset=0) -> Tensor",
       +[](tensor const& x, index_t o) -> tensor { return diag_embed(ravel(x), dims{o}); }},
      {"tril(Tensor self, int diagonal=0) -> Tensor",
       +[](tensor const& x, index_t o) -> tensor { return tril(x, o); }, both},
      {"triu(Tensor self, int diagonal=0) -> Tensor",
       +[](tensor const& x, index_t o) -> tensor { return triu(x, o); }, both},
      {"trace(Tensor self) -> Tensor", of_one<trace_of_matrix_t>, out},
      {"flip(Tensor self, int[] dims) -> Tensor", +[](tensor const& x, dims a) -> tensor { return flip(x, a); }, out},
      {"fliplr(Tensor self) -> Tensor",
       +[](tensor const& x) -> tensor {
         if (x.dim() < 2) refuse::argument_is_invalid("fliplr", "at least two dimensions are expected");
         return flip(x, dims{1});
       }},
      {"flipud(Tensor self) -> Tensor",
       +[](tensor const& x) -> tensor {
         if (x.dim() < 1) refuse::argument_is_invalid("flipud", "at least one dimension is expected");
         return flip(x, dims{0});
       }},
      {"rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
       +[](tensor const& x, index_t k, dims a) -> tensor { return rot90(x, dims{k}, a); }, out},
      {"repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
       +[](tensor const& x, extent n, std::optional<index_t> a, std::optional<extent>) -> tensor {
         if (!a) return repeat_interleave(ravel(x), dims{n}, dims{0});
         return repeat_interleave(x, dims{n}, dims{*a});
       }},
      {"repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> "
       "Tensor",
       +[](tensor const& x, tensor const& n, std::optional<index_t> a, std::optional<extent>) -> tensor {
         return repeated_by(a ? x : tensor(ravel(x)), n, a.value_or(0));
       }},
      {"unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
       +[](tensor const& x, index_t a, index_t n, index_t s) -> tensor {
         return unfold(x, dims{a}, dims{n}, dims{s});
       }},
      {"unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
       +[](tensor const& x, index_t a, index_t n, index_t s) -> tensor {
         return clone(unfold(x, dims{a}, dims{n}, dims{s}));
       },
       out},
      {"constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
       +[](tensor const& x, dims p, tensor const& v) -> tensor {
         return with_number(v, [&](auto n) -> tensor { return constant_pad_nd(x, p, n); });
       },
       out},
      {"pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
       +[](tensor const& x, index_t r) -> tensor { return pixel_shuffle(x, dims{r}); }, "nn.functional.pixel_shuffle"},
      {"pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
       +[](tensor const& x, index_t r) -> tensor { return pixel_unshuffle(x, dims{r}); },
       "nn.functional.pixel_unshuffle"},
      {"meshgrid.indexing(Tensor[] tensors, *, str indexing='ij') -> Tensor[]", grids, variadic},
      {"cartesian_prod(Tensor[] tensors) -> Tensor",
       +[](tensors const& x) -> tensor {
         if (x.size() == 1) return x[0];
         tensors rows;
         for (tensor const& t : grids(x, "ij")) rows.push_back(ravel(t));
         return stack(rows, dims{1});
       },
       variadic},
      {"_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", chunks_joined, out},
      {"combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", chosen},
      {"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", select_scattered, out},
      {"alias_copy(Tensor self) -> Tensor", copied, out},
      {"expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
       +[](tensor const& x, dims s, bool) -> tensor { return clone(expand(x, s)); }, out},
      {"permute_copy(Tensor self, int[] dims) -> Tensor",
       +[](tensor const& x, dims a) -> tensor { return clone(permute(x, a)); }, out},
      {"squeeze_copy(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return clone(squeeze(x)); }, out},
      {"squeeze_copy.dim(Tensor self, int dim) -> Tensor",
       +[](tensor const& x, index_t a) -> tensor { return clone(squeeze(x, dims{a})); }, out},
      {"unsqueeze_copy(Tensor self, int dim) -> Tensor",
       +[](tensor const& x, index_t a) -> tensor { return clone(unsqueeze(x, dims{a})); }, out},
      {"transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
       +[](tensor const& x, index_t a, index_t b) -> tensor { return clone(transpose(x, dims{a}, dims{b})); }, out},
      {"view_copy(Tensor self, SymInt[] size) -> Tensor",
       +[](tensor const& x, dims s) -> tensor { return clone(viewed_as(x, s)); }, out},
      {"as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
       +[](tensor const& x, dims s, dims t, std::optional<extent> o) -> tensor {
         return clone(as_strided(x, s, t, dims{o.value_or(0)}));
       },
       out},
      {"resolve_conj(Tensor(a) self) -> Tensor(a)", +[](tensor const& x) { return x; }, "resolve_neg"},
  };
  return rows;
}
} // namespace varve::by_name
#endif
