// SPDX-License-Identifier: BSL-1.0
#include "jacobian_test.hpp"

#include <varve/autograd/backward.hpp>
#include <varve/compile/compile.hpp>
#include <varve/complex.hpp>

#include <random>

constexpr auto jacobian_at = vv::sparse_jacobian(bratu)(at);
static_assert(jacobian_at.pattern() == sparsity_pattern::banded(8, 8, 1, 1).view());
static_assert(vv::sparse_jacobian(bratu).passes(at) == 3);
static_assert(jacobian_at.to_dense()(3, 2) == 1 && jacobian_at.to_dense()(3, 5) == 0);
constexpr auto hessian_at = vv::sparse_hessian(rosenbrock)(at);
static_assert(hessian_at.count() == 22 && vv::sparse_hessian(rosenbrock).passes(at) == 3);
static_assert(vv::sparse_hessian(rosenbrock, vv::by_substitution).passes(at) == 2);

TEST_CASE("sparse_jacobian: arrays", "[sparse]") {
  auto const j = vv::sparse_jacobian(bratu)(at).to_dense();
  auto const rows = vv::sparse_jacobian(bratu, vv::by_rows)(at).to_dense();
  auto const h = vv::sparse_hessian(rosenbrock)(at).to_dense();
  auto const s = vv::sparse_hessian(rosenbrock, vv::by_substitution)(at).to_dense();
  auto const jd = vv::jacfwd(bratu)(at);
  auto const hd = vv::hessian(rosenbrock)(at);
  for (int k = 0; k < 64; ++k) {
    CHECK(j.data[k] == Approx(jd.data[k]));
    CHECK(rows.data[k] == Approx(jd.data[k]));
    CHECK(h.data[k] == Approx(hd.data[k]));
    CHECK(s.data[k] == Approx(hd.data[k]).margin(1e-9));
  }
}

TEST_CASE("sparse_jacobian: equals the dense one", "[sparse]") {
  std::mt19937 draw(3);
  std::vector<std::int64_t> from, to;
  for (int k = 0; k < 60; ++k) from.push_back(draw() % 60), to.push_back(draw() % 60);
  tensor const i(from), k(to);
  struct {
    function f;
    tensor x;
    int most;
  } const all[] = {
      {[](tensor const& x) { return bratu(x); }, row(8), 3},
      {[](tensor const& x) { return laplace(x); }, vv::reshape(row(36), {6, 6}), 7},
      {arrow, row(9), 9},
      {[=](tensor const& x) { return vv::sin(vv::index_select(x, 0, i)) * vv::index_select(x, 0, k); }, row(60), 8},
      {[](tensor const& x) { return vv::sum(x * x, 0); }, vv::reshape(row(12), {4, 3}), 4},
      {[](tensor const& x) { return vv::sum(x * x); }, row(5), 1},
      {[](tensor const& x) { return x * 2.0; }, tensor(1.5), 1},
      {[](tensor const& x) { return vv::zeros_like(x); }, row(4), 0},
      {[](tensor const& x) { return vv::detach(x) * x; }, row(4), 1},
      {[](tensor const& x) { return x * x; }, vv::zeros({0}, vv::dtype::float64), 0},
  };
  for (auto const& t : all) {
    tensor const d = dense(t.f, t.x);
    auto const j = vv::sparse_jacobian(t.f);
    CHECK(close(j(t.x).to_dense(), d));
    CHECK(close(vv::sparse_jacobian(t.f, vv::by_columns)(t.x).to_dense(), d));
    CHECK(close(vv::sparse_jacobian(t.f, vv::by_rows)(t.x).to_dense(), d));
    CHECK(j.passes(t.x) <= t.most);
    CHECK(j(t.x).pattern().count() == j.pattern(t.x).count());
  }
}

TEST_CASE("sparse_hessian: equals the dense one", "[sparse]") {
  tensor const edges_from{0L, 1L, 2L, 3L, 4L, 0L, 2L}, edges_to{1L, 2L, 3L, 4L, 5L, 3L, 5L};
  auto const poses = [=](tensor const& x) { // positions in the plane, springs between them
    tensor const d = vv::index_select(x, 0, edges_to) - vv::index_select(x, 0, edges_from);
    return vv::sum(vv::square(vv::sqrt(vv::sum(d * d, 1) + 0.1) - 1.0));
  };
  struct {
    function f;
    tensor x;
  } const all[] = {
      {[](tensor const& x) { return rosenbrock(x); }, row(7)},
      {[](tensor const& x) { return vv::sum(vv::square(laplace(x))); }, vv::reshape(row(16), {4, 4})},
      {[](tensor const& x) { return vv::sum(arrow(x) * arrow(x)); }, row(6)},
      {poses, vv::reshape(vv::sin(row(12) * 7.0), {6, 2})},
      {[](tensor const& x) { return vv::sum(x); }, row(3)},
      {[](tensor const& x) { return x * x * x; }, tensor(2.0)},
      {[](tensor const& x) { return vv::sum(vv::exp(x)); }, row(5)},
  };
  for (auto const& t : all) {
    tensor const h = vv::reshape(vv::hessian(t.f)(t.x), {t.x.numel(), t.x.numel()});
    CHECK(close(vv::sparse_hessian(t.f)(t.x).to_dense(), h, 1e-9));
    CHECK(close(vv::sparse_hessian(t.f, vv::by_substitution)(t.x).to_dense(), h, 1e-8));
  }
  CHECK(vv::sparse_hessian([](tensor const& x) { return vv::sum(vv::exp(x)); }).passes(row(5)) == 1);
}

TEST_CASE("sparse_jacobian: dtypes, layouts", "[sparse]") {
  auto const f = [](tensor const& x) { return bratu(x); };
  for (auto const t : {vv::dtype::float32, vv::dtype::float64}) {
    tensor const j = vv::sparse_jacobian(f)(vv::to(row(8), t)).values;
    CHECK(j.dtype() == t);
    CHECK(j.numel() == 22);
  }
  tensor const wide = vv::reshape(row(16), {8, 2});
  tensor const strided = vv::select(wide, 1, 1);
  CHECK(close(vv::sparse_jacobian(f)(strided).to_dense(), dense(f, vv::contiguous(strided))));
  for (auto const t : {vv::dtype::float16, vv::dtype::bfloat16}) {
    auto const twice = [](tensor const& x) { return x * x; };
    tensor const j = vv::sparse_jacobian(twice)(vv::to(tensor{1.0f, 2.0f}, t)).values;
    CHECK(j.dtype() == t);
    CHECK(vv::to(j, vv::dtype::float32).to_vector<float>() == std::vector<float>{2, 4});
  }
  auto const narrows = [](tensor const& x) { return vv::to(x, vv::dtype::float32) * 2.0; };
  CHECK(vv::sparse_jacobian(narrows)(row(3)).values.dtype() == vv::dtype::float32);
}

TEST_CASE("sparse_jacobian: plans are kept, and made again where they do not fit", "[sparse]") {
  int runs = 0;
  tensor index{1L, 0L, 2L};
  auto const f = [&](tensor const& x) { return ++runs, vv::index_select(x, 0, index) * x; };
  auto const j = vv::sparse_jacobian(f);
  (void)j(row(3));
  int const first = runs;
  auto const copy = j;
  (void)copy(row(3, 0.9));
  CHECK(runs == first + 1); // the derivative alone
  vv::copy_(index, tensor{2L, 2L, 0L});
  CHECK(close(j(row(3)).to_dense(), dense([&](tensor const& x) { return f(x); }, row(3))));
  auto const by = [](tensor const& x, tensor const& at) { return vv::index_select(x, 0, at); };
  auto const k = vv::sparse_jacobian(by);
  CHECK(to_string(k(row(3), tensor{0L, 2L}).pattern()) == "x..\n..x\n");
  CHECK(to_string(k(row(3), tensor{1L, 1L}).pattern()) == ".x.\n.x.\n");
  CHECK(to_string(k(row(4), tensor{1L, 1L}).pattern()) == ".x..\n.x..\n");
  auto const shifted = vv::sparse_jacobian([](tensor const& x, int by) { return vv::slice(x, 0, by, by + 2); });
  CHECK(to_string(shifted(row(4), 0).pattern()) == "x...\n.x..\n");
  CHECK(to_string(shifted(row(4), 2).pattern()) == "..x.\n...x\n");
  static tensor places, weights;
  auto const of_globals = [](tensor const& x) { return vv::index_select(x, 0, places) * weights; };
  for (std::int64_t const k : {0, 2}) {
    places = tensor{k, k + 1}, weights = tensor{1.0, 2.0};
    CHECK(close(vv::sparse_jacobian(of_globals)(row(4)).to_dense(), dense(of_globals, row(4))));
    CHECK(close(vv::sparse_jacobian(of_globals, vv::by_rows)(row(4)).to_dense(), dense(of_globals, row(4))));
  }
}

TEST_CASE("sparse_jacobian: refused results and captures", "[sparse]") {
  auto const complex = [](tensor const& x) { return vv::complex(vv::sum(x), vv::sum(x * x)); };
  CHECK_THROWS_WITH(vv::sparse_jacobian(complex, vv::by_rows)(row(3)), ContainsText("sparse_jacobian: dtype complex"));
  CHECK_THROWS_WITH(vv::sparse_jacobian(complex, vv::by_columns)(row(3)), ContainsText("dtype complex"));
  tensor const places{2L, 0L};
  auto const pick = [places](tensor const& x) { return vv::index_select(x * x, 0, places); };
  function const values = [j = vv::sparse_jacobian(pick)](tensor const& x) { return j.values(x); },
                 given = [j = vv::sparse_jacobian(pick, vv::sparsity(pick)(row(3)))](tensor const& x) {
                   return j.values(x);
                 };
  CHECK_THROWS_WITH(vv::compile(values)(row(3)), ContainsText("give the pattern: sparse_jacobian(f, sparsity(f)(x))"));
  CHECK(close(vv::compile(given)(row(3)), values(row(3))));
  CHECK_THROWS_WITH(vv::compile(values)(row(3)), ContainsText("give the pattern")); // the plan is there
}

TEST_CASE("sparse_jacobian: a given pattern", "[sparse]") {
  auto const f = [](tensor const& x) { return bratu(x); };
  auto const j = vv::sparse_jacobian(f, sparsity_pattern::banded(8, 8, 1, 1));
  CHECK(close(j(row(8)).to_dense(), dense(f, row(8))));
  CHECK_THROWS_AS(vv::sparse_jacobian(f, sparsity_pattern::banded(8, 7, 1, 1))(row(8)), vv::shape_error);
  CHECK_THROWS_AS(vv::sparse_jacobian(f, sparsity_pattern::banded(9, 8, 1, 1))(row(8)), vv::shape_error);
  CHECK_THROWS_AS(vv::sparse_jacobian(f, sparsity_pattern(9, 8))(row(8)), vv::shape_error);
  CHECK(vv::sparse_jacobian(f, sparsity_pattern(8, 8))(row(8)).values.numel() == 0);
  constexpr auto band = [] { return sparsity_pattern::banded(8, 8, 1, 1); };
  auto const a = vv::sparse_jacobian(bratu, band)(at);
  auto const b = vv::sparse_jacobian(bratu)(at);
  for (int k = 0; k < 22; ++k) CHECK(a.values.data[k] == b.values.data[k]);
  CHECK(close(vv::sparse_jacobian(f, band)(row(8)).to_dense(), dense(f, row(8))));
  auto const g = [](tensor const& x) { return rosenbrock(x); };
  CHECK(close(vv::sparse_hessian(g, sparsity_pattern::banded(5, 5, 1, 1))(row(5)).to_dense(), vv::hessian(g)(row(5)),
              1e-9));
  CHECK_THROWS_WITH(vv::sparse_hessian(g, sparsity_pattern::banded(5, 5, 1, 0))(row(5)),
                    ContainsText("symmetric matrix"));
}

TEST_CASE("sparse_jacobian: captures of a closure, and views of memory", "[sparse]") {
  constexpr auto scaled = [](auto const& x, auto const& by) { return bratu(x) * by; };
  auto const a = vv::sparse_jacobian(vv::closure(scaled, 2.0)).values(at), b = vv::sparse_jacobian(bratu).values(at);
  for (int k = 0; k < 22; ++k) CHECK(a.data[k] == Approx(2 * b.data[k]));
  auto const c = vv::sparse_jacobian(scaled).values(at, at);
  CHECK(c.data[0] == Approx(b.data[0] * at.data[0]));
  CHECK(close(vv::sparse_jacobian(vv::closure(scaled, row(8))).values(row(8)),
              vv::sparse_jacobian(scaled).values(row(8), row(8))));
}

namespace {
constexpr auto scaled_bratu = [](auto const& by, auto const& x, auto const& shift) { return bratu(x) * by + shift; };
} // namespace
TEST_CASE("sparse_jacobian: by another argument than the first", "[sparse]") {
  auto const j = vv::sparse_jacobian<1>(scaled_bratu)(at, at, 1.0).to_dense();
  auto const dense_j = vv::jacfwd<1>(scaled_bratu)(at, at, 1.0);
  auto const h = vv::sparse_hessian<1>([](auto const& by, auto const& x) { return by * rosenbrock(x); })(2.0, at);
  auto const dense_h = vv::hessian(rosenbrock)(at);
  for (int k = 0; k < 64; ++k) CHECK(j.data[k] == Approx(dense_j.data[k]));
  for (int k = 0; k < 64; ++k) CHECK(h.to_dense().data[k] == Approx(2 * dense_h.data[k]).margin(1e-12));

  auto const pick = [](tensor const& index, tensor const& x, tensor const& w) {
    return vv::sin(vv::index_select(x, 0, index)) * w;
  };
  tensor const index{2L, 0L, 2L}, x = row(4), w = row(3, 0.7);
  auto const by_x = [&](tensor const& v) { return pick(index, v, w); };
  auto const by_w = [&](tensor const& v) { return pick(index, x, v); };
  CHECK(to_string(vv::sparsity<1>(pick)(index, x, w)) == "..x.\nx...\n..x.\n");
  CHECK(to_string(vv::sparsity<-1>(pick)(index, x, w)) == "x..\n.x.\n..x\n");
  auto const of_x = vv::sparse_jacobian<1>(pick);
  CHECK(close(of_x(index, x, w).to_dense(), dense(by_x, x)));
  CHECK(to_string(of_x(tensor{1L, 1L, 3L}, x, w).pattern()) == ".x..\n.x..\n...x\n"); // another plan
  CHECK(close(vv::sparse_jacobian<1>(pick, vv::by_rows)(index, x, w).to_dense(), dense(by_x, x)));
  CHECK(close(vv::sparse_jacobian<2>(pick, vv::by_columns)(index, x, w).to_dense(), dense(by_w, w)));
  CHECK(close(vv::sparse_jacobian<-1>(pick, sparsity_pattern::banded(3, 3, 0, 0))(index, x, w).to_dense(),
              dense(by_w, w)));
  auto const loss = [&](tensor const& i, tensor const& v) { return vv::sum(vv::exp(pick(i, v, w))); };
  tensor const hessian = vv::hessian([&](tensor const& v) { return loss(index, v); })(x);
  CHECK(to_string(vv::hessian_sparsity<1>(loss)(index, x)) == "x...\n....\n..x.\n....\n");
  CHECK(close(vv::sparse_hessian<1>(loss)(index, x).to_dense(), hessian));
  CHECK(close(vv::sparse_hessian<-1>(loss, vv::by_substitution)(index, x).to_dense(), hessian));

  // a closure's captures come last, and lanes, compilers and fused programs see the argument where it is
  auto const captured = vv::sparse_jacobian<1>(vv::closure(pick, w));
  CHECK(close(captured.values(index, x), of_x.values(index, x, w)));
  tensor const many = vv::stack(std::tuple(x, x * 2.0), 0);
  tensor const lanes = vv::vmap([&](tensor const& v) { return of_x.values(index, v, w); })(many);
  CHECK(close(vv::select(lanes, 0, 1), of_x.values(index, x * 2.0, w)));
  auto const of_scaled = vv::sparse_jacobian<1>(scaled_bratu);
  CHECK(
      close(vv::compile([&](tensor const& a, tensor const& v) { return of_scaled.values(a, v, 1.0); })(row(8), row(8)),
            of_scaled.values(row(8), row(8), 1.0)));
  auto const fused =
      vv::fuse([](auto const& a, auto const& v) { return vv::sparse_jacobian<1>(scaled_bratu).values(a, v, 1.0); });
  auto const values = vv::sparse_jacobian<1>(scaled_bratu).values(at, at, 1.0), by_fuse = fused(at, at);
  for (int k = 0; k < 22; ++k) CHECK(by_fuse.data[k] == Approx(values.data[k]));
}

TEST_CASE("sparse_jacobian: the compressed matrix, and where entries are in it", "[sparse]") {
  auto const j = vv::sparse_jacobian([](tensor const& x) { return bratu(x); });
  tensor const c = j.compressed(row(8));
  CHECK(c.sizes() == vv::dims{3, 8});
  tensor const at_flat(j.positions(row(8)));
  CHECK(close(vv::index_select(vv::reshape(c, {24}), 0, at_flat), j.values(row(8))));
  constexpr auto h = vv::sparse_hessian(rosenbrock).compressed(at);
  static_assert(std::is_same_v<decltype(h), array<double, 3, 8> const>);
  auto const fused = vv::fuse([](auto const& x) { return vv::sparse_hessian(rosenbrock).compressed(x); })(at);
  for (int k = 0; k < 24; ++k) CHECK(fused.data[k] == Approx(h.data[k]));
  CHECK(vv::sparse_hessian(rosenbrock).positions(at).size() == 22);
  CHECK_THROWS_WITH(vv::sparse_hessian(rosenbrock, vv::by_substitution).positions(at), ContainsText("by substitution"));
  CHECK(vv::sparse_jacobian([](tensor const& x) { return vv::zeros_like(x); }).compressed(row(4)).numel() == 0);
}
