// SPDX-License-Identifier: BSL-1.0
// In-place operators, and views of what they write (semantics AG-14..16).
#include "autograd_test.hpp"

using namespace autograd_test;

namespace {
list weights(index_t n) {
  list r;
  for (index_t k = 0; k < n; ++k) r.push_back(1 + 0.5 * static_cast<double>(k * k));
  return r;
}
/// A sum of squares with different weights, so that no two elements are alike to the gradient.
tensor weighed(tensor const& y) { return vv::sum(y * y * from(weights(y.numel()), y.sizes())); }
using two = tensor (*)(tensor const& x, tensor const& w);
/// The program with in-place operators, and the same without: values, gradients and gradients of gradients agree.
void same(char const* what, bool replayed, two in_place, two functional, dims const& sizes, dims const& w_sizes) {
  INFO(what << (replayed ? ", views replayed" : ""));
  vv::autograd::force_original_view_tracking const how(replayed);
  numbers draw(7);
  tensor const x0 = uniform(sizes, draw, 0.5, 2), w0 = uniform(w_sizes, draw, 0.5, 2);
  list g[2][2], h[2][2], y[2];
  for (int k = 0; k < 2; ++k) {
    tensor const x = from(elements(x0), sizes).requires_grad_(), w = from(elements(w0), w_sizes).requires_grad_();
    tensor const r = (k ? functional : in_place)(x, w);
    y[k] = elements(r);
    auto const first =
        vv::autograd::grad<>({weighed(r)}, {x, w}, {}, {.create_graph = true}, vv::autograd::unused::zeros);
    tensor const s = weighed(first[0]) + weighed(first[1]);
    g[k][0] = elements(first[0]), g[k][1] = elements(first[1]);
    auto const second = vv::autograd::grad<>({s}, {x, w}, {}, {}, vv::autograd::unused::zeros);
    h[k][0] = elements(second[0]), h[k][1] = elements(second[1]);
    tensor const again = (k ? functional : in_place)(x, w);
    weighed(again).backward();
    CHECK(grad_of(x) == g[k][0]);
  }
  auto const agree = [](list const& a, list const& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] == Approx(b[k]).margin(1e-12));
  };
  agree(y[0], y[1]);
  for (int k = 0; k < 2; ++k) {
    agree(g[0][k], g[1][k]);
    INFO("of the gradient");
    agree(h[0][k], h[1][k]);
  }
}
void same(char const* what, two in_place, two functional, dims const& sizes, dims const& w_sizes) {
  same(what, false, in_place, functional, sizes, w_sizes);
  same(what, true, in_place, functional, sizes, w_sizes); // AG-18
}
tensor row(tensor const& t, index_t i) { return vv::select(t, 0, i); }
/// `t` with row i replaced.
tensor with_row(tensor const& t, index_t i, tensor const& r) {
  std::vector<tensor> rows;
  for (index_t k = 0; k < t.size(0); ++k)
    rows.push_back(k == i ? tensor(vv::broadcast_to(r, row(t, k).sizes())) : row(t, k));
  return rows.size() == 2 ? tensor(vv::stack(std::tuple(rows[0], rows[1]), vv::axis<0>))
                          : tensor(vv::stack(std::tuple(rows[0], rows[1], rows[2]), vv::axis<0>));
}
} // namespace

TEST_CASE("in place: on values that are no leaves, as the same program without", "[autograd][in_place]") {
  using T = tensor const&;
  dims const m{3, 2}, r{2};
  same(
      "add_",
      [](T x, T w) {
        tensor a = x * x;
        vv::add_(a, w);
        return a;
      },
      [](T x, T w) { return tensor(x * x + w); }, m, r);
  same(
      "mul_",
      [](T x, T w) {
        tensor a = vv::sin(x);
        vv::mul_(a, w);
        return a;
      },
      [](T x, T w) { return tensor(vv::sin(x) * w); }, m, r);
  same(
      "mul_ twice",
      [](T x, T w) {
        tensor a = x * 1;
        vv::mul_(a, w);
        vv::mul_(a, w);
        return a;
      },
      [](T x, T w) { return tensor(x * w * w); }, m, r);
  same(
      "mul_ by its own operand",
      [](T x, T) {
        tensor a = vv::clone(x);
        vv::mul_(a, x);
        return a;
      },
      [](T x, T) { return tensor(x * x); }, m, r);
  same(
      "mul_ by itself",
      [](T x, T) {
        tensor a = vv::clone(x);
        vv::mul_(a, a);
        return a;
      },
      [](T x, T) { return tensor(x * x); }, m, r);
  same(
      "add_ of itself",
      [](T x, T) {
        tensor a = vv::clone(x);
        vv::add_(a, a);
        return a;
      },
      [](T x, T) { return tensor(x + x); }, m, r);
  same(
      "mul_ by a view of itself",
      [](T x, T) {
        tensor a = vv::clone(x);
        vv::mul_(a, row(a, 1));
        return a;
      },
      [](T x, T) { return tensor(x * row(x, 1)); }, m, r);
  same(
      "copy_",
      [](T x, T w) {
        tensor a = x * 2;
        vv::copy_(a, w);
        return tensor(a * x);
      },
      [](T x, T w) { return tensor(vv::broadcast_to(w, dims{3, 2}) * x); }, m, r);
  same(
      "write into what had no history",
      [](T x, T w) {
        tensor a = from(list(6, 1), {3, 2});
        vv::mul_(a, x);
        vv::add_(a, w);
        return a;
      },
      [](T x, T w) { return tensor(x + w); }, m, r);
  same(
      "read before and after",
      [](T x, T w) {
        tensor a = x * 1;
        tensor b = vv::sin(vv::clone(a));
        vv::mul_(a, w);
        return tensor(a * b);
      },
      [](T x, T w) { return tensor(x * w * vv::sin(x)); }, m, r);
}

TEST_CASE("in place: into views, the base seen afterwards, as the same program without", "[autograd][view]") {
  using T = tensor const&;
  dims const m{3, 2}, r{2};
  same(
      "select, mul_",
      [](T x, T w) {
        tensor a = x * x;
        vv::mul_(row(a, 1), w);
        return a;
      },
      [](T x, T w) {
        tensor a = x * x;
        return with_row(a, 1, row(a, 1) * w);
      },
      m, r);
  same(
      "select, add_, twice",
      [](T x, T w) {
        tensor a = x * x;
        tensor v = row(a, 1);
        vv::add_(v, w);
        vv::mul_(v, w);
        return a;
      },
      [](T x, T w) {
        tensor a = x * x;
        return with_row(a, 1, (row(a, 1) + w) * w);
      },
      m, r);
  same(
      "copy_ into a row",
      [](T x, T w) {
        tensor a = vv::sin(x);
        vv::copy_(row(a, 2), w);
        return a;
      },
      [](T x, T w) { return with_row(vv::sin(x), 2, w); }, m, r);
  same(
      "the view afterwards",
      [](T x, T w) {
        tensor a = x * 1;
        tensor v = row(a, 0);
        vv::mul_(v, w);
        return tensor(v * v);
      },
      [](T x, T w) {
        tensor v = row(x, 0) * w;
        return tensor(v * v);
      },
      m, r);
  same(
      "another view afterwards",
      [](T x, T w) {
        tensor a = x * 1;
        tensor v = row(a, 0), u = vv::transpose(a);
        vv::mul_(v, w);
        return tensor(u * u);
      },
      [](T x, T w) {
        tensor u = vv::transpose(with_row(x, 0, row(x, 0) * w));
        return tensor(u * u);
      },
      m, r);
  same(
      "a view made afterwards",
      [](T x, T w) {
        tensor a = x * 1;
        vv::mul_(row(a, 0), w);
        return tensor(vv::slice(a, 0, 0, 2));
      },
      [](T x, T w) { return tensor(vv::slice(with_row(x, 0, row(x, 0) * w), 0, 0, 2)); }, m, r);
  same(
      "through the base, the view afterwards",
      [](T x, T w) {
        tensor a = x * 1;
        tensor v = row(a, 1);
        vv::mul_(a, w);
        return tensor(v * v);
      },
      [](T x, T w) {
        tensor v = row(x, 1) * w;
        return tensor(v * v);
      },
      m, r);
  same(
      "views in turn",
      [](T x, T w) {
        tensor a = x * 1;
        tensor u = row(a, 0), v = row(a, 1);
        vv::mul_(u, w);
        vv::add_(v, u);
        vv::mul_(u, v);
        return a;
      },
      [](T x, T w) {
        tensor u = row(x, 0) * w, v = row(x, 1) + u;
        return with_row(with_row(x, 1, v), 0, u * v);
      },
      m, r);
  same(
      "overlapping views",
      [](T x, T w) {
        tensor a = x * 1;
        tensor u = vv::slice(a, 0, 0, 2), v = vv::slice(a, 0, 1, 3);
        vv::mul_(u, w);
        vv::mul_(v, w);
        return a;
      },
      [](T x, T w) {
        return with_row(with_row(with_row(x, 0, row(x, 0) * w), 1, row(x, 1) * w * w), 2, row(x, 2) * w);
      },
      m, r);
  same(
      "transpose",
      [](T x, T w) {
        tensor a = x * 1;
        vv::mul_(vv::transpose(a), w);
        return a;
      },
      [](T x, T w) { return tensor(vv::transpose(vv::transpose(x) * w)); }, m, {2, 3});
  same(
      "reshape",
      [](T x, T w) {
        tensor a = x * 1;
        vv::mul_(vv::reshape(a, dims{6}), w);
        return a;
      },
      [](T x, T w) { return tensor(x * vv::reshape(w, dims{3, 2})); }, m, {6});
  same(
      "steps",
      [](T x, T w) {
        tensor a = x * 1;
        vv::mul_(vv::slice(a, 0, 0, 3, 2), w);
        return a;
      },
      [](T x, T w) { return with_row(with_row(x, 0, row(x, 0) * w), 2, row(x, 2) * w); }, m, r);
  same(
      "view of view",
      [](T x, T w) {
        tensor a = x * 1;
        vv::mul_(vv::select(vv::transpose(vv::slice(a, 0, 1, 3)), 1, 1), w);
        return a;
      },
      [](T x, T w) { return with_row(x, 2, row(x, 2) * w); }, m, r);
  same(
      "view of view, middle afterwards",
      [](T x, T w) {
        tensor a = x * 1;
        tensor s = vv::slice(a, 0, 1, 3);
        vv::mul_(row(s, 1), w);
        return tensor(s * s);
      },
      [](T x, T w) {
        tensor s = vv::slice(with_row(x, 2, row(x, 2) * w), 0, 1, 3);
        return tensor(s * s);
      },
      m, r);
  same(
      "one element",
      [](T x, T w) {
        tensor a = x * 1;
        vv::copy_(vv::select(row(a, 1), 0, 0), vv::sum(w));
        return a;
      },
      [](T x, T w) {
        tensor const e = vv::reshape(vv::sum(w), dims{1});
        return with_row(x, 1, vv::cat(std::tuple(e, vv::slice(row(x, 1), 0, 1, 2)), vv::axis<0>));
      },
      m, r);
  same(
      "a part onto another",
      [](T x, T w) {
        tensor a = x * w;
        vv::copy_(row(a, 0), row(a, 2));
        return a;
      },
      [](T x, T w) {
        tensor a = x * w;
        return with_row(a, 0, row(a, 2));
      },
      m, r);
  same(
      "a base without history",
      [](T x, T w) {
        tensor a = from(list(6, 2), {3, 2});
        vv::mul_(row(a, 1), x);
        vv::mul_(vv::slice(a, 0, 1, 2), w);
        return a;
      },
      [](T x, T w) { return with_row(from(list(6, 2), {3, 2}), 1, x * w * 2); }, r, r);
  same(
      "a view without history, others seen later",
      [](T x, T w) {
        tensor a = from(list(6, 2), {3, 2});
        tensor u = row(a, 1), v = vv::transpose(a);
        vv::mul_(u, x * w);
        return tensor(v * v);
      },
      [](T x, T w) {
        tensor v = vv::transpose(with_row(from(list(6, 2), {3, 2}), 1, x * w * 2));
        return tensor(v * v);
      },
      r, r);
}

TEST_CASE("in place: a leaf and its views cannot be written while recorded", "[autograd][in_place]") { // AG-14
  tensor const x = leaf({1, 2, 3});
  auto const refuse = [](auto const& f, char const* text) {
    CHECK_THROWS_AS(f(), vv::autograd_error);
    CHECK_THROWS_WITH(f(), ContainsText(text));
  };
  refuse([&] { vv::add_(x, 1); }, "leaf");
  refuse([&] { vv::mul_(vv::slice(x, 0, 0, 2), 2); }, "view of a leaf");
  refuse([&] { vv::copy_(vv::reshape(vv::slice(x, 0, 0, 2), dims{2, 1}), number(1)); }, "view of a leaf");
  tensor const part = row(vec({1, 2}), 0); // a leaf that is a view of something
  part.requires_grad_();
  refuse([&] { vv::add_(part, 1); }, "leaf");
  CHECK(part.is_leaf());
  CHECK(elements(x) == list{1, 2, 3});
  CHECK(x.version() == 0);
  {
    vv::no_grad const off;
    vv::add_(x, 1);
    vv::mul_(vv::slice(x, 0, 0, 1), 10);
    vv::add_(part, 1);
  }
  CHECK(elements(x) == list{20, 3, 4});
  CHECK(x.is_leaf());
  weighed(x).backward();
  CHECK(grad_of(x) == list{40, 9, 24});
}

TEST_CASE("in place: stale values are errors, values not needed are not", "[autograd][in_place][AG-S11]") {
  dims const s{2, 2};
  tensor const x = from(list(4, 1), s).requires_grad_(), y = from(list(4, 4), s).requires_grad_();
  tensor const ones = from(list(4, 1), s);
  { // (a)
    tensor const z = x * y, q = z + y, w = z * y;
    vv::add_(z, 2);
    CHECK_NOTHROW(q.backward(ones, true));
    CHECK_THROWS_AS(w.backward(ones), vv::autograd_error);
  }
  { // (b)
    tensor const z = x * y, q = z * y, r = z + y;
    tensor const w = vv::add_(z, y);
    CHECK(w.is(z));
    CHECK_NOTHROW(w.backward(ones, true));
    CHECK_NOTHROW(r.backward(ones, true));
    CHECK_THROWS_AS(q.backward(ones), vv::autograd_error);
  }
  { // (c), with mul_ in place of exp_
    x.zero_grad();
    tensor const z = x * 0.5 + y * 0.125, q = z * y, r = z + y;
    auto const before = z.version();
    tensor const w = vv::mul_(z, 3);
    CHECK(z.version() == before + 1);
    r.backward(ones, true);
    CHECK(grad_of(x) == list(4, 0.5));
    w.backward(ones, true);
    CHECK(grad_of(x) == list(4, 2));
    CHECK_THROWS_AS(q.backward(ones), vv::autograd_error);
  }
  { // (d)
    tensor const l = from(list(4, 1), s).requires_grad_();
    tensor const a = vv::clone(l);
    vv::add_(a, 10);
    (a + 2).backward(ones);
    CHECK(grad_of(l) == list(4, 1));
    CHECK(elements(a) == list(4, 11));
  }
  tensor const l = leaf({1, 2, 3}); // a result that was saved; a view of what was saved
  tensor const e = vv::exp(l);
  vv::mul_(vv::slice(e, 0, 0, 1), 2);
  CHECK_THROWS_WITH(vv::sum(e).backward(),
                    ContainsText("exp") && ContainsText("version 1") && ContainsText("version 0"));
  CHECK(thread_is_clean());
}

TEST_CASE("in place: what is refused leaves value, version and history", "[autograd][in_place]") {
  tensor const x = leaf({1, 2}), w = leaf({1, 2, 3});
  tensor const a = x * 1;
  auto const before = a.grad_fn();
  CHECK_THROWS_AS(vv::add_(a, w), vv::shape_error);
  CHECK_THROWS_AS(vv::mul_(vv::expand(a, dims{3, 2}), w), vv::error);
  CHECK((a.grad_fn() == before && a.version() == 0 && elements(a) == list{1, 2}));
  tensor const i = from({1, 2}, {2}, dtype::int64);
  CHECK_THROWS_AS(vv::add_(i, x), vv::dtype_error);
  vv::copy_(i, x); // an integer gets no history
  CHECK((!i.requires_grad() && elements(i) == list{1, 2}));
  // A base whose memory has gaps: refused before it is written.
  tensor const gaps = vv::slice(from({1, 2, 3, 4, 5, 6}, {2, 3}), 1, 0, 2).detach();
  REQUIRE_FALSE(gaps.is_contiguous());
  CHECK_THROWS_AS(vv::mul_(row(gaps, 0), x), vv::autograd_error);
  CHECK((elements(gaps) == list{1, 2, 4, 5} && gaps.version() == 0 && !gaps.requires_grad()));
  vv::mul_(gaps, 2);
  CHECK(gaps.version() == 1);
}

TEST_CASE("in place: views of a base whose dimensions lie in another order", "[autograd][in_place]") {
  tensor const x = leaf({1, 2});
  tensor const t = vv::transpose(from({1, 2, 3, 4, 5, 6}, {2, 3})).detach();
  REQUIRE_FALSE(t.is_contiguous());
  tensor const v = row(t, 0), w = row(t, 1);
  vv::mul_(v, x);
  CHECK((elements(t) == list{1, 8, 2, 5, 3, 6} && t.version() == 1 && t.requires_grad()));
  vv::sum(t * t + w).backward(); // 2 t at row 0, times what was there
  CHECK(elements(x.grad()) == list{2, 64});
}

TEST_CASE("in place: dtypes of gradients", "[autograd][in_place][dtype]") {
  tensor const x = leaf({1, 2}, {2}, dtype::float32), w = leaf({3, 4}), s = leaf(5);
  tensor const a = x * 1;
  vv::mul_(a, w); // float64 into float32
  vv::add_(a, s);
  CHECK(a.dtype() == dtype::float32);
  vv::sum(a).backward();
  CHECK((x.grad().dtype() == dtype::float32 && grad_of(x) == list{3, 4}));
  CHECK((w.grad().dtype() == dtype::float64 && grad_of(w) == list{1, 2}));
  CHECK((s.grad().dtype() == dtype::float64 && grad_of(s) == list{2}));
  tensor const b = x * 1, c = leaf({1, 1});
  vv::copy_(b, c);
  vv::sum(b * b).backward();
  CHECK((c.grad().dtype() == dtype::float64 && grad_of(c) == list{2, 2}));
}

TEST_CASE("view: made in no_grad and written in grad mode, and the other three ways",
          "[autograd][view][grad_mode][AG-S32]") { // AG-16
  tensor const x = leaf({1, 2, 3});
  tensor const a = x * 1;
  tensor const v = [&] {
    vv::no_grad const off;
    return tensor(vv::slice(a, 0, 0, 2));
  }();
  CHECK(v.is_view());
  CHECK_THROWS_AS(vv::mul_(v, 2), vv::autograd_error);
  CHECK_THROWS_WITH(vv::mul_(v, 2), ContainsText("no_grad"));
  CHECK((elements(a) == list{1, 2, 3} && a.version() == 0));
  {
    vv::no_grad const off;
    vv::mul_(vv::slice(a, 0, 0, 2), 2); // both inside
    vv::mul_(v, 2);
  }
  CHECK(elements(a) == list{4, 8, 3});
  vv::sum(a * 1).backward();
  CHECK(grad_of(x) == list{1, 1, 1});
  // A view of a view made in no_grad is one as well.
  tensor const inner = vv::slice(v, 0, 0, 1);
  CHECK_THROWS_WITH(vv::mul_(inner, 2), ContainsText("no_grad"));
  // A base that requires no gradient then and now.
  tensor const plain = vec({1, 2});
  tensor const u = [&] {
    vv::no_grad const off;
    return tensor(vv::slice(plain, 0, 0, 1));
  }();
  CHECK_NOTHROW(vv::mul_(u, 2));
}

TEST_CASE("view: one of several results of unbind, split or chunk may not be written into",
          "[autograd][view][AG-S32]") { // AG-16
  tensor const x = from({1, 2, 3, 4, 5, 6}, {3, 2}).requires_grad_();
  tensor const a = x * 1;
  auto const rows = vv::unbind(a);
  REQUIRE(rows.size() == 3);
  CHECK((rows[1].is_view() && rows[1].shares_storage(a)));
  for (auto const& parts : {rows, vv::split(a, 2), vv::chunk(a, 2, 1)}) {
    CHECK_THROWS_AS(vv::mul_(parts[1], 2), vv::autograd_error);
    CHECK_THROWS_WITH(vv::mul_(parts[1], 2), ContainsText("several results"));
    CHECK_THROWS_WITH(vv::mul_(vv::slice(parts[1], 0, 0, 1), 2),
                      ContainsText("several results")); // ... or a view of it
  }
  CHECK((elements(a) == list{1, 2, 3, 4, 5, 6} && a.version() == 0));
  vv::sum(rows[0] * rows[2] + vv::unbind(x)[1]).backward({}, true);
  CHECK(grad_of(x) == list{5, 6, 1, 1, 1, 2});
  {
    vv::no_grad const off;
    CHECK_NOTHROW(vv::mul_(rows[1], 2));
    CHECK_NOTHROW(vv::mul_(vv::unbind(a)[0], 2)); // both inside
  }
  CHECK(elements(a) == list{2, 4, 6, 8, 5, 6});
  tensor const plain = vec({1, 2});
  CHECK_NOTHROW(vv::mul_(vv::unbind(plain)[0], 2)); // nothing is recorded
  vv::copy_(a, x * 2);                              // the base may be written: they follow
  x.zero_grad();
  vv::sum(rows[2]).backward();
  CHECK(grad_of(x) == list{0, 0, 0, 0, 2, 2});
  auto const inside = [](tensor const& v) {
    auto const parts = vv::unbind(v * 1);
    vv::mul_(parts[0], 2);
    return vv::sum(parts[0]);
  };
  CHECK_THROWS_WITH(vv::grad(inside)(x.detach()), ContainsText("several results"));
  CHECK(thread_is_clean());
}

TEST_CASE("in place: values divided, read, written by exp_", "[autograd][in_place][AG-S11]") {
  tensor const x = from(list(25, 1), {5, 5}).requires_grad_(), y = from(list(25, 4), {5, 5}).requires_grad_();
  tensor const z = x / 2 + y / 8;
  tensor const q = z * y, r = z + y;
  auto const before = z.version();
  tensor const w = vv::exp_(z);
  CHECK((w.is(z) && z.version() > before));
  auto const ones = from(list(25, 1), {5, 5});
  r.backward(ones, true);
  CHECK(grad_of(x) == list(25, 0.5));
  w.backward(ones, true);
  for (double g : grad_of(x)) CHECK(g == Approx((1 + std::exp(1)) / 2));
  CHECK_THROWS_AS(q.backward(ones, true), vv::autograd_error);
}

TEST_CASE("view: made in inference mode and written outside", "[autograd][view][inference][AG-S18]") {
  tensor const x = leaf({1, 2, 3});
  tensor const a = x * 1;
  tensor const v = [&] {
    vv::inference_mode const on;
    return tensor(vv::slice(a, 0, 0, 2));
  }();
  CHECK_FALSE(v.is_inference());
  CHECK_THROWS_AS(vv::add_(v, 1), vv::autograd_error);
  CHECK_THROWS_WITH(vv::add_(v, 1), ContainsText("inference"));
}

TEST_CASE("view: a graph that is stale through another view says so", "[autograd][view]") {
  tensor const x = leaf({1, 2, 3, 4});
  tensor const a = x * 1;
  tensor const u = vv::slice(a, 0, 0, 2), v = vv::slice(a, 0, 2, 4);
  tensor const y = vv::sum(u * u);
  vv::mul_(v, 2); // another part of the same memory: refused all the same, as the counter is shared
  CHECK_THROWS_AS(y.backward(), vv::autograd_error);
  tensor const z = vv::sum(u + u);
  vv::mul_(v, 2);
  z.backward(); // needs no value
  CHECK(grad_of(x) == list{2, 2, 0, 0});
}

TEST_CASE("view: writing in a loop", "[autograd][view]") { // x_k+1 = 2 x_k + x_k-1, in one buffer
  tensor const x = leaf({1, 1});
  tensor const buffer = from(list(12, 0), {12});
  vv::copy_(vv::slice(buffer, 0, 0, 2), x);
  for (index_t k = 2; k < 12; ++k) vv::copy_(row(buffer, k), row(buffer, k - 1) * 2 + row(buffer, k - 2));
  CHECK(element(buffer, 11) == 8119);
  row(buffer, 11).backward();
  CHECK(grad_of(x) == list{2378, 5741});
}

TEST_CASE("view: requires_grad_, is_leaf and grad_fn of views", "[autograd][view]") {
  tensor const x = leaf({1, 2, 3});
  tensor const v = vv::slice(x, 0, 0, 2);
  CHECK((v.requires_grad() && !v.is_leaf() && v.is_view()));
  tensor const p = vec({1, 2, 3});
  tensor const q = vv::slice(p, 0, 0, 2);
  CHECK((!q.requires_grad() && q.is_leaf()));
  vv::copy_(p, x * 2); // the view follows its base
  CHECK(q.requires_grad());
  CHECK_FALSE(q.is_leaf());
  CHECK(static_cast<bool>(q.grad_fn()));
  weighed(q).backward();
  CHECK(grad_of(x) == list{8, 24, 0});
}

TEST_CASE("view: its history is found by calling again what made it, where that is asked for",
          "[autograd][view]") { // AG-18
  using tracking = vv::autograd::force_original_view_tracking;
  tensor const x = leaf({1, 2, 3, 4, 5, 6}, {3, 2});
  auto const name = [](tensor const& t) { return std::string(t.grad_fn().name()); };
  auto const flat = [&] {
    tensor const y = vv::reshape(vv::clone(x), dims{6});
    vv::add_(y, 1);
    return y;
  };
  CHECK_FALSE(vv::autograd::is_view_replay_enabled());
  CHECK(name(flat()) == "AsStridedBackward0");
  {
    tracking const on(true);
    CHECK(vv::autograd::is_view_replay_enabled());
    CHECK(name(flat()) == "ReshapeBackward0");
    {
      tracking const off(false);
      CHECK(name(flat()) == "AsStridedBackward0");
    }
    CHECK(name(flat()) == "ReshapeBackward0");
  }
  CHECK(name(flat()) == "AsStridedBackward0");

  // Views of views: all of what made them, behind the base as it is now; what made the base is left as it was.
  tracking const on(true);
  tensor const base = vv::reshape(vv::transpose(x * 2, 0, 1), dims{6}); // a copy
  tensor const square = vv::reshape(base, dims{2, 3}), row = vv::select(square, 0, 1), part = vv::slice(row, 0, 1, 3);
  vv::mul_(part, from({10, 100}, {2}));
  CHECK(name(base) == "CopySlices");
  auto const before = [](vv::autograd::node const& n) { return n.next_functions()[0].first; };
  CHECK(name(part) == "SliceBackward0");
  auto const select = before(part.grad_fn()), reshape = before(before(select)); // select is a slice without its axis
  CHECK(std::string(select.name()) == name(row));
  CHECK(std::string(reshape.name()) == "ReshapeBackward0");
  CHECK(before(reshape) == base.grad_fn());
  vv::sum(part * vv::slice(row, 0, 1, 3) + vv::sum(square)).backward();
  tensor const same_by_region = leaf({1, 2, 3, 4, 5, 6}, {3, 2});
  {
    tracking const off(false);
    tensor const b = vv::reshape(vv::transpose(same_by_region * 2, 0, 1), dims{6}), s = vv::reshape(b, dims{2, 3}),
                 r = vv::select(s, 0, 1), p = vv::slice(r, 0, 1, 3);
    vv::mul_(p, from({10, 100}, {2}));
    vv::sum(p * vv::slice(r, 0, 1, 3) + vv::sum(s)).backward();
  }
  CHECK(grad_of(x) == grad_of(same_by_region));

  // One whose history does not tell what it shows is a region.
  tensor const plain = vv::zeros({2, 2}, dtype::float64), untold = vv::reshape(plain, dims{4});
  vv::add_(plain, vv::slice(x, 0, 0, 2));
  CHECK(name(untold) == "AsStridedBackward0");
  vv::mul_(untold, untold);
  vv::sum(plain).backward();
  CHECK(thread_is_clean());
}
