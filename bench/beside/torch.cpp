// SPDX-License-Identifier: BSL-1.0
/// @file
/// The rows of bench/operators, by libtorch. Built where libtorch-dev is found.
#include "timing.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <functional>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <vector>

namespace world {
using tensor = at::Tensor;
using shape = std::vector<std::int64_t>;
using axes = std::vector<std::int64_t>;
using index = std::int64_t;
} // namespace world
/// libtorch's functions; those whose arguments differ have the arguments of varve.
namespace lib {
using namespace at;
inline Tensor sum(Tensor const& x) { return at::sum(x); }
inline Tensor sum(Tensor const& x, world::axes const& a) { return at::sum(x, a); }
inline Tensor mean(Tensor const& x) { return at::mean(x); }
inline Tensor mean(Tensor const& x, world::axes const& a) { return at::mean(x, a); }
inline Tensor amax(Tensor const& x) { return at::amax(x); }
inline Tensor amax(Tensor const& x, world::axes const& a) { return at::amax(x, a); }
inline Tensor logsumexp(Tensor const& x, world::axes const& a) { return at::logsumexp(x, a); }
inline Tensor cat(std::vector<Tensor> const& x, world::index axis) { return at::cat(x, axis); }
} // namespace lib
namespace world {

tensor floats(shape const& sizes, double scale, double offset) {
  tensor t = at::empty(sizes);
  for (index k = 0; k < t.numel(); ++k) t.data_ptr<float>()[k] = rows::element(k, scale, offset);
  return t;
}
tensor floats_like(tensor const& y) { return floats(y.sizes().vec(), 1, 0).to(y.scalar_type()); }
tensor longs(shape const& sizes, index below) {
  tensor t = at::empty(sizes, at::kLong);
  for (index k = 0; k < t.numel(); ++k) t.data_ptr<std::int64_t>()[k] = (k * 7919 + k / 13) % below;
  return t;
}
std::vector<double> elements(tensor const& x) {
  tensor const d = x.detach().to(at::kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}
tensor transposed(tensor const& x) { return at::transpose(x, -2, -1); }
tensor strided(tensor const& x) { return at::slice(x, 1, 0, x.size(1), 2); }
tensor expanded(tensor const& x, shape const& sizes) { return x.expand(sizes); }
tensor copy(tensor const& x) { return x.clone(at::MemoryFormat::Contiguous); }
tensor as_float(tensor const& x) { return x.to(at::kFloat); }
tensor as_double(tensor const& x) { return x.to(at::kDouble); }
tensor as_long(tensor const& x) { return x.to(at::kLong); }
tensor as_bool(tensor const& x) { return x.to(at::kBool); }
tensor arange(index n) { return at::arange(n, at::kLong); }
tensor gelu_by_tanh(tensor const& x) { return at::gelu(x, "tanh"); }
tensor add_in_place(tensor const& x, tensor const& y) { return x.add_(y); }
tensor mul_in_place(tensor const& x, tensor const& y) { return x.mul_(y); }
tensor rows_by_index(tensor const& x, tensor const& rows) { return at::index_select(x, 0, rows); }
tensor conv2d(tensor const& x, tensor const& w, index stride, index padding, index groups) {
  return at::conv2d(x, w, {}, stride, padding, 1, groups);
}
tensor i0e(tensor const& x) { return at::special_i0e(x); }
tensor i1(tensor const& x) { return at::special_i1(x); }
tensor ndtri(tensor const& x) { return at::special_ndtri(x); }
tensor log_ndtr(tensor const& x) { return at::special_log_ndtr(x); }
tensor cumsum(tensor const& x, index a) { return at::cumsum(x, a); }
tensor cumprod(tensor const& x, index a) { return at::cumprod(x, a); }
tensor cummax(tensor const& x, index a) { return std::get<0>(at::cummax(x, a)); }
tensor logcumsumexp(tensor const& x, index a) { return at::logcumsumexp(x, a); }
tensor sorted(tensor const& x, index a) { return std::get<0>(at::sort(x, a)); }
tensor topk(tensor const& x, index k, index a) { return std::get<0>(at::topk(x, k, a)); }
tensor kthvalue(tensor const& x, index k, index a) { return std::get<0>(at::kthvalue(x, k, a)); }
tensor median(tensor const& x, index a) { return std::get<0>(at::median(x, a)); }
tensor scatter_amax(tensor const& x, index a, tensor const& at_, tensor const& y) {
  return at::scatter_reduce(x, a, at_, y, "amax");
}
tensor unique(tensor const& x) { return std::get<0>(at::_unique2(x, true, true, true)); }
tensor norm(tensor const& x) { return at::linalg_vector_norm(x); }
tensor cholesky(tensor const& x) { return at::linalg_cholesky(x); }
tensor solve(tensor const& a, tensor const& b) { return at::linalg_solve(a, b); }
tensor inverse(tensor const& x) { return at::linalg_inv(x); }
tensor logdet(tensor const& x) { return std::get<1>(at::linalg_slogdet(x)); }
tensor qr(tensor const& x) { return std::get<1>(at::linalg_qr(x)); }
tensor eigvalsh(tensor const& x) { return at::linalg_eigvalsh(x); }
tensor svdvals(tensor const& x) { return at::linalg_svdvals(x); }
tensor max_pool2d(tensor const& x, index n) { return at::max_pool2d(x, {n, n}); }
tensor avg_pool2d(tensor const& x, index n) { return at::avg_pool2d(x, {n, n}); }
tensor cross_entropy(tensor const& x, tensor const& names) { return at::cross_entropy_loss(x, names); }
tensor conv1d(tensor const& x, tensor const& w) { return at::conv1d(x, w); }
tensor conv_transpose2d(tensor const& x, tensor const& w, index stride) {
  return at::conv_transpose2d(x, w, {}, stride);
}

/// A forward pass and its backward pass.
struct differentiable {
  std::vector<tensor> in;
  std::function<tensor(tensor const*)> const& f;
  tensor const& g;
  differentiable(std::vector<tensor> const& x, std::function<tensor(tensor const*)> const& function, tensor const& from)
      : f(function), g(from) {
    for (tensor const& t : x) in.push_back(t.detach().requires_grad_());
  }
  std::vector<tensor> operator()() const { return torch::autograd::grad({f(in.data())}, in, {g}); }
};
} // namespace world

#include "rows.hpp"

int main(int argc, char** argv) {
  at::set_num_threads(1); // varve has one thread, too
  return rows::run(argc, argv);
}
