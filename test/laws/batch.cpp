// SPDX-License-Identifier: BSL-1.0
#include "law.hpp"

#include <varve/interpreter/mode_guard.hpp>
#include <varve/op/sum.hpp>

#include <varve_test.hpp>

using namespace law;

namespace {
constexpr index_t lanes = 3;
constexpr int not_mapped = 99;

/// Operands with a dimension of size `lanes` inserted where `at` says so; false when an operand has no such place.
bool widen(row const& r, std::vector<dims> const& s, std::uint64_t seed, std::vector<int>& at, values& x) {
  numbers draw(seed);
  for (std::size_t k = 0; k < s.size(); ++k) {
    dims wide = s[k];
    if (at[k] != not_mapped) {
      int const rank = wide.n + 1, a = at[k] < 0 ? at[k] + rank : at[k];
      if (a < 0 || a >= rank) return false;
      at[k] = a;
      wide.insert(a, lanes);
    }
    x.push_back(make(r.operands[k], wide, draw, static_cast<memory>((seed + k) % 3)));
  }
  return true;
}
values lane(values const& x, std::vector<int> const& at, index_t i) {
  values one;
  for (std::size_t k = 0; k < x.size(); ++k) one.push_back(at[k] == not_mapped ? x[k] : slice_of(x[k], at[k], i));
  return one;
}
/// Compares `batched` (mapped dimension `out`) with the calls on the slices.
template <class One>
std::string against_loop(tensor const& batched, int out, One const& one) {
  if (batched.dim() == 0) return "the result has no mapped dimension";
  if (batched.size(out) != lanes) return "the mapped dimension has size " + std::to_string(batched.size(out));
  for (index_t i = 0; i < lanes; ++i) {
    auto const d = difference(slice_of(batched, out, i), one(i), 1e-12);
    if (!d.empty()) return "slice " + std::to_string(i) + ": " + d;
  }
  return "";
}
template <auto D>
constexpr int place() {
  if constexpr (vv::is_none<decltype(D)>) return not_mapped;
  else return D;
}

template <auto... D>
void check(row const& r, std::vector<dims> const& s, std::uint64_t seed) {
  if (sizeof...(D) != s.size()) return;
  std::vector<int> at{place<D>()...};
  values x;
  if (!widen(r, s, seed, at, x)) return;
  INFO(describe(r, s) << " mapped at " << at[0] << (at.size() > 1 ? ", " + std::to_string(at[1]) : ""));
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    auto f = [&](auto const&... v) { return r({v...}); };
    CHECK(against_loop(vv::vmap(f, vv::in_dims<D...>)(x[K]...), 0, [&](index_t i) { return r(lane(x, at, i)); }) == "");
    tensor const last = vv::vmap(f, vv::in_dims<D...>, vv::out_dims<-1>)(x[K]...);
    CHECK(against_loop(last, last.dim() - 1, [&](index_t i) { return r(lane(x, at, i)); }) == "");
  }(std::make_index_sequence<sizeof...(D)>{});
}

struct watching : vv::dispatch_mode<watching> {
  int calls = 0;
  auto process(auto op, auto const&... args) {
    ++calls;
    return op(args...);
  }
};
} // namespace

TEST_CASE("all operators: vmap is the loop over slices", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    check<0>(r, s, seed);
    check<1>(r, s, seed);
    check<-1>(r, s, seed);
    check<0, 0>(r, s, seed);
    check<0, vv::none>(r, s, seed);
    check<vv::none, 0>(r, s, seed);
    check<1, -1>(r, s, seed);
    check<vv::none, 1>(r, s, seed);
    check<0, 0, 0>(r, s, seed);
    check<0, vv::none, vv::none>(r, s, seed);
    check<vv::none, 0, vv::none>(r, s, seed);
    check<vv::none, vv::none, 0>(r, s, seed);
    check<-1, 0, 1>(r, s, seed);
    check<vv::none, -1, 0>(r, s, seed);
  });
}

TEST_CASE("all operators: vmap inside vmap is the loop over both", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (s.size() > 2 || s[0].n > 2) return;
    INFO(describe(r, s));
    numbers draw(seed);
    dims wide = s[0];
    wide.insert(0, lanes).insert(0, lanes);
    tensor const x = make(r.operands[0], wide, draw);
    values rest;
    if (s.size() == 2) rest.push_back(make(r.operands[1], s[1], draw));
    auto f = [&](auto const& v) {
      values all{v};
      all.insert(all.end(), rest.begin(), rest.end());
      return r(all);
    };
    CHECK(against_loop(vv::vmap(vv::vmap(f))(x), 0, [&](index_t i) { return vv::vmap(f)(slice_of(x, 0, i)); }) == "");
  });
}

TEST_CASE("all operators: the gradient of vmap is vmap of the gradient", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    if (r.real().empty() || r.constant) return;
    INFO(describe(r, s));
    std::vector<int> at;
    for (auto d : r.operands) at.push_back(d == domain::flag || d == domain::index ? not_mapped : 0);
    values x;
    REQUIRE(widen(r, s, seed, at, x));
    auto const real = r.real();
    with_count(real.size(), [&]<std::size_t... K>(std::index_sequence<K...>) {
      of_real const f{r, x};
      auto total = [&](auto const&... v) { return vv::sum(f(v...)); };
      auto of_batch = [&](auto const&... v) { return vv::sum(vv::vmap(f)(v...)); };
      auto const outside = vv::grad(of_batch, vv::argnums<static_cast<int>(K)...>)(x[real[K]]...);
      auto const inside = vv::vmap(vv::grad(total, vv::argnums<static_cast<int>(K)...>))(x[real[K]]...);
      auto const nth = []<std::size_t I>(auto const& t, std::integral_constant<std::size_t, I>) -> tensor {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(t)>, tensor>) return t;
        else return std::get<I>(t);
      };
      auto agree = [&](auto k) { CHECK(difference(nth(outside, k), nth(inside, k), 1e-12) == ""); };
      (agree(std::integral_constant<std::size_t, K>{}), ...);
      // per slice
      auto const first = nth(inside, std::integral_constant<std::size_t, 0>{});
      CHECK(against_loop(first, 0, [&](index_t i) {
              values const one = lane(x, at, i);
              tensor const y = r(one);
              return vjp(
                  r, one,
                  from(std::vector<double>(static_cast<std::size_t>(y.numel()), 1.0), y.sizes(), y.dtype()))[real[0]];
            }) == "");
      return 0;
    });
  });
}

TEST_CASE("all operators: a mode sees the call and changes nothing", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    INFO(describe(r, s));
    auto const x = make(r, s, seed);
    tensor const y = r(x);
    watching m;
    tensor seen;
    {
      vv::mode_guard const on{m};
      seen = r(x);
    }
    // What has nothing to do is no call: squeezing nothing, broadcasting to the same shape, reshaping a contiguous
    // tensor to itself.
    bool const idle = std::string(r.name) == "contiguous" || std::string(r.name) == "broadcast_to" ||
                      std::string(r.name) == "sum_to_size";
    CHECK((m.calls > 0 || idle));
    CHECK(difference(seen, y) == "");
    CHECK(seen.strides() == y.strides());
  });
}

TEST_CASE("all operators: the memory layout of operands does not matter", "[laws]") {
  for_each_sample([](row const& r, std::vector<dims> const& s, std::uint64_t seed) {
    INFO(describe(r, s));
    auto const x = make(r, s, seed);
    values plain;
    for (auto const& t : x) plain.push_back(from(elements(t), t.sizes(), t.dtype()));
    CHECK(difference(r(x), r(plain), 1e-14) == "");
  });
}
