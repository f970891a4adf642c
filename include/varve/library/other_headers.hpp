// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/type.hpp>

#include <concepts>
#include <initializer_list>

/// @file
/// Names whose headers the umbrella leaves out. A call without the header is a compile error that names the header.
///
/// For a function object such as `sort` there is a class of the same name. In C++ an object hides a class of its name
/// that is declared in the same scope, so that the object's header may follow. A function template hides no class. For
/// these there are functions in a namespace outside of varve, which qualified names reach only if varve declares none.
namespace varve {

class tensor;

namespace detail {
/// The further arguments of a call whose header is missing: values, or lists in braces.
struct anything {
  constexpr anything() = default;
  template <class T>
  constexpr anything(T const&) {}
  template <class T>
  constexpr anything(std::initializer_list<T>) {}
};
/// The first argument of a call whose header is missing. `Report<T>` holds the message; as an argument of the template
/// it is reported where the call stands, before what the call is used for.
template <template <class> class Report>
struct reporting {
  template <class T, bool = requires { sizeof(Report<T>); }>
  constexpr reporting(T const&) {}
  template <class T, bool = requires { sizeof(Report<T>); }>
  constexpr reporting(std::initializer_list<T>) {}
};
/// A function object whose header is missing.
template <template <class> class Report>
struct in_header {
  constexpr in_header(reporting<Report> const&, anything = {}, anything = {}, anything = {}, anything = {},
                      anything = {}, anything = {}, anything = {}) {}
  template <std::same_as<tensor> T>
  operator T() const {
    return T();
  }
};
/// True until the header that defines `Tag` is included.
template <class Tag>
concept missing = !requires { sizeof(Tag); };

template <class T>
struct special_hpp {
  static_assert(never<T>, "varve: this function is in another header: #include <varve/special.hpp>");
};
template <class T>
struct sorting_hpp {
  static_assert(never<T>, "varve: this function is in another header: #include <varve/sorting.hpp>");
};
template <class T>
struct linalg_hpp {
  static_assert(never<T>, "varve: this function is in another header: #include <varve/linalg.hpp>");
};
template <class T>
struct nn_hpp {
  static_assert(never<T>, "varve: this function is in another header: #include <varve/nn.hpp>");
};
template <class T>
struct random_hpp {
  static_assert(never<T>, "varve: this function is in another header: #include <varve/random.hpp>");
};
template <class T>
struct indexing_hpp {
  static_assert(never<T>, "varve: this function is in another header: #include <varve/indexing.hpp>");
};
template <class T>
struct complex_hpp {
  static_assert(never<T>, "varve: this function is in another header: #include <varve/complex.hpp>");
};
template <class T>
struct fft_hpp {
  static_assert(never<T>, "varve: this function is in another header: #include <varve/fft.hpp>");
};
// clang-format off: a table
using in_special = in_header<special_hpp>;
using in_sorting = in_header<sorting_hpp>;
using in_linalg = in_header<linalg_hpp>;
using in_nn = in_header<nn_hpp>;
using in_random = in_header<random_hpp>;
using in_indexing = in_header<indexing_hpp>;
using in_complex = in_header<complex_hpp>;
} // namespace detail

struct acos : detail::in_special { using in_header::in_header; };
struct airy_ai : detail::in_special { using in_header::in_header; };
struct asin : detail::in_special { using in_header::in_header; };
struct asinh : detail::in_special { using in_header::in_header; };
struct atan : detail::in_special { using in_header::in_header; };
struct atan2 : detail::in_special { using in_header::in_header; };
struct atanh : detail::in_special { using in_header::in_header; };
struct bessel_j0 : detail::in_special { using in_header::in_header; };
struct bessel_j1 : detail::in_special { using in_header::in_header; };
struct bessel_y0 : detail::in_special { using in_header::in_header; };
struct bessel_y1 : detail::in_special { using in_header::in_header; };
struct bitwise_left_shift : detail::in_special { using in_header::in_header; };
struct bitwise_right_shift : detail::in_special { using in_header::in_header; };
struct ceil : detail::in_special { using in_header::in_header; };
struct chebyshev_polynomial_t : detail::in_special { using in_header::in_header; };
struct chebyshev_polynomial_u : detail::in_special { using in_header::in_header; };
struct chebyshev_polynomial_v : detail::in_special { using in_header::in_header; };
struct chebyshev_polynomial_w : detail::in_special { using in_header::in_header; };
struct digamma : detail::in_special { using in_header::in_header; };
struct erfc : detail::in_special { using in_header::in_header; };
struct erfcx : detail::in_special { using in_header::in_header; };
struct erfinv : detail::in_special { using in_header::in_header; };
struct floor : detail::in_special { using in_header::in_header; };
struct floor_divide : detail::in_special { using in_header::in_header; };
struct fmod : detail::in_special { using in_header::in_header; };
struct frac : detail::in_special { using in_header::in_header; };
struct frexp : detail::in_special { using in_header::in_header; };
struct gcd : detail::in_special { using in_header::in_header; };
struct hermite_polynomial_h : detail::in_special { using in_header::in_header; };
struct hermite_polynomial_he : detail::in_special { using in_header::in_header; };
struct i0 : detail::in_special { using in_header::in_header; };
struct i0e : detail::in_special { using in_header::in_header; };
struct i1 : detail::in_special { using in_header::in_header; };
struct i1e : detail::in_special { using in_header::in_header; };
struct igamma : detail::in_special { using in_header::in_header; };
struct igammac : detail::in_special { using in_header::in_header; };
struct laguerre_polynomial_l : detail::in_special { using in_header::in_header; };
struct lcm : detail::in_special { using in_header::in_header; };
struct legendre_polynomial_p : detail::in_special { using in_header::in_header; };
struct lgamma : detail::in_special { using in_header::in_header; };
struct log_ndtr : detail::in_special { using in_header::in_header; };
struct modified_bessel_k0 : detail::in_special { using in_header::in_header; };
struct modified_bessel_k1 : detail::in_special { using in_header::in_header; };
struct mvlgamma : detail::in_special { using in_header::in_header; };
struct ndtri : detail::in_special { using in_header::in_header; };
struct nextafter : detail::in_special { using in_header::in_header; };
struct polygamma : detail::in_special { using in_header::in_header; };
struct remainder : detail::in_special { using in_header::in_header; };
struct round : detail::in_special { using in_header::in_header; };
struct sinh : detail::in_special { using in_header::in_header; };
struct spherical_bessel_j0 : detail::in_special { using in_header::in_header; };
struct tan : detail::in_special { using in_header::in_header; };
struct trunc : detail::in_special { using in_header::in_header; };
struct zeta : detail::in_special { using in_header::in_header; };
struct argsort : detail::in_sorting { using in_header::in_header; };
struct cummax : detail::in_sorting { using in_header::in_header; };
struct cummin : detail::in_sorting { using in_header::in_header; };
struct cumprod : detail::in_sorting { using in_header::in_header; };
struct cumsum : detail::in_sorting { using in_header::in_header; };
struct cumulative_trapezoid : detail::in_sorting { using in_header::in_header; };
struct kthvalue : detail::in_sorting { using in_header::in_header; };
struct logcumsumexp : detail::in_sorting { using in_header::in_header; };
struct median : detail::in_sorting { using in_header::in_header; };
struct mode : detail::in_sorting { using in_header::in_header; };
struct msort : detail::in_sorting { using in_header::in_header; };
struct nanmedian : detail::in_sorting { using in_header::in_header; };
struct quantile : detail::in_sorting { using in_header::in_header; };
struct sort : detail::in_sorting { using in_header::in_header; };
struct topk : detail::in_sorting { using in_header::in_header; };
struct cholesky : detail::in_linalg { using in_header::in_header; };
struct cholesky_ex : detail::in_linalg { using in_header::in_header; };
struct cholesky_inverse : detail::in_linalg { using in_header::in_header; };
struct cholesky_solve : detail::in_linalg { using in_header::in_header; };
struct det : detail::in_linalg { using in_header::in_header; };
struct eigh : detail::in_linalg { using in_header::in_header; };
struct eigvalsh : detail::in_linalg { using in_header::in_header; };
struct inverse : detail::in_linalg { using in_header::in_header; };
struct ldl_solve : detail::in_linalg { using in_header::in_header; };
struct logdet : detail::in_linalg { using in_header::in_header; };
struct lu_factor : detail::in_linalg { using in_header::in_header; };
struct lu_solve : detail::in_linalg { using in_header::in_header; };
struct lu_unpack : detail::in_linalg { using in_header::in_header; };
struct matrix_exp : detail::in_linalg { using in_header::in_header; };
struct matrix_power : detail::in_linalg { using in_header::in_header; };
struct multi_dot : detail::in_linalg { using in_header::in_header; };
struct pinv : detail::in_linalg { using in_header::in_header; };
struct qr : detail::in_linalg { using in_header::in_header; };
struct slogdet : detail::in_linalg { using in_header::in_header; };
struct solve : detail::in_linalg { using in_header::in_header; };
struct solve_triangular : detail::in_linalg { using in_header::in_header; };
struct svd : detail::in_linalg { using in_header::in_header; };
struct svdvals : detail::in_linalg { using in_header::in_header; };
struct adaptive_avg_pool1d : detail::in_nn { using in_header::in_header; };
struct adaptive_avg_pool2d : detail::in_nn { using in_header::in_header; };
struct adaptive_avg_pool3d : detail::in_nn { using in_header::in_header; };
struct adaptive_max_pool1d : detail::in_nn { using in_header::in_header; };
struct adaptive_max_pool2d : detail::in_nn { using in_header::in_header; };
struct adaptive_max_pool3d : detail::in_nn { using in_header::in_header; };
struct avg_pool1d : detail::in_nn { using in_header::in_header; };
struct avg_pool2d : detail::in_nn { using in_header::in_header; };
struct avg_pool3d : detail::in_nn { using in_header::in_header; };
struct batch_norm : detail::in_nn { using in_header::in_header; };
struct bilinear : detail::in_nn { using in_header::in_header; };
struct binary_cross_entropy : detail::in_nn { using in_header::in_header; };
struct binary_cross_entropy_with_logits : detail::in_nn { using in_header::in_header; };
struct celu : detail::in_nn { using in_header::in_header; };
struct cosine_embedding_loss : detail::in_nn { using in_header::in_header; };
struct cross_entropy : detail::in_nn { using in_header::in_header; };
struct elu : detail::in_nn { using in_header::in_header; };
struct gaussian_nll_loss : detail::in_nn { using in_header::in_header; };
struct glu : detail::in_nn { using in_header::in_header; };
struct group_norm : detail::in_nn { using in_header::in_header; };
struct hardshrink : detail::in_nn { using in_header::in_header; };
struct hardsigmoid : detail::in_nn { using in_header::in_header; };
struct hardswish : detail::in_nn { using in_header::in_header; };
struct hardtanh : detail::in_nn { using in_header::in_header; };
struct hinge_embedding_loss : detail::in_nn { using in_header::in_header; };
struct huber_loss : detail::in_nn { using in_header::in_header; };
struct instance_norm : detail::in_nn { using in_header::in_header; };
struct interpolate : detail::in_nn { using in_header::in_header; };
struct kl_div : detail::in_nn { using in_header::in_header; };
struct l1_loss : detail::in_nn { using in_header::in_header; };
struct leaky_relu : detail::in_nn { using in_header::in_header; };
struct linear : detail::in_nn { using in_header::in_header; };
struct local_response_norm : detail::in_nn { using in_header::in_header; };
struct logsigmoid : detail::in_nn { using in_header::in_header; };
struct margin_ranking_loss : detail::in_nn { using in_header::in_header; };
struct max_pool1d : detail::in_nn { using in_header::in_header; };
struct max_pool2d : detail::in_nn { using in_header::in_header; };
struct max_pool3d : detail::in_nn { using in_header::in_header; };
struct mish : detail::in_nn { using in_header::in_header; };
struct mse_loss : detail::in_nn { using in_header::in_header; };
struct multi_margin_loss : detail::in_nn { using in_header::in_header; };
struct multilabel_margin_loss : detail::in_nn { using in_header::in_header; };
struct multilabel_soft_margin_loss : detail::in_nn { using in_header::in_header; };
struct nll_loss : detail::in_nn { using in_header::in_header; };
struct poisson_nll_loss : detail::in_nn { using in_header::in_header; };
struct prelu : detail::in_nn { using in_header::in_header; };
struct relu6 : detail::in_nn { using in_header::in_header; };
struct rms_norm : detail::in_nn { using in_header::in_header; };
struct scaled_dot_product_attention : detail::in_nn { using in_header::in_header; };
struct selu : detail::in_nn { using in_header::in_header; };
struct smooth_l1_loss : detail::in_nn { using in_header::in_header; };
struct soft_margin_loss : detail::in_nn { using in_header::in_header; };
struct softmin : detail::in_nn { using in_header::in_header; };
struct softshrink : detail::in_nn { using in_header::in_header; };
struct softsign : detail::in_nn { using in_header::in_header; };
struct tanhshrink : detail::in_nn { using in_header::in_header; };
struct threshold : detail::in_nn { using in_header::in_header; };
struct triplet_margin_loss : detail::in_nn { using in_header::in_header; };
struct bernoulli_ : detail::in_random { using in_header::in_header; };
struct cauchy_ : detail::in_random { using in_header::in_header; };
struct exponential_ : detail::in_random { using in_header::in_header; };
struct geometric_ : detail::in_random { using in_header::in_header; };
struct log_normal_ : detail::in_random { using in_header::in_header; };
struct normal_ : detail::in_random { using in_header::in_header; };
struct random_ : detail::in_random { using in_header::in_header; };
struct uniform_ : detail::in_random { using in_header::in_header; };
struct bincount : detail::in_indexing { using in_header::in_header; };
struct index_add : detail::in_indexing { using in_header::in_header; };
struct index_copy : detail::in_indexing { using in_header::in_header; };
struct index_reduce : detail::in_indexing { using in_header::in_header; };
struct masked_scatter : detail::in_indexing { using in_header::in_header; };
struct put : detail::in_indexing { using in_header::in_header; };
struct scatter : detail::in_indexing { using in_header::in_header; };
struct scatter_reduce : detail::in_indexing { using in_header::in_header; };
struct unravel_index : detail::in_indexing { using in_header::in_header; };
struct complex : detail::in_complex { using in_header::in_header; };

namespace linalg {
using varve::cholesky;
using varve::cholesky_ex;
using varve::det;
using varve::eigh;
using varve::eigvalsh;
using varve::lu_factor;
using varve::matrix_exp;
using varve::matrix_power;
using varve::multi_dot;
using varve::pinv;
using varve::qr;
using varve::slogdet;
using varve::solve;
using varve::solve_triangular;
using varve::svdvals;
} // namespace linalg

namespace optim {
struct adam; // #include <varve/optim.hpp>
struct sgd; // #include <varve/optim.hpp>
struct rmsprop; // #include <varve/optim.hpp>
struct lbfgs; // #include <varve/optim.hpp>
struct gauss_newton; // #include <varve/optim.hpp>
struct levenberg_marquardt; // #include <varve/optim.hpp>
} // namespace optim

struct argsort_t;
struct interpolate_t;
struct rand_t;
struct bincount_t;
struct real_part_t;
struct fft_c2c_t;
} // namespace varve

namespace varve_in_other_headers {
using varve::tensor;
using rest = varve::detail::anything;
template <class T>
  requires varve::detail::missing<varve::dependent<varve::argsort_t, T>>
using sorting_hpp = varve::dependent<varve::detail::reporting<varve::detail::sorting_hpp>, T>;
template <class T>
  requires varve::detail::missing<varve::dependent<varve::interpolate_t, T>>
using nn_hpp = varve::dependent<varve::detail::reporting<varve::detail::nn_hpp>, T>;
template <class T>
  requires varve::detail::missing<varve::dependent<varve::rand_t, T>>
using random_hpp = varve::dependent<varve::detail::reporting<varve::detail::random_hpp>, T>;
template <class T>
  requires varve::detail::missing<varve::dependent<varve::bincount_t, T>>
using indexing_hpp = varve::dependent<varve::detail::reporting<varve::detail::indexing_hpp>, T>;
template <class T>
  requires varve::detail::missing<varve::dependent<varve::real_part_t, T>>
using complex_hpp = varve::dependent<varve::detail::reporting<varve::detail::complex_hpp>, T>;
template <class T>
  requires varve::detail::missing<varve::dependent<varve::fft_c2c_t, T>>
using fft_hpp = varve::dependent<varve::detail::reporting<varve::detail::fft_hpp>, T>;

template <class T = tensor> T histc(sorting_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T histogramdd(sorting_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T unique(sorting_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T dropout(nn_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T embedding(nn_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T embedding_bag(nn_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T gumbel_softmax(nn_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T kaiming_normal(nn_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T kaiming_uniform(nn_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T xavier_normal(nn_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T xavier_uniform(nn_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T bernoulli(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T multinomial(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T normal(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T poisson(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T rand(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T rand_like(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T randint(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T randint_like(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T randn_like(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T randperm(random_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T index_put(indexing_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T angle(complex_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T conj(complex_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T imag(complex_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T polar(complex_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T real(complex_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T view_as_complex(complex_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T view_as_real(complex_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
namespace of_fft {
template <class T = tensor> T fft(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T ifft(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T rfft(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T irfft(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T hfft(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T ihfft(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T fft2(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T ifft2(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T rfft2(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T irfft2(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T fftn(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T ifftn(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T rfftn(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T irfftn(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T fftfreq(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T rfftfreq(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T fftshift(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
template <class T = tensor> T ifftshift(fft_hpp<T> const&, rest = {}, rest = {}, rest = {}, rest = {});
} // namespace of_fft
} // namespace varve_in_other_headers
// clang-format on

namespace varve {
using namespace varve_in_other_headers;
namespace fft {
using namespace varve_in_other_headers::of_fft;
}
} // namespace varve
