// SPDX-License-Identifier: BSL-1.0
// Composites on static values give what they give on tensors, which PyTorch's recorded cases test.
#include "both_worlds_test.hpp"

using namespace both_worlds_test;

TEST_CASE("composites: arithmetic and products in both worlds", "[composite]") {
  agree(OF_TWO(vv::addcmul(a, b, b, 2)), x, y);
  agree(OF_TWO(vv::addcmul(a, b, b, 1.5)), i, i);
  agree(OF_TWO(vv::addcmul(2.5, a, b)), i, i);
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
  agree(OF_TWO(vv::heaviside(a, b)), x, y);
  agree(OF_ONE(vv::logit(a)), vv::array<double, 3>{{0.25, 0.5, 0.875}});
  agree(OF_ONE(vv::logit(a, 0.125)), x);
  agree(OF_ONE(vv::nan_to_num(vv::div(a, 0.0), 1.5, 7)), x);
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
  agree(OF_TWO(vv::gradient_over(a, vv::axis<1>, b, 2)), m, vv::array<double, 3>{{1, 2.5, 3}});
  agree(OF_TWO(vv::gradient_over(a, vv::axis<0>, b)), x, vv::array<double, 2>{{1, 2.5}});
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
  agree(OF_TWO(vv::masked::std_dev(a, b, vv::axis<1>)), x, some);
  agree(OF_TWO(vv::masked::norm(a, 3, b, vv::axis<0>)), x, some);
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
