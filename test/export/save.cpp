// SPDX-License-Identifier: BSL-1.0
// Programs and tensors in files: what was written is read, anything else is refused with its place.
#include "../sample/value.hpp"

#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/hop/wrap.hpp>
#include <varve/varve.hpp>

#include <filesystem>
#include <limits>
#include <random>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor data(dims const& sizes, double from = 0.1) {
  tensor const t = tensor::empty(sizes, dtype::float64);
  for (index_t k = 0; k < t.numel(); ++k) set(t, k, from + 0.3 * static_cast<double>(k % 7));
  return t;
}
/// With symbolic sizes, state, writes, constants of all kinds, functions of operators and random numbers.
vv::exported_program program(tensor& w, tensor& count) {
  auto const f = [&](tensor x) {
    vv::add_(count, 1.0);
    tensor const y = vv::matmul(x, w) * 0.1 + vv::tensor({1.5, std::numeric_limits<double>::infinity(), -0.0});
    tensor const z = vv::cond(
        vv::gt(vv::sum(x), 0.0), [](tensor v) { return vv::exp(v); }, [](tensor v) { return vv::sin(v) * 3.0; }, y);
    auto const [last, all] =
        vv::scan([](tensor c, tensor v) { return std::pair{c + v, c * v}; }, vv::zeros(vv::dims{3}, dtype::float64), z);
    return std::tuple{all, last, vv::slice(x, 0, 1, vv::end)};
  };
  auto const n = vv::dynamic_dim("n", 2, 50);
  return vv::export_program(f, {.dynamic_shapes = {{n, vv::dim_static}},
                                .names = {"x"},
                                .state = {vv::parameter("w", w), vv::buffer("count", count)}})(data({4, 2}));
}
bool same_values(std::vector<tensor> const& a, std::vector<tensor> const& b) {
  bool all = a.size() == b.size();
  for (std::size_t k = 0; all && k < a.size(); ++k) all = difference(a[k], b[k]).empty();
  return all;
}
} // namespace

TEST_CASE("save: a program that is read again is the same", "[export][save]") {
  tensor w = data({2, 3}), count = vv::zeros(vv::dims{});
  vv::exported_program const p = program(w, count);
  std::string const text = vv::to_text(p);
  vv::exported_program q = vv::program_from_text(text);
  CHECK(vv::to_text(q) == text);
  CHECK(vv::equal(p.graph, q.graph));
  q.state = p.state;
  for (index_t n : {2, 5, 9}) CHECK(same_values(p(data({n, 2})), q(data({n, 2}))));
  CHECK_THROWS_WITH(q(data({51, 2})), Catch::Contains("to be <= 50"));

  auto const path = (std::filesystem::temp_directory_path() / "varve_saved_program").string();
  vv::save(p, path);
  vv::exported_program const r = vv::load(path);
  double const before = count.item<double>();
  auto const y = r(data({3, 2}));
  CHECK(r.state_of("count").item<double>() == before + 1);
  CHECK(count.item<double>() == before); // its own state
  CHECK(same_values(y, p(data({3, 2}))));
  CHECK_THROWS_WITH(vv::load(path + ".none"), Catch::Contains("cannot be read"));
  vv::detail::write_file("save", path + ".safetensors", vv::to_safetensors({{"w", w}}));
  CHECK_THROWS_WITH(vv::load(path), Catch::Contains("there is no tensor count"));
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".safetensors");
}

TEST_CASE("save: a composite that a trace kept gives way to its parts, calls beside it stay", "[export][save]") {
  auto const f = [](tensor const& x) {
    return vv::wrap([](tensor const& v) { return vv::softmax(vv::sin(v), vv::axis<0>); }, vv::softmax(x, vv::axis<1>));
  };
  tensor const x = data({2, 3});
  vv::exported_program p = vv::export_program(f)(x);
  p.graph = vv::make_fx(f, vv::tracing::pre_dispatch)(x);
  auto const calls = [](vv::graph const& g, std::string const& name) {
    int n = 0;
    for (vv::node const& nd : g.nodes) n += name == nd.op->name;
    return n;
  };
  REQUIRE(calls(p.graph, "wrap") == 1);
  REQUIRE(calls(p.graph, "softmax") > 0);
  vv::exported_program const q = vv::program_from_text(vv::to_text(p));
  CHECK(calls(q.graph, "wrap") == 1);
  CHECK(calls(q.graph, "softmax") == 0);
  CHECK(difference(q(x)[0], f(x), 1e-14) == "");
}

namespace {
struct sevenfold : vv::function<sevenfold> {
  static tensor forward(tensor v) { return v * 2.0; }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, tensor g) { return g * 7.0; }
};
} // namespace

TEST_CASE("save: programs of all kinds", "[export][save]") {
  tensor const x = data({3}), three = vv::full(vv::dims{}, 3, dtype::int64), none = vv::zeros(vv::dims{0, 2}),
               truth = vv::gt(x, 0.2);
  auto const same = [&](auto const& f, vv::export_options const& o = {}) {
    vv::exported_program const p = vv::export_program(f, o)(x);
    vv::exported_program q = vv::program_from_text(vv::to_text(p));
    CHECK(vv::equal(p.graph, q.graph));
    q.state = p.state;
    vv::manual_seed(3);
    auto const a = p(x);
    vv::manual_seed(3);
    CHECK(same_values(a, q(x)));
  };
  vv::export_options const any{.dynamic_shapes = {{vv::dynamic_dim("a_long_name")}}};
  same([&](tensor a) {
    return std::tuple{a * three, none + 1.0f, vv::where(truth, a, 0.0), vv::to(a, dtype::int32), vv::argmax(a)};
  });
  same([](tensor a) { return a * vv::randn(vv::dims{3}); });
  same([](tensor a) {
    return vv::checkpoint([](tensor v) { return vv::sin(v) * vv::randn(vv::dims{3}, dtype::float64); }, a);
  });
  same([](tensor a) {
    return vv::while_loop([](tensor v) { return vv::lt(vv::sum(v), 99.0); }, [](tensor v) { return v * 2.0; }, a);
  });
  same([](tensor a) { return vv::map([](tensor v) { return vv::exp(v) + v; }, a); }, any);
  same([](tensor a) { return vv::grad([](tensor v) { return vv::sum(vv::softmax(v, vv::axis<0>) * v); })(a); }, any);
  same([](tensor a) { return vv::mean(vv::cat(std::vector{a, a * 2.0}, 0)); }, any);
  same([](tensor a) { return vv::nonzero(vv::gt(a, 0.2)); });
  auto const custom = [](tensor a) { return vv::grad([](tensor v) { return vv::sum(sevenfold::apply(v)); })(a); };
  CHECK_THROWS_WITH(vv::to_text(vv::export_program(custom)(x)),
                    Catch::Contains("sevenfold") && Catch::Contains("saved_function"));
  CHECK(elements(vv::export_program(custom)(x)(x)[0]) == std::vector<double>{7, 7, 7});
}

namespace {
enum class way : unsigned char { up, down };
/// Of a tensor, a list of tensors, numbers, an enumerator and a type without data; it writes into the first.
struct many_kinds : vv::function<many_kinds> {
  static constexpr bool generate_vmap_rule = true;
  static std::tuple<tensor, tensor> forward(tensor x, std::vector<tensor> more, double by, int n, way to, vv::ints<0>) {
    tensor sum = x;
    for (auto const& m : more) sum = sum + m * by;
    return {to == way::up ? sum : -sum, x * static_cast<double>(n)};
  }
  static auto setup_context(auto c, auto const&, auto const&) { return c; }
  static auto backward(auto&, tensor g, tensor h) {
    return std::tuple{g * 5.0 + h, std::vector{g, g * 2.0}, vv::none, vv::none, vv::none, vv::none};
  }
};
struct in_place : vv::function<in_place> {
  static tensor forward(tensor x) { return vv::mul_(x, 3.0); }
  static auto setup_context(auto c, auto const&, auto const&) { return c.template mark_dirty<0>(); }
  static auto backward(auto&, tensor g) { return g * 11.0; }
};
} // namespace

TEST_CASE("save: custom functions by the names that they are registered by", "[export][save]") {
  tensor const x = data({3}), w = data({3}, 2);
  auto const slope = [](vv::exported_program const& p, tensor const& at, tensor const& other) {
    tensor const a = vv::clone(at), b = vv::clone(other);
    a.requires_grad_(), b.requires_grad_();
    vv::sum(p(a, b)[0]).backward();
    std::vector<double> r = elements(a.grad());
    for (double v : b.grad().defined() ? elements(b.grad()) : std::vector<double>{}) r.push_back(v);
    return r;
  };
  auto const same = [&](auto const& f) {
    vv::exported_program const p = vv::export_program(f)(x, w);
    REQUIRE(!p.graph.functions.empty());
    std::string const text = vv::to_text(p);
    vv::exported_program q = vv::program_from_text(text);
    q.state = p.state;
    CHECK(vv::to_text(q) == text);
    CHECK(same_values(p(x, w), q(x, w)));
    CHECK(slope(p, x, w) == slope(q, x, w));
    return text;
  };
  auto const first = [](tensor a, tensor b) { return sevenfold::apply(vv::sin(a)) * b; };
  std::string text;
  {
    vv::saved_function<sevenfold, tensor> const known("test.sevenfold");
    CHECK_THROWS_AS((vv::saved_function<in_place, tensor>("test.sevenfold")), vv::value_error);
    CHECK_THROWS_AS((vv::saved_function<sevenfold, tensor>("another name")), vv::value_error);
    text = same(first);
    CHECK(text.find("\"test.sevenfold\"") != std::string::npos);
    same([](tensor a, tensor b) {
      return vv::cond(
                 vv::gt(vv::sum(a), 0.0), [](tensor v) { return sevenfold::apply(v); },
                 [](tensor v) { return v * 1.0; }, a) *
             b;
    });
    same([](tensor a, tensor b) {
      return vv::grad([](tensor v) { return vv::sum(sevenfold::apply(v) * v); })(a) *
             sevenfold::apply(sevenfold::apply(b));
    });
  }
  // Another process does not know it, and says which name it needs; or has one of other arguments.
  CHECK_THROWS_WITH(vv::program_from_text(text), Catch::Contains("test.sevenfold, which is not registered here"));
  {
    vv::saved_function<many_kinds, tensor, std::vector<tensor>, double, int, way, vv::ints<0>> const other(
        "test.sevenfold");
    CHECK_THROWS_WITH(vv::program_from_text(text), Catch::Contains("with other arguments"));
  }
  CHECK_THROWS_WITH(vv::to_text(vv::export_program(first)(x, w)), Catch::Contains("sevenfold"));
  vv::saved_function<many_kinds, tensor, std::vector<tensor>, double, int, way, vv::ints<0>> const kinds("kinds");
  vv::saved_function<in_place, tensor> const writes("writes");
  auto const calls = [](tensor a, tensor b) {
    return std::get<0>(many_kinds::apply(a, std::vector{b, a}, 0.1, -3, way::down, vv::axis<0>));
  };
  text = same(calls);
  same([](tensor a, tensor b) {
    auto const [u, v] = many_kinds::apply(a, std::vector{b}, 1e300, 3, way::up, vv::axis<0>);
    return u * 0.0 + v;
  });
  std::string const lanes = same([](tensor a, tensor b) {
    return vv::vmap([](tensor u, tensor v) {
      return std::get<0>(many_kinds::apply(u, std::vector{v, v}, 0.5, 2, way::up, vv::axis<0>));
    })(a, b);
  });
  CHECK(lanes.find("mapped 3 0 3 1 1 1 named \"kinds\" 4 2 0x1p-1 2 0") != std::string::npos);
  same([](tensor a, tensor b) {
    tensor const c = a * 2.0;
    return in_place::apply(c) * b + c;
  });
  // Whatever stands there instead: an error or a program, and no other end.
  std::mt19937 draw(11);
  std::size_t const from = text.find("function"), length = text.find("region") - from;
  for (int k = 0; k < 2000; ++k) {
    std::string t = text;
    for (unsigned n = 1 + draw() % 2; n-- > 0;) {
      std::size_t const at = from + draw() % length;
      if (draw() % 2) t[at] = static_cast<char>('0' + draw() % 10);
      else t.erase(at, 1 + draw() % 3);
    }
    try {
      vv::exported_program q = vv::program_from_text(t);
      (void)q(x, w);
    } catch (vv::error const&) {}
  }
  CHECK(same_values(vv::program_from_text(text)(x, w), vv::export_program(calls)(x, w)(x, w)));
}

TEST_CASE("save: what is no program is refused with its place", "[export][save][exception]") {
  tensor w = data({2, 3}), count = vv::zeros(vv::dims{});
  std::string const text = vv::to_text(program(w, count));
  auto const refusal = [](std::string const& t) -> std::string {
    try {
      (void)vv::program_from_text(t);
    } catch (vv::error const& e) { return e.what(); }
    return "";
  };
  CHECK_THAT(refusal(""), Catch::Contains("line 1, column 1"));
  CHECK_THAT(refusal("varve_exported_program 7\nend\n"),
             Catch::Contains("line 1, column 24: the text is of version 7"));
  auto const with = [&](std::string const& from, std::string const& to) {
    std::string t = text;
    t.replace(t.find(from), from.size(), to);
    return refusal(t);
  };
  CHECK_THAT(with("\"mm\"", "\"mn\""), Catch::Contains("the operator mn is not in this program"));
  CHECK_THAT(with("float64 [", "float65 ["), Catch::Contains("a dtype expected, found \"float65\""));
  CHECK_THAT(with("operands 2", "operands 99999999"), Catch::Contains("a number of operands"));
  CHECK_THAT(with("symbol 0", "symbol 5"), Catch::Contains("a symbol's number"));
  CHECK_THAT(with("end\n", ""), Catch::Contains("found the end of the text") || Catch::Contains("found \"\""));
  // Every text that is changed in some places ends in an error, or is a program again.
  std::mt19937 draw(7);
  int refused = 0, rounds = 3000;
  for (int k = 0; k < rounds; ++k) {
    std::string t = text;
    for (unsigned n = 1 + draw() % 3; n-- > 0;) {
      std::size_t const at = draw() % t.size();
      switch (draw() % 5) {
      case 0:
        t[at] = static_cast<char>(draw());
        break;
      case 1:
        t.erase(at, 1 + draw() % 20);
        break;
      case 2:
        t.insert(at, std::to_string(static_cast<std::int64_t>(std::uint64_t{draw()} * draw())));
        break;
      case 3:
        t.insert(at, t.substr(draw() % t.size(), draw() % 40));
        break;
      default:
        if (t[at] >= '0' && t[at] <= '9') t[at] = static_cast<char>('0' + draw() % 10);
      }
      if (t.empty()) t = " ";
    }
    if (std::string const why = refusal(t); !why.empty()) {
      ++refused;
      if (why.find("varve") != 0) FAIL(why);
    }
  }
  CHECK(refused > rounds / 2);
}

TEST_CASE("save: numbers of sizes in a file lead nowhere else", "[export][save][exception]") {
  auto const n = vv::dynamic_dim("n", 2, 50);
  auto const f = [](tensor const& x) { return x * x; };
  std::string const good = vv::to_text(vv::export_program(f, {.dynamic_shapes = {{n}}})(data({5})));
  std::size_t const at = good.find("size symbol ");
  REQUIRE(at != std::string::npos);
  std::string bad = good;
  for (int k = 0; k < 8; ++k) bad.insert(at, "size sum 1 1\n");
  bad.replace(bad.find("size symbol ") + 12, 1, "8");
  CHECK_THROWS_AS(vv::program_from_text(bad), vv::value_error);
  std::string large = good;
  large.insert(large.find("\n", at) + 1, "size product 1099511627776 1099511627776\n");
  CHECK(vv::program_from_text(large)(data({7})).size() == 1);
}

TEST_CASE("safetensors: written, read, refused", "[export][save][exception]") {
  vv::named_tensors const all{{"a", data({2, 3})},
                              {"empty \"quoted\"", vv::zeros(vv::dims{0, 4}, dtype::int64)},
                              {"turned", vv::transpose(data({2, 3}))},
                              {"truth", vv::gt(data({5}), 0.5)},
                              {"scalar", vv::full(vv::dims{}, 7, dtype::int32)}};
  std::string const bytes = vv::to_safetensors(all);
  auto const back = vv::from_safetensors(bytes);
  REQUIRE(back.size() == all.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    CHECK(back[k].first == all[k].first);
    CHECK(difference(back[k].second, all[k].second) == "");
  }
  CHECK(vv::from_safetensors(vv::to_safetensors({})).empty());
  CHECK_THROWS_AS(vv::to_safetensors({{"a", data({1})}, {"a", data({1})}}), vv::value_error);
  CHECK_THROWS_WITH(vv::from_safetensors("abc"), Catch::Contains("3 bytes"));
  CHECK_THROWS_WITH(vv::from_safetensors(std::string(8, '\x7f')), Catch::Contains("the header has"));
  std::string twice = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],)"
                      R"("data_offsets":[0,8]}})";
  twice = std::string(1, static_cast<char>(twice.size())) + std::string(7, '\0') + twice + "12345678";
  CHECK_THROWS_WITH(vv::from_safetensors(twice), Catch::Contains("b shares bytes"));
  std::mt19937 draw(3);
  int refused = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string t = bytes;
    std::size_t const header = 8 + static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
    for (unsigned n = 1 + draw() % 3; n-- > 0;)
      t[draw() % header] = static_cast<char>(draw() % 2 ? draw() : '0' + draw() % 10);
    if (draw() % 4 == 0) t.resize(draw() % t.size());
    try {
      (void)vv::from_safetensors(t);
    } catch (vv::error const&) { ++refused; }
  }
  CHECK(refused > 1500);
}

TEST_CASE("save: what requires a gradient does so when it is read again", "[export][save]") {
  tensor w = data({2}), fixed = data({2}, 2);
  w.requires_grad_();
  auto const f = [&](tensor x) { return x * w * fixed; };
  auto const p = vv::export_program(f, {.state = {vv::parameter("w", w), vv::parameter("fixed", fixed)}})(data({2}));
  auto const path = (std::filesystem::temp_directory_path() / "varve_saved_gradient").string();
  vv::save(p, path);
  auto const q = vv::load(path);
  CHECK((q.state_of("w").requires_grad() && !q.state_of("fixed").requires_grad()));
  vv::sum(q(data({2}, 0.7))[0]).backward();
  CHECK(difference(q.state_of("w").grad(), data({2}, 0.7) * fixed, 1e-15) == "");
  std::string text = vv::to_text(p);
  CHECK(vv::to_text(vv::program_from_text(text)) == text);
  std::string const item = "requires_grad 0";
  text.replace(text.find(item), item.size(), "requires_grad 2");
  CHECK_THROWS_WITH(vv::program_from_text(text), Catch::Contains("an input of the state expected"));
  for (char const* end : {"", ".safetensors"}) std::filesystem::remove(path + end);
}

TEST_CASE("save: composites that a trace kept, and strict_mode", "[export][save]") {
  tensor const x = vector_of({0.5, -1, 2});
  vv::graph const kept =
      vv::make_fx([](tensor const& v) { return vv::softmax(v, 0) * vv::mean(v); }, vv::tracing::pre_dispatch)(x);
  auto const f = [&](tensor const& v) -> tensor {
    tensor const y = vv::interpret(kept, vv::boxed_args(v))[0];
    return vv::strict_mode([](tensor const& u) { return u * 2.0; }, y);
  };
  auto const p = vv::export_program(f)(x);
  std::string const text = vv::to_text(p);
  CHECK(elements(vv::program_from_text(text)(x * 3.0)[0]) == elements(f(x * 3.0)));
}

TEST_CASE("save: programs that reduce mapped numbers, which have no axis", "[export]") {
  using F = tensor (*)(tensor const&);
  tensor const x({1.0, 2.0, 3.0});
  for (F const f : {F([](tensor const& q) -> tensor { return vv::sum(q, dims{0}); }),
                    F([](tensor const& q) -> tensor { return vv::sum(q, dims{-1}, dims{1}); }),
                    F([](tensor const& q) -> tensor { return vv::sum(q); }),
                    F([](tensor const& q) -> tensor { return vv::mean(q, dims{0}); }),
                    F([](tensor const& q) -> tensor { return vv::amax(q, dims{0}); }),
                    F([](tensor const& q) -> tensor { return vv::argmax(q, dims{0}); }),
                    F([](tensor const& q) -> tensor { return vv::logsumexp(q, dims{0}); }),
                    F([](tensor const& q) -> tensor { return vv::softmax(q, dims{0}); }),
                    F([](tensor const& q) -> tensor { return vv::log_softmax(q, dims{0}); })}) {
    auto const loss = [f](tensor const& q) { return vv::sum(vv::to(f(q * q), dtype::float64) * q); };
    auto const g = [&](tensor const& v) {
      return std::vector<tensor>{vv::vmap(f)(v), vv::vmap(vv::grad(loss))(v),
                                 vv::vmap(vv::vmap(f))(vv::stack(std::vector<tensor>{v, v}, 0))};
    };
    auto const program = vv::program_from_text(vv::to_text(vv::export_program(g)(x)));
    auto const found = program(std::vector<tensor>{x}), right = g(x);
    for (std::size_t k = 0; k < right.size(); ++k) {
      CHECK(found[k].sizes() == right[k].sizes());
      CHECK(elements(found[k]) == elements(right[k]));
    }
    std::vector<double> alone; // each number by itself
    for (double e : {1.0, 2.0, 3.0}) alone.push_back(element(f(vv::full({}, e, dtype::float64)), 0));
    CHECK(elements(right[0]) == alone);
  }
}
