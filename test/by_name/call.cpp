// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/autograd/backward.hpp>
#include <varve/by_name/all.hpp>
#include <varve/composite/at.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/vmap.hpp>

#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::argument;
using vv::ops;

namespace {
tensor one(std::vector<argument> const& y) {
  REQUIRE(y.size() == 1);
  return y[0].as<tensor>();
}
std::string refusal(auto const& f) {
  try {
    f();
  } catch (vv::error const& e) { return e.what(); }
  return "";
}
bool says(std::string const& text, char const* part) { return text.find(part) != text.npos; }
tensor const x = from({1, 2, 3, 4, 5, 6}, dims{2, 3});
} // namespace

TEST_CASE("call: arguments by place, by name, and left out", "[call]") {
  CHECK(elements(one(ops::call("add", {x, x}))) == std::vector<double>{2, 4, 6, 8, 10, 12});
  CHECK(elements(one(ops::call("add", {x, 1}, {{"alpha", 3}}))) == std::vector<double>{4, 5, 6, 7, 8, 9});
  CHECK(elements(one(ops::call("add.Scalar", {x, 1}, {}))) == std::vector<double>{2, 3, 4, 5, 6, 7});
  CHECK(elements(one(ops::call("aten::sum", {x}, {{"dim", -1}, {"keepdim", true}}))) == std::vector<double>{6, 15});
  CHECK(one(ops::call("sum", {x}, {{"dim", vv::none}})).sizes() == dims{});
  CHECK(one(ops::call("sum", {x}, {{"dtype", dtype::float32}})).dtype() == dtype::float32);
  CHECK(elements(one(ops::call("softmax", {}, {{"input", from({0, 0}, dims{2})}, {"dim", 0}}))) ==
        std::vector<double>{0.5, 0.5});
}
TEST_CASE("call: a list of numbers may be written one by one, or be one number for all", "[call]") {
  CHECK(one(ops::call("view", {x, 3, -1})).sizes() == dims{3, 2});
  CHECK(one(ops::call("view", {x, dims{6}})).sizes() == dims{6});
  CHECK(one(ops::call("view", {x, 6})).sizes() == dims{6});
  CHECK(one(ops::call("permute", {x, argument::list{1, 0}})).sizes() == dims{3, 2});
}
TEST_CASE("call: several results, lists, and results that are no tensors", "[call]") {
  auto const parts = ops::call("chunk", {x, 3}, {{"dim", 1}});
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].as<argument::list>().size() == 3);
  CHECK(one(ops::call("cat", {argument::list{x, x}}, {{"dim", 1}})).sizes() == dims{2, 6});
  CHECK(ops::call("item", {from({2.5}, dims{})})[0].as<double>() == 2.5);
}
TEST_CASE("call: forms in place and with out", "[call]") {
  tensor const y = vv::clone(x);
  CHECK(one(ops::call("mul_", {y, 2})).shares_storage(y));
  CHECK(elements(y) == std::vector<double>{2, 4, 6, 8, 10, 12});
  CHECK(y.version() == 1);
  CHECK(says(refusal([&] { ops::call("add_", {vv::to(x, dtype::int64), 1.5}); }), "float"));
  tensor const into = tensor::empty(dims{0}, dtype::float64);
  CHECK(one(ops::call("neg", {x}, {{"out", into}})).shares_storage(into));
  CHECK(elements(into) == std::vector<double>{-1, -2, -3, -4, -5, -6});
  CHECK(says(refusal([&] { ops::call("neg", {x}, {{"out", tensor::empty(dims{2}, dtype::float64)}}); }), "neg"));
  CHECK(says(refusal([&] { ops::call("mean", {x}, {{"out", tensor::empty(dims{}, dtype::float32)}}); }), "float32"));
}
TEST_CASE("call: the checks are those of the public function", "[call]") {
  CHECK(says(refusal([] { ops::call("sum", {x}, {{"dim", 5}}); }), "axis 5 is out of range"));
  CHECK(says(refusal([] { ops::call("permute", {x, argument::list{7, 9}}); }), "out of range"));
  CHECK(says(refusal([] { ops::call("reshape", {x, argument::list{4, -1}}); }), "reshape"));
  CHECK(says(refusal([] { ops::call("view", {vv::transpose(x), argument::list{6}}); }), "view"));
  CHECK(says(refusal([] { ops::call("as_strided", {x, dims{100}, dims{1}}); }), "as_strided"));
}
TEST_CASE("call: a refusal names the operator, the argument, and both kinds", "[call]") {
  auto const r = refusal([] { ops::call("softmax", {x, "rows"}); });
  CHECK(says(r, "softmax"));
  CHECK(says(r, "wants int for the argument 'dim', not str"));
  CHECK(says(refusal([] { ops::call("softmax", {x}); }), "lacks the argument 'dim' (int)"));
  CHECK(says(refusal([] { ops::call("neg", {x, 1}); }), "takes 1 arguments by place, but 2 were given"));
  CHECK(says(refusal([] { ops::call("neg", {x}, {{"dims", 1}}); }), "has no argument 'dims'"));
  CHECK(says(refusal([] { ops::call("add", {x, x}, {{"other", x}}); }), "was given the argument 'other' twice"));
  CHECK(says(refusal([] { ops::call("lt", {2, x}); }), "wants Tensor for the argument 'self', not int"));
  CHECK(says(refusal([] { ops::call("cat", {argument::list{x, 1}}); }), "a list of Tensor and int"));
  CHECK(says(refusal([] { ops::call("zeros", {dims{2}}, {{"device", "cuda"}}); }), "device"));
  CHECK_THROWS_AS(ops::call("no_such_operator", {x}), vv::dispatch_error);
  CHECK(says(refusal([] { ops::call("no_such_operator", {x}); }), "no_such_operator"));
}
TEST_CASE("call: a tensor of rank 0 stands for its number only where nothing could miss it", "[call]") {
  tensor const three = from({3}, dims{});
  CHECK(one(ops::call("full", {dims{2}, three})).sizes() == dims{2});
  auto const f = [](tensor const& t) { return one(ops::call("add", {x, x}, {{"alpha", t}})); };
  CHECK(elements(f(three))[0] == 4);
  CHECK(refusal([&] { (void)vv::grad([&](tensor const& t) { return tensor(vv::sum(f(t))); })(three); }) != "");
}
TEST_CASE("call: transforms see the calls", "[call]") {
  auto const f = [](tensor const& v) { return one(ops::call("sum", {one(ops::call("pow", {v, 2}))})); };
  CHECK(elements(vv::grad(f)(x)) == std::vector<double>{2, 4, 6, 8, 10, 12});
  CHECK(elements(vv::vmap(f)(x)) == std::vector<double>{14, 77});
}
TEST_CASE("call: the middle of all elements shares its derivative, as the greatest does", "[call]") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  auto const slope = [](char const* name, std::vector<double> const& at) {
    auto const f = [&](tensor const& v) { return one(ops::call(name, {v})); };
    return elements(vv::grad(f)(from(at, dims{static_cast<vv::index_t>(at.size())})));
  };
  CHECK(slope("median", {3, 3, 1}) == std::vector<double>{0.5, 0.5, 0});
  CHECK(slope("median", {5, 2, 9}) == std::vector<double>{1, 0, 0});
  CHECK(slope("median", {1, nan, 3}) == std::vector<double>{0, 1, 0});
  CHECK(slope("nanmedian", {1, 3, 3, nan}) == std::vector<double>{0, 0.5, 0.5, 0});
  CHECK(elements(one(ops::call("median", {vv::to(x, dtype::int64)}))) == std::vector<double>{3});
}
TEST_CASE("call: what is written over in place still has its gradient", "[call]") {
  auto const f = [](tensor const& v) {
    tensor const c = vv::mul(v, 1.0), row = c[0];
    ops::call("cos_", {row});
    ops::call("div_", {c, v});
    return vv::sum(c);
  };
  auto const same = [](tensor const& v) {
    return vv::add(vv::sum(vv::div(vv::cos(v[0]), v[0])), vv::sum(vv::div(v[1], v[1])));
  };
  CHECK(difference(vv::grad(f)(x), vv::grad(same)(x), 1e-14) == "");
  auto const sum_of_slope = [&](auto const& of) {
    return vv::grad([&](tensor const& v) { return vv::sum(vv::grad(of)(v)); })(x);
  };
  CHECK(difference(sum_of_slope(f), sum_of_slope(same), 1e-13) == "");
  tensor leaf = vv::clone(x);
  leaf.requires_grad_();
  f(leaf).backward();
  CHECK(difference(leaf.grad(), vv::grad(same)(x), 1e-14) == "");
  CHECK(refusal([&] { ops::call("cos_", {leaf}); }) != "");
  CHECK(elements(leaf) == elements(x));
  tensor const factor = vv::clone(x), plain = vv::clone(x);
  factor.requires_grad_();
  ops::call("mul_", {plain, factor});
  vv::sum(plain).backward();
  CHECK(elements(factor.grad()) == elements(x));
}
TEST_CASE("call: integers to a negative power are refused, as by the function", "[call]") {
  tensor const n = vv::to(x, dtype::int64);
  CHECK(says(refusal([&] { ops::call("pow", {n, -1}); }), "negative power"));
  CHECK(says(refusal([&] { ops::call("pow_", {vv::clone(n), -2}); }), "negative power"));
  CHECK(elements(one(ops::call("pow", {n, 2}))) == std::vector<double>{1, 4, 9, 16, 25, 36});
  CHECK(one(ops::call("pow", {n, 2})).dtype() == dtype::int64);
  CHECK(one(ops::call("pow", {vv::gt(x, 2), 2})).dtype() == dtype::int64);
  CHECK(one(ops::call("pow", {n, 0.5})).dtype() == dtype::float32);
  CHECK(one(ops::call("pow", {x, -1})).dtype() == dtype::float64);
}
TEST_CASE("call: a choice between two numbers has the dtype that they have together", "[call]") {
  tensor const mask = vv::gt(x, 3);
  CHECK(one(ops::call("where", {mask, 1, 2.5})).dtype() == dtype::float32);
  CHECK(one(ops::call("where", {mask, 1, 2})).dtype() == dtype::int64);
  CHECK(one(ops::call("where", {mask, true, false})).dtype() == dtype::bool_);
  CHECK(one(ops::call("where", {mask, x, 2.5})).dtype() == dtype::float64);
}
TEST_CASE("call: operators of a library go by its schema", "[call]") {
  vv::library lib("call_test");
  lib.def("twice(Tensor x, int times=2) -> Tensor");
  lib.impl("twice", vv::dispatch_key::cpu, [](tensor const& t, dims const& n) -> tensor { return vv::mul(t, n[0]); });
  CHECK(elements(one(ops::call("call_test::twice", {x}, {}))) == elements(vv::mul(x, 2)));
  CHECK(elements(one(ops::call("call_test::twice", {x}, {{"times", 5}}))) == elements(vv::mul(x, 5)));
  CHECK(says(refusal([] { ops::call("call_test::twice", {x}, {{"times", 0.5}}); }), "wants int"));
}
TEST_CASE("call: every schema can be read, and fits its function", "[call]") {
  auto const names = ops::names();
  CHECK(names.size() > 200);
  for (auto const& name : names) {
    INFO(name);
    CHECK_NOTHROW(ops::schemas(name));
    for (auto const& s : ops::schemas(name)) CHECK(to_string(vv::operator_schema::parse(s)) == s);
  }
  CHECK(ops::schemas("no_such_operator").empty());
  CHECK(ops::schemas("neg") == std::vector<std::string>{"neg(Tensor self) -> Tensor",
                                                        "neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"});
}
TEST_CASE("call: whatever the arguments are, what is not done is refused by an error of varve's", "[call]") {
  numbers draw(7);
  auto const below = [&](int n) { return static_cast<int>(draw() * n); };
  std::vector<tensor> const tensors{x,
                                    from({1, 0, 2}, dims{3}, dtype::int64),
                                    from({1, 0, 1}, dims{3}, dtype::bool_),
                                    from({2.5}, dims{}),
                                    tensor::empty(dims{0, 3}, dtype::float32),
                                    from({1, 2, 3, 4, 5, 6, 7, 8}, dims{2, 2, 2}, dtype::float32),
                                    vv::expand(from({1, 2}, dims{2, 1}), dims{2, 3})};
  auto const any = [&](auto const& self, int depth) -> argument {
    switch (below(depth ? 9 : 11)) {
    case 0:
      return below(6) - 2;
    case 1:
      return draw() * 4 - 1;
    case 2:
      return below(2) == 1;
    case 3:
      return below(2) ? "mean" : "ij->j";
    case 4:
      return below(2) ? dtype::float64 : dtype::int64;
    case 5:
      return vv::none;
    default:
      if (depth == 0 && below(4) == 0) {
        argument::list r;
        for (int n = below(4); n > 0; --n) r.push_back(self(self, 1));
        return r;
      }
      tensor const t = tensors[static_cast<std::size_t>(below(7))];
      return below(8) ? argument(vv::clone(t)) : argument(dims{below(4) - 1, below(4) - 1});
    }
  };
  int done = 0, refused = 0;
  for (auto const& name : ops::names())
    for (int k = 0; k < 40; ++k) {
      std::vector<argument> in;
      for (int n = below(5); n > 0; --n) in.push_back(any(any, 0));
      INFO(name);
      try {
        (void)ops::call(name, std::span<argument const>(in), {});
        ++done;
      } catch (vv::error const&) { ++refused; }
    }
  CHECK(done > 500);
  CHECK(refused > 1000);
}
TEST_CASE("call: differences of order 0 are the value alone", "[call]") {
  tensor const y = one(ops::call("diff", {x, 0, 0, x, x}));
  CHECK(elements(y) == elements(x));
  CHECK(!y.shares_storage(x));
  CHECK(one(ops::call("diff", {x, 1, 0, x})).sizes() == dims{3, 3});
}
TEST_CASE("call: numbers beyond the range of a dtype are refused where they would be elements", "[call]") {
  tensor const b = vv::to(x, dtype::int8), at = vv::zeros({1, 1}, dtype::int64), mask = vv::gt(x, 2);
  auto const refused = [](auto const& f) { return says(refusal(f), "beyond the range"); };
  CHECK(refused([&] { ops::call("full", {dims{2}, 300}, {{"dtype", dtype::int8}}); }));
  CHECK(refused([&] { ops::call("fill", {b, 300}); }));
  CHECK(refused([&] { ops::call("fill_", {b, 300}); }));
  CHECK(refused([&] { ops::call("masked_fill", {b, mask, 300}); }));
  CHECK(refused([&] { ops::call("index_fill", {b, 0, vv::zeros({1}, dtype::int64), 300}); }));
  CHECK(refused([&] { ops::call("scatter", {b, 0, at, 300}); }));
  CHECK(elements(one(ops::call("masked_fill", {b, mask, -128})))[5] == -128);
  CHECK(elements(b) == elements(x));
}
