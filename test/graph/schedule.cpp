// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

#include <varve_test.hpp>

namespace vv = varve;
using vv::array, vv::index_t, vv::tensor;
using namespace vv::fusion;

namespace {
/// The planned program of `F` on four vectors of a hundred, with its bodies ordered or as they are planned.
template <class F>
program planned(F const& f, bool ordered) {
  vv::meta const m{vv::dtype::float64, {100}, false};
  vv::graph const traced = vv::trace_graph(f, m, m, m, m), g = vv::prepare(traced);
  program p = plan(g);
  if (ordered) schedule(p, 0);
  return p;
}
/// The most values of one body that are alive at once; where its sinks are not among the steps they come after all of
/// them.
int most_alive(program const& p, body const& b) {
  std::vector<int> last(static_cast<std::size_t>(b.step_count), -1);
  auto use = [&](int a, int at) {
    if (a >= 0) last[static_cast<std::size_t>(a)] = at;
  };
  auto use_sink = [&](int number, int at) {
    sink const& s = p.sinks[b.sink_first + number];
    use(s.a, at);
    if (s.product) use(s.b, at);
  };
  for (int k = 0; k < b.step_count; ++k) {
    step const& s = p.steps[b.step_first + k];
    if (s.kind == step_kind::leave) use_sink(s.slot, k);
    bool const listed = s.kind != step_kind::fma && s.kind != step_kind::fnma;
    for (int e = 0; s.kind != step_kind::none && e < s.count; ++e) use(listed ? p.ports[s.args + e] : s.in[e], k);
  }
  for (int s = 0; s < b.sink_count && !b.ordered; ++s) use_sink(s, b.step_count);
  int most = 0;
  for (int k = 0; k < b.step_count; ++k) {
    int alive = 0;
    for (int q = 0; q <= k; ++q) alive += last[static_cast<std::size_t>(q)] > k;
    most = alive > most ? alive : most;
  }
  return most;
}
/// Operands come before what takes them, every sink once and after its values, every other step once.
void is_sound(program const& p) {
  int ordered = 0;
  for (body const& b : p.bodies) {
    if (!b.ordered) continue;
    ++ordered;
    std::vector<int> left(static_cast<std::size_t>(b.sink_count), 0);
    for (int k = 0; k < b.step_count; ++k) {
      step const& s = p.steps[b.step_first + k];
      bool const listed = s.kind != step_kind::fma && s.kind != step_kind::fnma;
      CHECK(s.kind != step_kind::none);
      for (int e = 0; e < s.count; ++e) CHECK((listed ? p.ports[s.args + e] : s.in[e]) < k);
      if (s.kind != step_kind::leave) continue;
      sink const& x = p.sinks[b.sink_first + s.slot];
      CHECK(x.a < k);
      if (x.product) CHECK(x.b < k);
      ++left[static_cast<std::size_t>(s.slot)];
    }
    for (int n : left) CHECK(n == 1);
  }
  CHECK(ordered > 0);
}

constexpr auto chains = [](auto x, auto y, auto z, auto w) { // eight values that wait for the end
  return std::tuple(vv::sin(x) * y, vv::exp(y) + z, x - z * w, x / w, vv::tanh(z), y * y - x, z * x + w, vv::sqrt(w));
};
constexpr auto shared = [](auto x, auto y, auto z, auto w) {
  auto const a = x * y - z, b = vv::exp(a) * w, c = a * b;
  return vv::sum(c * vv::sin(b) + c) + vv::sum(c * c);
};
constexpr auto twice = [](auto x, auto y, auto z, auto w) {
  return std::tuple(z - (x + x), (y + y) + w * w, vv::sum(x + x), vv::sum((x + x) * y - z));
};
template <int Terms>
constexpr auto horner = [](auto const& x) {
  auto p = x * 0.5 + 1.0;
  for (int k = 2; k <= Terms; ++k) p = p * x + 1.0 / k;
  return p;
};
/// Chains of fifty steps, written one behind the other, and what needs two of them.
constexpr auto polynomials = [](auto x, auto y, auto z, auto w) {
  auto const a = horner<50>(x), b = horner<50>(y), c = horner<50>(z), d = horner<50>(w);
  return std::tuple(a, b, c, d, a / b, vv::sum(c * d), vv::sum(a));
};
constexpr auto product = [](auto x, auto y, auto z, auto w) {
  return vv::sum(horner<15>(x) * horner<20>(y) / (horner<20>(z) * horner<25>(w)));
};
/// Steps that need the value of the step before them.
int waiting(program const& p, body const& b) {
  int n = 0;
  for (int k = 1; k < b.step_count; ++k) {
    step const& s = p.steps[b.step_first + k];
    bool const listed = s.kind != step_kind::fma && s.kind != step_kind::fnma,
               loaded = p.steps[b.step_first + k - 1].kind == step_kind::load;
    bool waits = false;
    for (int e = 0; e < s.count; ++e) waits = waits || (listed ? p.ports[s.args + e] : s.in[e]) == k - 1;
    n += waits && !loaded;
  }
  return n;
}
} // namespace

TEST_CASE("schedule: chains of dependent steps are computed side by side", "[graph]") {
  program const before = planned(polynomials, false), after = planned(polynomials, true);
  REQUIRE(before.bodies.size() == 1);
  CHECK(waiting(before, before.bodies[0]) > 150);
  CHECK(waiting(after, after.bodies[0]) < 15);
  is_sound(after);
  is_sound(planned(vv::grad<0, 1, 2, 3>(product), true));
}

TEST_CASE("schedule: a body keeps its values and its sinks, in an order that is possible", "[graph]") {
  is_sound(planned(chains, true));
  is_sound(planned(shared, true));
  is_sound(planned(vv::grad<0, 1, 2, 3>(shared), true));
  is_sound(planned(twice, true));
}

TEST_CASE("schedule: fewer values are alive at once", "[graph]") {
  program const before = planned(chains, false), after = planned(chains, true);
  REQUIRE(before.bodies.size() == 1);
  CHECK(most_alive(before, before.bodies[0]) > 8);
  CHECK(most_alive(after, after.bodies[0]) + 2 <= most_alive(before, before.bodies[0]));
}

TEST_CASE("schedule: ordered bodies compute what the function does", "[graph]") {
  array<double, 100> x, y, z, w;
  for (index_t k = 0; k < 100; ++k)
    x[k] = 0.01 * static_cast<double>(k), y[k] = 1 - x[k], z[k] = x[k] * x[k], w[k] = 0.5 + x[k];
  auto const same = [](auto const& a, auto const& b) {
    for (index_t k = 0; k < 100; ++k) CHECK(a[k] == Approx(b[k]).epsilon(1e-12).margin(1e-14));
  };
  auto const fused = vv::fuse(chains)(x, y, z, w), plain = chains(x, y, z, w);
  std::apply([&](auto const&... f) { std::apply([&](auto const&... p) { (same(f, p), ...); }, plain); }, fused);
  auto const g = vv::fuse(vv::grad<0, 1, 2, 3>(shared))(x, y, z, w), h = vv::grad<0, 1, 2, 3>(shared)(x, y, z, w);
  std::apply([&](auto const&... f) { std::apply([&](auto const&... p) { (same(f, p), ...); }, h); }, g);
  auto const [a, b, c, d] = vv::fuse(twice)(x, y, z, w);
  auto const [e, f, s, t] = twice(x, y, z, w);
  same(a, e), same(b, f);
  CHECK(c == Approx(s).epsilon(1e-12));
  CHECK(d == Approx(t).epsilon(1e-12));
  auto const i = vv::fuse(vv::grad<0, 1, 2, 3>(product))(x, y, z, w), j = vv::grad<0, 1, 2, 3>(product)(x, y, z, w);
  std::apply([&](auto const&... f) { std::apply([&](auto const&... p) { (same(f, p), ...); }, j); }, i);
  auto const by_fuse = vv::fuse(polynomials)(x, y, z, w), by_hand = polynomials(x, y, z, w);
  same(std::get<0>(by_fuse), std::get<0>(by_hand)), same(std::get<1>(by_fuse), std::get<1>(by_hand)),
      same(std::get<2>(by_fuse), std::get<2>(by_hand));
  same(std::get<3>(by_fuse), std::get<3>(by_hand)), same(std::get<4>(by_fuse), std::get<4>(by_hand));
  CHECK(std::get<5>(by_fuse) == Approx(std::get<5>(by_hand)).epsilon(1e-12));
  CHECK(std::get<6>(by_fuse) == Approx(std::get<6>(by_hand)).epsilon(1e-12));
}

namespace {
/// Values that a program stores in temporaries without reading them.
template <class P>
constexpr int unread_stores(P const& p) {
  int n = 0;
  for (std::size_t b = 0; b < p.used.bodies; ++b)
    for (int k = 0; k < p.bodies[b].sink_count; ++k) {
      auto const& s = p.sinks[p.bodies[b].sink_first + k];
      int const to = p.accesses[s.access].buffer;
      if (s.kind != vv::fusion::sink_kind::store || p.buffers[to].where != vv::fusion::place::arena) continue;
      bool read = false;
      for (std::size_t t = 0; t < p.used.steps; ++t)
        read = read || (p.steps[t].access >= 0 && p.accesses[p.steps[t].access].buffer == to);
      for (std::size_t t = 0; t < p.used.stages; ++t)
        for (int const in : p.stages[t].in) read = read || in == to;
      n += !read;
    }
  return n;
}
constexpr auto normalized = [](auto const& x, auto const& w, auto const& b, auto const& g) {
  return vv::sum(g * vv::gelu(vv::layer_norm(x, vv::shape<24>, w, b)));
};
} // namespace

TEST_CASE("plan: nothing is stored that nothing reads", "[graph][fuse]") {
  using matrix = vv::array<float, 6, 24>;
  using row = vv::array<float, 24>;
  constexpr auto backward =
      vv::fuse(vv::grad<0, 1, 2>(normalized)); // its sums over columns join the loop that makes what they add up
  STATIC_REQUIRE(unread_stores(std::remove_cvref_t<decltype(backward)>::program<matrix, row, row, matrix>::value) == 0);
}
