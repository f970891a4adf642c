// SPDX-License-Identifier: BSL-1.0
// Composites on static values give what they give on tensors, which PyTorch's recorded cases test.
#include "../sample/value.hpp"

#include <varve/composite/all.hpp>
#include <varve/masked.hpp>
#include <varve/nn.hpp>
#include <varve/transform/grad.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
template <vv::value X>
tensor as_tensor(X const& x) {
  if constexpr (std::is_same_v<X, tensor>) return x;
  else if constexpr (vv::number<X>) return from({static_cast<double>(x)}, dims{}, vv::dtype_of_type<X>());
  else return tensor::from_data(x.data, vv::to_dims(vv::shape_of(x)));
}
void same(tensor const& a, tensor const& b) { CHECK(difference(a, b, 1e-12) == ""); }
template <class F, class... X>
void agree(char const* name, F const& f, X const&... x) {
  INFO(name);
  auto const y = f(x...);
  same(as_tensor(y), f(as_tensor(x)...));
}
template <class F, class... X>
void parts_agree(char const* name, F const& f, X const&... x) {
  INFO(name);
  auto const mine = f(as_tensor(x)...);
  std::size_t k = 0;
  std::apply([&](auto const&... y) { (same(as_tensor(y), tensor(mine[k++])), ...); }, f(x...));
  CHECK(k == mine.size());
}
constexpr vv::array<double, 2, 4> x{{-2, -0.25, 0.5, 3, 4, -5, 0.125, 7}};
constexpr vv::array<double, 2, 4> y{{0.5, 2, 0.75, 1, 0.25, 3, 0.5, 0.125}};
constexpr vv::array<double, 4> v{{1, -2, 3, 0.5}};
constexpr vv::array<double, 2, 3, 3> m{{1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6, -7, -8, -10}};
constexpr vv::array<std::int64_t, 2> i{{1, 0}};
} // namespace

#define OF_ONE(...) #__VA_ARGS__, [](auto const& a) { return __VA_ARGS__; }
#define OF_TWO(...) #__VA_ARGS__, [](auto const& a, auto const& b) { return __VA_ARGS__; }

TEST_CASE("composites: shapes and parts in both worlds", "[composite]") {
  agree(OF_ONE(vv::flatten(a)), m);
  agree(OF_ONE(vv::flatten(a, vv::axis<1>, vv::axis<-1>)), m);
  agree(OF_ONE(vv::ravel(a)), m);
  agree(OF_ONE(vv::unflatten(a, vv::axis<1>, vv::shape<2, -1>)), x);
  agree(OF_ONE(vv::movedim(a, vv::axis<0>, vv::axis<-1>)), m);
  agree(OF_ONE(vv::atleast_1d(a)), 2.5);
  agree(OF_ONE(vv::atleast_2d(a)), v);
  agree(OF_ONE(vv::atleast_3d(a)), x);
  agree(OF_ONE(vv::narrow(a, vv::axis<1>, vv::ints<-3>{}, vv::ints<2>{})), x);
  agree(OF_TWO(vv::hstack(std::tuple{a, b})), x, y);
  agree(OF_TWO(vv::vstack(std::tuple{a, b})), x, v);
  agree(OF_TWO(vv::dstack(std::tuple{a, b})), x, y);
  agree(OF_TWO(vv::column_stack(std::tuple{a, b})), v, v);
  parts_agree(OF_ONE(vv::split_with_sizes(a, vv::ints<1, 3>{}, vv::axis<1>)), x);
  parts_agree(OF_ONE(vv::tensor_split(a, vv::ints<3>{}, vv::axis<1>)), x);
  parts_agree(OF_ONE(vv::split_at(a, vv::ints<1, -1>{}, vv::axis<1>)), x);
  agree(OF_ONE(vv::repeat(a, vv::ints<2, 1, 3>{})), x);
  agree(OF_ONE(vv::roll(a, vv::ints<1, -2>{}, vv::axis<0, 1>)), x);
  agree(OF_ONE(vv::roll(a, vv::ints<3>{})), x);
  agree(OF_ONE(vv::flip(a, vv::axis<0, -1>)), m);
  agree(OF_ONE(vv::rot90(a, vv::ints<3>{}, vv::axis<1, 2>)), m);
  agree(OF_ONE(vv::repeat_interleave(a, vv::ints<2>{}, vv::axis<1>)), x);
  agree(OF_ONE(vv::diagonal(a, vv::ints<1>{}, vv::axis<1>, vv::axis<2>)), m);
  agree(OF_ONE(vv::diag_embed(a, vv::ints<-1>{})), x);
  agree(OF_ONE(vv::diag(a)), v);
  agree(OF_TWO(vv::diagonal_scatter(a, b, vv::ints<0>{}, vv::axis<0>, vv::axis<1>)), x, vv::array<double, 2>{{8, 9}});
  agree(OF_ONE(vv::tril(a)), m);
  agree(OF_ONE(vv::triu(a, 1)), m);
  agree(OF_ONE(vv::trace_of_matrix(a)), x);
  agree(OF_ONE(vv::unfold(a, vv::axis<1>, vv::ints<2>{}, vv::ints<1>{})), x);
  agree(OF_ONE(vv::constant_pad_nd(a, vv::ints<1, -1, 0, 2>{}, 5)), x);
  agree(OF_ONE(vv::pixel_shuffle(a, vv::ints<2>{})), vv::array<double, 4, 1, 1>{{1, 2, 3, 4}});
  agree(OF_ONE(vv::pixel_unshuffle(a, vv::ints<2>{})), vv::array<double, 1, 2, 2>{{1, 2, 3, 4}});
  agree(OF_TWO(vv::index_select(a, vv::axis<1>, b)), x, i);
  agree(OF_TWO(vv::take(a, b)), x, i);
  agree(OF_TWO(vv::take_along_dim(a, b, vv::axis<1>)), x, vv::array<std::int64_t, 1, 3>{{3, 0, 1}});
}
TEST_CASE("composites: truth, statistics, norms in both worlds", "[composite]") {
  agree(OF_TWO(vv::logical_and(a, b)), x, y);
  agree(OF_TWO(vv::logical_or(a, b)), x, y);
  agree(OF_TWO(vv::logical_xor(a, b)), x, y);
  agree(OF_ONE(vv::logical_not(a)), x);
  agree(OF_ONE(vv::any(a, vv::axis<0>)), x);
  agree(OF_ONE(vv::all(a)), x);
  agree(OF_ONE(vv::count_nonzero(a)), x);
  agree(OF_ONE(vv::isfinite(a)), x);
  agree(OF_ONE(vv::isinf(a)), x);
  agree(OF_ONE(vv::isnan(a)), x);
  agree(OF_TWO(vv::isclose(a, b)), x, y);
  static_assert(vv::allclose(x, x) && !vv::allclose(x, y));
  CHECK(vv::allclose(as_tensor(x), as_tensor(x)));
  CHECK_FALSE(vv::allclose(as_tensor(x), as_tensor(y)));
  agree(OF_ONE(vv::var(a, vv::axis<1>)), x);
  agree(OF_ONE(vv::std_dev(a, vv::axis<0>, 0, vv::keepdim)), x);
  agree(OF_ONE(vv::nansum(a, vv::axis<1>)), x);
  agree(OF_ONE(vv::nanmean(a, vv::axis<1>)), x);
  agree(OF_ONE(vv::argmin(a, vv::axis<1>)), x);
  agree(OF_ONE(vv::argmin(a)), vv::array<std::int64_t, 3>{{3, -4, 5}});
  agree(OF_ONE(vv::max_along(a, vv::axis<1>).first), x);
  agree(OF_ONE(vv::min_along(a, vv::axis<0>, vv::keepdim).second), x);
  agree(OF_ONE(vv::vector_norm(a, 3, vv::axis<1>)), x);
  agree(OF_TWO(vv::dist(a, b)), x, y);
  agree(OF_ONE(vv::renorm(a, 2, vv::axis<0>, 1.5)), x);
  agree(OF_TWO(vv::pairwise_distance(a, b)), x, y);
  agree(OF_TWO(vv::cdist(a, b)), x, y);
}
TEST_CASE("composites: arithmetic and products in both worlds", "[composite]") {
  agree(OF_TWO(vv::addcmul(a, b, b, 2)), x, y);
  agree(OF_TWO(vv::addcdiv(a, b, b)), x, y);
  agree(OF_TWO(vv::lerp(a, b, 0.25)), x, y);
  agree(OF_TWO(vv::fmax(a, b)), x, y);
  agree(OF_TWO(vv::fmin(a, b)), x, y);
  agree(OF_ONE(vv::sinc(a)), x);
  agree(OF_ONE(vv::cosh(a)), x);
  agree(OF_ONE(vv::acosh(vv::add(vv::abs(a), 1))), x);
  agree(OF_ONE(vv::exp2(a)), x);
  agree(OF_ONE(vv::log2(a)), y);
  agree(OF_ONE(vv::log10(a)), y);
  agree(OF_TWO(vv::logaddexp(a, b)), x, y);
  agree(OF_TWO(vv::logaddexp2(a, b)), x, y);
  agree(OF_TWO(vv::hypot(a, b)), x, y);
  agree(OF_TWO(vv::ldexp(a, b)), x, y);
  agree(OF_TWO(vv::float_power(a, b)), y, x);
  agree(OF_TWO(vv::xlogy(a, b)), x, y);
  agree(OF_TWO(vv::xlog1py(a, b)), x, y);
  agree(OF_ONE(vv::entr(a)), y);
  agree(OF_ONE(vv::ndtr(a)), x);
  agree(OF_TWO(vv::outer(a, b)), v, v);
  agree(OF_TWO(vv::mv(a, b)), x, v);
  agree(OF_TWO(vv::bmm(a, b)), m, m);
  agree(OF_TWO(vv::inner(a, b)), x, y);
  agree(OF_TWO(vv::vecdot(a, b)), x, y);
  agree(OF_TWO(vv::addr(vv::outer(a, b), a, b, 2, 0.5)), v, v);
  agree(OF_TWO(vv::addmm(vv::mm(a, vv::transpose(b)), a, vv::transpose(b))), x, y);
  agree(OF_TWO(vv::addmv(vv::mv(a, b), a, b, 0, 2)), x, v);
  agree(OF_TWO(vv::baddbmm(a, a, b)), m, m);
  agree(OF_TWO(vv::addbmm(vv::sum(a, vv::axis<0>), a, b)), m, m);
}
TEST_CASE("composites: sums, pools and masks in both worlds", "[composite]") {
  vv::array<bool, 2, 4> const some{{true, false, true, true, false, true, false, true}};
  agree(OF_ONE(vv::prod(a, vv::axis<1>)), m);
  agree(OF_ONE(vv::prod(a)), v);
  agree(OF_ONE(vv::diff(a)), x);
  agree(OF_ONE(vv::gradient_along(a, vv::axis<1>, 0.5, 2)), m);
  agree(OF_ONE(vv::im2col(a, vv::ints<2>{}, vv::ints<1>{}, vv::ints<1>{})), m);
  agree(OF_ONE(vv::trapezoid(a, vv::axis<0>, 2.0)), x);
  agree(OF_TWO(vv::cross(a, b, vv::axis<1>)), m, m);
  agree(OF_TWO(vv::tensordot(a, b, vv::axis<0, 2>, vv::axis<0, 1>)), m, m);
  agree(OF_ONE(vv::cov(a)), x);
  agree(OF_ONE(vv::corrcoef(a)), x);
  agree(OF_ONE(vv::vander(a, vv::ints<5>{})), v);
  agree(OF_TWO(vv::copysign(a, b)), x, y);
  agree(OF_TWO(vv::searchsorted(a, b)), vv::array<double, 3>{{0.5, 1, 2}}, x);
  agree(OF_TWO(vv::isin(a, b)), x, y);
  agree(OF_TWO(vv::masked::amax(a, b, vv::axis<1>)), x, some);
  agree(OF_TWO(vv::masked::amin(a, b)), x, some);
  agree(OF_TWO(vv::masked::argmin(a, b, vv::axis<1>)), x, some);
  agree(OF_TWO(vv::masked::argmax(a, b)), x, some);
  agree(OF_TWO(vv::masked::sum(a, b, vv::axis<1>)), x, some);
  agree(OF_TWO(vv::masked::mean(a, b, vv::axis<1>)), x, some);
  agree(OF_TWO(vv::masked::var(a, b)), x, some);
  agree(OF_TWO(vv::masked::logsumexp(a, b, vv::axis<1>)), x, some);
  agree(OF_TWO(vv::masked::softmax(a, vv::axis<1>, b)), x, some);
  agree(OF_TWO(vv::masked::softmin(a, vv::axis<1>, b)), x, some);
  agree(OF_TWO(vv::masked::log_softmax(a, vv::axis<1>, b)), x, some);
  agree(OF_TWO(vv::masked::logaddexp(a, b)), x, y);
  agree(OF_ONE(vv::max_pool1d(a, vv::ints<3>{}, vv::ints<1>{}, vv::ints<1>{}).first), x);
  agree(OF_ONE(vv::max_pool2d(a, vv::ints<2>{}).second), m);
  agree(OF_ONE(vv::max_pool3d(vv::unsqueeze(a, vv::axis<0>), vv::ints<2>{}).first), m);
  agree(OF_ONE(vv::avg_pool1d(a, vv::ints<2>{})), x);
  agree(OF_ONE(vv::avg_pool2d(a, vv::ints<2>{}, vv::ints<1>{}, vv::ints<1>{}, vv::ints<1>{}, false)), m);
  agree(OF_ONE(vv::avg_pool3d(vv::unsqueeze(a, vv::axis<0>), vv::ints<2>{})), m);
  agree(OF_ONE(vv::adaptive_avg_pool1d(a, vv::ints<3>{})), x);
  agree(OF_ONE(vv::adaptive_avg_pool2d(a, vv::ints<2, -1>{})), m);
  agree(OF_ONE(vv::adaptive_avg_pool3d(vv::unsqueeze(a, vv::axis<0>), vv::ints<1, 2, 2>{})), m);
  agree(OF_ONE(vv::interpolate(a, vv::ints<2, 5>{}, vv::interpolation::nearest)), vv::unsqueeze(m, vv::axis<0>));
  agree(OF_ONE(vv::interpolate(a, vv::ints<5, 2>{}, vv::interpolation::linear)), vv::unsqueeze(m, vv::axis<0>));
  agree(OF_ONE(vv::interpolate(a, vv::ints<4>{}, vv::interpolation::cubic, true)), m);
  agree(OF_ONE(vv::interpolate(a, vv::ints<2>{}, vv::interpolation::area)), m);
  agree(OF_ONE(vv::adaptive_max_pool1d(a, vv::ints<3>{}).second), x);
  agree(OF_ONE(vv::adaptive_max_pool2d(a, vv::ints<2>{}).first), m);
  agree(OF_ONE(vv::adaptive_max_pool3d(vv::unsqueeze(a, vv::axis<0>), vv::ints<1, 2, 2>{}).first), m);
}
TEST_CASE("composites: normalizations in both worlds", "[composite][nn]") {
  agree(OF_TWO(vv::linear(a, b, 1.5)), x, y);
  agree(OF_TWO(vv::bilinear(b, b, a)), m, vv::array<double, 4, 3>{{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}});
  agree(OF_TWO(vv::rms_norm(a, vv::shape<4>, b, 0.1)), x, v);
  agree(OF_TWO(vv::group_norm(a, vv::ints<2>{}, b)), x, v);
  agree(OF_ONE(vv::instance_norm(a)), m);
  agree(OF_TWO(vv::batch_norm(a, vv::none, vv::none, b, b)), x, v);
  agree(OF_TWO(vv::batch_norm(a, b, vv::square(b))), x, v);
  agree(OF_ONE(vv::local_response_norm(a, vv::ints<2>{})), m);
  agree(OF_TWO(vv::scaled_dot_product_attention(a, b, b, vv::none, true)), m, m);
  agree(OF_TWO(vv::triplet_margin_loss(a, b, vv::mul(b, 2))), x, y);
}
TEST_CASE("composites: activations and losses in both worlds", "[composite][nn]") {
  agree(OF_ONE(vv::leaky_relu(a)), x);
  agree(OF_TWO(vv::prelu(a, b)), x, v);
  agree(OF_ONE(vv::elu(a)), x);
  agree(OF_ONE(vv::celu(a, 0.5)), x);
  agree(OF_ONE(vv::selu(a)), x);
  agree(OF_ONE(vv::hardtanh(a)), x);
  agree(OF_ONE(vv::relu6(a)), x);
  agree(OF_ONE(vv::hardsigmoid(a)), x);
  agree(OF_ONE(vv::hardswish(a)), x);
  agree(OF_ONE(vv::hardshrink(a)), x);
  agree(OF_ONE(vv::softshrink(a)), x);
  agree(OF_ONE(vv::softsign(a)), x);
  agree(OF_ONE(vv::tanhshrink(a)), x);
  agree(OF_ONE(vv::threshold(a, 1, 2)), x);
  agree(OF_ONE(vv::mish(a)), x);
  agree(OF_ONE(vv::logsigmoid(a)), x);
  agree(OF_ONE(vv::glu(a)), x);
  agree(OF_ONE(vv::softmin(a, vv::axis<1>)), x);
  agree(OF_TWO(vv::mse_loss(a, b)), x, y);
  agree(OF_TWO(vv::l1_loss(a, b, vv::reduction::sum)), x, y);
  agree(OF_TWO(vv::smooth_l1_loss(a, b, vv::reduction::none)), x, y);
  agree(OF_TWO(vv::huber_loss(a, b)), x, y);
  agree(OF_TWO(vv::binary_cross_entropy(vv::sigmoid(a), b)), x, y);
  agree(OF_TWO(vv::binary_cross_entropy_with_logits(a, b, vv::none, vv::reduction::mean, b)), x, y);
  agree(OF_TWO(vv::kl_div(a, b, vv::reduction::batchmean)), x, y);
  agree(OF_TWO(vv::kl_div(a, b, vv::reduction::sum, vv::ints<1>{})), x, y);
  agree(OF_TWO(vv::poisson_nll_loss(a, b, true, true)), x, y);
  agree(OF_TWO(vv::gaussian_nll_loss(a, a, b, true)), x, y);
  agree(OF_TWO(vv::hinge_embedding_loss(a, vv::sign(b))), y, x);
  agree(OF_TWO(vv::margin_ranking_loss(a, b, vv::sign(a))), x, y);
  agree(OF_TWO(vv::soft_margin_loss(a, vv::sign(b))), y, x);
  agree(OF_TWO(vv::multilabel_soft_margin_loss(a, b)), x, y);
  agree(OF_TWO(vv::cosine_embedding_loss(a, b, vv::ones_like(vv::sum(a, vv::axis<1>)))), x, y);
  agree(OF_TWO(vv::nll_loss(a, b)), x, i);
  agree(OF_TWO(vv::cross_entropy(a, b, vv::none, vv::reduction::sum, -100, 0.1)), x, i);
  agree(OF_TWO(vv::cross_entropy(a, b)), x, y);
  agree(OF_TWO(vv::multilabel_margin_loss(a, b)), x, vv::array<std::int64_t, 2, 4>{{1, 3, -1, 0, -1, 2, 0, 0}});
  agree(OF_TWO(vv::multi_margin_loss(a, b)), x, i);
  auto const f = [](auto const& a) { return vv::cross_entropy(a, vv::array<std::int64_t, 2>{{1, 0}}); };
  CHECK(vv::grad(f)(x).data[0] > 0);
}
TEST_CASE("composites: derivatives where a formula alone would be 0 times infinity", "[composite]") {
  vv::array<double, 3> const zeros{{0, 0, 0}}, b{{0.5, 2, 4}};
  auto const both = [](auto const& f, auto const& a, std::array<double, 3> const& right) {
    same(as_tensor(f(a)), from({right[0], right[1], right[2]}, dims{3}));
    same(f(as_tensor(a)), from({right[0], right[1], right[2]}, dims{3}));
  };
  // by a factor that is 0 it is the logarithm
  auto const c = [&](auto const& a) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(a)>, tensor>) return as_tensor(b);
    else return b;
  };
  both(
      [&](auto const& a) {
        return vv::grad([](auto const& v, auto const& w) { return vv::sum(vv::xlogy(v, w)); })(a, c(a));
      },
      zeros, {std::log(0.5), std::log(2.), std::log(4.)});
  both(
      [&](auto const& a) {
        return vv::grad([](auto const& v, auto const& w) { return vv::sum(vv::xlog1py(v, w)); })(a, c(a));
      },
      zeros, {std::log(1.5), std::log(3.), std::log(5.)});
  double const inf = std::numeric_limits<double>::infinity();
  both([&](auto const& a) { return vv::xlogy(vv::zeros_like(a), a); }, vv::array<double, 3>{{inf, -1, 0}}, {0, 0, 0});
  CHECK(!std::signbit(vv::xlogy(zeros, b).data[0]));
  // deviations of what is constant
  both(vv::grad([](auto const& v) { return vv::std_dev(v); }), vv::array<double, 3>{{7, 7, 7}}, {0, 0, 0});
  // second derivatives of sin(pi x) / (pi x) at 0
  auto const slope = vv::grad([](auto const& v) { return vv::sum(vv::sinc(v)); });
  double const bend = -3.14159265358979323846 * 3.14159265358979323846 / 3;
  both(vv::grad([&](auto const& v) { return vv::sum(slope(v)); }), zeros, {bend, bend, bend});
}
