// SPDX-License-Identifier: BSL-1.0
// Version counters, data, detach (semantics DT).
#include "autograd_test.hpp"

using namespace autograd_test;

TEST_CASE("version: views share the counter, an assignment of data leaves it", "[autograd][version][VC-S01]") {
  tensor const x = vec({1, 2, 3});
  CHECK(x.version() == 0);
  vv::add_(x, 1);
  vv::add_(x, 1);
  CHECK(x.version() == 2);
  tensor const xz = vv::slice(x, 0, 0, 3);
  CHECK(xz.version() == 2);
  vv::add_(xz, 1);
  CHECK(x.version() == 3);
  CHECK(xz.version() == 3);
  tensor const id = x;
  x.set_data(from({1, 2, 3, 4, 5, 6}, {2, 3}));
  CHECK(x.is(id));
  CHECK(x.sizes() == dims{2, 3});
  CHECK(x.version() == 3);
  vv::add_(x, 1);
  CHECK(x.version() == 4);
  CHECK(xz.version() == 4);
  vv::add_(xz, 1);
  CHECK(x.version() == 5);
  CHECK(xz.version() == 5);
  CHECK(elements(x) == list{2, 3, 4, 5, 6, 7});
  CHECK(elements(xz) == list{5, 6, 7});
  tensor const late = vv::select(x, 0, 1); // of the new memory
  vv::add_(late, 1);
  CHECK(x.version() == 6);
  CHECK(xz.version() == 6);
  CHECK(elements(x) == list{2, 3, 4, 6, 7, 8});
}

TEST_CASE("version: writing through detach is seen by backward, through data it is not",
          "[autograd][version][VC-S03][VC-S04]") {
  tensor const x = leaf(3), two = number(2);
  tensor const y = vv::pow(x, two);
  tensor const z = x.detach();
  CHECK_FALSE(z.requires_grad());
  CHECK(z.shares_storage(x));
  vv::mul_(z, 0);
  CHECK_THROWS_AS(y.backward(), vv::autograd_error);
  CHECK_THROWS_WITH(y.backward(), ContainsText("modified by an in-place operator"));
  CHECK(thread_is_clean());

  tensor const u = leaf(3);
  tensor const v = u * u;
  tensor const d = u.data();
  CHECK_FALSE(d.requires_grad());
  vv::mul_(d, 0);
  CHECK(u.item<double>() == 0);
  CHECK_NOTHROW(v.backward());
  CHECK(grad_of(u) == list{0}); // of the value as it is now (DT-15)
}

TEST_CASE("version: no_grad counts, and the error names both versions", "[autograd][version][VC-S05]") { // DT-18
  tensor const x = leaf({1, 2}), y = leaf({3, 4});
  tensor const z = vv::sum(x * y);
  {
    vv::no_grad const off;
    vv::mul_(x, 2);
    vv::mul_(x, 2);
  }
  CHECK_THROWS_WITH(z.backward(), ContainsText("mul") && ContainsText("version 2") &&
                                      ContainsText("expected version 0") && ContainsText("float64[2]"));
  CHECK(thread_is_clean());
}

TEST_CASE("version: preserved in a scope, on every exit, and set by hand", "[autograd][version][VC-S06]") {
  tensor const x = vec({1, 2});
  vv::add_(x, 1);
  vv::add_(x, 1);
  {
    vv::preserve_version_counter const keep(x);
    vv::mul_(x, 2);
    vv::mul_(x, 2);
    CHECK(x.version() == 4);
  }
  CHECK(x.version() == 2);
  CHECK(elements(x) == list{12, 16});
  tensor const other = vec({1});
  try {
    vv::preserve_version_counter const keep{x, other};
    vv::mul_(x, 2);
    vv::add_(other, 1);
    throw 1;
  } catch (int) {}
  CHECK(x.version() == 2);
  CHECK(other.version() == 0);
  vv::unsafe_set_version_counter(x, 0);
  CHECK(x.version() == 0);
  CHECK_THROWS_AS(vv::unsafe_set_version_counter(x, -1), vv::value_error);
  CHECK_THROWS_WITH(vv::unsafe_set_version_counter(x, -1), ContainsText("-1"));
  CHECK(x.version() == 0);
}

TEST_CASE("version: increment_version", "[autograd][version][VC-S07]") {
  tensor const x = leaf(1), i = from({1, 2}, {2}, dtype::int64);
  vv::increment_version(x);
  CHECK(x.version() == 1);
  vv::increment_version(i);
  CHECK(i.version() == 1);
  tensor const t = [] {
    vv::inference_mode const on;
    return vec({1, 2});
  }();
  CHECK(t.is_inference());
  CHECK_NOTHROW(vv::increment_version(t));
  CHECK_THROWS_AS(t.version(), vv::autograd_error);
  CHECK_THROWS_AS(vv::unsafe_set_version_counter(t, 1), vv::autograd_error);
  CHECK_THROWS_AS(vv::preserve_version_counter(t), vv::autograd_error);
}

TEST_CASE("version: data has a counter of its own, detach shares it", "[autograd][version][VC-S16]") {
  tensor const x = vec({1, 2});
  vv::add_(x, 1);
  vv::add_(x, 1);
  tensor const y = x.data(), z = x.detach();
  CHECK(y.version() == 0);
  CHECK(z.version() == 2);
  vv::add_(y, 1);
  vv::add_(z, 1);
  CHECK(x.version() == 3);
  CHECK(y.version() == 1);
  CHECK(z.version() == 3);
  tensor const w = y.data(), u = vv::slice(y, 0, 0, 1); // data of data: a third counter; a view of data: that of data
  vv::add_(w, 1);
  vv::add_(u, 1);
  CHECK(w.version() == 1);
  CHECK(y.version() == 2);
  CHECK(u.version() == 2);
  CHECK(x.version() == 3);
  CHECK(elements(x) == list{7, 7});
}

TEST_CASE("version: set_data keeps identity, counter and hooks", "[autograd][version][VC-S17]") {
  tensor const x = leaf({1, 1});
  int calls = 0;
  x.register_hook([&](tensor const&) { ++calls; });
  tensor const old = x.detach();
  x.set_data(vec({1, 1, 1}));
  CHECK(x.version() == 0);
  vv::add_(old, 1);
  CHECK(x.version() == 1);
  CHECK(elements(x) == list{1, 1, 1});
  vv::sum(x * 2).backward();
  CHECK(calls == 1);
  CHECK(grad_of(x) == list{2, 2, 2});
  CHECK(x.is_leaf());
}

TEST_CASE("version: set_data refuses what does not fit, and changes the dtype of a leaf",
          "[autograd][version]") { // DT-6
  tensor const x = leaf({1, 2});
  CHECK_THROWS_AS(x.set_data(from({1, 2}, {2}, dtype::int64)), vv::dtype_error);
  CHECK_THROWS_AS(x.set_data(tensor::meta({2}, dtype::float64)), vv::dtype_error);
  CHECK(elements(x) == list{1, 2});
  int hooked = 0, accumulated = 0;
  x.register_hook([&](tensor const&) { ++hooked; });
  x.register_post_accumulate_grad_hook([&](tensor const& t) {
    ++accumulated;
    CHECK(t.grad().dtype() == dtype::float32);
    CHECK(t.sizes() == dims{3});
  });
  x.set_data(from({1, 2, 3}, {3}, dtype::float32)); // the accumulator is made anew
  vv::sum(x * x).backward();
  CHECK(x.grad().dtype() == dtype::float32);
  CHECK(grad_of(x) == list{2, 4, 6});
  CHECK(hooked == 1);
  CHECK(accumulated == 1);
}

TEST_CASE("version: a hook after accumulation sees the memory that was assigned", "[autograd][version][hook]") {
  tensor const x = leaf({1, 2});
  x.register_post_accumulate_grad_hook([](tensor const& t) {
    vv::no_grad const off;
    vv::add_(t, t.grad());
  });
  x.set_data(vec({10, 20}));
  vv::sum(x * 3).backward();
  CHECK(elements(x) == list{13, 23});
}

TEST_CASE("version: data read or assigned under vmap are two errors", "[autograd][version][vmap][VC-S14]") {
  tensor const x = vec({1, 2});
  auto const read = [](tensor const& v) { return v.data(); };
  auto const assign = [](tensor const& v) {
    v.set_data(v);
    return v;
  };
  CHECK_THROWS_AS(vv::vmap(read)(x), vv::transform_error);
  CHECK_THROWS_WITH(vv::vmap(read)(x), ContainsText("data was read"));
  CHECK_THROWS_AS(vv::vmap(assign)(x), vv::transform_error);
  CHECK_THROWS_WITH(vv::vmap(assign)(x), ContainsText("set_data"));
  CHECK(thread_is_clean());
}

TEST_CASE("version: set_ takes other memory, and counts as a write", "[autograd][version]") { // DT-7
  tensor const x = vec({1, 2}), y = from({3, 4, 5, 6}, {2, 2});
  vv::add_(x, 1);
  tensor const before = x.detach();
  vv::add_(y, 0);
  CHECK(vv::set_(x, y).is(x));
  CHECK((x.sizes() == dims{2, 2} && x.shares_storage(y)));
  CHECK((x.version() == 2 && before.version() == 2 &&
         y.version() == 1)); // its own counter, shared with what saw the old memory
  vv::mul_(x, 2);
  CHECK(elements(y) == list{6, 8, 10, 12});
  CHECK((x.version() == 3 && y.version() == 1));
  CHECK(elements(before) == list{2, 3});
  CHECK(vv::set_(x, vv::transpose(y)).strides() == dims{1, 2});
  CHECK_THROWS_AS(vv::set_(x, vv::to(y, dtype::float32)), vv::dtype_error);
  tensor const l = leaf({1, 2}), other = vec({5, 6});
  CHECK_THROWS_AS(vv::set_(l, other), vv::autograd_error);
  CHECK_THROWS_AS(vv::set_(other, l * 1), vv::autograd_error);
  tensor const s = vv::sum(l * l);
  {
    vv::no_grad const off;
    vv::set_(l, other);
  }
  CHECK((l.is_leaf() && l.requires_grad() && elements(l) == list{5, 6}));
  CHECK_THROWS_WITH(s.backward(), ContainsText("modified by an in-place operator")); // what was saved was written
  vv::sum(l * l).backward();
  CHECK(grad_of(l) == list{10, 12});
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return vv::sum(vv::set_(v * 1, vec({1, 2}))); })(other),
                  vv::transform_error);
  CHECK(thread_is_clean());
}

TEST_CASE("version: what a node saved can be asked for, and shares the counter of the value",
          "[autograd][version][VC-S09]") {
  tensor const a = leaf({0.5, 1});
  tensor const b = vv::exp(a);
  tensor const s = b.grad_fn().saved_tensors().at(0);
  CHECK((s.shares_storage(b) && s.version() == 0 && b.version() == 0 && elements(s) == elements(b)));
  CHECK(s.grad_fn() == b.grad_fn());
  {
    vv::no_grad const off;
    vv::add_(b, 1);
  }
  CHECK((s.version() == 1 && b.version() == 1 && elements(s) == elements(b)));
  CHECK_THROWS_AS(b.grad_fn().saved_tensors(), vv::autograd_error);
  CHECK_THROWS_WITH(b.grad_fn().saved_tensors(),
                    ContainsText("modified by an in-place operator") && ContainsText("exp"));
  tensor const c = a * a;
  CHECK(c.grad_fn().saved_tensors().size() == 2);
  CHECK((a + 1).grad_fn().saved_tensors().empty());
  vv::sum(c).backward();
  CHECK_THROWS_WITH(c.grad_fn().saved_tensors(), ContainsText("retain_graph"));
  CHECK(a.grad_fn().operator bool() == false);
}

TEST_CASE("version: detach_ of a base leaves its views attached, of a view it is refused",
          "[autograd][version]") { // DT-17
  tensor const x = leaf({1, 2, 3});
  tensor const a = x * 2;
  tensor const v = vv::slice(a, 0, 0, 2);
  CHECK_THROWS_AS(v.detach_(), vv::autograd_error);
  a.detach_();
  CHECK_FALSE(a.requires_grad());
  CHECK(a.is_leaf());
  CHECK(v.requires_grad());
  vv::sum(v).backward();
  CHECK(grad_of(x) == list{2, 2, 0});
}

TEST_CASE("version: detaching a saved operand in place is noticed, detaching a saved result is not",
          "[autograd][version]") { // DT-19
  tensor const w = leaf(3);
  tensor const x = w * 2;
  tensor const y = x * x;
  x.detach_();
  CHECK_THROWS_AS(y.backward(), vv::autograd_error);
  CHECK_THROWS_WITH(y.backward(), ContainsText("detach_"));
  CHECK(thread_is_clean());

  tensor const a = leaf(2);
  tensor const b = vv::exp(a);
  tensor const c = b * 1;
  b.detach_();
  tensor const g = vv::autograd::grad<>({c}, {a}, {}, {.create_graph = true})[0];
  CHECK(g.item<double>() == Approx(std::exp(2.0)));
  CHECK(vv::autograd::grad<>({g}, {a})[0].item<double>() == Approx(std::exp(2.0)));
}
