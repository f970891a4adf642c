// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/interop/hana.hpp>
#include <varve/io/csv.hpp>
#include <varve/io/npy.hpp>
#include <varve/io/tree_file.hpp>
#include <varve/varve.hpp>

#include <map>
#include <random>

namespace vv = varve;
using vv::array;
using vv::dims;
using vv::tensor;

namespace {
struct layer {
  BOOST_HANA_DEFINE_STRUCT(layer, (vv::tensor, weight), (vv::tensor, bias));
};
struct model {
  std::vector<layer> layers;
  std::map<std::string, tensor> scales;
};
template <class T>
struct line {
  T slope;
  double offset;
};
bool same(tensor const& a, tensor const& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.to_vector() == b.to_vector();
}
} // namespace

TEST_CASE("csv: numbers, names, errors with their place", "[io][csv]") {
  auto const t = vv::parse_csv("a, \"b\"\n1,2.5\r\n\n-3e2, +4\n");
  CHECK(t.names == std::vector<std::string>{"a", "b"});
  CHECK(same(t.data, tensor({{1.0, 2.5}, {-300.0, 4.0}})));
  CHECK(vv::parse_csv("1;2\n3;4", ';').data.sizes() == dims{2, 2});
  CHECK(vv::parse_csv("").data.sizes() == dims{0, 0});
  CHECK(vv::parse_csv("\xEF\xBB\xBF"
                      "1,2\n3,4\n")
            .data.to_vector() == std::vector<double>{1, 2, 3, 4});
  CHECK(vv::parse_csv("\xEF\xBB\xBF"
                      "a,b\n3,4\n")
            .names == std::vector<std::string>{"a", "b"});
  CHECK_THROWS_WITH(vv::parse_csv("1,2\n3,x4\n"),
                    ContainsText("line 2, column 3") && ContainsText("\"x4\" is no number"));
  CHECK_THROWS_WITH(vv::parse_csv("1,2\n3\n"), ContainsText("line 2") && ContainsText("1 fields, but 2 above"));
  CHECK_THROWS_WITH(vv::read_csv("nowhere.csv"), ContainsText("nowhere.csv cannot be read"));
  tensor const x({{0.1, 1.0 / 3}, {1e-300, -7.0}});
  vv::write_csv("varve_test.csv", x, {"u", "v"});
  auto const back = vv::read_csv("varve_test.csv");
  CHECK(same(back.data, x));
  CHECK(back.names == std::vector<std::string>{"u", "v"});
}

TEST_CASE("npy: what is written is read, and NumPy's own bytes", "[io][npy]") {
  for (tensor const& x : {tensor({{1.5, 2.0}, {3.0, -4.0}}), tensor({1, 2, 3}), tensor(array<double>{3}),
                          tensor({true, false}), tensor(std::vector<float>{}), tensor({1L, 1L << 40})}) {
    vv::save_npy("varve_test.npy", x);
    CHECK(same(vv::load_npy("varve_test.npy"), x));
  }
  CHECK(same(vv::from_npy(vv::to_npy(tensor({{1.0, 2.0}, {3.0, 4.0}}).t())), tensor({{1.0, 3.0}, {2.0, 4.0}})));
  // numpy.save(f, numpy.asfortranarray([[1, 2, 3], [4, 5, 6]], dtype='u1'))
  std::string header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }";
  header += std::string(117 - header.size(), ' ') + "\n";
  std::string const file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\x01\x04\x02\x05\x03\x06";
  CHECK(vv::from_npy(file).to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK_THROWS_AS(vv::from_npy(file.substr(0, file.size() - 1)), vv::value_error);
  std::string other = file;
  other.replace(other.find("|u1"), 3, "<c8");
  CHECK_THROWS_AS(vv::from_npy(other), vv::dtype_error);
}

TEST_CASE("npy, csv, safetensors: bytes by chance are refused or read, never worse", "[io][fuzz]") {
  std::mt19937 random(7);
  std::string const npy = vv::to_npy(tensor({{1.0, 2.0}, {3.0, 4.0}}));
  std::string const safe = vv::to_safetensors({{"a", tensor({1.0, 2.0})}, {"b", tensor({1, 2})}});
  int refused = 0;
  auto const survives = [&](auto const& read, std::string bytes) {
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    try {
      read(bytes);
    } catch (vv::error const&) { ++refused; }
  };
  for (int k = 0; k < 3000; ++k) {
    survives([](std::string const& b) { vv::from_npy(b); }, npy);
    survives([](std::string const& b) { vv::from_safetensors(b); }, safe);
    survives([](std::string const& b) { vv::parse_csv(b); }, std::string("a,b\n1,2\n3.5,4e1\n"));
  }
  CHECK(refused > 3000);
}

TEST_CASE("trees in files: by the names of their leaves", "[io][tree]") {
  model const m{{{tensor({{1.0, 2.0}}), tensor({3.0})}, {tensor({{4.0}}), tensor({5.0})}},
                {{"x", tensor({6.0f, 7.0f})}}};
  vv::save_tree("varve_test.safetensors", m);
  model const zeros = vv::tree_map([](tensor const& t) { return tensor(vv::zeros_like(t)); }, m);
  model const back = vv::load_tree("varve_test.safetensors", zeros);
  CHECK(same(back.layers[1].weight, m.layers[1].weight));
  CHECK(same(back.scales.at("x"), m.scales.at("x")));
  CHECK(vv::tree_names(m) == std::vector<std::string>{"0.0.weight", "0.0.bias", "0.1.weight", "0.1.bias", "1.x"});
  model other = zeros;
  other.layers[0].bias = tensor({1.0, 2.0});
  CHECK_THROWS_WITH(vv::load_tree("varve_test.safetensors", other), ContainsText("0.bias is float64[1] in the file"));
  other.layers.push_back(other.layers[0]);
  CHECK_THROWS_AS(vv::load_tree("varve_test.safetensors", other), vv::error);
  line<array<double, 2>> const l{{1, 2}, 3};
  vv::save_tree("varve_test.safetensors", l);
  auto const r = vv::load_tree("varve_test.safetensors", line<array<double, 2>>{});
  CHECK(vv::equal(r.slope, l.slope));
  CHECK(r.offset == 3);
}
