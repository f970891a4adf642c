// SPDX-License-Identifier: BSL-1.0
// Operators by name of which PyTorch's recorded cases tell nothing here: what PyTorch gives for small values.
#include "../sample/value.hpp"

#include <varve/by_name/all.hpp>
#include <varve/composite/at.hpp>
#include <varve/nn.hpp>
#include <varve/op/operators.hpp>
#include <varve/transform/grad.hpp>
#include <varve/transform/vmap.hpp>

#include <cmath>
#include <limits>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::argument;
using vv::named_argument;
using vv::none;
using vv::ops;
using list = argument::list;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity(), none_there = std::numeric_limits<double>::quiet_NaN();
struct row {
  char const* name;
  list arguments;
  std::vector<named_argument> named;
  std::vector<tensor> results;
};
std::vector<tensor> flat(std::vector<argument> const& y) {
  std::vector<tensor> r;
  for (argument const& a : y)
    if (a.is<list>())
      for (tensor const& t : flat(a.as<list>())) r.push_back(t);
    else r.push_back(a.as<tensor>());
  return r;
}
std::vector<tensor> called(row const& c) {
  return flat(ops::call(c.name, std::span<argument const>(c.arguments), std::span<named_argument const>(c.named)));
}
void same(row const& c) {
  INFO(c.name);
  auto const y = called(c);
  REQUIRE(y.size() == c.results.size());
  for (std::size_t k = 0; k < y.size(); ++k) CHECK(difference(y[k], c.results[k], 1e-9) == "");
}
std::string refusal(row const& c) {
  try {
    called(c);
  } catch (vv::error const& e) { return e.what(); }
  return "";
}
tensor vec(std::vector<double> const& v, dtype t = dtype::float64) {
  return from(v, dims{static_cast<index_t>(v.size())}, t);
}
tensor mat(index_t rows, std::vector<double> const& v, dtype t = dtype::float64) {
  return from(v, dims{rows, static_cast<index_t>(v.size()) / rows}, t);
}
tensor num(double v, dtype t = dtype::float64) { return from({v}, dims{}, t); }
tensor ints(std::vector<double> const& v) { return vec(v, dtype::int64); }
tensor bools(std::vector<double> const& v) { return vec(v, dtype::bool_); }
tensor const m = mat(2, {1, 2, 3, 4}), x = vec({1, 2, 3, 4}), nine = from({1, 2, 3, 4, 5, 6, 7, 8, 9}, dims{1, 3, 3});
tensor padded(char const* mode, tensor const& v, dims const& margins) {
  return called({"nn.functional.pad", {v, margins, mode}, {}, {}})[0];
}
} // namespace

TEST_CASE("names: shapes and parts", "[call]") {
  for (row const& c : std::vector<row>{
           {"T", {mat(2, {1, 2, 3, 4, 5, 6})}, {}, {mat(3, {1, 4, 2, 5, 3, 6})}},
           {"T", {x}, {}, {x}},
           {"T", {num(5)}, {}, {num(5)}},
           {"block_diag", {m, vec({5, 6}), num(7)}, {}, {mat(4, {1, 2, 0, 0, 0, 3, 4, 0, 0, 0,
                                                                 0, 0, 5, 6, 0, 0, 0, 0, 0, 7})}},
           {"block_diag", {vec({1}, dtype::float32), num(2)}, {}, {mat(2, {1, 0, 0, 2}, dtype::float32)}},
           {"tile", {m, dims{2}}, {}, {mat(2, {1, 2, 1, 2, 3, 4, 3, 4})}},
           {"tile", {vec({1, 2}), dims{2, 1}}, {}, {mat(2, {1, 2, 1, 2})}},
           {"narrow_copy", {m, 1, 1, 1}, {}, {mat(2, {2, 4})}},
           {"unravel_index", {ints({5, 11}), dims{3, 4}}, {}, {ints({1, 2}), ints({1, 3})}},
           {"unravel_index", {num(7, dtype::int32), 5}, {}, {num(2, dtype::int64)}},
           {"nan_to_num",
            {vec({none_there, inf, -inf, 2})},
            {{"nan", 7}, {"posinf", 8.0}},
            {vec({7, 8, -std::numeric_limits<double>::max(), 2})}},
           {"nan_to_num", {vec({inf, none_there}, dtype::float16)}, {}, {vec({65504, 0}, dtype::float16)}},
           {"nan_to_num", {ints({1, 2})}, {}, {ints({1, 2})}},
           {"heaviside", {vec({-1, 0, 2, none_there}), vec({5, 6, 7, 8})}, {}, {vec({0, 6, 1, 0})}},
           {"heaviside", {ints({-1, 0, 2}), num(3, dtype::int64)}, {}, {ints({0, 3, 1})}},
           {"logit", {vec({0, 0.5, 0.25, 1, 2})}, {}, {vec({-inf, 0, std::log(1 / 3.), inf, none_there})}},
           {"special.logit", {vec({0, 1, 0.25}), 0.1}, {}, {vec({-std::log(9.), std::log(9.), std::log(1 / 3.)})}},
       })
    same(c);
  CHECK(refusal({"block_diag", {nine}, {}, {}}) != "");
  CHECK(refusal({"heaviside", {x, ints({1, 2, 3, 4})}, {}, {}}) != "");
  CHECK(refusal({"unravel_index", {x, dims{4}}, {}, {}}) != "");
  CHECK(refusal({"unravel_index", {ints({1}), dims{-4}}, {}, {}}) != "");
  tensor const copy = vv::clone(m);
  CHECK_FALSE(called({"narrow_copy", {copy, 1, 1, 1}, {}, {}})[0].shares_storage(copy));
  CHECK_FALSE(called({"tile", {copy, dims{1}}, {}, {}})[0].shares_storage(copy));
}
TEST_CASE("names: margins", "[call]") {
  tensor const line = from({1, 2, 3, 4}, dims{1, 4});
  struct margins {
    char const* mode;
    dims margins;
    std::vector<double> right;
  };
  for (margins const& c :
       {margins{"reflect", dims{1, 2}, {2, 1, 2, 3, 4, 3, 2}}, margins{"reflect", dims{-1, 2}, {2, 3, 4, 3, 2}},
        margins{"reflect", dims{2, -3}, {3, 2, 1}}, margins{"replicate", dims{1, 2}, {1, 1, 2, 3, 4, 4, 4}},
        margins{"replicate", dims{-1, 2}, {2, 3, 4, 4, 4}}, margins{"replicate", dims{-4, 5}, {4, 4, 4, 4, 4}},
        margins{"replicate", dims{6, -5}, {1, 1, 1, 1, 1}}, margins{"circular", dims{1, 2}, {4, 1, 2, 3, 4, 1, 2}},
        margins{"circular", dims{-1, 2}, {2, 3, 4, 2, 3}}, margins{"circular", dims{4, 0}, {1, 2, 3, 4, 1, 2, 3, 4}},
        margins{"constant", dims{1, -1}, {0, 1, 2, 3}}}) {
    INFO(c.mode);
    CHECK(elements(padded(c.mode, line, c.margins)) == c.right);
    auto const f = [&](tensor const& v) { return vv::sum(vv::square(padded(c.mode, v, c.margins))); };
    std::vector<double> slope(4, 0.0); // each element as often as it is there
    for (double e : c.right)
      if (e > 0) slope[static_cast<std::size_t>(e) - 1] += 2 * e;
    CHECK(elements(vv::grad(f)(line)) == slope);
    tensor const two = vv::stack(std::vector<tensor>{line, vv::mul(line, 10)}, dims{0});
    tensor const lanes = vv::vmap([&](tensor const& v) { return padded(c.mode, v, c.margins); })(two);
    CHECK(elements(tensor(lanes[1])) == elements(padded(c.mode, vv::mul(line, 10), c.margins)));
  }
  CHECK(elements(padded("reflect", nine, dims{1, 1, 1, 1})) ==
        std::vector<double>{5, 4, 5, 6, 5, 2, 1, 2, 3, 2, 5, 4, 5, 6, 5, 8, 7, 8, 9, 8, 5, 4, 5, 6, 5});
  CHECK(padded("reflect", tensor::empty(dims{0, 3, 3}, dtype::float32), dims{1, 2}).sizes() == dims{0, 3, 6});
  for (row const& c : {row{"nn.functional.pad", {line, dims{4, 0}, "reflect"}, {}, {}},
                       row{"nn.functional.pad", {line, dims{5, 0}, "circular"}, {}, {}},
                       row{"nn.functional.pad", {line, dims{-2, -2}, "replicate"}, {}, {}},
                       row{"nn.functional.pad", {line, dims{1, 1, 1, 1}, "reflect"}, {}, {}},
                       row{"nn.functional.pad", {line, dims{1, 1, 1}, "reflect"}, {}, {}},
                       row{"nn.functional.pad", {line, dims{1, 1}, "mirror"}, {}, {}},
                       row{"nn.functional.pad", {line, dims{1, 1}, "reflect"}, {{"value", 1.0}}, {}}})
    CHECK(refusal(c) != "");
}
TEST_CASE("names: factors, chains of matrices, histograms", "[call]") {
  tensor const l = mat(2, {2, 0, 1, 1}), a = mat(2, {4, 2, 2, 2}), b = mat(2, {8, 6});
  tensor const odd = mat(2, {1, 2, 2, 1}), no = num(0, dtype::int32);
  for (row const& c : std::vector<row>{
           {"cholesky_solve", {b, l}, {}, {mat(2, {1, 2})}},
           {"cholesky_solve", {b, vv::transpose(l), true}, {}, {mat(2, {1, 2})}},
           {"linalg.cholesky_ex", {a}, {}, {l, no}},
           {"linalg.cholesky_ex", {a}, {{"upper", true}}, {vv::transpose(l), no}},
           {"linalg.cholesky_ex",
            {odd},
            {},
            {mat(2, {none_there, none_there, none_there, none_there}), num(2, dtype::int32)}},
           {"linalg.multi_dot", {argument(list{vec({1, 2}), m, mat(2, {1, 1})})}, {}, {vec({17})}},
           {"linalg.multi_dot", {argument(list{m, m, m, m})}, {}, {mat(2, {199, 290, 435, 634})}},
           {"histogram",
            {vec({1, 2, 1}), 4},
            {{"range", list{0.0, 3.0}}},
            {vec({0, 2, 1, 0}), vec({0, 0.75, 1.5, 2.25, 3})}},
           {"histogram", {vec({0.5, 1, 2, 3}), vec({0, 1, 2})}, {}, {vec({1, 2}), vec({0, 1, 2})}},
           {"histogram", {vec({0, 4, 1, 4}), 2}, {{"weight", vec({1, 2, 3, 4})}}, {vec({4, 6}), vec({0, 2, 4})}},
           {"histogram", {vec({0, 4, 1, 4}), 2}, {{"density", true}}, {vec({0.25, 0.25}), vec({0, 2, 4})}},
       })
    same(c);
  CHECK(refusal({"linalg.cholesky_ex", {odd}, {{"check_errors", true}}, {}}) != "");
  CHECK(refusal({"linalg.multi_dot", {argument(list{m})}, {}, {}}) != "");
  CHECK(refusal({"linalg.multi_dot", {argument(list{m, x, m})}, {}, {}}) != "");
  CHECK(refusal({"histogram", {ints({1, 2}), 2}, {}, {}}) != "");
  CHECK(refusal({"cholesky_solve", {vec({1, 2}), l}, {}, {}}) != "");
}
TEST_CASE("names: norms, distances, angles", "[call]") {
  tensor const points = mat(3, {0, 0, 3, 4, 0, 1}), some = bools({1, 1, 0});
  for (row const& c : std::vector<row>{
           {"nn.functional.pdist", {points}, {}, {vec({5, 1, std::sqrt(18.)})}},
           {"nn.functional.pdist", {points, 1}, {}, {vec({7, 1, 6})}},
           {"nn.functional.pdist", {points, 0}, {}, {vec({2, 1, 2})}},
           {"nn.functional.pdist", {points, inf}, {}, {vec({4, 1, 3})}},
           {"nn.functional.cosine_similarity", {mat(2, {3, 4, 1, 0}), mat(2, {4, 3, 0, 1})}, {}, {vec({0.96, 0})}},
           {"nn.functional.cosine_similarity", {vec({3, 4}), mat(2, {4, 3, 0, 1})}, {{"dim", -1}}, {vec({0.96, 0.8})}},
           {"masked.norm", {vec({3, 4, 12})}, {{"mask", some}}, {num(5)}},
           {"masked.norm", {vec({3, 4, 1}), -inf}, {{"mask", some}}, {num(3)}},
           {"masked.norm", {vec({3, 4, 12}), 1, 0}, {{"keepdim", true}}, {vec({19})}},
           {"masked.std", {vec({1, 3, 100})}, {{"mask", some}}, {num(std::sqrt(2.))}},
           {"masked.std", {vec({1, 3, 100})}, {{"mask", some}, {"unbiased", false}}, {num(1)}},
       })
    same(c);
  CHECK(called({"nn.functional.pdist", {mat(1, {1, 2})}, {}, {}})[0].sizes() == dims{0});
  CHECK(refusal({"nn.functional.pdist", {points, -1}, {}, {}}) != "");
  CHECK(refusal({"nn.functional.cosine_similarity", {ints({1}), ints({1})}, {{"dim", 0}}, {}}) != "");
  auto const angle = [](tensor const& v) {
    return called({"nn.functional.cosine_similarity", {v, vec({1, 2})}, {{"dim", 0}}, {}})[0];
  };
  CHECK(elements(vv::grad(angle)(vec({0, 0})))[1] > 0.89e8); // by eps, not by 0
  auto const length = [](tensor const& v) { return vv::sum(called({"nn.functional.pdist", {v}, {}, {}})[0]); };
  CHECK(elements(vv::grad(length)(mat(2, {1, 2, 1, 2}))) == std::vector<double>{0, 0, 0, 0});
}
TEST_CASE("names: networks", "[call][nn]") {
  double const e = std::exp(1.);
  tensor const q = from({1}, dims{1, 1, 1}), k = from({0, 1}, dims{2, 1, 1}), w = from({1, 1, 1}, dims{3, 1});
  tensor const one = from({1}, dims{1, 1}), shares = from({1 / (1 + e), e / (1 + e)}, dims{1, 1, 2});
  auto const attends = [&](std::vector<named_argument> const& named, tensor const& y, tensor const& s) {
    return row{"nn.functional.multi_head_attention_forward",
               {q, k, k, 1, 1, w, none, none, none, false, 0.0, one, none},
               named,
               {y, s}};
  };
  tensor const rows = mat(2, {1, 3, 2, 6}), image = from({1, 9, 3, 4, 5, 6, 7, 8, 2}, dims{1, 3, 3});
  for (row const& c : std::vector<row>{
           {"native_layer_norm",
            {rows, dims{2}, none, none, 0.0},
            {},
            {mat(2, {-1, 1, -1, 1}), mat(2, {2, 4}), mat(2, {1, 0.5})}},
           attends({}, from({e / (1 + e)}, dims{1, 1, 1}), shares),
           attends({{"attn_mask", mat(1, {0, 1}, dtype::bool_)}}, from({0}, dims{1, 1, 1}),
                   from({1, 0}, dims{1, 1, 2})),
           attends({{"key_padding_mask", mat(1, {0, -1})}}, from({0.5}, dims{1, 1, 1}),
                   from({0.5, 0.5}, dims{1, 1, 2})),
           {"nn.functional.triplet_margin_with_distance_loss",
            {vec({0}), vec({3}), vec({4})},
            {{"margin", 2}},
            {num(1)}},
           {"max_pool2d_with_indices_backward",
            {from({1, 2, 3, 4}, dims{1, 2, 2}), image, 2, 1, 0, 1, false,
             from({1, 1, 7, 7}, dims{1, 2, 2}, dtype::int64)},
            {},
            {from({0, 3, 0, 0, 0, 0, 0, 7, 0}, dims{1, 3, 3})}},
       })
    same(c);
  CHECK(refusal({"native_layer_norm", {rows, dims{}, none, none, 0.0}, {}, {}}) != "");
  CHECK(refusal({"native_layer_norm", {rows, dims{2}, vec({1}), none, 0.0}, {}, {}}) != "");
  CHECK(refusal({"nn.functional.triplet_margin_with_distance_loss", {x, x, x}, {{"margin", 0}}, {}}) != "");
  auto const l1 = [](tensor const& u, tensor const& v) { return vv::sum(vv::abs(vv::sub(u, v)), dims{-1}); };
  CHECK(vv::triplet_margin_with_distance_loss(x, vv::add(x, 1.0), vv::add(x, 2.0), l1, 5.0).item<double>() == 1);
}
TEST_CASE("names: two heads attend as each alone", "[call][nn]") {
  tensor const q = from({0.5, -1, 2, 1, 0, 3}, dims{3, 2}), k = from({1, 2, -1, 0.5}, dims{2, 2});
  tensor const three = vv::cat(
      std::vector<tensor>{vv::eye(2, 2, dtype::float64), vv::eye(2, 2, dtype::float64), vv::eye(2, 2, dtype::float64)},
      dims{0});
  vv::multi_head_attention_options<tensor> o;
  o.weight = three, o.result_weight = vv::eye(2, 2, dtype::float64);
  auto const [y, shares] = vv::multi_head_attention(q, k, k, 2, o);
  CHECK(shares.sizes() == dims{3, 2});
  for (index_t h = 0; h < 2; ++h) {
    auto const part = [&](tensor const& t) { return tensor(vv::narrow(t, dims{1}, dims{h}, dims{1})); };
    CHECK(difference(part(y), vv::scaled_dot_product_attention(part(q), part(k), part(k)), 1e-12) == "");
  }
  o.more_key = vec({0, 0}), o.more_value = vec({7, 7}), o.more_zeros = true;
  CHECK(vv::multi_head_attention(q, k, k, 2, o).second.sizes() == dims{3, 4});
}
TEST_CASE("names: numbers between tensors, differences over coordinates, values without elements", "[call]") {
  tensor const two = vec({1, 0}), bad = vec({1, 2}, dtype::int64), mask = bools({1, 0});
  list const places{vec({1, 2, 4})};
  for (row const& c : std::vector<row>{
           {"linspace", {num(0), num(1), 3}, {{"dtype", dtype::float64}}, {vec({0, 0.5, 1})}},
           {"linspace", {num(0, dtype::int64), 1, 3}, {}, {vec({0, 0.5, 1}, dtype::float32)}},
           {"linspace", {2.5, num(0.5), 3}, {{"dtype", dtype::int64}}, {ints({2, 1, 0})}},
           {"linspace", {num(3), num(5), 1}, {}, {vec({3}, dtype::float32)}},
           {"logspace", {num(0), 2, 3}, {{"base", 2.0}}, {vec({1, 2, 4}, dtype::float32)}},
           {"gradient", {vec({1, 4, 16})}, {{"spacing", places}}, {vec({3, 4, 6})}},
           {"gradient", {vec({1, 4, 16})}, {{"spacing", places}, {"edge_order", 2}}, {vec({2, 4, 8})}},
           {"gradient",
            {vv::stack(values{vec({1, 4, 16}), vec({2, 5, 17})}, dims{0})},
            {{"spacing", list{vec({0, 0.5}), vec({1, 2, 4})}}},
            {mat(2, {2, 2, 2, 2, 2, 2}), mat(2, {3, 4, 6, 3, 4, 6})}},
           {"masked_fill", {ints({5, 6}), mask, -1.9}, {}, {ints({-1, 6})}},
           {"masked_fill", {bools({0, 0}), mask, 0.5}, {}, {bools({1, 0})}},
           {"masked_fill", {ints({5, 6}), mask, num(2.5)}, {}, {ints({2, 6})}},
       })
    same(c);
  CHECK(refusal({"linspace", {two, two, 3}, {}, {}}) != "");
  CHECK(refusal({"gradient", {vec({1, 4, 16})}, {{"spacing", list{two}}}, {}}) != "");
  CHECK(refusal({"masked_fill", {bad, mask, none_there}, {}, {}}) != "");
  for (dims const& s : {dims{0}, dims{0, 3}, dims{2, 0}, dims{0, 3, 2}})
    for (bool const training : {false, true}) {
      tensor const channels = vv::ones(dims{s.n > 1 ? s[1] : s[0]}, dtype::float64), kept = vv::clone(channels);
      row const c{"nn.functional.batch_norm",
                  {vv::zeros(s, dtype::float64), channels, channels},
                  {{"training", training}},
                  {vv::zeros(s, dtype::float64)}};
      same(c);
      CHECK(elements(channels) == elements(kept));
    }
  CHECK(refusal({"nn.functional.batch_norm", {mat(1, {1, 2}), none, none}, {{"training", true}}, {}}) != "");
}
TEST_CASE("names: lanes of ranges and histograms are each alone", "[call][vmap]") {
  using function = tensor (*)(tensor const&);
  tensor const lanes = mat(3, {0, 1, 2, 7, -1, 1, 1, 0.5, 3, 3, 3, 3});
  for (function const f : {
           function([](tensor const& v) { return called({"histc", {v, 3}, {}, {}})[0]; }),
           function([](tensor const& v) { return called({"histc", {v, 4, 0, 2}, {}, {}})[0]; }),
           function([](tensor const& v) { return called({"histogram", {v, 2}, {}, {}})[0]; }),
           function([](tensor const& v) { return called({"histogram", {v, 2}, {}, {}})[1]; }),
           function([](tensor const& v) {
             return called({"histogramdd", {vv::reshape(v, dims{2, 2}), list{2, 2}}, {}, {}})[0];
           }),
           function([](tensor const& v) {
             return called({"linspace", {tensor(v[0]), tensor(v[3]), 4}, {{"dtype", dtype::float64}}, {}})[0];
           }),
           function([](tensor const& v) {
             return called({"logspace", {tensor(v[0]), 2, 3}, {{"dtype", dtype::float64}}, {}})[0];
           }),
       }) {
    tensor const y = vv::vmap(f)(lanes);
    for (index_t k = 0; k < 3; ++k) CHECK(difference(tensor(y[k]), f(tensor(lanes[k])), 1e-12) == "");
  }
}
