// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/call/call.hpp>

namespace varve::by_name {
/// Views, joins and splits, by name.
std::span<call_row const> views();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/op/all.hpp>

namespace varve::by_name {
inline call_family const view_family{&views};

/// `reshape` where strides allow a view, which `view` promises.
inline tensor viewed_as(tensor const& x, dims const& sizes) {
  if (!detail::reshaped(detail::memory_layout(x), detail::resolve_shape(sizes, x.sizes())).expressible)
    refuse::argument_is_invalid("view", "the strides of the tensor do not allow this shape; use reshape");
  return reshape(x, sizes);
}
inline tensor copied(tensor const& x) { return clone(x); }

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
