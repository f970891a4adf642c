// SPDX-License-Identifier: BSL-1.0
// Every operator with samples: eager backward gives what vjp gives, needs no value that its rules do not declare, and
// notices what was written since.
#include "../sample/op.hpp"
#include "autograd_test.hpp"

using namespace autograd_test;

std::vector<sample::row> const& sample::rows() {
  static std::vector<row> const table = [] {
    std::vector<row> t;
    auto const visit = collect(t);
    visit_pointwise(visit);
    visit_reductions(visit);
    visit_views(visit);
    sample::visit_regions(visit);
    visit_convolutions(visit);
    return t;
  }();
  return table;
}

namespace {
struct sampled {
  values x;                    // operands; those with derivatives are leaves
  std::vector<std::size_t> at; // which those are
  tensor g;                    // a cotangent of the result
};
sampled take(row const& r, std::vector<dims> const& s, std::uint64_t seed, dims const& result, dtype type) {
  sampled v{make(r, s, seed), r.real(), {}};
  for (auto k : v.at) v.x[k].requires_grad_();
  numbers draw(seed + 2000);
  v.g = uniform(result, draw, -1, 1, type);
  return v;
}
tensor plain_result(row const& r, std::vector<dims> const& s, std::uint64_t seed) { return r(make(r, s, seed)); }

/// The gradients vjp gives, at the places of the leaves.
values by_transform(row const& r, values const& x, std::vector<std::size_t> const& at, tensor const& g) {
  auto const of_real = [&](auto const&... v) {
    values all = x;
    std::size_t k = 0;
    ((all[at[k++]] = v), ...);
    return r(all);
  };
  auto const pull = [&](auto const&... v) {
    auto const c = vv::vjp(of_real, v...).second(g);
    return std::apply([](auto const&... t) { return values{t...}; }, c);
  };
  if (at.size() == 1) return pull(x[at[0]].detach());
  if (at.size() == 2) return pull(x[at[0]].detach(), x[at[1]].detach());
  return pull(x[at[0]].detach(), x[at[1]].detach(), x[at[2]].detach());
}
/// Shapes like those of the samples but large: an operand that is not declared as saved is then seen without data.
bool usable(row const& r, tensor const& y) { return !r.real().empty() && !r.constant && vv::is_floating(y.dtype()); }
std::vector<vv::autograd::target> targets(sampled const& v) {
  std::vector<vv::autograd::target> t;
  for (auto k : v.at) t.emplace_back(v.x[k]);
  return t;
}
} // namespace

TEST_CASE("all operators: eager backward gives what vjp gives", "[autograd][laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    INFO(describe(r, s));
    tensor const y0 = plain_result(r, s, seed);
    if (r.real().empty()) return;
    sampled v = take(r, s, seed, y0.sizes(), vv::is_floating(y0.dtype()) ? y0.dtype() : dtype::float64);
    tensor const y = r(v.x);
    CHECK(difference(y.detach(), y0) == "");
    if (!usable(r, y0)) {
      CHECK_FALSE(y.requires_grad());
      return;
    }
    CHECK(y.requires_grad());
    auto const expected = by_transform(r, v.x, v.at, v.g);
    y.backward(v.g, true);
    for (std::size_t k = 0; k < v.at.size(); ++k) CHECK(difference(v.x[v.at[k]].grad(), expected[k]) == "");
    // ... and again, recorded this time
    auto const again =
        vv::autograd::grad<>({y}, targets(v), {v.g}, {.create_graph = true}, vv::autograd::unused::zeros);
    for (std::size_t k = 0; k < v.at.size(); ++k) CHECK(difference(again[k].detach(), expected[k]) == "");
  });
  CHECK(thread_is_clean());
}

TEST_CASE("all operators: recorded gradients have the gradients that vjp of vjp has", "[autograd][laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    tensor const y0 = plain_result(r, s, seed);
    if (!usable(r, y0)) return;
    INFO(describe(r, s));
    sampled v = take(r, s, seed, y0.sizes(), y0.dtype());
    v.g.requires_grad_();
    auto const g =
        vv::autograd::grad<>({r(v.x)}, targets(v), {v.g}, {.create_graph = true}, vv::autograd::unused::zeros);
    // The pullback of the first operand's gradient, with respect to the cotangent: linear, so equal to the jvp.
    numbers draw(seed + 3000);
    for (std::size_t k = 0; k < v.at.size(); ++k) {
      if (!g[k].requires_grad()) continue;
      tensor const u = uniform(g[k].sizes(), draw, -1, 1, g[k].dtype());
      tensor const by_g =
          vv::autograd::grad<>({g[k]}, {v.g}, {u}, {.retain_graph = true}, vv::autograd::unused::zeros)[0];
      auto const along = [&](tensor const& a) {
        values all = v.x;
        for (auto& t : all) t = t.detach();
        all[v.at[k]] = a;
        return r(all);
      };
      tensor const tangent = vv::jvp(along, std::tuple(v.x[v.at[k]].detach()), std::tuple(u)).second;
      CHECK(difference(by_g, tangent, 1e-10) == "");
    }
  });
}

TEST_CASE("all operators: what is written after the call is noticed, or does no harm", "[autograd][laws][in_place]") {
  int raised = 0, harmless = 0;
  for_each_sample([&](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    tensor const y0 = plain_result(r, s, seed);
    if (!usable(r, y0)) return;
    for (std::size_t written = 0; written <= r.operands.size(); ++written) {
      INFO(describe(r, s) << ", written: "
                          << (written < r.operands.size() ? "operand " + std::to_string(written) : "the result"));
      sampled v = take(r, s, seed, y0.sizes(), y0.dtype());
      auto const expected = by_transform(r, v.x, v.at, v.g);
      tensor const y = r(v.x);
      {
        vv::no_grad const off;
        tensor const t = written < v.x.size() ? v.x[written] : y;
        try {
          if (t.dtype() == dtype::bool_) vv::copy_(t, vv::eq(t, from({0}, {}, dtype::bool_)));
          else if (t.dtype() == dtype::int64) vv::mul_(t, 0);
          else vv::add_(t, 10);
        } catch (vv::value_error const&) {
          continue; // it repeats elements
        }
      }
      try {
        y.backward(v.g);
        for (std::size_t k = 0; k < v.at.size(); ++k) CHECK(difference(v.x[v.at[k]].grad(), expected[k], 1e-14) == "");
        ++harmless;
      } catch (vv::autograd_error const& e) {
        CHECK_THAT(e.what(), ContainsText("in-place"));
        ++raised;
      }
    }
  });
  CHECK(raised > 50);
  CHECK(harmless > 100);
  CHECK(thread_is_clean());
}
