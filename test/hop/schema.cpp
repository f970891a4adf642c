// SPDX-License-Identifier: BSL-1.0
// Schemas of calls of higher-order operators, made from the calls and from example values.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::boxed_args;
using vv::boxed_function;
using vv::boxed_hop;
using vv::operator_schema;
using vv::schema_of;
using vv::spec;

namespace {
template <class Tag, class G>
vv::node const& call_in(G const& g) {
  for (vv::node const& n : g)
    if (n.op == &vv::hop_handle<Tag>) return n;
  throw std::runtime_error("no such call");
}
/// Its text, which reads back as the same.
std::string text(operator_schema const& s) {
  std::string const t = vv::to_string(s);
  CHECK(operator_schema::parse(t) == s);
  return t;
}
template <class Tag, class G>
std::string text_of_call(G const& g) {
  return text(schema_of(g, call_in<Tag>(g)));
}
/// Sees every call of a higher-order operator, and keeps its schema.
struct listing : vv::dispatch_mode<listing> {
  static constexpr bool supports_higher_order_operators = true;
  std::vector<std::string> calls;
  template <class Op, class... X>
  auto process(Op op, X const&... x) {
    auto y = op(x...);
    if constexpr (std::is_same_v<Op, boxed_hop>) calls.push_back(text(schema_of(op, x..., y)));
    return y;
  }
};
/// A step of a linear module while a counter lasts: the counter, the values; its decrement, weight and bias.
constexpr auto loop = [](auto const& count, auto const& x, auto const& less, auto const& weight, auto const& bias) {
  return vv::while_loop<10>(
      [less](auto const& n, auto const&) { return n - less > 0; },
      [weight, bias](auto const& n, auto const& v) { return std::tuple(n - 1, vv::matmul(v, weight) + bias); },
      std::tuple(count, x));
};
constexpr auto statically =
    vv::trace(loop, spec<vv::index_t>, spec<float, 2, 2>, spec<vv::index_t>, spec<float, 2, 2>, spec<float, 2>);
struct scaled : vv::function<scaled> {
  static constexpr auto forward(auto const& x, double by) { return x * by; }
  static constexpr auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.keep(std::get<1>(in)); }
  static constexpr auto backward(auto& ctx, auto const& g) { return std::tuple(g * std::get<0>(ctx.kept()), vv::none); }
};
/// An operator of a program: `f` of its operands, written into the first of them.
struct writing : vv::higher_order_operator {
  explicit writing(vv::hop_signature const& s) : higher_order_operator("my::apply_", s) {
    impl(vv::dispatch_key::composite_explicit, [](boxed_hop const& op, boxed_args const& x) -> boxed_args {
      boxed_args const y = op.functions[0](x);
      vv::copy_(x[0], y[0]);
      return boxed_args(tensor(vv::sum(y[0])));
    });
  }
};
} // namespace

TEST_CASE("schema: of a while_loop, from its node", "[hop][while_loop][schema][HO-S05]") { // HO-18
  char const* const expected = "while_loop(GraphModule cond_fn, GraphModule body_fn, Tensor[2] carried_inputs, "
                               "Tensor[3] additional_inputs) -> (Tensor, Tensor)";
  tensor const count = from({3}, {}, dtype::int64), less = from({1}, {}, dtype::int64), x = from({1, 2, 3, 4}, {2, 2}),
               weight = from({1, 0, 2, 1}, {2, 2}), bias = from({1, -1}, {2});
  auto const g = vv::make_fx([](tensor const& n, tensor const& v, tensor const& d, tensor const& w, tensor const& b) {
    return vv::while_loop([&](tensor const& n, tensor const&) { return n - d > 0; },
                          [&](tensor const& n, tensor const& v) { return std::tuple(n - 1, vv::matmul(v, w) + b); },
                          std::tuple(n, v));
  })(count, x, less, weight, bias);
  CHECK(text_of_call<vv::while_loop_t>(g) == expected);
  CHECK(text_of_call<vv::while_loop_t>(statically) == expected);
  operator_schema const s = schema_of(g, call_in<vv::while_loop_t>(g));
  CHECK(s.operands() == 2);
  CHECK(s.attributes() == 2);
  CHECK_FALSE(s.mutates());
  CHECK_FALSE(operator_schema::parse("while_loop(GraphModule cond_fn, GraphModule body_fn, Tensor[2] carried_inputs, "
                                     "Tensor[2] additional_inputs) -> (Tensor, Tensor)") == s);
  for (vv::node const& n : g)
    if (n.op != &vv::hop_handle<vv::while_loop_t>)
      CHECK_THROWS_WITH(schema_of(g, n), ContainsText("is no higher-order operator"));
}

TEST_CASE("schema: of the other higher-order operators, recorded and at work", "[hop][schema]") { // HO-18
  tensor const c = from({1, 2}, {2}), rows = from({1, 2, 3, 4, 5, 6}, {3, 2}), w = from({1, 3}, {2});
  auto const step = [](auto const& s, auto const& r, auto const& k) { return std::pair(s + r * k, vv::none); };
  auto const branches = vv::make_fx([](tensor const& a, tensor const& k) {
    auto const [p, q] = vv::cond(
        vv::sum(a) > 0, [](tensor const& u, tensor const& v) { return std::tuple(u * v, u); },
        [](tensor const& u, tensor const& v) { return std::tuple(u, v); }, a, k);
    return p + q;
  })(c, w);
  CHECK(text_of_call<vv::cond_t>(branches) ==
        "cond(Tensor pred, GraphModule true_fn, GraphModule false_fn, Tensor[2] operands) -> (Tensor, Tensor)");
  auto const walk = vv::make_fx([&](tensor const& a, tensor const& r, tensor const& k) {
    return vv::scan(vv::closure(step, k), a, r).first;
  })(c, rows, w);
  CHECK(text_of_call<vv::scan_t>(walk) == "scan(GraphModule combine_fn, Tensor[1] init, Tensor[1] xs, bool reverse, "
                                          "Tensor[1] additional_inputs) -> Tensor");
  auto const each =
      vv::make_fx([](tensor const& r) { return vv::map([](tensor const& v) { return v * 2; }, r); })(rows);
  CHECK(text_of_call<vv::map_t>(each) == "map(GraphModule f, Tensor[1] xs, Tensor[0] pos_args) -> Tensor");
  listing l;
  {
    vv::mode_guard const on{l};
    (void)vv::scan(vv::closure(step, w), c, rows);
    (void)vv::map([](tensor const& v) { return std::tuple(v, v * 2); }, rows);
    (void)vv::cond(vv::sum(c) > 0, [](tensor const& u) { return u * 2; }, [](tensor const& u) { return u; }, c);
    (void)vv::while_loop([](tensor const& s, tensor const& most) { return vv::sum(s) < vv::sum(most); },
                         [](tensor const& s, tensor const&) { return s * 2; }, c, rows);
  }
  CHECK(l.calls == std::vector<std::string>{
                       "scan(GraphModule combine_fn, Tensor[1] init, Tensor[1] xs, bool reverse, Tensor[1] "
                       "additional_inputs) -> Tensor",
                       "map(GraphModule f, Tensor[1] xs, Tensor[0] pos_args) -> (Tensor, Tensor)",
                       "cond(Tensor pred, GraphModule true_fn, GraphModule false_fn, Tensor[1] operands) -> Tensor",
                       "while_loop(GraphModule cond_fn, GraphModule body_fn, Tensor[1] carried_inputs, Tensor[1] "
                       "additional_inputs) -> Tensor"});
}

TEST_CASE("schema: an operator of a program, with a signature and without one", "[hop][schema][HO-S09]") { // HO-18
  boxed_function const twice = [](boxed_args const& x) { return boxed_args(tensor(x[0] * 2)); };
  tensor const x = from({1, 2}, {2}), more = from({3}, {1});
  auto const schema = [&](writing& op) {
    boxed_hop const call{&op, {twice}, vv::attributes(dims{4, 5})};
    boxed_args const in(tensor(vv::clone(x)), more, more);
    return schema_of(call, in, call(in));
  };
  writing known({"(GraphModule f, Tensor(a!) self, Tensor[] others, int[2] sizes) -> Tensor"});
  CHECK(text(schema(known)) == "my::apply_(GraphModule f, Tensor(a!) self, Tensor[2] others, int[2] sizes) -> Tensor");
  CHECK(schema(known).mutates());
  CHECK(schema(known).arguments[1].mutated);
  writing unknown({});
  CHECK(text(schema(unknown)) ==
        "my::apply_(GraphModule f0, Tensor x0, Tensor x1, Tensor x2, int[2] attribute0) -> Tensor");
  CHECK_FALSE(schema(unknown).mutates()); // counts as functional
  writing other({"(GraphModule f, Tensor(a!) self) -> Tensor"});
  CHECK_THROWS_WITH(schema(other), ContainsText("does not fit its signature"));
  // What the signature says is written may not have a gradient to record.
  tensor const self = vv::clone(x), leaf = vv::clone(more).requires_grad_();
  CHECK_THROWS_WITH(known({twice}, boxed_args(self, leaf)), ContainsText("writes into operands"));
  CHECK(elements(self) == std::vector<double>{1, 2});
  vv::no_grad const off;
  CHECK(elements(known({twice}, boxed_args(self, leaf))[0]) == std::vector<double>{6});
  CHECK(elements(self) == std::vector<double>{2, 4});
}

TEST_CASE("schema: from example values", "[hop][schema]") { // HO-18
  tensor const x = from({1, 2}, {2});
  vv::array<float, 2> const a{1, 2};
  auto const type = [](auto const& v) { return vv::example_of(v).type; };
  CHECK(type(true) == "bool");
  CHECK(type(3) == "int");
  CHECK(type(2.5f) == "float");
  CHECK(type("text") == "str");
  CHECK(type(std::string("text")) == "str");
  CHECK(type(x) == "Tensor");
  CHECK(type(a) == "Tensor");
  CHECK(type(spec<float, vv::dim<"n">, 3>.info().sizes[0]) == "SymInt");
  CHECK(type(statically) == "GraphModule");
  CHECK(type(boxed_function([](boxed_args const& v) { return v; })) == "GraphModule");
  CHECK(type(dims{2, 3, 4}) == "int[3]");
  CHECK(type(std::vector<bool>{true, false}) == "bool[2]");
  CHECK(type(std::tuple(1.0, 2.0f)) == "float[2]");
  CHECK(type(std::array{x, x, x}) == "Tensor[3]");
  CHECK(type(boxed_args(x, x)) == "Tensor[2]");
  CHECK_THROWS_WITH(type(std::tuple(x, 1)), ContainsText("a list of Tensor and int"));
  CHECK_THROWS_WITH(type(spec<float, vv::dim<"n">, 3>.info().sizes), ContainsText("a list of SymInt and int"));
  CHECK_THROWS_WITH(type(std::vector<tensor>{}), ContainsText("empty list"));
  // A custom function, from the arguments and result of a call.
  operator_schema const s{
      "scaled", {vv::example_of(x, "x"), vv::example_of(2.0, "by")}, {vv::example_of(scaled::apply(x, 2.0))}};
  CHECK(text(s) == "scaled(Tensor x, float by) -> Tensor");
  operator_schema const w{"fill",
                          {vv::example_of(x, "self", true), vv::example_of(std::vector<tensor>{x, x}, "all", true),
                           vv::example_of("mean", "how")},
                          {}};
  CHECK(text(w) == "fill(Tensor(self!) self, Tensor(all!)[2] all, str how) -> ()");
  CHECK(w.mutates());
}
