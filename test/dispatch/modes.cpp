// SPDX-License-Identifier: BSL-1.0
// The mode stacks: PyTorch's scenarios of test_python_dispatch.py, by number.
#include "../sample/value.hpp"

#include <varve/mode/logging_mode.hpp>
#include <varve/varve.hpp>

#include <thread>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
using names = std::vector<std::string>;
/// Writes the operators it sees under its name, then lowers.
struct writing : vv::dispatch_mode<writing> {
  names* to;
  char const* name;
  writing(names& l, char const* n = "") : to(&l), name(n) {}
  tensor process(vv::boxed_op op, vv::boxed_args const& args) {
    to->push_back(std::string(name) + op.name());
    return op(args);
  }
};
struct raising : vv::dispatch_mode<raising> {
  char const* text;
  explicit raising(char const* t) : text(t) {}
  tensor process(vv::boxed_op, vv::boxed_args const&) { throw std::runtime_error(text); }
};

/// A wrapper that computes on what is inside.
struct wrapped : vv::tensor_subclass<wrapped> {
  tensor value;
  explicit wrapped(tensor v) : value(std::move(v)) {}
  auto parts() const { return std::tie(value); }
  wrapped with_parts(tensor const& v) const { return wrapped(v); }
  static inline int calls = 0;
  static tensor dispatch(vv::boxed_op const& op, vv::boxed_args const& x) {
    ++calls;
    return vv::make_subclass(wrapped(op(vv::unwrap_all<wrapped>(x))));
  }
};
} // namespace

TEST_CASE("modes: a factory and plain tensors reach the mode", "[dispatch][mode][MD-S06][MD-S07]") {
  names l;
  writing m(l);
  tensor const x = from({1}, {1});
  {
    vv::mode_guard const on{m};
    (void)vv::empty({});
    (void)(x + x);
    (void)tensor({1.0, 2.0}); // data is not intercepted
  }
  CHECK(l == names{"empty", "add"});
}

TEST_CASE("modes: nested, the inner first, the same one twice", "[dispatch][mode][MD-S08][MD-S09][MD-S13]") {
  names l;
  writing outer(l, "outer "), inner(l, "inner ");
  tensor const x = from({1}, {1});
  {
    vv::mode_guard const a{outer};
    vv::mode_guard const b{inner};
    (void)vv::empty({});
    (void)(x + x);
  }
  CHECK(l == names{"inner empty", "outer empty", "inner add", "outer add"});
  l.clear();
  {
    vv::mode_guard const a{outer};
    vv::mode_guard const b{outer};
    (void)vv::empty({});
  }
  CHECK(l == names{"outer empty", "outer empty"});
  raising one("layer1"), two("layer2");
  vv::mode_guard const a{one};
  vv::mode_guard const b{two};
  CHECK_THROWS_WITH(vv::empty({}), ContainsText("layer2"));
}

TEST_CASE("modes: are back after an exception", "[dispatch][mode][MD-S10]") {
  struct choosy : vv::dispatch_mode<choosy> {
    tensor process(vv::boxed_op op, vv::boxed_args const& args) {
      if (std::string(op.name()) == "randn") throw std::runtime_error("random");
      return vv::make_subclass(wrapped(op(args)));
    }
  } m;
  vv::mode_guard const on{m};
  CHECK_THROWS_AS(vv::randn({1}), std::runtime_error);
  CHECK(vv::is<wrapped>(vv::zeros({1})));
}

TEST_CASE("modes: one that declines leaves the call to the subclass, and sees what that does",
          "[dispatch][mode][MD-S12]") {
  struct polite : vv::dispatch_mode<polite> {
    int entered = 0, accepted = 0;
    tensor process(vv::boxed_op op, vv::boxed_args const& args) {
      ++entered;
      for (auto const& t : args)
        if (vv::is<wrapped>(t)) return vv::not_implemented;
      ++accepted;
      return op(args);
    }
  } m, other;
  tensor const a = vv::make_subclass(wrapped(from({-1, 2}, {2})));
  wrapped::calls = 0;
  {
    vv::mode_guard const on{m};
    CHECK(elements(vv::unwrap<wrapped>(vv::abs(a)).value) == std::vector<double>{1, 2});
    CHECK(m.entered == 2);
    CHECK(m.accepted == 1);
    CHECK(wrapped::calls == 1);
    vv::mode_guard const both{other};
    CHECK_NOTHROW(vv::abs(a));
  }
  struct refusing : vv::dispatch_mode<refusing> {
    tensor process(vv::boxed_op, vv::boxed_args const&) { return vv::not_implemented; }
  } no;
  vv::mode_guard const on{no};
  tensor const x = from({1}, {1});
  CHECK_THROWS_WITH(x + x, ContainsText("add") && ContainsText("refusing") && ContainsText("declined"));
}

TEST_CASE(
    "modes: one that declines leaves the call to the next, infra modes included, and those that all decline are named",
    "[dispatch][mode]") { // MD-10
  struct declining : vv::dispatch_mode<declining> {
    int entered = 0;
    tensor process(vv::boxed_op, vv::boxed_args const&) { return ++entered, vv::not_implemented; }
  } first, second;
  struct last_resort : vv::dispatch_mode<last_resort> {
    int entered = 0;
    tensor process(vv::boxed_op op, vv::boxed_args const& args) { return ++entered, op(args); }
  } infra;
  tensor const x = from({1, 2}, {2});
  {
    vv::infra_mode_guard const c{vv::infra_mode::fake, infra};
    vv::mode_guard const a{first};
    vv::mode_guard const b{second};
    CHECK(elements(x + x) == std::vector<double>{2, 4});
    CHECK(std::tuple(second.entered, first.entered, infra.entered) == std::tuple(1, 1, 1));
    (void)vv::empty({});
    CHECK(std::tuple(second.entered, first.entered, infra.entered) == std::tuple(2, 2, 2));
    CHECK(elements(vv::grad([](auto const& v) { return vv::sum(v * v); })(x)) == std::vector<double>{2, 4});
    CHECK(first.entered == infra.entered);
    // What the one that accepts does itself goes to those below it.
    struct adding : vv::dispatch_mode<adding> {
      int entered = 0;
      tensor process(vv::boxed_op, vv::boxed_args const& args) { return ++entered, args[0] + 1; }
    } own;
    int const before = first.entered;
    vv::mode_guard const d{own};
    CHECK(elements(x * x) == std::vector<double>{2, 3});
    CHECK(own.entered == 1);
    CHECK(first.entered == before + 1);
  }
  {
    // A subclass is asked after all modes, and its own operators meet all of them again (MD-11).
    infra.entered = first.entered = 0;
    wrapped::calls = 0;
    struct plain_only : vv::dispatch_mode<plain_only> {
      int accepted = 0;
      tensor process(vv::boxed_op op, vv::boxed_args const& args) {
        for (auto const& t : args)
          if (vv::is<wrapped>(t)) return vv::not_implemented;
        return ++accepted, op(args);
      }
    } fake;
    vv::infra_mode_guard const c{vv::infra_mode::fake, fake};
    vv::mode_guard const a{first};
    tensor const w = vv::make_subclass(wrapped(x));
    CHECK(elements(vv::unwrap<wrapped>(vv::abs(w)).value) == std::vector<double>{1, 2});
    CHECK(std::tuple(first.entered, fake.accepted, wrapped::calls) == std::tuple(2, 1, 1));
  }
  vv::mode_guard const a{first};
  vv::infra_mode_guard const c{vv::infra_mode::proxy, second};
  CHECK_THROWS_WITH(x + x, ContainsText("add") && ContainsText("declining, ") && ContainsText("all modes declined"));
  CHECK(vv::current_modes().size() == 2);
}

TEST_CASE("modes: the stack can be asked for, and which modes are the user's", "[dispatch][mode][MD-S15][MD-S16]") {
  names l;
  writing one(l), two(l), infra(l);
  auto const objects = [] {
    std::vector<void const*> r;
    for (auto const* m : vv::current_modes()) r.push_back(m->object);
    return r;
  };
  CHECK(objects().empty());
  {
    vv::infra_mode_guard const a{vv::infra_mode::fake, infra};
    CHECK(vv::is_mode_active());
    CHECK_FALSE(vv::is_user_mode_active());
    {
      vv::mode_guard const b{one};
      CHECK(vv::is_user_mode_active());
      CHECK(objects() == std::vector<void const*>{&infra, &one});
      vv::infra_mode_guard const c{vv::infra_mode::proxy, infra};
      vv::mode_guard const d{two};
      CHECK(objects() == std::vector<void const*>{&infra, &infra, &one, &two});
      CHECK_THROWS_WITH(vv::infra_mode_guard(vv::infra_mode::fake, two), ContainsText("fake slot"));
    }
    CHECK_FALSE(vv::is_user_mode_active());
  }
  CHECK(objects().empty());
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("modes: user modes run before the infra modes, whatever was entered first", "[dispatch][mode]") { // MD-5
  names l;
  writing user(l, "user "), fake(l, "fake "), proxy(l, "proxy "), functional(l, "functional ");
  {
    vv::mode_guard const a{user};
    vv::infra_mode_guard const b{vv::infra_mode::functional, functional};
    vv::infra_mode_guard const c{vv::infra_mode::fake, fake};
    vv::infra_mode_guard const d{vv::infra_mode::proxy, proxy};
    (void)vv::empty({});
  }
  CHECK(l == names{"user empty", "functional empty", "proxy empty", "fake empty"});
}

TEST_CASE("modes: scopes without dispatch and without modes", "[dispatch][mode][MD-S17]") { // MD-19
  names l;
  writing m(l), f(l, "function ");
  tensor const a = vv::make_subclass(wrapped(from({1}, {1})));
  {
    vv::mode_guard const on{m};
    vv::function_mode_guard const fon{f};
    (void)vv::ones({1});
    names const seen = l;
    {
      vv::no_dispatch const off;
      vv::disable_modes const none;
      (void)vv::ones({1});
      CHECK_THROWS(a + a); // the wrapper has no data of its own
    }
    CHECK(l == seen);
    {
      vv::disable_modes const none;
      CHECK_FALSE(vv::is_mode_active());
      CHECK(vv::is<wrapped>(a + a)); // subclasses still are there
    }
    CHECK_THROWS([] {
      vv::disable_modes const none;
      throw std::runtime_error("in between");
    }());
    (void)vv::ones({1});
    CHECK(l.size() == 2 * seen.size());
  }
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("modes: function modes see the public call, dispatch modes its parts", "[dispatch][mode]") { // MD-22
  names l;
  writing f(l, "function "), m(l, "dispatch ");
  tensor const x = from({1, 2}, {2});
  vv::function_mode_guard const a{f};
  vv::mode_guard const b{m};
  tensor const y = vv::softmax(x, vv::axis<0>);
  CHECK(l.front() == "function softmax");
  CHECK(std::count_if(l.begin(), l.end(), [](auto const& s) { return s.rfind("function", 0) == 0; }) == 1);
  CHECK(std::count_if(l.begin(), l.end(), [](auto const& s) { return s.rfind("dispatch", 0) == 0; }) > 3);
  l.clear();
  CHECK(elements(vv::grad([](auto const& v) { return vv::sum(v * v); })(x)) == std::vector<double>{2, 4});
  CHECK(l[0] == "function mul");
}

TEST_CASE("modes: pre-dispatch modes stand above transforms", "[dispatch][mode]") { // MD-18
  names l;
  writing pre(l, "pre "), m(l, "mode ");
  tensor const x = from({1, 2}, {2});
  vv::pre_dispatch_guard const a{pre};
  vv::mode_guard const b{m};
  (void)vv::vmap([](auto const& v) { return v * v; })(x);
  CHECK(l == names{"pre mul", "mode mul"});
}

TEST_CASE("modes: the infra slots of the pre-dispatch stack", "[dispatch][mode]") { // MD-18
  names l;
  writing user(l, "user "), functional(l, "functional "), proxy(l, "proxy "), schema(l, "schema "), below(l, "below ");
  tensor const x = from({1, 2}, {2});
  using vv::infra_mode;
  {
    vv::pre_dispatch_infra_guard const a{infra_mode::proxy, proxy};
    vv::pre_dispatch_infra_guard const b{infra_mode::functional, functional};
    vv::pre_dispatch_guard const c{user};
    vv::infra_mode_guard const d{infra_mode::fake, below};
    (void)vv::grad([](auto const& v) { return vv::sum(v); })(x);
    CHECK(l.size() >= 4);
    CHECK(std::vector(l.begin(), l.begin() + 4) == names{"user sum", "functional sum", "proxy sum", "below sum"});
    CHECK_THROWS_WITH(vv::pre_dispatch_infra_guard(infra_mode::proxy, user),
                      ContainsText("proxy slot of the pre-dispatch stack is taken"));
    CHECK_THROWS_WITH(vv::infra_mode_guard(infra_mode::proxy, user),
                      ContainsText("proxy slot is taken") && ContainsText("other stack"));
    CHECK_THROWS_WITH(vv::pre_dispatch_infra_guard(infra_mode::schema_check, schema),
                      ContainsText("schema check slot cannot be taken beside"));
    CHECK_THROWS_WITH(vv::pre_dispatch_infra_guard(infra_mode::fake, user),
                      ContainsText("fake slot is one of the mode stack"));
    CHECK_THROWS_WITH(vv::infra_mode_guard(infra_mode::schema_check, schema), ContainsText("pre-dispatch"));
    l.clear();
    {
      vv::disable_modes const off; // MD-19
      (void)(x + x);
      CHECK(l.empty());
    }
    vv::thread_snapshot const all;
    std::thread([&] {
      vv::restored const here(all);
      (void)(x + x);
    }).join();
    CHECK(l == names{"user add", "functional add", "proxy add", "below add"});
    l.clear();
  }
  (void)(x + x);
  CHECK(l.empty());
  {
    vv::infra_mode_guard const a{infra_mode::functional, functional};
    CHECK_THROWS_WITH(vv::pre_dispatch_infra_guard(infra_mode::functional, user), ContainsText("other stack"));
    vv::pre_dispatch_infra_guard const b{infra_mode::schema_check, schema};
    CHECK_THROWS_WITH(vv::pre_dispatch_infra_guard(infra_mode::proxy, proxy), ContainsText("cannot be taken beside"));
    vv::pre_dispatch_guard const c{user}; // a user's may
    (void)(x + x);
    CHECK(l == names{"user add", "schema add", "functional add"});
  }
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("modes: a type for every operator of the thread", "[dispatch][mode][MD-S01][MD-S02][MD-S04]") {
  tensor const x = from({1, 2}, {2}), y = from({3, 4}, {2});
  tensor const a = vv::make_subclass(wrapped(x));
  struct other : vv::tensor_subclass<other> {
    tensor value;
    auto parts() const { return std::tie(value); }
    other with_parts(tensor const& v) const { return {{}, v}; }
    static tensor dispatch(vv::boxed_op const&, vv::boxed_args const&) {
      throw std::runtime_error("the other's handler");
    }
  };
  {
    vv::enable_mode<wrapped> const on;
    CHECK(vv::is<wrapped>(vv::empty({})));
    tensor const z = x + y;
    CHECK(vv::is<wrapped>(z));
    CHECK(elements(vv::unwrap<wrapped>(z).value) == std::vector<double>{4, 6});
    CHECK_FALSE(vv::is<wrapped>(tensor({1.0}))); // data is not intercepted
    CHECK_THROWS_WITH(vv::enable_mode<wrapped>(), ContainsText("do not nest"));
    CHECK_THROWS_WITH(vv::enable_mode<other>(), ContainsText("do not nest"));
    CHECK(vv::is<wrapped>(vv::zeros({1})));
  }
  CHECK_FALSE(vv::is<wrapped>(x + y));
  vv::enable_mode<other> const on;
  CHECK_THROWS_WITH(a + a, ContainsText("the other's handler")); // the mode beats every operand
}

TEST_CASE("scenarios: every tensor of an eager backward pass was seen by the mode",
          "[dispatch][mode][autograd][MD-S18]") { // MD-23
  struct sink_t {
    std::vector<tensor> seen;
    names unseen, all;
    void operator()(vv::call_record const& c) {
      all.emplace_back(c.name);
      for (int k = 0; k < c.operand_count; ++k) {
        bool found = c.operands[k].number;
        for (auto const& t : seen) found = found || t.is(*c.operands[k].handle);
        if (!found) unseen.emplace_back(c.name);
      }
      for (int k = 0; k < c.result_count; ++k) seen.push_back(*c.results[k].handle);
    }
  } sink;
  tensor const x = from({1, 2, 3}, {3});
  x.requires_grad_();
  sink.seen.push_back(x);
  vv::logging_mode mode{sink};
  tensor loss;
  {
    vv::mode_guard const on{mode};
    loss = vv::sum(x * x);
    loss.backward();
  }
  CHECK(sink.unseen.empty());
  CHECK(elements(x.grad()) == std::vector<double>{2, 4, 6});
  REQUIRE(sink.all.size() > 4);
  CHECK(names(sink.all.begin(), sink.all.begin() + 2) == names{"mul", "sum"});
  // The modes of a pass are those that are on when it is called.
  tensor const later = vv::sum(x * x);
  vv::logging_mode other{sink};
  sink.all.clear();
  later.backward();
  CHECK(sink.all.empty());
}

TEST_CASE("scenarios: a mode in the forward pass of a checkpoint, or in its recomputation, logs the operator",
          "[dispatch][mode][autograd][CK-S06]") {
  vv::call_log log;
  vv::logging_mode mode{log};
  int run = 0, watched = 0;
  auto const f = [&](tensor const& t) {
    if (run++ != watched) return tensor(vv::exp(t));
    vv::mode_guard const on{mode};
    return tensor(vv::exp(t));
  };
  tensor const x = from({0.5}, {1});
  x.requires_grad_();
  for (watched = 0; watched < 2; ++watched) {
    run = 0;
    log.clear();
    tensor const y = vv::checkpoint(f, x);
    CHECK(log.operators() == (watched == 0 ? names{"exp"} : names{}));
    vv::sum(y).backward();
    CHECK(run == 2);
    CHECK(log.operators() == names{"exp"}); // PyTorch adds the detaches of the copies that it keeps
  }
}
