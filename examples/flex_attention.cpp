// SPDX-License-Identifier: BSL-1.0
// Attention whose scores and mask are functions of positions: a bias that falls with distance (ALiBi), learned slopes,
// a sliding window, and documents packed one behind the other. One text for arrays, fused by the compiler, and tensors.
// output: no query looks into another document: yes
// output: fused and on tensors agree, gradients of the slopes too: yes
// output: blocks that are skipped: 56 %
#include <varve/varve.hpp>

#include <cmath>
#include <cstdio>

namespace vv = varve;

constexpr int heads = 2, length = 16, features = 4;
using sequence = vv::array<double, 1, heads, length, features>;

// What a query at i may look at: the last four positions of its own document.
constexpr auto window = [](auto, auto, auto i, auto j) { return vv::where(i >= j, i - j < 4, false); };
constexpr auto same_document = [](auto, auto, auto i, auto j, auto document) {
  return vv::eq(vv::index(document, i), vv::index(document, j));
};
// The farther a key, the lower its score, by a slope for each head.
constexpr auto farther_is_less = [](auto score, auto, auto h, auto i, auto j, auto slopes) {
  return score - vv::index(slopes, h) * (i - j);
};
constexpr auto attend = [](auto q, auto k, auto v, auto slopes, auto document) {
  auto const mask = vv::create_block_mask(vv::and_masks(window, vv::closure(same_document, document)),
                                          vv::shape<1, 1, length, length>, vv::shape<4, 4>);
  return vv::flex_attention(q, k, v, vv::closure(farther_is_less, slopes), mask);
};
constexpr auto loss = [](auto q, auto k, auto v, auto slopes, auto document) {
  auto const y = attend(q, k, v, slopes, document);
  return vv::mean(y * y);
};

int main() {
  sequence q, k, v;
  for (int n = 0; n < sequence::count; ++n) {
    q.data[n] = std::sin(1.7 * n), k.data[n] = std::cos(0.9 * n);
    v.data[n] = n / features % length < 6 ? 1 : 2; // 1 in the first document, 2 in the second
  }
  vv::array<double, heads> const slopes{0.5, 0.25};
  vv::array<std::int64_t, length> document{};
  for (int n = 6; n < length; ++n) document.data[n] = 1;

  constexpr auto fused = vv::fuse(attend);
  auto const y = fused(q, k, v, slopes, document);
  bool apart = true;
  for (int n = 0; n < sequence::count; ++n) apart = apart && std::fabs(y.data[n] - v.data[n]) < 1e-12;
  std::printf("no query looks into another document: %s\n", apart ? "yes" : "no");

  for (int n = 0; n < sequence::count; ++n) v.data[n] = std::sin(0.3 * n);
  auto const slopes_of_slopes = vv::fuse(vv::grad<3>(loss))(q, k, v, slopes, document);
  auto const as_tensor = [](sequence const& x) { return vv::tensor::from_data(x.data, {1, heads, length, features}); };
  vv::tensor const learned = vv::tensor::from_data(slopes.data, {heads});
  learned.requires_grad_();
  loss(as_tensor(q), as_tensor(k), as_tensor(v), learned, vv::tensor::from_data(document.data, {length})).backward();
  bool agree = true;
  for (int h = 0; h < heads; ++h) {
    double const here = learned.grad().data<double>()[h];
    agree = agree && std::fabs(here - slopes_of_slopes.data[h]) < 1e-12 && std::fabs(here) > 1e-9;
  }
  std::printf("fused and on tensors agree, gradients of the slopes too: %s\n", agree ? "yes" : "no");

  auto const mask = vv::create_block_mask(window, vv::none, vv::none, length, length, 4);
  std::printf("blocks that are skipped: %.0f %%\n", mask.sparsity());
}
