// SPDX-License-Identifier: BSL-1.0
// functionalize(f) as a transform of functions of tensors: the same results by operators that do not write (semantics
// §3, FS-21, HO-14). Random programs are in test/graph/functionalize.cpp.
#include "functional_test.hpp"

#include <thread>

using namespace functional_test;

namespace {
template <class F>
std::vector<std::string> operators_of(F const& f) {
  watching w;
  {
    vv::mode_guard const on{w};
    f();
  }
  return w.names;
}

tensor row(tensor const& t, index_t i) { return vv::select(t, 0, i); }

/// Programs of a [3, 2] value that write into what they make.
program const chained = [](tensor const& x) {
  tensor const y = vv::clone(x);
  vv::mul_(y, x), vv::sin_(y), vv::add_(y, 2.0);
  return y;
};
program const through_views = [](tensor const& x) {
  tensor const y = x * 2, flat = vv::reshape(y, dims{6}), turned = vv::transpose(y, 0, 1);
  vv::mul_(row(y, 1), row(x, 0));
  vv::sin_(row(turned, 0));
  tensor const before = vv::sum(flat);
  vv::copy_(vv::slice(flat, 0, 1, 6, 2),
            vv::reshape(x, dims{6}).defined() ? vv::slice(vv::reshape(x * x, dims{6}), 0, 0, 3, 1) : x);
  return y + before + turned.sizes()[0];
};
program const dead_alias = [](tensor const& x) {
  tensor const y = x * 1;
  { vv::exp_(vv::select(vv::reshape(y, dims{2, 3}), 1, 1)); }
  return vv::exp(y);
};
program const accumulating = [](tensor const& x) {
  tensor const total = vv::zeros_like(x);
  for (index_t i = 0; i < 3; ++i) vv::add_(row(total, i), vv::sum(x) * row(x, 2 - i));
  return total;
};
std::pair<char const*, program> const programs[] = {
    {"chained", chained}, {"through views", through_views}, {"dead alias", dead_alias}, {"accumulating", accumulating}};

} // namespace

TEST_CASE("functionalize: writing programs under every transform, inside and outside of it",
          "[transform][functionalize]") { // FS-21
  tensor const x = from({0.5, 1.5, 0.25, 2, 1.25, 0.75}, {3, 2}), before = vv::clone(x);
  for (auto const& [what, f] : programs) functional_everywhere(what, f, x);
  CHECK(difference(x, before) == "");
}

TEST_CASE("functionalize: what is run, and when", "[transform][functionalize]") {
  tensor const x = from({1, 2, 3, 4}, {2, 2});
  auto const ran = [&](auto const& f) { return operators_of([&] { (void)vv::functionalize(f)(x); }); };
  // Without writes nothing is made again (FN-10).
  CHECK(ran([](tensor const& v) { return vv::sin(row(v, 0)); }) == names{"slice", "reshape", "sin"});
  // A write is done when it is read, and through the views of its value; a view is made again (FN-5 to FN-7).
  CHECK(ran([](tensor const& v) {
          tensor const y = v * 2, r = row(y, 0);
          vv::add_(r, 1.0);
          return std::pair(y, r);
        }) == names{"mul", "slice", "reshape", "add", "reshape", "slice", "cat", "slice", "reshape"});
  // Nobody reads: nothing but the operator itself.
  CHECK(ran([](tensor const& v) {
          tensor const y = v * 2;
          vv::add_(row(y, 0), 1.0);
          return v;
        }) == names{"mul", "slice", "reshape", "add"});
  // What a read in the middle asks for is there (the value, printed, in a condition).
  auto const looks = [](tensor const& v) {
    tensor const y = vv::sum(v), r = vv::reshape(y, dims{1});
    vv::mul_(r, 3.0);
    double const now = y.item<double>();
    vv::add_(r, 1.0);
    std::string const text = vv::to_string(y);
    CHECK(text.find("functional(level=1") == 0);
    CHECK(text.find("31") != std::string::npos);
    return vv::gt(y, 30.5) ? y * now : y;
  };
  CHECK(vv::functionalize(looks)(x).item<double>() == 31 * 30);
  // Versions rise once per write, for all that share the memory, as in the program without.
  (void)vv::functionalize([](tensor const& v) {
    tensor const y = v * 1, r = row(y, 1), other = v * 1;
    CHECK((y.version() == 0 && r.version() == 0));
    vv::add_(r, 1.0), vv::mul_(y, 2.0);
    CHECK((y.version() == 2 && r.version() == 2 && other.version() == 0));
    CHECK((y.shares_storage(r) && !y.shares_storage(other)));
    return y;
  })(x);
  // Dtypes and shapes of what is written stay (FN-9).
  auto const rounded = [](tensor const& v) {
    tensor const n = vv::to(v, dtype::float32);
    vv::add_(n, v);
    vv::copy_(row(n, 0), from({7}, {}, dtype::int64));
    return n;
  };
  CHECK(vv::functionalize(rounded)(x).dtype() == dtype::float32);
  CHECK(difference(vv::functionalize(rounded)(x), rounded(x)) == "");
  // Reshapes that strides cannot say are copies, also after writes through transposed views.
  auto const copies = [](tensor const& v) {
    tensor const y = v * 1;
    vv::add_(vv::transpose(y, 0, 1), row(v, 0));
    tensor const flat = vv::reshape(vv::transpose(y, 0, 1), dims{4});
    vv::mul_(flat, 100.0);
    return y + vv::sum(flat);
  };
  CHECK(difference(vv::functionalize(copies)(x), copies(x)) == "");
  // as_strided counts from its operand, so that it has an inverse wherever it stands (where PyTorch refuses, FN-21).
  auto const strided = [](tensor const& v) {
    tensor const y = v * 1;
    vv::add_(vv::as_strided(y, dims{2}, dims{3}, dims{0}), 1.0),
        vv::mul_(vv::as_strided(row(y, 1), dims{1}, dims{1}, dims{1}), 5.0);
    return y;
  };
  CHECK(difference(vv::functionalize(strided)(x), from({2, 2, 3, 25}, {2, 2})) == "");
  // Empty and rank-0 values; nothing to write.
  auto const empty = [](tensor const& v) {
    tensor const y = vv::slice(v * 1, 0, 1, 1, 1), z = vv::sum(v);
    vv::add_(y, 1.0), vv::neg_(z);
    return vv::sum(y) + z;
  };
  CHECK(vv::functionalize(empty)(x).item<double>() == -10);
  // Factories give values that may be written into; without arguments as well.
  CHECK(difference(vv::functionalize([] {
                     tensor const y = vv::zeros({3}, dtype::float64);
                     vv::add_(vv::slice(y, 0, 1, 3, 1), 2.0);
                     return y;
                   })(),
                   vec({0, 2, 2})) == "");
}

TEST_CASE("functionalize: arguments that are written", "[transform][functionalize]") { // FN-39, FN-40
  auto const f = [](tensor const& x, tensor const& y) {
    vv::add_(x, y), vv::mul_(row(y, 0), 2.0);
    return std::tuple(x * y, y, row(x, 1));
  };
  tensor const a = from({1, 2, 3, 4}, {2, 2}), b = from({0.5, 0.25, -1, 2}, {2, 2});
  for (auto const kind : {memory::row_major, memory::transposed, memory::stepped}) {
    auto const made = [&](tensor const& v) { return from(elements(v), v.sizes(), dtype::float64, kind); };
    tensor const x = made(a), y = made(b), wx = made(a), wy = made(b);
    auto const want = f(wx, wy), got = vv::functionalize(f)(x, y);
    CHECK((difference(x, wx) == "" && difference(y, wy) == ""));
    CHECK((x.version() == 1 && y.version() == 1)); // one copy each
    CHECK((difference(std::get<0>(got), std::get<0>(want)) == "" &&
           difference(std::get<1>(got), std::get<1>(want)) == "" &&
           difference(std::get<2>(got), std::get<2>(want)) == ""));
  }
  CHECK(operators_of([&] { (void)vv::functionalize(f)(vv::clone(a), vv::clone(b)); }).back() == "copy_");
  // Untouched arguments are not written; what is returned of them is theirs.
  tensor const x = vv::clone(a), y = vv::clone(b);
  CHECK(vv::functionalize([](tensor const& u, tensor const& v) { return vv::add_(u, v), v; })(x, y).is(y));
  CHECK((y.version() == 0 && x.version() == 1));
  CHECK(vv::functionalize([](tensor const& u) { return row(u, 0); })(y).shares_storage(y));
  // A function that returns nothing; a tree; one object given twice.
  vv::functionalize([](std::vector<tensor> const& v) { vv::copy_(v[0], v[1]), vv::zero_(v[1]); })(
      std::vector<tensor>{x, y});
  CHECK((difference(x, b) == "" && difference(y, b * 0) == ""));
  tensor const both = vv::clone(a), one_by_one = vv::clone(a);
  auto const doubling = [](tensor const& u, tensor const& v) { return vv::add_(u, v), u + v; };
  tensor const sums = vv::functionalize(doubling)(both, both);
  CHECK((difference(sums, doubling(one_by_one, one_by_one)) == "" && difference(both, one_by_one) == ""));
  // Numbers and static values pass.
  CHECK(difference(vv::functionalize([](tensor const& u, double s, int n) { return vv::mul_(u * n, s); })(a, 2.0, 3),
                   a * 6) == "");
  STATIC_REQUIRE(vv::functionalize([](auto u) { return u * u; })(3.0) == 9.0);
  STATIC_REQUIRE(vv::functionalize([](int n) { return n * 2; })(3) == 6);
  // Sizes alone are arguments of functions that make tensors.
  watching seen;
  {
    vv::mode_guard const on{seen};
    auto const ones = vv::functionalize([](int n) {
      tensor const y = vv::zeros({n}, dtype::float64);
      return tensor(vv::add_(y, 1.0));
    })(3);
    CHECK(difference(ones, vec({1, 1, 1})) == "");
  }
  CHECK(seen.writes == 0);
  // Under vmap and grad the arguments are those of the level.
  auto const twice = vv::functionalize([](tensor const& u) { return vv::mul_(u, 2.0), u * u; });
  tensor const lanes = vv::clone(a);
  CHECK(difference(vv::vmap(twice)(lanes), a * a * 4) == "");
  CHECK(difference(lanes, a * 2) == "");
  CHECK(difference(vv::grad([&](tensor const& u) {
                     tensor const c = u * 1;
                     return vv::sum(twice(c) + c);
                   })(a),
                   a * 8 + 2.0) == "");
}

TEST_CASE("functionalize: what is refused leaves everything as it was", "[transform][functionalize]") {
  tensor const a = from({1, 2, 3, 4}, {2, 2}), captured = vv::clone(a);
  int number = 0;
  auto const refused = [&](auto const& f, auto const& text) {
    tensor const x = vv::clone(a);
    INFO(number++);
    CHECK_THROWS_WITH(vv::functionalize(f)(x), text);
    CHECK((difference(x, a) == "" && x.version() == 0 && difference(captured, a) == ""));
    CHECK(thread_is_clean());
  };
  refused([&](tensor const& x) { return vv::add_(x, 1.0), vv::add_(captured, x); },
          ContainsText("add_") && ContainsText("captured tensor") && ContainsText("argument")); // FN-23
  refused([](tensor const& x) { return vv::add_(x, 1.0), vv::add_(vv::expand(row(x, 0), dims{3, 2}), 1.0); },
          ContainsText("more than once"));
  refused([](tensor const& x) { return vv::add_(x, 1.0), vv::add_(x, vv::zeros({3, 2, 2}, dtype::float64)); },
          ContainsText("[3, 2, 2]"));
  refused([](tensor const& x) { return vv::add_(x, 1.0), vv::exp_(vv::to(x, dtype::int64)); },
          ContainsText("exp_") && ContainsText("int64"));
  refused(
      [](tensor const& x) -> tensor {
        vv::add_(x, 1.0);
        throw std::runtime_error("mine");
      },
      ContainsText("mine"));
  // Arguments that share memory, one of them written.
  tensor const x = vv::clone(a);
  CHECK_THROWS_WITH(
      vv::functionalize([](tensor const& u, tensor const& v) { return vv::add_(u, 1.0), vv::sum(v); })(x, row(x, 0)),
      ContainsText("shares memory"));
  CHECK_NOTHROW(
      vv::functionalize([](tensor const& u, tensor const& v) { return vv::sum(u) + vv::sum(v); })(x, row(x, 0)));
  CHECK(difference(x, a) == "");
  // A captured tensor is written with plain values as anywhere.
  (void)vv::functionalize([&](tensor const& u) { return vv::add_(captured, 1.0), u * captured; })(a);
  CHECK(difference(captured, a + 1.0) == "");
  // Gradients that need what was overtaken are refused as without.
  auto const stale = [](tensor const& u) {
    tensor const y = u * 1, z = vv::sum(vv::sin(y));
    vv::add_(y, 1.0);
    return z;
  };
  CHECK_THROWS_AS(vv::grad(stale)(a), vv::autograd_error);
  CHECK_THROWS_AS(vv::functionalize(vv::grad(stale))(a), vv::autograd_error);
  CHECK(difference(vv::grad(vv::functionalize(stale))(a), vv::cos(a)) == ""); // here nothing is overtaken
  CHECK(thread_is_clean());
}

TEST_CASE("functionalize: with what else there is", "[transform][functionalize]") {
  tensor const x = from({0.5, 1.5, 0.25, 0.75, 1.25, 0.35}, {3, 2});
  auto const f = [](tensor const& v) {
    tensor const y = v * 1;
    return vv::mul_(row(y, 0), row(v, 1)), vv::sin_(y);
  };
  auto const scalar = [&](tensor const& v) { return vv::sum(f(v) * f(v)); };
  CHECK(difference(vv::functionalize([&](tensor const& v) { return vv::hessian(scalar)(v); })(x),
                   vv::hessian(scalar)(x), 1e-12) == "");
  CHECK(difference(vv::hessian(vv::functionalize(scalar))(x), vv::hessian(scalar)(x), 1e-12) == "");
  CHECK(difference(vv::functionalize([&](tensor const& v) { return vv::jacfwd(f)(v); })(x),
                   vv::jacrev(vv::functionalize(f))(x), 1e-12) == "");
  // Compiled, with an argument that is written.
  auto const writes = [&](tensor const& v) { return vv::add_(row(v, 0), 1.0), f(v); };
  auto const fast = vv::compile(vv::functionalize(writes));
  for (int round = 0; round < 2; ++round) {
    tensor const a = vv::clone(x), b = vv::clone(x);
    CHECK((difference(fast(a), writes(b), 1e-12) == "" && difference(a, b) == ""));
  }
  auto const kept = [&](tensor const& v) { return vv::sum(vv::checkpoint([&](tensor const& u) { return f(u); }, v)); };
  CHECK(difference(vv::grad(vv::functionalize(kept))(x), vv::functionalize(vv::grad(kept))(x), 1e-12) == "");
  CHECK(difference(vv::grad(vv::functionalize(kept))(x), vv::grad([&](tensor const& v) { return vv::sum(f(v)); })(x),
                   1e-12) == "");
  tensor const leaf = vv::clone(x).requires_grad_();
  vv::sum(vv::functionalize(f)(leaf)).backward();
  CHECK(difference(leaf.grad(), vv::grad([&](tensor const& v) { return vv::sum(f(v)); })(x), 1e-12) == "");
  // Parts, out=, detach_; .data is refused as in every transform.
  auto const parts = [](tensor const& v) {
    tensor const y = v * 1;
    for (tensor const& t : vv::unbind(y, 0)) vv::mul_(t, 2.0);
    for (tensor const& t : vv::chunk(y, 2, 1)) vv::add_(t, 1.0);
    vv::out(row(y, 0))(vv::mul, row(v, 1), row(v, 2));
    y.detach_();
    return vv::mul_(y, 3.0);
  };
  CHECK(difference(vv::functionalize(parts)(x), parts(x)) == "");
  CHECK_THROWS_WITH(vv::functionalize([](tensor const& v) { return vv::add_(tensor(v * 1).data(), 1.0); })(x),
                    ContainsText("detach"));
  CHECK(thread_is_clean());
}

TEST_CASE("functionalize: values that outlive it, grad modes, keys, threads", "[transform][functionalize]") {
  tensor const a = from({1, 2, 3, 4}, {2, 2});
  tensor left, view;
  (void)vv::functionalize([&](tensor const& x) {
    left = x * 1, view = row(left, 0);
    vv::add_(view, 10.0);
    return x;
  })(a);
  CHECK(difference(vv::vmap([&](tensor const& v) { return v + left; })(a),
                   vv::stack(std::vector<tensor>{row(a, 0) + left, row(a, 1) + left}, 0)) == "");
  CHECK(difference(left * 1, from({11, 12, 3, 4}, {2, 2})) == "");
  CHECK(difference(view * 1, vec({11, 12})) == "");
  // Threads may be the first to read what was left behind.
  for (int n = 0; n < 20; ++n) {
    (void)vv::functionalize([&](tensor const& x) {
      left = x * 1, view = row(left, 0);
      vv::add_(view, 1.0);
      return x;
    })(a);
    std::vector<std::thread> readers;
    std::atomic<int> seen{0};
    for (int k = 0; k < 4; ++k)
      readers.emplace_back(
          [&] { seen += vv::sum(view * 1).item<double>() == 5, seen += vv::sum(left).item<double>() == 12; });
    for (auto& r : readers) r.join();
    CHECK(seen == 8);
  }
  // Reading under no_grad does not lose the history of what was written before.
  auto const reads = [](tensor const& x) {
    tensor const y = x * 1;
    vv::mul_(row(y, 0), 3.0);
    {
      vv::no_grad const off;
      CHECK(vv::sum(y).item<double>() == 16);
    }
    return vv::sum(y * y);
  };
  CHECK(difference(vv::grad(vv::functionalize(reads))(a), vv::grad(reads)(a)) == "");
  CHECK(difference(vv::functionalize(vv::grad(reads))(a), vv::grad(reads)(a)) == "");
  {
    vv::exclude_keys const off(vv::dispatch_key::functionalize); // FN-41
    CHECK(difference(vv::functionalize(through_views)(from({1, 2, 3, 4, 5, 6}, {3, 2})),
                     through_views(from({1, 2, 3, 4, 5, 6}, {3, 2}))) == "");
  }
  // Kernels of a library at its key see the calls of the layer (FS-3).
  std::vector<std::string> log;
  {
    vv::library lib("aten");
    lib.impl("sin", vv::dispatch_key::functionalize,
             [&](vv::boxed_op const& op, vv::dispatch_key_set keys, boxed_args const& x) -> tensor {
               log.emplace_back(vv::dynamic_layer_stack().empty() ? "none" : vv::dynamic_layer_stack().back().kind());
               return vv::redispatch(op, keys.below(vv::dispatch_key::functionalize), x);
             });
    CHECK(difference(vv::functionalize([](tensor const& x) { return vv::sin(x); })(a), vv::sin(a)) == "");
  }
  CHECK(log == names{"functionalize"});
  // The interpreter, as users see it.
  (void)vv::functionalize([](tensor const& x) {
    auto const stack = vv::dynamic_layer_stack();
    REQUIRE(stack.size() == 1);
    CHECK(std::string(stack[0].kind()) == "functionalize");
    tensor const y = x * 1;
    vv::add_(row(y, 0), 1.0);
    CHECK(stack[0].owns(y));
    CHECK(difference(stack[0].unwrap(y), from({2, 3, 3, 4}, {2, 2})) == "");
    return y;
  })(a);
  std::vector<std::thread> workers;
  std::atomic<int> right{0};
  tensor const x = from({0.5, 1.5, 0.25, 2, 1.25, 0.75}, {3, 2}), want = through_views(x);
  for (int k = 0; k < 4; ++k)
    workers.emplace_back([&] {
      for (int n = 0; n < 20; ++n) right += difference(vv::functionalize(through_views)(x), want, 1e-13).empty();
    });
  for (auto& w : workers) w.join();
  CHECK(right == 80);
  CHECK(thread_is_clean());
}

TEST_CASE("functionalize: writes that autograd does not see, inside of what is differentiated",
          "[transform][functionalize]") { // FN-15
  tensor const a = from({1, 2, 3, 4}, {2, 2});
  auto const whole = [](tensor const& x) {
    tensor const y = x * x;
    {
      vv::no_grad const off;
      vv::mul_(row(y, 0), 2.0);
    }
    return vv::sum(y);
  };
  auto const detached = [](tensor const& x) {
    tensor const y = x * x;
    vv::mul_(vv::detach(y), 2.0);
    return vv::sum(y);
  };
  for (auto const& f : {program(whole), program(detached)}) {
    CHECK(difference(vv::functionalize(vv::grad(f))(a), a * 2) == "");
    CHECK(difference(vv::functionalize(f)(a), f(a)) == "");
    CHECK_THROWS_WITH(vv::grad(vv::functionalize(f))(a), ContainsText("no_grad") && ContainsText("detach"));
  }
  CHECK_THROWS_WITH(vv::jvp(vv::functionalize(detached), std::tuple(a), std::tuple(a)), ContainsText("detach"));
  CHECK_THROWS_WITH(vv::grad(vv::functionalize([](tensor const& x) {
                      tensor const d = vv::detach(x * 1);
                      return vv::sum(vv::mul_(d, x));
                    }))(a),
                    ContainsText("detach") && ContainsText("clone"));
  // Where nothing has a gradient, and where what was written is read without one, nothing is lost.
  auto const unharmed = [](tensor const& x) {
    tensor const buffer = vv::zeros({2, 2}, dtype::float64), y = x * x;
    vv::add_(vv::detach(buffer), 3.0);
    vv::mul_(vv::detach(y), 2.0);
    vv::no_grad const off;
    vv::add_(buffer, y);
    vv::enable_grad const on;
    return vv::sum(buffer * x + vv::detach(y) * x);
  };
  CHECK(difference(vv::grad(vv::functionalize(unharmed))(a), vv::grad(unharmed)(a)) == "");
  auto const cut = [](tensor const& x) {
    tensor const y = x * x;
    vv::add_(row(y, 0), 1.0);
    y.detach_();
    return vv::sum(vv::mul_(y, x));
  };
  CHECK(difference(vv::grad(vv::functionalize(cut))(a), vv::grad(cut)(a)) == "");
  // Leaves are written in no_grad mode, as optimizers do.
  auto const step = [](tensor const& p) {
    vv::no_grad const off;
    vv::sub_(p, p * 0.5);
  };
  tensor const leaf = vv::clone(a).requires_grad_();
  vv::functionalize(step)(leaf);
  CHECK((difference(leaf, a * 0.5) == "" && leaf.requires_grad() && leaf.version() == 1));
  CHECK(thread_is_clean());
}

TEST_CASE("functionalize: all arguments are written, or none", "[transform][functionalize]") {
  tensor const a = from({1, 2, 3, 4}, {2, 2}), x = vv::clone(a), leaf = vv::clone(a).requires_grad_(),
               plain = row(vv::clone(a), 0);
  auto const both = vv::functionalize([](tensor const& u, tensor const& v) { vv::add_(u, 1.0), vv::add_(v, u); });
  CHECK_THROWS_WITH(both(x, leaf), ContainsText("leaf"));
  CHECK_THROWS_WITH(vv::vmap([&](tensor const& u) { return both(u, plain), u * 1; })(x), ContainsText("no part"));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& u) { return both(x, u), vv::sum(u); })(a), ContainsText("leaf"));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& u) {
                      tensor const c = u * 1;
                      return both(c, x), vv::sum(c);
                    })(a),
                    ContainsText("no part"));
  CHECK(
      (difference(x, a) == "" && x.version() == 0 && difference(plain, row(a, 0)) == "" && difference(leaf, a) == ""));
  // An argument that is not there stays away.
  CHECK(difference(vv::functionalize([](tensor const& u, tensor const& none) {
                     return none.defined() ? none : tensor(u * 2);
                   })(a, tensor()),
                   a * 2) == "");
  CHECK(thread_is_clean());
}
