// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/calculus.hpp>
#include <varve/composite/norms.hpp>
#include <varve/composite/ranges.hpp>
#include <varve/indexing/scatter.hpp>
#include <varve/op/detach.hpp>

#include <optional>

/// @file
/// Rows of a matrix by index, and reductions of such rows (`torch.nn.functional`). Tensors only. (These functions are
/// templates only so that unused ones cost nothing.)
namespace varve {

/// How `embedding_bag` combines the rows of a bag.
enum class bag_rule : unsigned char { sum, mean, max };

namespace detail {
/// Returns a matrix with the norms of its rows limited. Derivatives are those of the original rows.
template <class T>
T with_norms_limited(T const& weight, double most, double p) {
  T const norms = vector_norm(weight, p, dims{1}, dims{1});
  T const limited = where(gt(norms, most), mul(weight, div(most, add(norms, 1e-7))), weight);
  return add(weight, T(detach(T(sub(limited, weight)))));
}
/// Returns the rows that were read, with the derivative of each divided by how often its row was read
/// (`scale_grad_by_freq`).
template <class T>
T shared_by_readings(T const& read, T const& at, extent rows) {
  T const each = scatter_add(T(zeros(dims{rows}, dtype::int64)), axis<0>, at, T(ones_like(at)));
  T const share = unsqueeze(T(reciprocal(T(to(T(gather(each, axis<0>, at)), read.dtype())))), axis<1>);
  T const shared = add(T(detach(read)), T(mul(T(sub(read, T(detach(read)))), share)));
  return where(T(isfinite(read)), shared, read);
}
/// Returns a row index counted from the front; negative ones count from the end.
inline index_t row_from_front(char const* op, index_t row, extent n) {
  if (row < -index_t(n) || row >= index_t(n)) refuse::index_out_of_range(op, row, n);
  return row < 0 ? row + index_t(n) : row;
}
} // namespace detail

/// Returns the rows of a matrix that an index selects (`torch.nn.functional.embedding`). The result has the shape of
/// the index, followed by the length of a row. The row `padding` gets no gradient. `most` limits the p-norm of the rows
/// that are read; the matrix itself does not change. `by_count` divides the gradient of a row by how often it is
/// selected.
template <class T>
  requires std::is_same_v<T, tensor>
T embedding(T const& index, T const& weight, std::optional<index_t> padding = {}, std::optional<double> most = {},
            double p = 2, bool by_count = false) {
  if (weight.dim() != 2) refuse::argument_is_invalid("embedding", "the weight is a matrix");
  detail::require_index("embedding", index, true);
  T const rows = most ? detail::with_norms_limited(weight, *most, p) : weight;
  dims shape = index.sizes();
  shape.push_back(weight.sizes()[1]);
  T const at = ravel(index), plain = index_select(rows, dims{0}, at);
  T const read = by_count ? detail::shared_by_readings(plain, T(to(at, dtype::int64)), weight.sizes()[0]) : plain;
  T const y = reshape(read, shape);
  if (!padding) return y;
  index_t const row = detail::row_from_front("embedding", *padding, weight.sizes()[0]);
  return where(T(unsqueeze(T(eq(index, row)), axis<-1>)), T(detach(y)), y);
}

/// Returns the sum, mean or maximum of the rows of each bag (`torch.nn.functional.embedding_bag`). Bags are the rows of
/// an index [bags, n], or parts of an index vector that start at `offsets`; with `with_end` the last offset is the end
/// of the last bag. `row_weights` are for sums only. The row `padding` is ignored. Bags without rows are 0.
template <class T>
  requires std::is_same_v<T, tensor>
T embedding_bag(T const& index, T const& weight, T const& offsets, bag_rule how = bag_rule::mean,
                T const& row_weights = {}, bool with_end = false, std::optional<index_t> padding = {},
                std::optional<double> most = {}, double p = 2, bool by_count = false) {
  detail::needs_real("embedding_bag", weight, row_weights);
  if (weight.dim() != 2 || index.dim() < 1 || index.dim() > 2 || (index.dim() == 1) != offsets.defined())
    refuse::argument_is_invalid("embedding_bag", "the weight is a matrix; the index one, or a vector with offsets");
  detail::require_index("embedding_bag", index, true);
  if (offsets.defined() && (offsets.dim() != 1 || (with_end && offsets.sizes()[0] == 0)))
    refuse::argument_is_invalid("embedding_bag", "the offsets are a vector");
  if (row_weights.defined() && (how != bag_rule::sum || !(row_weights.sizes() == index.sizes())))
    refuse::argument_is_invalid("embedding_bag", "weights are for sums, one for each index");
  if (is_compact(weight.dtype()) && is_floating(weight.dtype())) { // sums and norms in float32
    auto const single = [](T const& t) { return t.defined() ? T(to(t, dtype::float32)) : t; };
    return to(
        embedding_bag(index, single(weight), offsets, how, single(row_weights), with_end, padding, most, p, by_count),
        weight.dtype());
  }
  if (by_count && how == bag_rule::max)
    refuse::argument_is_invalid("embedding_bag", "gradients are not divided by counts where the greatest are taken");
  T const rows = most ? detail::with_norms_limited(weight, *most, p) : weight;
  T const at = to(T(ravel(index)), dtype::int64);
  extent const n = numel(index.sizes()), width = weight.sizes()[1];
  extent const bags = index.dim() == 2 ? index.sizes()[0] : offsets.sizes()[0] - (with_end ? 1 : 0);
  T const bag =
      index.dim() == 2
          ? T(ravel(T(expand(T(unsqueeze(T(arange(bags)), axis<1>)), index.sizes()))))
          : T(sub(T(searchsorted(T(to(T(slice(offsets, 0, 0, bags)), dtype::int64)), T(arange(n)), ints<1>{})), 1));
  T read = index_select(rows, dims{0}, at), counts = ne(at, -1);
  if (by_count) read = detail::shared_by_readings(read, at, weight.sizes()[0]);
  if (padding) counts = ne(at, detail::row_from_front("embedding_bag", *padding, weight.sizes()[0]));
  T const column = unsqueeze(counts, axis<1>);
  if (row_weights.defined()) read = mul(read, T(unsqueeze(T(ravel(row_weights)), axis<1>)));
  T const none = zeros(dims{bags, width}, weight.dtype());
  T const own = reshape(bag, dims{n, 1}), wide = expand(own, dims{n, width});
  if (how == bag_rule::max) {
    T const low = where(column, read, -std::numeric_limits<double>::infinity());
    T const most_of = scatter_reduce(none, axis<0>, wide, low, index_reduction::amax, false);
    return where(isfinite(most_of), most_of, 0);
  }
  T const sums = scatter_add(none, axis<0>, wide, T(where(column, read, 0)));
  if (how == bag_rule::sum) return sums;
  T const each = scatter_add(zeros(dims{bags, 1}, weight.dtype()), axis<0>, own, T(to(column, weight.dtype())));
  return div(sums, T(maximum(each, 1)));
}

} // namespace varve
