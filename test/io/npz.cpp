// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/io/npz.hpp>
#include <varve/io/zlib.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

namespace vv = varve;
using vv::array;
using vv::tensor;

namespace {
template <class T>
struct layer {
  T weight, bias;
};
bool same(tensor const& a, tensor const& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.to_vector() == b.to_vector();
}
vv::named_tensors samples() {
  return {{"a", tensor({{1.5, -2.0}, {3.0, 4.0}})}, {"folder/b", tensor({1, 2, 3})},
          {"flags", tensor({true, false})},         {"empty", vv::zeros({0, 3})},
          {"number", tensor::from_number(2.5)},     {"large", vv::arange(20000, vv::dtype::float32)}};
}
void check_same(vv::named_tensors const& x, vv::named_tensors const& y) {
  REQUIRE(x.size() == y.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    CHECK(x[k].first == y[k].first);
    CHECK(same(x[k].second, y[k].second));
  }
}
/// The greatest piece of memory that a function asked for by `new`, through which strings, vectors and tensors go.
std::size_t greatest = 0;
} // namespace
#if VARVE_RECYCLE_BLOCKS // sanitizers have operators of their own
namespace {
void* allocate(std::size_t n, std::size_t alignment) {
  greatest = (std::max)(greatest, n);
  void* p = std::aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment + (n == 0 ? alignment : 0));
  if (!p) throw std::bad_alloc();
  return p;
}
} // namespace
void* operator new(std::size_t n) { return allocate(n, 16); }
void* operator new(std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

TEST_CASE("npz: what is written is read", "[io][npz]") {
  std::string const bytes = vv::to_npz(samples());
  check_same(vv::from_npz(bytes), samples());
  check_same(vv::from_npz(vv::to_npz({})), {});
  CHECK_THROWS_WITH(vv::to_npz({{"a", tensor({1})}, {"a", tensor({2})}}), ContainsText("the name a"));
  CHECK(vv::detail::crc32("123456789") == 0xCBF43926u);
}

TEST_CASE("npz: what is read is found by its name", "[io][npz]") {
  std::string const path = "npz_names.npz";
  tensor const w = {1.0, 2.0};
  vv::save_npz(path, {{"w", w}, {"b", tensor{3, 4}}});
  vv::named_tensors const all = vv::load_npz(path);
  CHECK(same(all["w"], w));
  CHECK(same(all.at("b"), tensor{3, 4}));
  CHECK(same(all[1].second, all["b"]));
  CHECK(all.contains("w"));
  CHECK_FALSE(all.contains("W"));
  CHECK_THROWS_WITH(all["W"], ContainsText("no tensor of the name W, but w, b"));
  vv::save_npz(path, std::vector<std::pair<std::string, tensor>>{{"x", w}});
  CHECK(same(vv::load_npz(path).at("x"), w));
  std::remove(path.c_str());
}

TEST_CASE("npz: trees by the names of their leaves", "[io][npz]") {
  std::vector<layer<tensor>> const m{{tensor({{1.0, 2.0}}), tensor({3.0})}, {tensor({{4.0}}), tensor({5.0})}};
  vv::save_npz("varve_test.npz", m);
  auto const all = vv::load_npz("varve_test.npz");
  REQUIRE(all.size() == 4);
  CHECK(all[2].first == "1.0");
  auto const zeros = vv::tree_map([](tensor const& t) { return tensor(vv::zeros_like(t)); }, m);
  CHECK(same(vv::load_npz("varve_test.npz", zeros)[1].weight, m[1].weight));
  layer<array<double, 2>> const l{{1, 2}, {3, 4}};
  vv::save_npz("varve_test.npz", l);
  CHECK(vv::equal(vv::load_npz("varve_test.npz", layer<array<double, 2>>{}).bias, l.bias));
  CHECK_THROWS_WITH(vv::load_npz("varve_test.npz", layer<array<float, 2>>{}),
                    ContainsText("load_npz: 0 is float64[2]"));
  CHECK_THROWS_WITH(vv::load_npz("varve_test.npz", std::map<std::string, tensor>{{"x", tensor({1})}}),
                    ContainsText("varve_test.npz has no x"));
}

TEST_CASE("npz: what is wrong is named, with its place", "[io][npz]") {
  std::string const good = vv::to_npz({{"w", tensor({1.0, 2.0})}, {"b", tensor({3.0})}});
  std::string bad = good;
  bad[bad.find("NUMPY") + 125] ^= 1; // an element
  CHECK_THROWS_WITH(vv::from_npz(bad), ContainsText("w.npy") && ContainsText("checksum"));
  CHECK_THROWS_WITH(vv::from_npz(good.substr(0, good.size() - 30)), ContainsText("no end of an archive"));
  CHECK_THROWS_WITH(vv::from_npz(""), ContainsText("0 bytes"));
  bad = good;
  bad.replace(bad.find("PK\x01\x02"), 4, "xxxx");
  CHECK_THROWS_WITH(vv::from_npz(bad), ContainsText("directory expected") && ContainsText("byte "));
  bad = good;
  bad[bad.find("PK\x01\x02") + 24] = 7; // its size
  CHECK_THROWS_WITH(vv::from_npz(bad), ContainsText("w.npy: it is stored, and has two sizes"));
  bad = good;
  bad[bad.find("PK\x01\x02") + 10] = 12; // bzip2
  CHECK_THROWS_WITH(vv::from_npz(bad), ContainsText("w.npy: the compression method 12"));
  std::string const one = vv::to_npz({{"w", vv::zeros({500})}});
  std::size_t const directory = one.find("PK\x01\x02"), end = one.find("PK\x05\x06");
  bad = one;
  bad.insert(end, one.substr(directory, end - directory)); // the same file twice
  std::size_t const last = bad.find("PK\x05\x06");
  bad[last + 8] = bad[last + 10] = 2;
  CHECK_THROWS_WITH(vv::from_npz(bad), ContainsText("w.npy: it shares bytes with another file"));
  vv::detail::zip_writer other;
  other.add("readme.txt", "text", vv::stored{});
  CHECK_THROWS_WITH(vv::from_npz(std::move(other).finish()), ContainsText("readme.txt is no .npy file"));
  vv::detail::zip_writer damaged;
  damaged.add("v.npy", "text", vv::stored{});
  CHECK_THROWS_WITH(vv::from_npz(std::move(damaged).finish()), ContainsText("npy: v.npy: the file does not begin"));
}

TEST_CASE("npz: bytes by chance are refused or read, and nothing is allocated beyond them", "[io][npz][fuzz]") {
  std::mt19937 random(11);
  std::vector<std::string> const files{vv::to_npz({{"w", tensor({1.0, 2.0})}, {"b", tensor({3, 4})}}),
                                       vv::to_npz({{"only", vv::zeros({3, 5})}})};
  std::size_t refused = 0;
  char const* const telling[] = {
      "PK\x01\x02",        "PK\x03\x04",       "PK\x05\x06",         "PK\x06\x07",
      "\xFF\xFF\xFF\xFF",  "\xFF\xFF\xFF\x7F", "(9999999999999999,", "(1152921504606846976, 8",
      "(0, 1000000000000", "'shape': "};
  for (int k = 0; k < 20000; ++k) {
    std::string bytes = files[random() % files.size()];
    for (unsigned n = random() % 3 + 1; n-- > 0;) {
      std::string_view const piece = telling[random() % std::size(telling)];
      std::size_t const at = random() % bytes.size();
      switch (random() % 5) {
      case 0:
        bytes.resize(at + 1);
        break;
      case 1:
        bytes.replace(at, piece.size(), piece);
        break;
      case 2:
        bytes.insert(at, piece);
        break;
      default:
        bytes[at] = static_cast<char>(random());
      }
    }
    greatest = 0;
    try {
      vv::from_npz(bytes);
    } catch (vv::error const&) { ++refused; }
    if (greatest > 4096 + 4 * bytes.size()) { // blocks of tensors, messages, lists of entries
      INFO("after " << k << " files");
      CHECK(greatest <= 4096 + 4 * bytes.size());
    }
  }
  CHECK(refused > 10000);
}

#if defined(VARVE_TEST_ZLIB)
TEST_CASE("npz: compressed by zlib", "[io][npz]") {
  std::string const packed = vv::to_npz(samples(), vv::zlib{9});
  CHECK(packed.size() < vv::to_npz(samples()).size());
  check_same(vv::from_npz(packed, vv::zlib{}), samples());
  CHECK_THROWS_WITH(vv::from_npz(packed), ContainsText("a.npy: it is compressed") && ContainsText("vv::zlib{}"));
  check_same(vv::from_npz(vv::to_npz(samples()), vv::zlib{}), samples());
  CHECK_THROWS_AS(vv::to_npz(samples(), vv::zlib{77}), vv::value_error);
  // A file that says it unpacks to much more than its bytes could hold asks for no memory.
  std::string bad = packed;
  std::size_t const entry = bad.find("PK\x01\x02");
  bad.replace(entry + 24, 4, "\xF0\xFF\xFF\x7F");
  greatest = 0;
  CHECK_THROWS_WITH(vv::from_npz(bad, vv::zlib{}), ContainsText("said to be packed in"));
  CHECK(greatest < 100000);
  std::mt19937 random(3);
  std::size_t refused = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string bytes = packed;
    for (int n = 0; n < 3; ++n) bytes[random() % bytes.size()] = static_cast<char>(random());
    greatest = 0;
    try {
      vv::from_npz(bytes, vv::zlib{});
    } catch (vv::error const&) { ++refused; }
    if (greatest > 1033 * bytes.size()) FAIL("more memory than the file could fill");
  }
  CHECK(refused > 2000);
}
#endif

#if defined(VARVE_TEST_NUMPY)
namespace {
/// Runs a text of Python with NumPy; true when it ends well.
bool python(std::string const& text) {
  std::FILE* f = std::fopen("varve_test_npz.py", "w");
  std::fputs(("import numpy as np\n" + text).c_str(), f);
  std::fclose(f);
  return std::system(VARVE_TEST_NUMPY " varve_test_npz.py") == 0;
}
} // namespace
TEST_CASE("npy and npz: NumPy reads what varve wrote", "[io][npz]") {
  vv::save_npz("varve_to_numpy.npz", samples());
  vv::save_npy("varve_to_numpy.npy", tensor({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}}));
  std::string const checks = R"(
assert sorted(f.files) == ['a', 'empty', 'flags', 'folder/b', 'large', 'number'], f.files
assert f['a'].dtype == np.float64 and (f['a'] == [[1.5, -2], [3, 4]]).all()
assert (f['folder/b'] == [1, 2, 3]).all() and f['folder/b'].dtype == np.int32
assert f['flags'].dtype == np.bool_ and f['flags'].tolist() == [True, False]
assert f['empty'].shape == (0, 3) and f['number'] == 2.5 and f['number'].shape == ()
assert (f['large'] == np.arange(20000)).all()
)";
  CHECK(python(
      "f = np.load('varve_to_numpy.npz')\n" + checks +
      "x = np.load('varve_to_numpy.npy')\nassert x.dtype == np.float32 and (x == [[1, 2, 3], [4, 5, 6]]).all()"));
  CHECK_FALSE(python("assert np.load('varve_to_numpy.npz')['a'][0, 0] == 7")); // it does fail
#if defined(VARVE_TEST_ZLIB)
  vv::save_npz("varve_packed.npz", samples(), vv::zlib{});
  CHECK(python("f = np.load('varve_packed.npz')\n" + checks));
#endif
}
TEST_CASE("npy and npz: varve reads what NumPy wrote", "[io][npz]") {
  REQUIRE(python(R"(
x = dict(a=np.arange(6.0).reshape(2, 3), f=np.asfortranarray([[1, 2], [3, 4]], dtype=np.int32), b=np.array([True]),
         s=np.float32(2.5), e=np.zeros((0, 4)), u=np.arange(5000, dtype=np.uint8))
np.savez('numpy_to_varve.npz', **x)
np.savez_compressed('numpy_packed.npz', **x)
np.save('numpy_to_varve.npy', np.arange(4)[::2])
)"));
  auto const check = [](vv::named_tensors const& x) {
    REQUIRE(x.size() == 6);
    CHECK(x[0].first == "a");
    CHECK(same(x[0].second, tensor({{0.0, 1.0, 2.0}, {3.0, 4.0, 5.0}})));
    CHECK(same(x[1].second, tensor({{1, 2}, {3, 4}})));
    CHECK(x[2].second.dtype() == vv::dtype::bool_);
    CHECK((x[3].second.dim() == 0 && x[3].second.item() == 2.5));
    CHECK(x[4].second.sizes() == vv::dims{0, 4});
    CHECK(x[5].second[4999].item<int>() == 4999 % 256);
  };
  check(vv::load_npz("numpy_to_varve.npz"));
  CHECK(vv::load_npy("numpy_to_varve.npy").to_vector<int>() == std::vector<int>{0, 2});
  CHECK_THROWS_WITH(vv::load_npz("numpy_packed.npz"), ContainsText("io/zlib.hpp"));
#if defined(VARVE_TEST_ZLIB)
  check(vv::from_npz(vv::detail::bytes_of_file("test", "numpy_packed.npz"), vv::zlib{}));
#endif
}
#endif
