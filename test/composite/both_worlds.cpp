// SPDX-License-Identifier: BSL-1.0
// Composites on static values give what they give on tensors, which PyTorch's recorded cases test.
#include "both_worlds_test.hpp"

using namespace both_worlds_test;

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
  agree(OF_ONE(vv::tile(a, vv::ints<3>{})), x);
  agree(OF_TWO(vv::block_diag(std::tuple{a, b, vv::sum(b)})), x, v);
  agree(OF_ONE(vv::pad(a, vv::ints<1, -1, 0, 2>{})), x);
  agree(OF_ONE(vv::pad(a, vv::ints<2, 1, 1, -1>{}, vv::pad_mode::reflect)), m);
  agree(OF_ONE(vv::pad(a, vv::ints<5, -3>{}, vv::pad_mode::replicate)), x);
  agree(OF_ONE(vv::pad(a, vv::ints<-1, 2>{}, vv::pad_mode::circular)), x);
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
  agree(OF_ONE(vv::pdist(a, 3)), vv::transpose(x));
  agree(OF_TWO(vv::cosine_similarity(a, b)), x, y);
  agree(OF_TWO(vv::cosine_similarity(a, b, vv::axis<0>)), v, y);
}
