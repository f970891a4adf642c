// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/interop/hana.hpp>
#include <varve/io/csv.hpp>
#include <varve/io/npy.hpp>
#include <varve/io/tree_file.hpp>
#include <varve/varve.hpp>

#include <cmath>
#include <map>
#include <random>

namespace vv = varve;
using vv::array;
using vv::dims;
using vv::index_t;
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

TEST_CASE("csv: RFC 4180, and which first row has names", "[io][csv]") {
  struct row {
    char const* text;
    std::vector<std::string> names;
    std::vector<double> numbers;
    index_t columns;
  };
  using names = std::vector<std::string>;
  for (row const& r : std::vector<row>{
           {"a,b\r1,2\r3,4\r", {"a", "b"}, {1, 2, 3, 4}, 2}, // lines of old Macs
           {"a,b\r\n1,2\r\n3,4", {"a", "b"}, {1, 2, 3, 4}, 2},
           {"1,2\n\r\n\n3,4\n \n", {}, {1, 2, 3, 4}, 2},
           {"\"1\",\"2\"\n3,4\n", {}, {1, 2, 3, 4}, 2}, // a number in quotes is a number
           {"year,2020\"\n", {"year", "2020\""}, {}, 2},
           {"\"a \"\"b\"\"\",\"c,d\",\"e\nf\"\n1,2,3\n", {"a \"b\"", "c,d", "e\nf"}, {1, 2, 3}, 3},
           {" \"a\" , b c\t\n 1 ,\t2 \n", {"a", "b c"}, {1, 2}, 2},
           {"\"\",x\n1,2\n", {"", "x"}, {1, 2}, 2},
           {"0x10,0x11\n1,2\n", {"0x10", "0x11"}, {1, 2}, 2},
           {"1e-400,-1e-400,1e400,inf\n", {}, {0, 0, HUGE_VAL, HUGE_VAL}, 4},
           {"1", {}, {1}, 1},
           {"", {}, {}, 0},
       }) {
    INFO(r.text);
    auto const t = vv::parse_csv(r.text);
    CHECK(t.names == r.names);
    CHECK(t.data.to_vector() == r.numbers);
    CHECK(t.data.sizes() == dims{r.columns ? static_cast<index_t>(r.numbers.size()) / r.columns : 0, r.columns});
  }
  CHECK(vv::parse_csv("1\t2\n\"3\"\t4", '\t').data.to_vector() == std::vector<double>{1, 2, 3, 4});
  CHECK(vv::parse_csv("1,2\n3,4", {.header = vv::csv_header::present}).names == names{"1", "2"});
  CHECK_THROWS_WITH(vv::parse_csv("a,b\n3,4", {.header = vv::csv_header::absent}), ContainsText("line 1, column 1"));
  CHECK_THROWS_WITH(vv::parse_csv("x,2\n3,4"), ContainsText("line 1, column 1: \"x\" is no number"));
  CHECK_THROWS_WITH(vv::parse_csv("1,2\n3,\"4"), ContainsText("line 2, column 3") && ContainsText("no closing quote"));
  CHECK_THROWS_WITH(vv::parse_csv("\"a\n b\",c\n1,\"2\"3"),
                    ContainsText("line 3, column 6") && ContainsText("behind the closing quote"));
  CHECK_THROWS_AS(vv::parse_csv("1", '"'), vv::value_error);
}

TEST_CASE("csv: missing values are NaN on request", "[io][csv]") {
  for (char const* text : {",2,3\n4,5,6\n", "NA,2,3\n4,5,6\n", "\"\",2,3\n4,5,6\n", "N/A,2,3\n4,5,6\n",
                           "null,2,3\n4,5,6\n", "nan,2,3\n4,5,6\n"}) {
    INFO(text);
    auto const t = vv::parse_csv(text, {.missing_is_nan = true});
    CHECK(t.names.empty());
    REQUIRE(t.data.sizes() == dims{2, 3});
    auto const all = t.data.to_vector();
    CHECK(all[0] != all[0]);
    CHECK(std::vector<double>(all.begin() + 1, all.end()) == std::vector<double>{2, 3, 4, 5, 6});
    if (text[0] != 'n' || text[1] != 'a')
      CHECK_THROWS_WITH(vv::parse_csv(text), ContainsText("line 1, column 1") && ContainsText("missing_is_nan"));
  }
  CHECK(vv::parse_csv("a,b\n1,\n,NA\n", {.missing_is_nan = true}).data.sizes() == dims{2, 2});
  CHECK(vv::parse_csv(",\n,\n", {.missing_is_nan = true}).data.sizes() == dims{2, 2}); // no row of names
  CHECK_THROWS_WITH(vv::parse_csv("1,2\n3,\n"), ContainsText("line 2, column 3: \"\" is a missing value"));
}

TEST_CASE("csv: names and numbers are read as they were written", "[io][csv]") {
  std::vector<std::string> const names{"a,b",        "say \"x\"", " blank ",    "",
                                       "two\nlines", "cr\r",      "semi;colon", "\xC3\xA4"};
  tensor const x = vv::reshape(vv::arange(16, vv::dtype::float64), dims{2, 8}) / 3.0;
  for (char delimiter : {',', ';', '\t'}) {
    vv::write_csv("varve_test.csv", x, names, delimiter);
    auto const back = vv::read_csv("varve_test.csv", delimiter);
    CHECK(back.names == names);
    CHECK(same(back.data, x));
  }
  vv::write_csv("varve_test.csv", tensor({{0.1, -HUGE_VAL}}), {"2020", "2021"});
  auto const years = vv::read_csv("varve_test.csv", {.header = vv::csv_header::present});
  CHECK(years.names == std::vector<std::string>{"2020", "2021"});
  CHECK(same(years.data, tensor({{0.1, -HUGE_VAL}})));
  vv::write_csv("varve_test.csv", tensor({NAN, 2.0}), {"x"});
  CHECK(vv::read_csv("varve_test.csv").data.to_vector()[1] == 2.0);
  CHECK_THROWS_WITH(vv::write_csv("varve_test.csv", x, {"a"}), ContainsText("1 names were given for 8 columns"));
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

TEST_CASE("npy: headers as other programs and older NumPys write them", "[io][npy]") {
  auto const file = [](std::string const& header, std::string const& data, int version = 1) {
    std::string r("\x93NUMPY", 6);
    r += static_cast<char>(version), r += '\0';
    for (int k = 0; k < (version == 1 ? 2 : 4); ++k) r += static_cast<char>(header.size() >> 8 * k & 255);
    return r + header + data;
  };
  auto const header = [](std::string const& type, std::string const& shape) {
    return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  };
  using numbers = std::vector<double>;
  auto const bytes = [](auto... v) { return (std::string(reinterpret_cast<char const*>(&v), sizeof v) + ...); };
  for (char const* type : {"|u1", "<u1", ">u1", "=u1", "u1"})
    CHECK(vv::from_npy(file(header(type, "(2,)"), "\x01\xFF")).to_vector() == numbers{1, 255});
  for (char const* type : {"|i1", "<i1", "i1"})
    CHECK(vv::from_npy(file(header(type, "(2,)"), "\x01\xFF")).to_vector() == numbers{1, -1});
  for (char const* type : {"|b1", "<b1"})
    CHECK(same(vv::from_npy(file(header(type, "(2,)"), std::string("\x01\x00", 2))), tensor({true, false})));
  for (char const* type : {"<f8", "=f8", "f8", "|f8"})
    CHECK(same(vv::from_npy(file(header(type, "(2,)"), bytes(0.5, -2.0))), tensor({0.5, -2.0})));
  CHECK(same(vv::from_npy(file(header("<f8", "(2L, 1L)"), bytes(0.5, -2.0))), tensor({{0.5}, {-2.0}})));
  CHECK(same(vv::from_npy(file(header("<f8", "(2L,)"), bytes(0.5, -2.0))), tensor({0.5, -2.0})));
  CHECK(same(vv::from_npy(file(header("<f8", "()"), bytes(0.5))), tensor(0.5)));
  CHECK(same(vv::from_npy(file("{\"shape\": (1,), \"fortran_order\": False, \"descr\": \"<f8\"}", bytes(0.5), 3)),
             tensor({0.5})));
  CHECK(same(vv::from_npy(file("{'descr':'<f4','fortran_order':True,'shape':( 1 , 2 )}  \n", bytes(1.0f, 2.0f), 2)),
             tensor({{1.0f, 2.0f}})));
  std::string const first = vv::to_npy(tensor({1.0, 2.0})), second = vv::to_npy(tensor({3.0}));
  CHECK(same(vv::from_npy(first + second), tensor({1.0, 2.0}))); // as numpy.load has it
  CHECK_THROWS_WITH(vv::from_npy(file(header("<M8[ns]", "(1,)"), bytes(0.5))), ContainsText("type '<M8[ns]' are not"));
  CHECK_THROWS_WITH(vv::from_npy(file(header(">f8", "(1,)"), bytes(0.5))),
                    ContainsText("'>f8'") && ContainsText("little-endian"));
  CHECK_THROWS_WITH(
      vv::from_npy(
          file("{'descr': [('x', '<f8'), ('y', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(0.5, 1.5))),
      ContainsText("[('x', '<f8'), ('y', '<f8')]") && ContainsText("each field"));
  struct row {
    std::string header, message;
  };
  for (row const& r :
       std::vector<row>{{"{'descr': '<f8', 'shape': (1,), }", "lacks 'descr', 'fortran_order' or 'shape'"},
                        {"{'descr': '<f8', 'order': 1}", "the key 'order'"},
                        {"{'descr': '<f8', 'fortran_order': 1", "neither True nor False"},
                        {"{'shape': (-1,)", "a size that is no number"},
                        {"{'shape': 5}", "must have '(' before \"5}\" (column 11)"},
                        {"{'descr", "a string without an end"},
                        {"", "must have '{'"}})
    CHECK_THROWS_WITH(vv::from_npy(file(r.header, bytes(0.5))), ContainsText(r.message));
  CHECK_THROWS_WITH(vv::from_npy(file(header("<f8", "(1,)"), bytes(0.5), 4)), ContainsText("version 4"));
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
    survives([](std::string const& b) { vv::parse_csv(b); }, std::string("a,\"b\"\"\"\n1,2\r3.5,\"4e1\"\n"));
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
