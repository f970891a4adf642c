// SPDX-License-Identifier: BSL-1.0
/// @file
/// The rows of bench/operators, by varve.
#include "timing.hpp"

#include <varve/indexing.hpp>
#include <varve/linalg.hpp>
#include <varve/nn.hpp>
#include <varve/random.hpp>
#include <varve/sorting.hpp>
#include <varve/special.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <vector>

namespace lib = varve;
namespace world {
using varve::dtype;
using tensor = varve::tensor;
using shape = varve::dims;
using axes = varve::dims;
using index = varve::index_t;

tensor floats(shape const& sizes, double scale, double offset) {
  tensor t = lib::empty(sizes, dtype::float32);
  for (index k = 0; k < t.numel(); ++k) t.data<float>()[k] = rows::element(k, scale, offset);
  return t;
}
tensor floats_like(tensor const& y) { return lib::to(floats(y.sizes(), 1, 0), y.dtype()); }
tensor longs(shape const& sizes, index below) {
  tensor t = lib::empty(sizes, dtype::int64);
  for (index k = 0; k < t.numel(); ++k) t.data<std::int64_t>()[k] = (k * 7919 + k / 13) % below;
  return t;
}
std::vector<double> elements(tensor const& x) {
  tensor const d = lib::contiguous(lib::to(x, dtype::float64));
  return {d.data<double>(), d.data<double>() + d.numel()};
}
tensor transposed(tensor const& x) { return lib::transpose(x); }
tensor strided(tensor const& x) { return lib::slice(x, 1, 0, lib::end, 2); }
tensor expanded(tensor const& x, shape const& sizes) { return lib::expand(x, sizes); }
tensor copy(tensor const& x) { return lib::clone(x); }
tensor as_float(tensor const& x) { return lib::to(x, dtype::float32); }
tensor as_double(tensor const& x) { return lib::to(x, dtype::float64); }
tensor as_long(tensor const& x) { return lib::to(x, dtype::int64); }
tensor as_bool(tensor const& x) { return lib::to(x, dtype::bool_); }
tensor arange(index n) { return lib::arange(n); }
tensor gelu_by_tanh(tensor const& x) { return lib::gelu(x, lib::approximate::tanh); }
tensor add_in_place(tensor const& x, tensor const& y) { return lib::add_(x, y); }
tensor mul_in_place(tensor const& x, tensor const& y) { return lib::mul_(x, y); }
tensor rows_by_index(tensor const& x, tensor const& rows) {
  index const n = rows.numel(), m = x.sizes()[1].number();
  return lib::gather(x, 0, lib::expand(lib::reshape(rows, shape{n, 1}), shape{n, m}));
}
tensor conv2d(tensor const& x, tensor const& w, index stride, index padding, index groups) {
  return lib::conv2d(x, w, lib::none, stride, padding, 1, groups);
}
tensor i0e(tensor const& x) { return lib::i0e(x); }
tensor i1(tensor const& x) { return lib::i1(x); }
tensor ndtri(tensor const& x) { return lib::ndtri(x); }
tensor log_ndtr(tensor const& x) { return lib::log_ndtr(x); }
tensor cumsum(tensor const& x, index a) { return lib::cumsum(x, shape{a}); }
tensor cumprod(tensor const& x, index a) { return lib::cumprod(x, shape{a}); }
tensor cummax(tensor const& x, index a) { return lib::cummax(x, shape{a}).first; }
tensor logcumsumexp(tensor const& x, index a) { return lib::logcumsumexp(x, shape{a}); }
tensor sorted(tensor const& x, index a) { return lib::sort(x, shape{a}).first; }
tensor topk(tensor const& x, index k, index a) { return lib::topk(x, shape{k}, shape{a}).first; }
tensor kthvalue(tensor const& x, index k, index a) { return lib::kthvalue(x, shape{k}, shape{a}).first; }
tensor median(tensor const& x, index a) { return lib::median(x, shape{a}).first; }
tensor scatter_amax(tensor const& x, index a, tensor const& at, tensor const& y) {
  return lib::scatter_reduce(x, shape{a}, at, y, lib::index_reduction::amax);
}
tensor unique(tensor const& x) { return lib::unique(x).values; }
tensor norm(tensor const& x) { return lib::vector_norm(x); }
tensor cholesky(tensor const& x) { return lib::cholesky(x); }
tensor solve(tensor const& a, tensor const& b) { return lib::solve(a, b); }
tensor inverse(tensor const& x) { return lib::inverse(x); }
tensor logdet(tensor const& x) { return lib::slogdet(x).second; }
tensor qr(tensor const& x) { return lib::qr(x).second; }
tensor eigvalsh(tensor const& x) { return lib::eigvalsh(x); }
tensor svdvals(tensor const& x) { return lib::svdvals(x); }
tensor max_pool2d(tensor const& x, index n) { return lib::max_pool2d(x, shape{n}).first; }
tensor avg_pool2d(tensor const& x, index n) { return lib::avg_pool2d(x, shape{n}); }
tensor cross_entropy(tensor const& x, tensor const& names) { return lib::cross_entropy(x, names); }
tensor conv1d(tensor const& x, tensor const& w) { return lib::conv1d(x, w); }
tensor conv_transpose2d(tensor const& x, tensor const& w, index stride) {
  return lib::conv_transpose2d(x, w, lib::none, stride);
}

/// A forward pass and its backward pass.
struct differentiable {
  std::vector<tensor> const& in;
  std::function<tensor(tensor const*)> const& f;
  tensor const& g;
  differentiable(std::vector<tensor> const& x, std::function<tensor(tensor const*)> const& function, tensor const& from)
      : in(x), f(function), g(from) {}
  std::vector<tensor> operator()() const {
    auto const gradients = [&](auto const&... x) -> std::vector<tensor> {
      auto const call = [&](auto const&... v) {
        tensor const all[] = {v...};
        return f(all);
      };
      auto const [y, pull] = lib::vjp(call, x...);
      return std::apply([](auto const&... d) { return std::vector<tensor>{d...}; }, pull(g));
    };
    if (in.size() == 1) return gradients(in[0]);
    if (in.size() == 2) return gradients(in[0], in[1]);
    return gradients(in[0], in[1], in[2]);
  }
};
} // namespace world

#include "rows.hpp"

int main(int argc, char** argv) { return rows::run(argc, argv); }
