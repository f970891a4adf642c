// SPDX-License-Identifier: BSL-1.0
// Fake tensors: metadata, aliasing, constants, errors.
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("fake tensors: shapes, dtypes and layouts of a program that never runs", "[fake]") {
  vv::fake_mode mode;
  tensor const x = vv::ones(dims{3, 4}), w = vv::ones(dims{4, 2}, dtype::float64);
  tensor const y = vv::with_fake(
      mode, [](tensor const& a, tensor const& b) { return vv::softmax(vv::matmul(vv::to(a, dtype::float64), b), 1); },
      x, w);
  CHECK(vv::is_fake(y));
  CHECK(mode.owns(y));
  CHECK(y.sizes() == dims{3, 2});
  CHECK(y.dtype() == dtype::float64);
  CHECK_THROWS_AS(y.item<double>(), vv::value_error);
  CHECK_THROWS_AS(y.data<double>(), vv::transform_error);
  CHECK(vv::to_string(y) == "fake_tensor(..., size=[3, 2], dtype=float64)");
}

TEST_CASE("fake tensors: one for each tensor, one memory for each memory", "[fake][FK-S04][FK-S05]") { // FK-3
  vv::fake_mode mode;
  tensor const x = vv::ones(dims{3, 4}), row = vv::select(x, 0, 1), apart = vv::detach(vv::select(x, 0, 2));
  tensor const fx = mode.from_tensor(x), frow = mode.from_tensor(row), fapart = mode.from_tensor(apart);
  CHECK(mode.from_tensor(x).is(fx));
  CHECK(mode.from_tensor(fx).is(fx));
  CHECK(frow.shares_storage(fx));
  CHECK(frow.is_view());
  CHECK(frow.base().is(fx));
  CHECK(fapart.shares_storage(fx));
  CHECK(fapart.where().offset == 8);
  CHECK(frow.where().offset == 4);
  CHECK(mode.remembered() == 3);
  std::uint32_t const before = fx.version();
  {
    vv::fake_mode_guard const on(mode);
    vv::add_(frow, 1.0);
  }
  CHECK(fx.version() == before + 1);
  CHECK(frow.version() == before + 1);
  CHECK(x.version() == 0);
  { (void)mode.from_tensor(vv::ones(dims{5})); }
  CHECK(mode.remembered() == 3); // what nobody else holds is forgotten
  tensor const transposed = mode.from_tensor(vv::transpose(x, 0, 1));
  CHECK(transposed.strides() == dims{1, 4});
}

TEST_CASE("fake tensors: real operands and other modes are refused", "[fake][FK-S03]") { // FK-2
  vv::fake_mode mode, other, lenient{{.allow_non_fake_inputs = true}};
  tensor const x = vv::ones(dims{3}), a = mode.from_tensor(x), b = other.from_tensor(x);
  vv::fake_mode_guard const on(mode);
  CHECK_THROWS_WITH(a + x, ContainsText("operand 1 is a real tensor (float32[3])"));
  CHECK_THROWS_AS(a + b, vv::dispatch_error);
  CHECK_THROWS_AS(vv::add_(a, x), vv::dispatch_error);
  CHECK(a.version() == 0);
  CHECK(mode.owns(a + 1.0));
  {
    vv::fake_mode_guard const inside(lenient); // FK-11: the inner one is asked
    CHECK(lenient.owns(x + x));
    CHECK_THROWS_AS(a + x, vv::dispatch_error);
  }
  CHECK(mode.owns(a * a));
}

TEST_CASE("fake tensors: operators outside of the mode run under that of their operands", "[fake]") { // FK-2
  vv::fake_mode mode;
  tensor const a = mode.from_tensor(vv::ones(dims{3}));
  tensor const y = vv::sum(a * 2.0 + a);
  CHECK(mode.owns(y));
  CHECK(y.sizes() == dims{});
  CHECK_THROWS_AS(a + vv::ones(dims{3}), vv::dispatch_error);
}

TEST_CASE("fake tensors: constants", "[fake][FK-S07][FK-S08][FK-S09]") { // FK-5
  vv::fake_mode mode;
  vv::fake_mode_guard const on(mode);
  tensor const x{{1.0}};
  CHECK(vv::is_fake(x));
  CHECK(x.item<double>() == 1.0);
  CHECK((x + x * 2.0).item<double>() == 3.0);
  CHECK(static_cast<bool>(x > 0.5));
  tensor const view = vv::slice(x, 0);
  CHECK(view.item<double>() == 1.0);
  CHECK(vv::add_(view, 4.0).item<double>() == 5.0); // with a constant: all aliases go along
  CHECK(x.item<double>() == 5.0);
  vv::add_(view, vv::randn(dims{1}, dtype::float64));
  CHECK_FALSE(vv::constant_of(x).defined());
  CHECK_FALSE(vv::constant_of(view).defined());
  CHECK_THROWS_AS(x.item<double>(), vv::data_dependent_error);
  tensor const many{{1.0, 2.0}};
  CHECK(vv::is_fake(many));
  CHECK_FALSE(vv::constant_of(vv::select(many, 0, 0)).defined());
  CHECK_THROWS_AS(vv::sum(many).item<double>(), vv::data_dependent_error);
  CHECK_THROWS_AS(static_cast<bool>(vv::sum(many) > 0.0), vv::data_dependent_error);
  CHECK_FALSE(vv::constant_of(vv::randn(dims{1}, dtype::float64)).defined());
}

TEST_CASE("fake tensors: gradients and leaves", "[fake][autograd]") { // FK-4
  vv::fake_mode mode;
  tensor const w = vv::ones(dims{3, 2}), x = vv::ones(dims{4, 3});
  w.requires_grad_();
  vv::sum(vv::matmul(x, w)).backward();
  tensor const made = w * 2.0, row = vv::select(w, 0, 0);
  tensor const fw = mode.from_tensor(w);
  CHECK((fw.requires_grad() && fw.is_leaf()));
  CHECK(mode.owns(fw.grad()));
  CHECK(fw.grad().sizes() == dims{3, 2});
  tensor const fmade = mode.from_tensor(made);
  CHECK((fmade.requires_grad() && !fmade.is_leaf()));
  tensor const frow = mode.from_tensor(row);
  CHECK((frow.requires_grad() && !frow.is_leaf() && frow.shares_storage(fw)));
  tensor const unseen = [&] {
    vv::no_grad const off;
    return vv::select(w, 0, 1);
  }();
  tensor const funseen = mode.from_tensor(unseen);
  CHECK((!funseen.requires_grad() && funseen.is_leaf() && funseen.shares_storage(fw)));
  fw.zero_grad();
  vv::with_fake(
      mode,
      [&](tensor const& v) {
        vv::sum(vv::tanh(vv::matmul(v, fw))).backward();
        return v;
      },
      x);
  CHECK(mode.owns(fw.grad()));
  CHECK(fw.grad().sizes() == dims{3, 2});
  CHECK(w.grad().has_data());
}

TEST_CASE("fake tensors: transforms", "[fake][transform]") {
  vv::fake_mode mode;
  tensor const w = vv::ones(dims{3}, dtype::float64), xs = vv::ones(dims{5, 3}, dtype::float64);
  auto const loss = [](tensor const& a, tensor const& b) { return vv::sum(vv::sin(a * b)); };
  auto const check = [&](tensor const& t, dims const& sizes) {
    CHECK(mode.owns(t));
    CHECK(t.sizes() == sizes);
    CHECK(t.dtype() == dtype::float64);
  };
  check(vv::with_fake(mode, vv::grad(loss), w, w), {3});
  check(vv::with_fake(mode, vv::vmap(vv::grad(loss), vv::in_dims<vv::none, 0>), w, xs), {5, 3});
  check(vv::with_fake(mode, vv::jacrev([&](tensor const& v) { return vv::sin(v); }), w), {3, 3});
  check(vv::with_fake(mode, vv::hessian([&](tensor const& v) { return vv::sum(vv::exp(v)); }), w), {3, 3});
  check(vv::with_fake(
            mode,
            [&](tensor const& v) {
              return vv::jvp([](tensor const& u) { return u * u; }, std::tuple(v), std::tuple(v)).second;
            },
            w),
        {3});
  auto const writes = [](tensor const& v) {
    tensor const y = v * 1.0;
    vv::mul_(vv::slice(y, 0, 0, 2), 3.0);
    return y;
  };
  check(vv::with_fake(mode, vv::functionalize(writes), w), {3});
  check(vv::with_fake(mode, vv::grad([&](tensor const& v) { return vv::sum(writes(v)); }), w), {3});
  vv::graph const g = vv::make_fx(vv::grad(loss))(mode.from_tensor(w), mode.from_tensor(w));
  tensor const real = vv::interpret(g, vv::boxed_args(w, w))[0];
  CHECK(elements(real) == elements(vv::grad(loss)(w, w)));
}

TEST_CASE("fake tensors: higher-order operators", "[fake][hop]") {
  vv::fake_mode mode;
  tensor const x = vv::ones(dims{4, 3}, dtype::float64), v = vv::ones(dims{3}, dtype::float64);
  int runs = 0;
  auto const branches = [&](tensor const& u) {
    return vv::cond(
        vv::sum(u) > 0.0, [&](tensor const& a) { return ++runs, vv::sin(a); },
        [&](tensor const& a) { return ++runs, a * 2.0; }, u);
  };
  tensor const chosen = vv::with_fake(mode, branches, v);
  CHECK((mode.owns(chosen) && chosen.sizes() == dims{3} && runs == 2));
  auto const loop = [](tensor const& init, tensor const& xs) {
    return vv::scan([](tensor const& c, tensor const& r) { return std::pair(c * 0.5 + r, vv::sum(c)); }, init, xs);
  };
  auto const [last, sums] = vv::with_fake(mode, loop, v, x);
  CHECK((mode.owns(last) && last.sizes() == dims{3}));
  CHECK((mode.owns(sums) && sums.sizes() == dims{4}));
  tensor const walked = vv::with_fake(
      mode,
      [](tensor const& u) {
        return vv::while_loop([](tensor const& c) { return vv::sum(c) < 100.0; },
                              [](tensor const& c) { return c * 2.0; }, u);
      },
      v);
  CHECK((mode.owns(walked) && walked.sizes() == dims{3}));
  tensor const gradient = vv::with_fake(mode, vv::grad([&](tensor const& u) { return vv::sum(branches(u)); }), v);
  CHECK((mode.owns(gradient) && gradient.sizes() == dims{3}));
  tensor const through_scan = vv::with_fake(
      mode, vv::grad([&](tensor const& u, tensor const& xs) { return vv::sum(loop(u, xs).first); }), v, x);
  CHECK((mode.owns(through_scan) && through_scan.sizes() == dims{3}));
}

TEST_CASE("fake tensors: memory of a program that never runs", "[fake]") {
  vv::fake_mode mode;
  {
    tensor const y = vv::with_fake(
        mode,
        [](tensor const& x) {
          tensor h = x;
          for (int k = 0; k < 10; ++k) h = vv::tanh(h);
          return vv::sum(h);
        },
        vv::ones(dims{1000}));
    CHECK(mode.peak_bytes() == 3 * 4000); // the argument, what is read and what is written
    CHECK(mode.live_bytes() == 4);        // the argument was let go
  }
  CHECK(mode.live_bytes() == 0);
}

TEST_CASE("fake tensors: backends", "[fake]") { // FK-6
  vv::fake_mode mode;
  tensor const x = vv::ones(dims{3});
  auto const there = [](tensor const& t) {
    return t.with_keys(
        {vv::dispatch_key::private_use, vv::dispatch_key::inplace_or_view, vv::dispatch_key::autograd_private_use});
  };
  tensor const a = mode.from_tensor(there(x)), b = mode.from_tensor(vv::clone(x)), zero = mode.from_tensor(vv::sum(x));
  CHECK((a * zero).keys().has(vv::dispatch_key::private_use));
  CHECK((zero * zero).keys().has(vv::dispatch_key::cpu));
  CHECK((a + 1.0).keys().has(vv::dispatch_key::private_use));
  CHECK_THROWS_WITH(a + b, ContainsText("private_use and cpu"));
  CHECK(vv::copy_(a, b).is(a));
  CHECK(vv::add_(a, zero).keys().has(vv::dispatch_key::private_use));
}

TEST_CASE("fake tensors: metadata of results are kept", "[fake][FK-S12][FK-S13]") { // FK-10
  vv::fake_mode mode;
  tensor const x = mode.from_tensor(vv::ones(dims{4, 4})), y = mode.from_tensor(vv::ones(dims{4, 4}));
  vv::fake_mode_guard const on(mode);
  CHECK((mode.cache_info().hits == 0 && mode.cache_info().misses == 0));
  tensor const a = x + y;
  CHECK((mode.cache_info().hits == 0 && mode.cache_info().misses == 1));
  tensor const b = x + y;
  CHECK((mode.cache_info().hits == 1 && mode.cache_info().misses == 1));
  CHECK((a.sizes() == b.sizes() && a.dtype() == b.dtype() && !a.shares_storage(b)));
  tensor const n = vv::arange(3);
  auto const before = mode.cache_info();
  CHECK((n * 1.0).dtype() == dtype::float32);
  CHECK((n * 1).dtype() == dtype::int64);
  CHECK((n * 0.0).dtype() == dtype::float32);
  CHECK((n * 0).dtype() == dtype::int64);
  CHECK(mode.cache_info().misses == before.misses + 4); // four keys, though one may fall on another's place
  CHECK(mode.cache_info().hits == before.hits);
  (void)vv::add_(x, 1.0);
  (void)vv::slice(x, 0, 0, 2);
  CHECK(mode.cache_info().bypassed("mutation") == 1);
  CHECK(mode.cache_info().bypassed("view") == 1);
}

TEST_CASE("fake tensors: gradients through higher-order operators", "[fake][hop][autograd]") {
  auto const f = [](tensor const& u) { return vv::sin(u) * 2.0; };
  auto const step = [](tensor const& c, tensor const& r) { return std::pair(c * 0.5 + r, c * r); };
  tensor const real = vv::reshape(vv::arange(6, dtype::float64), dims{3, 2});
  vv::fake_mode mode;
  vv::fake_mode_guard const on(mode);
  tensor const x = mode.from_tensor(real), init = mode.from_tensor(vv::arange(2, dtype::float64));
  x.requires_grad_();
  tensor const chosen = vv::cond(vv::sum(x) > 0.0, f, f, x), rows = vv::map(f, x);
  auto const [last, walked] = vv::scan(step, init, x);
  for (tensor const& y : {chosen, rows, last, walked}) {
    CHECK(y.requires_grad());
    CHECK_FALSE(y.is_leaf());
    x.zero_grad();
    vv::sum(y).backward();
    CHECK(x.grad().sizes() == x.sizes());
  }
  x.zero_grad();
  vv::sum(vv::checkpoint([](tensor const& u) { return vv::sin(u * 2.0); }, x)).backward(); // a plain number is saved
  CHECK(x.grad().sizes() == x.sizes());
}

TEST_CASE("fake tensors: what may not have run leaves no constants", "[fake][hop]") { // FK-5
  vv::fake_mode mode;
  vv::fake_mode_guard const on(mode);
  double const one = 1;
  tensor const x = mode.from_tensor(vv::arange(3, dtype::float64));
  auto const known = [&](auto const& program) {
    tensor const c = tensor::from_data(&one, dims{});
    program(c);
    return vv::constant_of(c).defined();
  };
  auto const same = [](tensor const& u) { return u * 1.0; };
  CHECK_FALSE(known([&](tensor const& c) {
    auto const adds = [&](tensor const& u) { return vv::add_(c, 1.0), u * 1.0; };
    (void)vv::cond(vv::sum(x) > 0.0, adds, same, x);
  }));
  CHECK_FALSE(known([&](tensor const& c) {
    (void)vv::cond(vv::sum(x) > 0.0, [](tensor const& u) { return vv::add_(u, 1.0) * 1.0; }, same, c);
  }));
  CHECK_FALSE(
      known([&](tensor const& c) { (void)vv::map([&](tensor const& r) { return vv::add_(c, 1.0), r * 1.0; }, x); }));
  CHECK(known([&](tensor const& c) { (void)vv::cond(vv::sum(x) > 0.0, same, same, c); }));
  CHECK(known([&](tensor const&) { // its own are known as ever
    auto const own = [&](tensor const& u) {
      tensor const k = tensor::from_data(&one, dims{});
      CHECK(vv::add_(k, 1.0).item<double>() == 2.0);
      return u * k;
    };
    (void)vv::cond(vv::sum(x) > 0.0, own, own, x);
  }));
}

TEST_CASE("fake and meta tensors: detached ones are no views", "[fake][autograd]") {
  vv::fake_mode mode;
  for (tensor const& x : {mode.from_tensor(vv::arange(3, dtype::float64)), tensor::meta(dims{3}, dtype::float64)}) {
    x.requires_grad_();
    tensor const y = x * 1.0, d = vv::detach(y), e = vv::exp(y);
    CHECK_FALSE(d.is_view());
    CHECK_FALSE(d.requires_grad());
    CHECK(d.is_leaf());
    CHECK(d.shares_storage(y));
    vv::add_(d, 1.0);
    CHECK(y.version() == 1);
    vv::add_(vv::detach(e), 1.0);
    CHECK_THROWS_AS(vv::sum(e).backward(), vv::autograd_error); // it needs e
  }
}
