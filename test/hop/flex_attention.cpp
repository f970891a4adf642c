// SPDX-License-Identifier: BSL-1.0
#include "flex_attention_test.hpp"

#include <varve_test.hpp>

using namespace flex_attention_test;

TEST_CASE("flex_attention: rows of nothing are 0, without a NaN anywhere", "[hop][flex_attention][OH-S09]") {
  tensors const t;
  tensor const x = t.q * 1.0, y = vv::cat(std::vector{t.k, t.k}, 1), z = vv::cat(std::vector{t.v, t.v}, 1);
  for (tensor const* u : {&x, &y, &z}) u->detach_(), u->requires_grad_();
  auto const mask = vv::create_block_mask([](auto, auto, auto i, auto j) { return vv::where(i < 3, j >= 0, false); },
                                          vv::none, vv::none, L, S);
  auto const [out, lse] = vv::flex_attention(x, y, z, vv::none, mask, vv::none, false, vv::return_lse);
  tensor const below = vv::slice(out, 2, 3, L), low = vv::slice(lse, 2, 3, L);
  CHECK(agree(below, vv::zeros(below.sizes(), dtype::float64)));
  CHECK(everywhere(vv::eq(low, -infinity)));
  CHECK(everywhere(vv::gt(vv::slice(lse, 2, 0, 3), -10.0)));
  (vv::sum(out) + vv::sum(vv::slice(lse, 2, 0, 3))).backward();
  for (tensor const* u : {&x, &y, &z}) CHECK(everywhere(vv::lt(vv::abs(u->grad()), 100.0)));
  CHECK(agree(vv::slice(x.grad(), 2, 3, L), vv::zeros(vv::dims{B, Hq, L - 3, E}, dtype::float64)));
  CHECK(greatest(vv::slice(x.grad(), 2, 0, 3)) > 1e-3);
  tensor const no_keys = vv::zeros(vv::dims{B, Hq, 0, E}, dtype::float64);
  auto const [nothing, least] = vv::flex_attention(t.q, no_keys, vv::zeros(vv::dims{B, Hq, 0, V}, dtype::float64),
                                                   vv::none, vv::none, vv::none, false, vv::return_lse);
  CHECK(agree(nothing, vv::zeros(vv::dims{B, Hq, L, V}, dtype::float64)));
  CHECK(everywhere(vv::eq(least, -infinity)));
}

TEST_CASE("flex_attention: what is captured is differentiated, though in a mask it cannot be",
          "[hop][flex_attention][OH-S12]") {
  tensors const t;
  tensor const slopes = from({0.5, 0.25, 0.1, 0.7}, {Hq});
  slopes.requires_grad_();
  auto const attention = [&](tensor const& per_head) { // by a lambda's capture, as on tensors one may
    return vv::flex_attention(
        t.q, t.k, t.v, [&](auto s, auto, auto h, auto i, auto j) { return s + vv::index(per_head, h) * (j - i); },
        vv::none, vv::none, true);
  };
  vv::sum(attention(slopes) * t.g).backward();
  tensor const by_parts = vv::grad([&](auto const& s) { return vv::sum(attention(s) * t.g); })(slopes.detach());
  CHECK(agree(slopes.grad(), by_parts));
  for (int h = 0; h < Hq; ++h) {
    tensor const up = slopes.detach() * 1.0, down = slopes.detach() * 1.0;
    set(up, h, element(up, h) + 1e-6), set(down, h, element(down, h) - 1e-6);
    double const change = vv::sum((attention(up) - attention(down)) * t.g).item<double>() / 2e-6;
    CHECK(element(by_parts, h) == Approx(change).epsilon(1e-6));
  }
  auto const farthest = [](auto const&, auto const&, auto i, auto j, auto const& n) { return i - j <= n; };
  auto const within = [&](tensor const& n) { return vv::create_block_mask(vv::closure(farthest, n), 1, 1, L, S); };
  tensor const far = vv::full({}, 2.0);
  (void)vv::flex_attention(t.q, t.k, t.v, vv::none, within(far), vv::none, true);
  far.requires_grad_();
  CHECK_THROWS_WITH(vv::flex_attention(t.q, t.k, t.v, vv::none, within(far), vv::none, true),
                    ContainsText("mask_mod captures may not require a gradient"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("flex_attention: heads in groups, a batch of one, and the layout of the query", "[hop][flex_attention]") {
  tensors const t;
  auto const repeated = [](tensor const& x) { // every head for two of the query
    dims s = x.sizes();
    tensor const twice = vv::expand(vv::unsqueeze(x, 2), vv::dims{s[0], s[1], 2, s[2], s[3]});
    return vv::reshape(twice, vv::dims{s[0], 2 * s[1], s[2], s[3]});
  };
  tensor const grouped = vv::flex_attention(t.q, t.k, t.v, vv::none, vv::none, vv::none, true);
  CHECK(agree(grouped, vv::flex_attention(t.q, repeated(t.k), repeated(t.v))));
  tensor const score = vv::matmul(t.q, vv::transpose(repeated(t.k), -2, -1)) / std::sqrt(double(E));
  CHECK(agree(grouped, vv::matmul(vv::softmax(score, 3), repeated(t.v))));

  tensor const k1 = vv::slice(t.k, 0, 0, 1), v1 = vv::slice(t.v, 0, 0, 1);
  tensor const shared = vv::flex_attention(t.q, k1, v1, vv::none, vv::none, vv::none, true);
  CHECK(agree(shared, vv::flex_attention(t.q, vv::cat(std::vector{k1, k1}, 0), vv::cat(std::vector{v1, v1}, 0),
                                         vv::none, vv::none, vv::none, true)));

  tensor const by_position = vv::transpose(vv::contiguous(vv::transpose(t.q, 1, 2)), 1, 2);
  tensor const y = vv::flex_attention(by_position, t.k, t.v, vv::none, vv::none, vv::none, true);
  CHECK(y.strides() == vv::dims{L * Hq * V, V, Hq * V, 1}); // OH-18
  CHECK(agree(y, grouped));
}

TEST_CASE("flex_attention: block masks tell their blocks and can be joined", "[hop][flex_attention]") {
  auto const mask = vv::create_block_mask(causal, vv::none, 2, 5, 6, 2);
  CHECK(mask.sizes == vv::dims{1, 2, 5, 6});
  CHECK(elements(at(at(mask.to_dense(), 0), 1)) == std::vector<double>{1, 0, 0, 1, 1, 0, 1, 1, 1});
  CHECK(elements(mask.kv_num_blocks()) == std::vector<double>{1, 2, 3, 1, 2, 3});
  CHECK(mask.sparsity() == Approx(100 * (1 - 12 * 4 / 60.0)));
  CHECK(elements(vv::create_mask(causal, vv::dims{1, 1, 2, 3})) == std::vector<double>{1, 0, 0, 1, 1, 0});

  tensor const document = from({0, 0, 1, 1, 1}, {5}, dtype::int64);
  auto const same = [](auto const&, auto const&, auto i, auto j, auto const& d) {
    return vv::eq(vv::index(d, i), vv::index(d, j));
  };
  auto const first = [](auto const&, auto const&, auto const&, auto j) { return vv::eq(j, 0); };
  auto const both = vv::and_masks(causal, vv::closure(same, document));
  CHECK(elements(vv::create_mask(both, vv::dims{1, 1, 5, 5})) ==
        std::vector<double>{1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1});
  CHECK(elements(vv::create_mask(vv::or_masks(first, both), vv::dims{1, 1, 3, 3})) ==
        std::vector<double>{1, 0, 0, 1, 1, 0, 1, 0, 1});
  CHECK(everywhere(vv::create_mask(vv::noop_mask, vv::dims{2, 2, 2, 2})));

  // plain numbers and truth values, the same at every position
  auto const always = [](auto const&...) { return true; };
  auto const no_score = [](auto const&...) { return 0.0; };
  tensors const u;
  tensor const mean = vv::flex_attention(u.k, u.k, u.v, no_score, vv::create_block_mask(always, 1, 1, S, S));
  CHECK(agree(mean, vv::expand(vv::mean(u.v, vv::dims{2}, vv::keepdim), mean.sizes())));

  // a mask for longer sequences serves; a joined one in attention
  tensors const t;
  auto const longer = vv::create_block_mask(causal, vv::none, vv::none, 100, 200);
  auto const plain = [](auto s, auto const&, auto const&, auto i, auto j) { return vv::where(i >= j, s, -infinity); };
  CHECK(agree(vv::flex_attention(t.q, t.k, t.v, vv::none, longer, vv::none, true),
              vv::flex_attention(t.q, t.k, t.v, plain, vv::none, vv::none, true)));
}

TEST_CASE("flex_attention: what is wrong is said", "[hop][flex_attention][exception][OH-S10]") {
  tensors const t;
  auto const single = [](tensor const& x) { return vv::to(x, dtype::float32); };
  CHECK_THROWS_AS(vv::flex_attention(single(t.q), t.k, t.v, vv::none, vv::none, vv::none, true), vv::dtype_error);
  CHECK_THROWS_WITH(vv::flex_attention(t.q, t.k, single(t.v), vv::none, vv::none, vv::none, true),
                    ContainsText("flex_attention of two dtypes") && ContainsText("float32"));
  CHECK_THROWS_AS(vv::flex_attention(vv::to(t.q, dtype::int64), t.k, t.v), vv::dtype_error);
  CHECK_THROWS_WITH(vv::flex_attention(t.q, t.k, t.v), ContainsText("enable_gqa"));
  tensor const three = vv::slice(t.q, 1, 0, 3);
  CHECK_THROWS_WITH(vv::flex_attention(three, t.k, t.v, vv::none, vv::none, vv::none, true), ContainsText("multiple"));
  CHECK_THROWS_AS(vv::flex_attention(t.q, vv::slice(t.k, 3, 0, 2), t.v, vv::none, vv::none, vv::none, true),
                  vv::shape_error);
  CHECK_THROWS_AS(vv::flex_attention(t.q, t.k, vv::slice(t.v, 2, 0, 2), vv::none, vv::none, vv::none, true),
                  vv::shape_error);
  CHECK_THROWS_AS(vv::flex_attention(at(t.q, 0), at(t.k, 0), at(t.v, 0)), vv::value_error);
  auto const attend_with = [&](auto const& mask) {
    return vv::flex_attention(t.q, t.k, t.v, vv::none, mask, vv::none, true);
  };
  CHECK_THROWS_WITH(attend_with(vv::create_block_mask(causal, 1, 1, L - 1, S)), ContainsText("shorter sequences"));
  CHECK_THROWS_AS(attend_with(vv::create_block_mask(causal, 3, 1, L, S)), vv::shape_error);
  CHECK_THROWS_AS(vv::create_block_mask(causal, 1, 1, 0, S), vv::value_error);
  auto const writes = [](tensor s, auto const&, auto const&, auto const&, auto const&) { return vv::mul_(s, 2.0), s; };
  CHECK_THROWS_WITH(vv::flex_attention(t.q, t.k, t.v, writes, vv::none, vv::none, true),
                    ContainsText("score_mod writes into its score"));
  auto const branches = [](auto s, auto const&, auto const&, tensor const& i, auto const&) {
    return i.item<index_t>() > 1 ? s : s * 2.0; // OH-19
  };
  CHECK_THROWS_AS(vv::flex_attention(t.q, t.k, t.v, branches, vv::none, vv::none, true), vv::error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("index: elements by indices that broadcast, from either end", "[op][index]") {
  tensor const x = vv::reshape(vv::arange(12), vv::dims{3, 4}), i = from({0, 2, -1}, {3}, dtype::int64);
  CHECK(elements(vv::index(x, i, 1)) == std::vector<double>{1, 9, 9});
  CHECK(elements(vv::index(x, vv::reshape(i, vv::dims{3, 1}), from({-1, 0}, {2}, dtype::int64))) ==
        std::vector<double>{3, 0, 11, 8, 11, 8});
  CHECK(vv::index(array<double, 2, 2>{1, 2, 3, 4}, 1, -2) == 3);
  for (index_t wrong : {4, -5})
    CHECK_THROWS_AS(vv::index(x, 1, vv::full({}, wrong)), vv::index_error); // though there are elements so far away
  CHECK_THROWS_AS(vv::index(x, vv::full({}, index_t(3)), 0), vv::index_error);
  CHECK_THROWS_AS(vv::index(x, 1), vv::value_error);
  // all lanes read one table: the gradient is no larger than it
  auto const read = [](auto const& t) {
    return vv::sum(vv::vmap([&](auto const& k) { return vv::index(t, k) * 2.0; })(vv::arange(50) * 0 + 7));
  };
  auto const graph = vv::make_fx(vv::grad(read))(vv::ones({1000}, dtype::float64));
  for (auto const& n : graph.nodes) CHECK(vv::numel(n.out.sizes) <= 1000);
  tensor const d = vv::grad(read)(vv::ones({1000}, dtype::float64));
  CHECK(element(d, 7) == 100);
  CHECK(vv::sum(d).item<double>() == 100);
}

TEST_CASE("flex_attention: one graph, and one program, for every batch and length", "[hop][flex_attention][shape]") {
  auto const by_head = [](auto s, auto, auto h, auto i, auto j) { return s + 0.1 * h * (i - j); };
  auto const f = [&](tensor const& x, tensor const& y, tensor const& z) {
    auto const mask = vv::create_block_mask(causal, vv::none, vv::none, x.sizes()[2], y.sizes()[2]);
    return vv::flex_attention(x, y, z, by_head, mask);
  };
  auto const df = [&](tensor const& x, tensor const& y, tensor const& z) {
    return tensor(vv::grad([&](tensor const& u) { return vv::sum(vv::sin(f(u, y, z))); })(x));
  };
  auto const numbers = [](index_t b, index_t n, double by) {
    return tensor(vv::sin(vv::reshape(vv::arange(b * 3 * n * 4, dtype::float64), dims{b, 3, n, 4}) * by));
  };
  auto const check = [&](auto const& of) {
    auto const g = vv::make_fx(of, vv::tracing::symbolic)(numbers(2, 5, 0.3), numbers(2, 6, 0.7), numbers(2, 6, 0.9));
    for (auto const& [b, l, s] : {std::array<index_t, 3>{3, 7, 9}, {2, 4, 8}}) {
      tensor const x = numbers(b, l, 0.3), y = numbers(b, s, 0.7), z = numbers(b, s, 0.9);
      CHECK(agree(vv::interpret(g, vv::boxed_args(x, y, z))[0], of(x, y, z)));
    }
  };
  check(f), check(df);
  constexpr auto of_any_length =
      vv::fuse<vv::spec<double, 2, 3, vv::dim<"n">, 4>, vv::spec<double, 2, 3, vv::dim<"m">, 4>,
               vv::spec<double, 2, 3, vv::dim<"m">, 4>>([](auto x, auto y, auto z) {
        return vv::flex_attention(x, y, z, [](auto s, auto, auto h, auto i, auto j) { return s + 0.1 * h * (i - j); });
      });
  tensor const x = numbers(2, 7, 0.3), y = numbers(2, 9, 0.7), z = numbers(2, 9, 0.9);
  CHECK(agree(of_any_length(x, y, z), vv::flex_attention(x, y, z, by_head)));
}

TEST_CASE("flex_attention: function modes see it whole", "[hop][flex_attention][mode]") {
  tensors const t;
  std::vector<std::string> seen;
  struct names : vv::dispatch_mode<names> {
    std::vector<std::string>* to;
    tensor process(vv::boxed_op op, vv::boxed_args const& x) { return to->push_back(op.name()), op(x); }
  } m;
  m.to = &seen;
  tensor const alone = vv::flex_attention(t.q, t.q, t.q);
  {
    vv::function_mode_guard const on{m};
    CHECK(agree(vv::flex_attention(t.q, t.q, t.q), alone));
  }
  CHECK(seen.front() == "flex_attention");
}
