// SPDX-License-Identifier: BSL-1.0
// Fake tensors of symbolic sizes: a program traced once for all batch sizes.
#include "../sample/value.hpp"

#include <varve/fake.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dim_dynamic;
using vv::extent;
using texts = std::vector<std::string>;

namespace {
struct fixture {
  vv::shape_environment e;
  vv::fake_mode mode{{.environment = &e}};
  texts sizes(tensor const& t) const {
    texts r;
    for (extent const s : t.sizes()) r.push_back(s.is_number() ? std::to_string(s.number()) : e.text(s));
    return r;
  }
  texts strides(tensor const& t) const {
    texts r;
    for (extent const s : t.strides()) r.push_back(s.is_number() ? std::to_string(s.number()) : e.text(s));
    return r;
  }
};
} // namespace

TEST_CASE("fake tensors: sizes become symbols, by policy", "[fake][shape]") { // SY-1, SY-2, SY-9, DT-12
  fixture f;
  tensor const x = vv::ones(dims{5, 3, 1}), y = vv::ones(dims{3, 5});
  tensor const a = f.mode.from_tensor(x), b = f.mode.from_tensor(vv::transpose(y, 0, 1)),
               c = f.mode.from_tensor(vv::ones(dims{5, 3}), {dim_dynamic::dynamic, dim_dynamic::fixed}),
               d = f.mode.from_tensor(vv::ones(dims{5}), {dim_dynamic::size_like_unbacked});
  CHECK(f.sizes(a) == texts{"s0", "s1", "1"});
  CHECK(f.strides(a) == texts{"s1", "1", "1"});
  CHECK(f.sizes(b) == texts{"s0", "s1"});
  CHECK(f.strides(b) == texts{"1", "s0"});
  CHECK(f.sizes(c) == texts{"s2", "3"});
  CHECK(f.strides(c) == texts{"3", "1"});
  CHECK(f.sizes(d) == texts{"u0"});
  CHECK_THROWS_AS(f.mode.from_tensor(vv::ones(dims{2}), {dim_dynamic::duck, dim_dynamic::duck}), vv::value_error);
  CHECK(f.e.guards().empty());
}

TEST_CASE("fake tensors: a network for every batch size", "[fake][shape]") {
  fixture f;
  tensor const x = vv::ones(dims{12, 8}), w = vv::ones(dims{8, 4});
  tensor const fx = f.mode.from_tensor(x, {dim_dynamic::dynamic, dim_dynamic::fixed}),
               fw = f.mode.from_tensor(w, {dim_dynamic::fixed, dim_dynamic::fixed});
  auto const loss = [](tensor const& v, tensor const& p) {
    return vv::sum(vv::logsumexp(vv::tanh(vv::matmul(v, p)), 1));
  };
  vv::fake_mode_guard const on(f.mode);
  CHECK(f.sizes(vv::softmax(vv::matmul(fx, fw), 1)) == texts{"s0", "4"});
  CHECK(f.sizes(vv::grad(loss)(fx, fw)) == texts{"s0", "8"});
  CHECK(f.sizes(vv::vmap(vv::grad(loss), vv::in_dims<0, vv::none>)(vv::reshape(fx, dims{-1, 1, 8}), fw)) ==
        texts{"s0", "1", "8"});
  CHECK(f.sizes(vv::cat(std::vector{fx, fx}, 0)) == texts{"2*s0", "8"});
  CHECK(f.sizes(vv::slice(fx, 0, 1)) == texts{"s0 - 1", "8"});
  CHECK(f.e.guards().empty());
  CHECK_THROWS_AS(fx + vv::ones(dims{5, 8}), vv::shape_error);
  REQUIRE(f.e.guards().size() == 1);
  CHECK(std::string(f.e.guards()[0].op) == "add");
  CHECK(f.e.guards_in_cpp() == texts{"2 <= x0.size(0)", "x0.size(0) != 5"});
}

TEST_CASE("fake tensors: what takes a size for a number says so in a guard", "[fake][shape]") {
  fixture f;
  tensor const x = f.mode.from_tensor(vv::ones(dims{12, 8}), {dim_dynamic::dynamic, dim_dynamic::fixed});
  vv::fake_mode_guard const on(f.mode);
  CHECK(vv::select(x, 0, 3).sizes() == dims{8});
  CHECK(f.e.guards_in_cpp() == texts{"4 <= x0.size(0)"});
  CHECK(vv::mean(x).sizes() == dims{}); // divides by the size
  CHECK(f.e.guards_in_cpp() == texts{"4 <= x0.size(0)"});
  vv::index_t const rows = x.sizes()[0];
  CHECK(rows == 12);
  CHECK(f.e.guards_in_cpp() == texts{"x0.size(0) == 12"});
}

TEST_CASE("fake tensors: numbers that only data tell", "[fake][shape]") { // FK-7, FK-8
  fixture f;
  tensor const three = vv::full({}, 3, dtype::int64), t = f.mode.from_tensor(three);
  extent const u = f.mode.item(t);
  CHECK(f.e.text(u) == "u0");
  CHECK(known_equal(f.mode.item(t), u));
  CHECK_THROWS_AS(t.item<int>(), vv::data_dependent_error);
  vv::fake_mode_guard const on(f.mode);
  f.e.check_is_size(u);
  tensor const made = vv::ones(dims{u, 2});
  CHECK(f.sizes(vv::matmul(made, vv::ones(dims{2, 3}))) == texts{"u0", "3"});
  CHECK(f.sizes(vv::sum(made, 0)) == texts{"2"});
  vv::add_(t, vv::randn(dims{}) > 0.0);
  CHECK_FALSE(known_equal(f.mode.item(t), u)); // written into meanwhile
  vv::fake_mode plain;
  CHECK_THROWS_AS(plain.item(plain.from_tensor(three)), vv::data_dependent_error);
}

TEST_CASE("a tracer's context: backends get inputs as they were at the start", "[fake][shape]") { // DT-12 to DT-14
  vv::shape_environment e;
  vv::tracing_context context(e);
  tensor const x = vv::ones(dims{6, 4}), y = vv::ones(dims{3}), w = vv::ones(dims{6, 4});
  x.requires_grad_();
  tensor const a = context.input(x, {vv::dim_dynamic::dynamic, vv::dim_dynamic::fixed}), b = context.input(y);
  CHECK(context.input(x, {vv::dim_dynamic::fixed, vv::dim_dynamic::fixed}).is(a)); // a tensor has one policy
  extent const n = a.sizes()[0], m = b.sizes()[0];
  CHECK((!n.is_number() && vv::known_equal(a.sizes()[1], 4) && !m.is_number() && context.inputs() == 2));
  {
    vv::fake_mode_guard const on(context.mode());
    vv::no_grad const off;
    a.set_data(vv::zeros(dims{5})); // what the program makes of its input
    (void)vv::add_(b, 1.0);
  }
  CHECK(a.sizes() == dims{5});
  CHECK(context.input(x).sizes() == dims{5}); // the tracer's notion is the new one
  auto const backend = context.fresh_fake_mode();
  REQUIRE(backend->inputs.size() == 2);
  tensor const &c = backend->inputs[0], &d = backend->inputs[1];
  CHECK((vv::known_equal(c.sizes()[0], n) && vv::known_equal(c.sizes()[1], 4) && vv::known_equal(d.sizes()[0], m)));
  CHECK((c.requires_grad() && c.is_leaf() && !d.requires_grad() && d.version() == 0));
  CHECK((backend->mode.owns(c) && !context.mode().owns(c) && backend->mode.environment() == &e));
  CHECK(e.guards().empty()); // no new symbol, and nobody asked
  CHECK_THROWS_WITH(context.input(vv::slice(w, 0, 0, 2)), ContainsText("is a view of another tensor"));
}
