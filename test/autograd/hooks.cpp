// SPDX-License-Identifier: BSL-1.0
// Hooks of tensors, nodes and leaves (semantics AG-9..11, AG-13).
#include "autograd_test.hpp"

using namespace autograd_test;

TEST_CASE("hooks: a tensor hook sees, and may replace, the gradient", "[autograd][hook]") {
  tensor const x = leaf({1, 2});
  tensor const a = x * 3;
  list seen;
  a.register_hook([&](tensor const& g) { seen = elements(g); });
  a.register_hook([](tensor const& g) { return g * 10; });
  x.register_hook([](tensor const& g) { return g + 1; }); // of a leaf: before it is added
  vv::sum(a * a).backward();
  CHECK(seen == list{6, 12});
  CHECK(grad_of(x) == list{181, 361});
  CHECK_THROWS_AS(vec({1}).register_hook([](tensor const&) {}), vv::autograd_error);
  CHECK_THROWS_WITH(vec({1}).register_hook([](tensor const&) {}), ContainsText("register_hook"));
}

TEST_CASE("hooks: a result of another shape or dtype is refused", "[autograd][hook]") {
  tensor const x = leaf({1, 2});
  tensor const a = x * 3;
  vv::hook_handle h = a.register_hook([](tensor const&) { return number(1); });
  CHECK_THROWS_AS(vv::sum(a).backward(), vv::shape_error);
  CHECK_THROWS_WITH(vv::sum(a).backward(), ContainsText("tensor hook"));
  h.remove();
  h = a.register_hook([](tensor const& g) { return tensor(vv::to(g, dtype::float32)); });
  CHECK_THROWS_AS(vv::sum(a).backward(), vv::dtype_error);
  h.remove();
  CHECK_FALSE(x.grad().defined());
  CHECK(thread_is_clean());
}

TEST_CASE("hooks: of tensors in order, then retained gradients, then the node's", "[autograd][hook]") { // AG-9
  tensor const x = leaf(2);
  tensor const a = x * 3;
  std::string log;
  auto const node = a.grad_fn();
  node.register_hook([&](vv::boxed_args& in, vv::boxed_args const& out) {
    log += "post ";
    CHECK(in[0].item<double>() == 30);
    CHECK(out[0].item<double>() == 10);
  });
  node.register_prehook([&](vv::boxed_args& g) {
    log += "pre1 ";
    CHECK(g[0].item<double>() == 10);
  });
  a.register_hook([&](tensor const& g) {
    log += "tensor1 ";
    return g * 2;
  });
  a.retain_grad();
  node.register_prehook([&](vv::boxed_args&) { log += "pre2 "; });
  a.register_hook([&](tensor const& g) {
    log += "tensor2 ";
    return g * 5;
  });
  x.register_post_accumulate_grad_hook([&](tensor const& t) {
    log += "accumulated ";
    CHECK(t.grad().item<double>() == 30);
    CHECK(t.requires_grad());
    CHECK(t.is_leaf());
    CHECK(t.item<double>() == 2);
  });
  x.register_hook([&](tensor const&) { log += "leaf "; });
  a.backward();
  CHECK(log == "tensor1 tensor2 pre1 pre2 post leaf accumulated ");
  CHECK(grad_of(a) == list{10}); // retained after all hooks of the tensor, wherever it was asked for
  CHECK(grad_of(x) == list{30});
}

TEST_CASE("hooks: of nodes change gradients on either side", "[autograd][hook]") {
  tensor const x = leaf(2), w = leaf(5);
  tensor const y = x * w;
  auto pre = y.grad_fn().register_prehook([](vv::boxed_args& g) { g[0] = g[0] * 10; });
  auto post = y.grad_fn().register_hook([](vv::boxed_args& in, vv::boxed_args const&) { in[1] = in[1] + 1; });
  y.backward({}, true);
  CHECK(grad_of(x) == list{50});
  CHECK(grad_of(w) == list{21});
  pre.remove();
  post.remove();
  x.zero_grad();
  w.zero_grad();
  y.backward();
  CHECK(grad_of(x) == list{5});
  CHECK(grad_of(w) == list{2});
}

TEST_CASE("hooks: of nodes keep the number, shapes and dtypes of gradients", "[autograd][hook]") { // AG-10
  tensor const x = leaf({1, 2}), y = leaf({3, 4});
  auto const backward_with = [&](auto pre, auto post) {
    tensor const z = x * y;
    z.grad_fn().register_prehook(pre);
    z.grad_fn().register_hook(post);
    vv::sum(z).backward();
  };
  auto const leave = [](vv::boxed_args&) {};
  auto const leave_too = [](vv::boxed_args&, vv::boxed_args const&) {};
  CHECK_THROWS_AS(backward_with([](vv::boxed_args& g) { g[0] = vec({1, 2, 3}); }, leave_too), vv::shape_error);
  CHECK_THROWS_WITH(backward_with([](vv::boxed_args& g) { g[0] = vec({1, 2, 3}); }, leave_too),
                    ContainsText("MulBackward0") && ContainsText("[3]") && ContainsText("[2]"));
  CHECK_THROWS_AS(backward_with([](vv::boxed_args& g) { g[0] = vv::to(g[0], dtype::float32); }, leave_too),
                  vv::dtype_error);
  CHECK_THROWS_AS(backward_with([](vv::boxed_args& g) { g.push_back(vec({1, 2})); }, leave_too), vv::autograd_error);
  CHECK_THROWS_AS(backward_with(leave, [](vv::boxed_args& in, vv::boxed_args const&) { in[1] = number(1); }),
                  vv::shape_error);
  CHECK_THROWS_WITH(
      backward_with(leave, [](vv::boxed_args& in, vv::boxed_args const&) { in[0] = vv::to(in[0], dtype::float32); }),
      ContainsText("float32") && ContainsText("MulBackward0"));
  CHECK_THROWS_AS(backward_with(leave, [](vv::boxed_args& in, vv::boxed_args const&) { in = vv::boxed_args(); }),
                  vv::autograd_error);
  CHECK((grad_of(x).empty() && grad_of(y).empty() && thread_is_clean()));
  tensor const c = vec({5, 6}); // for a constant there is no gradient to replace
  tensor const w = x * c;
  w.grad_fn().register_hook([](vv::boxed_args& in, vv::boxed_args const&) { in[1] = vec({1, 1}); });
  CHECK_THROWS_WITH(vv::sum(w).backward(), ContainsText("cannot be replaced"));
  backward_with([](vv::boxed_args& g) { g[0] = tensor(); }, leave_too); // nothing instead of something: zeros
  CHECK(grad_of(x).empty());
}

TEST_CASE("hooks: removal is idempotent, may happen inside a hook, and outlive the tensor",
          "[autograd][hook]") { // AG-13
  vv::hook_handle left, empty;
  empty.remove();
  int calls = 0;
  {
    tensor const x = leaf(1);
    left = x.register_hook([&](tensor const&) { ++calls; });
    vv::hook_handle self;
    self = x.register_hook([&](tensor const&) {
      ++calls;
      self.remove();
    });
    (x * 1).backward();
    (x * 1).backward();
    CHECK(calls == 3);
    left.remove();
    left.remove();
    (x * 1).backward();
    CHECK(calls == 3);
    left = x.register_hook([](tensor const&) {});
  }
  left.remove();
  left.remove();
}

TEST_CASE("hooks: stay with the value they were registered on when it is written in place",
          "[autograd][hook][in_place][AG-S03]") { // AG-10
  for (bool second : {true, false}) {
    tensor const a = leaf({1, 1});
    tensor const b = vv::clone(a);
    int before = 0, after = 0;
    b.register_hook([&](tensor const& g) {
      ++before;
      CHECK(elements(g) == (second ? list{2, 2} : list{4, 4}));
    });
    vv::mul_(b, 2);
    if (second) {
      b.register_hook([&](tensor const& g) {
        ++after;
        CHECK(elements(g) == list{1, 1});
      });
    } else {
      vv::mul_(b, 2);
    }
    vv::sum(b).backward();
    CHECK(before == 1);
    CHECK(after == (second ? 1 : 0));
    CHECK(grad_of(a) == (second ? list{2, 2} : list{4, 4}));
  }
  tensor const a = leaf(1); // the scenario's numbers
  tensor const b = vv::clone(a);
  list seen;
  b.register_hook([&](tensor const& g) { seen.push_back(g.item<double>()); });
  vv::mul_(b, 2);
  vv::mul_(b, 2);
  (b * 2).backward();
  CHECK(seen == list{8});
  CHECK(grad_of(a) == list{8});
}

TEST_CASE("hooks: a retained gradient follows the latest value", "[autograd][hook][in_place][AG-S10]") {
  auto const fresh = [] {
    tensor const a = vv::clone(leaf(list{1}));
    a.retain_grad();
    return a;
  };
  {
    tensor const a = fresh();
    vv::mul_(a, 2);
    vv::sum(a).backward();
    CHECK(grad_of(a) == list{1});
  }
  {
    tensor const a = fresh();
    vv::mul_(a, 2);
    vv::mul_(a, 2);
    vv::sum(a).backward();
    CHECK(grad_of(a) == list{1});
  }
  { // via a view
    tensor const a = fresh();
    vv::mul_(vv::slice(a, 0, 0, 1), 2);
    vv::mul_(a, 2);
    vv::sum(a).backward();
    CHECK(grad_of(a) == list{1});
  }
  {
    tensor const a = fresh();
    vv::mul_(vv::slice(a, 0, 0, 1), 2);
    vv::sum(a).backward();
    CHECK(grad_of(a) == list{1});
  }
  { // of a view, whose base is written
    tensor const a = vv::clone(leaf({1, 2}));
    tensor const v = vv::slice(a, 0, 0, 1);
    v.retain_grad();
    vv::mul_(a, 3);
    vv::sum(v * 5).backward();
    CHECK(grad_of(v) == list{5});
  }
  tensor const x = leaf(2);
  x.retain_grad(); // of a leaf: nothing to do
  (x * 3).backward();
  CHECK(grad_of(x) == list{3});
  CHECK_THROWS_AS(number(1).retain_grad(), vv::autograd_error);
  tensor const a = x * 1; // runs are added up, as those of a leaf
  a.retain_grad();
  (a * 2).backward({}, true);
  (a * 5).backward();
  CHECK(grad_of(a) == list{7});
  tensor const b = x * 1, seed = number(3);
  b.retain_grad();
  b.backward(seed);
  vv::add_(b.grad(), 1.0); // in memory of its own
  CHECK(seed.item() == 3);
}

TEST_CASE("hooks: after accumulation the leaf may be changed, and its gradient freed",
          "[autograd][hook][AG-S05]") { // AG-11
  tensor const x = leaf({5, 7});
  x.register_post_accumulate_grad_hook([](tensor const& t) {
    vv::no_grad const off;
    vv::add_(t, vv::neg(t.grad()));
  });
  x.register_post_accumulate_grad_hook([](tensor const& t) {
    vv::no_grad const off;
    vv::mul_(t, 4);
  });
  x.register_post_accumulate_grad_hook([](tensor const& t) { t.zero_grad(); });
  vv::sum(x).backward();
  CHECK(elements(x) == list{16, 24});
  CHECK_FALSE(x.grad().defined());
  CHECK_THROWS_AS((x * 1).register_post_accumulate_grad_hook([](tensor const&) {}), vv::autograd_error);
  CHECK_THROWS_AS(vec({1}).register_post_accumulate_grad_hook([](tensor const&) {}), vv::autograd_error);
  CHECK_FALSE(x.grad().defined());
  int runs = 0;
  tensor const y = leaf(1);
  y.register_post_accumulate_grad_hook([&](tensor const&) { ++runs; });
  tensor const z = y * y + y; // three paths, added to once
  z.backward();
  CHECK(runs == 1);
  vv::autograd::backward<>({y * 2}, {}, {}, {y}); // inputs= counts as accumulation
  CHECK(runs == 2);
}

TEST_CASE("hooks: of results that no gradient arrives at", "[autograd][hook]") {
  tensor const x = leaf({1, 2}), w = leaf({1, 2});
  tensor const unused = w * 2;
  int calls = 0;
  unused.register_hook([&](tensor const&) { ++calls; });
  vv::sum(x * 1).backward();
  CHECK(calls == 0);
  tensor const d = (w * 2).detach();
  CHECK_THROWS_AS(d.register_hook([](tensor const&) {}), vv::autograd_error);
}

TEST_CASE("hooks: exceptions pass through, and the graph that is kept runs again", "[autograd][hook]") {
  struct stop {};
  tensor const x = leaf(2);
  tensor const a = x * x;
  tensor const y = a * a;
  bool throwing = true;
  auto const maybe = [&](auto&&...) {
    if (throwing) throw stop{};
  };
  for (int where = 0; where < 4; ++where) {
    vv::hook_handle h = where == 0   ? a.register_hook([&](tensor const& g) { maybe(g); })
                        : where == 1 ? a.grad_fn().register_prehook([&](vv::boxed_args& g) { maybe(g); })
                        : where == 2
                            ? a.grad_fn().register_hook([&](vv::boxed_args& g, vv::boxed_args const&) { maybe(g); })
                            : x.register_post_accumulate_grad_hook([&](tensor const& t) { maybe(t); });
    throwing = true;
    x.zero_grad();
    CHECK_THROWS_AS(y.backward({}, true), stop);
    CHECK(thread_is_clean());
    CHECK_THROWS_AS(y.backward({}, true, true), stop);
    CHECK(thread_is_clean());
    throwing = false;
    x.zero_grad();
    y.backward({}, true);
    CHECK(grad_of(x) == list{32});
    h.remove();
  }
}

TEST_CASE("hooks: run in the grad mode of the run, and see derivatives that are recorded",
          "[autograd][hook][grad_mode]") {
  tensor const x = leaf(3);
  tensor const a = x * x;
  std::vector<bool> modes, tracked;
  a.register_hook([&](tensor const& g) {
    modes.push_back(vv::is_grad_enabled());
    tracked.push_back(g.requires_grad());
    return g * 1;
  });
  tensor const y = a * a;
  y.backward({}, true);
  y.backward({}, true, true);
  CHECK(modes == std::vector<bool>{false, true});
  CHECK(tracked == std::vector<bool>{false, true});
  x.zero_grad();
}

TEST_CASE("hooks of the node of an input that backward is given", "[autograd][hooks]") { // AG-5
  tensor const a = tensor{1.0, 2.0}.requires_grad_(), b = a * 2.0;
  std::string log;
  auto const pre = b.grad_fn().register_prehook([&](vv::boxed_args& g) { log += "pre ", g[0] = g[0] * 10; });
  auto const post = b.grad_fn().register_hook([&](vv::boxed_args& out, vv::boxed_args const&) {
    log += out.size() > 0 && out[0].defined() ? "post of a value" : "post";
  });
  vv::autograd::backward({vv::sum(b * b)}, {}, {}, {b});
  CHECK(log == "pre post");
  CHECK(elements(b.grad()) == std::vector<double>{4, 8}); // as it arrived
  CHECK(!a.grad().defined());
}
