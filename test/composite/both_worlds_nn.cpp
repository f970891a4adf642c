// SPDX-License-Identifier: BSL-1.0
// Composites on static values give what they give on tensors, which PyTorch's recorded cases test.
#include "both_worlds_test.hpp"

using namespace both_worlds_test;

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
  agree(OF_TWO(vv::triplet_margin_with_distance_loss(a, b, vv::mul(b, 2), vv::pairwise_distance, 2, true)), x, y);
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
