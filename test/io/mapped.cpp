// SPDX-License-Identifier: BSL-1.0
#include "varve_test.hpp"

#include <varve/io/npz.hpp>
#include <varve/io/tree_file.hpp>
#include <varve/varve.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <thread>

#if __has_include(<sys/stat.h>)
#include <sys/stat.h>
#endif

namespace vv = varve;
using vv::mapped;
using vv::tensor;

namespace {
struct layer {
  tensor weight, bias;
};
bool same(tensor const& a, tensor const& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.to_vector() == b.to_vector();
}
std::string bytes_of(std::string const& path) { return vv::detail::bytes_of_file("test", path); }
void write(std::string const& path, std::string const& bytes) { vv::detail::write_file("test", path, bytes); }
/// How many maps of a file this process has; -1 where the system does not say.
int maps_of(std::string const& name) {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return -1;
  int n = 0;
  for (std::string line; std::getline(maps, line);) n += line.find(name) != std::string::npos;
  return n;
}
vv::named_tensors samples() {
  return {{"flags", tensor({true, false, true})},
          {"a", tensor({{1.5, -2.0}, {3.0, 4.0}})},
          {"small", tensor({1.0f, 2.0f, 3.0f})},
          {"empty", vv::zeros({0, 3})},
          {"number", tensor(2.5)},
          {"large", vv::arange(20000, vv::dtype::float32)}};
}
void check_same(vv::named_tensors const& x, vv::named_tensors const& y) {
  REQUIRE(x.size() == y.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    CHECK(x[k].first == y[k].first);
    CHECK(same(x[k].second, y[k].second));
  }
}
} // namespace

TEST_CASE("mapped npy: the values of the file, which writes do not reach", "[io][mapped]") {
  tensor const x({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  vv::save_npy("varve_mapped.npy", x);
  std::string const before = bytes_of("varve_mapped.npy");
  {
    tensor const m = vv::load_npy("varve_mapped.npy", mapped), again = vv::load_npy("varve_mapped.npy", mapped);
    CHECK(same(m, x));
    if (int const n = maps_of("varve_mapped.npy"); n >= 0) CHECK(n == 2);
    m[1] = 7.0;
    m.add_(1.0);
    CHECK(same(m, tensor({{2.0, 3.0, 4.0}, {8.0, 8.0, 8.0}})));
    CHECK(m.version() == 2);
    CHECK(same(again, x)); // another map has its own pages
    CHECK(bytes_of("varve_mapped.npy") == before);
  }
  if (int const n = maps_of("varve_mapped.npy"); n >= 0) CHECK(n == 0);
  // a view keeps the file mapped, also on another thread, and after its name has gone
  tensor row = vv::load_npy("varve_mapped.npy", mapped)[1];
  if (int const n = maps_of("varve_mapped.npy"); n >= 0) CHECK(n == 1);
  CHECK(std::remove("varve_mapped.npy") == 0);
  std::thread([r = std::move(row)] { REQUIRE(r.to_vector() == std::vector<double>{4, 5, 6}); }).join();
  if (int const n = maps_of("varve_mapped.npy"); n >= 0) CHECK(n == 0);
}

TEST_CASE("mapped npy: transforms, gradients and columns first", "[io][mapped]") {
  vv::save_npy("varve_mapped.npy", tensor({1.0, 2.0, 3.0}));
  tensor const m = vv::load_npy("varve_mapped.npy", mapped);
  CHECK(same(vv::grad([](auto const& v) { return vv::sum(v * v * v); })(m), tensor({3.0, 12.0, 27.0})));
  m.requires_grad_();
  (m * m).sum().backward();
  CHECK(same(m.grad(), tensor({2.0, 4.0, 6.0})));
  std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
  header += std::string(117 - header.size(), ' ') + "\n";
  std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header;
  for (float v : {1.0f, 4.0f, 2.0f, 5.0f, 3.0f, 6.0f}) file.append(reinterpret_cast<char const*>(&v), sizeof v);
  write("varve_columns.npy", file);
  tensor const c = vv::load_npy("varve_columns.npy", mapped);
  CHECK(same(c, tensor({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}})));
  CHECK(c.strides() == vv::dims{1, 2}); // as it lies in the file
  CHECK(same(vv::load_npy("varve_columns.npy"), c));
}

TEST_CASE("mapped npz and safetensors: all that varve writes lies where it can be mapped", "[io][mapped]") {
  vv::save_npz("varve_mapped.npz", samples());
  vv::save_safetensors("varve_mapped.safetensors", samples());
  for (std::string const path : {"varve_mapped.npz", "varve_mapped.safetensors"}) {
    std::string const before = bytes_of(path);
    bool const archive = path == "varve_mapped.npz";
    {
      auto const all = archive ? vv::load_npz(path, mapped) : vv::load_safetensors(path, mapped);
      check_same(all, samples());
      check_same(archive ? vv::load_npz(path) : vv::load_safetensors(path), samples());
      if (int const n = maps_of(path); n >= 0) CHECK(n == 1); // one map for all
      auto const [first, last] = std::minmax({all[1].second.data<double>(), all[4].second.data<double>()});
      CHECK((last - first) * 8 < static_cast<std::ptrdiff_t>(before.size())); // not copied: they lie in one file
      for (auto const& [name, t] : all) t.fill_(1.0);
      CHECK(all[5].second[19999].item() == 1.0);
      CHECK(bytes_of(path) == before);
    }
    if (int const n = maps_of(path); n >= 0) CHECK(n == 0);
  }
}

TEST_CASE("mapped trees", "[io][mapped]") {
  std::vector<layer> const m{{tensor({{1.0, 2.0}}), tensor({3.0})}, {tensor({{4.0}}), tensor({5.0})}};
  std::vector<layer> const like{{vv::zeros({1, 2}, vv::dtype::float64), tensor({0.0})},
                                {tensor({{0.0}}), tensor({0.0})}};
  vv::save_tree("varve_mapped_tree.safetensors", m);
  vv::save_npz("varve_mapped_tree.npz", m);
  for (auto const& back : {vv::load_tree("varve_mapped_tree.safetensors", like, mapped),
                           vv::load_npz("varve_mapped_tree.npz", like, mapped)}) {
    CHECK(same(back[0].weight, m[0].weight));
    CHECK(same(back[1].bias, m[1].bias));
    back[1].bias.add_(1.0);
  }
  CHECK(same(vv::load_tree("varve_mapped_tree.safetensors", like)[1].bias, tensor({5.0})));
  CHECK_THROWS_WITH(vv::load_tree("varve_mapped_tree.safetensors", layer{tensor({1.0}), tensor({1.0})}, mapped),
                    ContainsText("load_tree: the file varve_mapped_tree.safetensors has no 0"));
}

TEST_CASE("mapped: what lies across its alignment is a copy, and bools are bools", "[io][mapped]") {
  std::string header = R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},)"
                       R"("x":{"dtype":"F64","shape":[1],"data_offsets":[3,11]}})";
  while (header.size() % 8) header += ' ';
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  double const v = 2.5;
  file += header + std::string("\x00\x02\xFF", 3) + std::string(reinterpret_cast<char const*>(&v), 8);
  write("varve_across.safetensors", file);
  auto const all = vv::load_safetensors("varve_across.safetensors", mapped);
  CHECK(all[1].second.item() == 2.5);
  CHECK(reinterpret_cast<std::uintptr_t>(all[1].second.raw()) % 8 == 0);
  CHECK(same(all[0].second, tensor({false, true, true})));
  CHECK(static_cast<unsigned char const*>(all[0].second.raw())[2] == 1);
  CHECK(bytes_of("varve_across.safetensors") == file);
  // arrays of an archive of others, which pads nothing: read, and their checksums asked
  std::string npz = vv::to_npz({{"w", tensor({1.0, 2.0})}});
  std::size_t const padding = static_cast<unsigned char>(npz[28]);
  REQUIRE(padding >= 6);
  npz.erase(35, padding); // behind "w.npy"
  npz[28] = 0;
  std::size_t const end = npz.find("PK\x05\x06");
  npz[end + 16] = static_cast<char>(npz.find("PK\x01\x02") & 255);
  npz[end + 17] = static_cast<char>(npz.find("PK\x01\x02") >> 8);
  write("varve_across.npz", npz);
  CHECK(same(vv::load_npz("varve_across.npz", mapped)[0].second, tensor({1.0, 2.0})));
  npz[npz.find("NUMPY") + 125] ^= 1;
  write("varve_across.npz", npz);
  CHECK_THROWS_WITH(vv::load_npz("varve_across.npz", mapped), ContainsText("w.npy") && ContainsText("checksum"));
}

TEST_CASE("mapped: files that are not there, empty, short, or no files", "[io][mapped]") {
  CHECK_THROWS_WITH(vv::load_npy("nowhere.npy", mapped), ContainsText("load_npy: the file nowhere.npy cannot be read"));
  CHECK_THROWS_WITH(vv::load_npz("nowhere.npz", mapped), ContainsText("nowhere.npz cannot be read"));
  CHECK_THROWS_WITH(vv::load_safetensors("nowhere", mapped), ContainsText("load_safetensors: the file nowhere"));
  write("varve_empty.npy", "");
  CHECK_THROWS_WITH(vv::load_npy("varve_empty.npy", mapped), ContainsText("does not begin as one"));
  CHECK_THROWS_WITH(vv::load_npz("varve_empty.npy", mapped), ContainsText("0 bytes"));
  CHECK_THROWS_WITH(vv::load_safetensors("varve_empty.npy", mapped), ContainsText("8 are the least"));
  CHECK_THROWS_AS(vv::load_npy(".", mapped), vv::value_error);
  CHECK_THROWS_AS(vv::load_npy("."), vv::value_error);
  std::string const whole = vv::to_npy(tensor({1.0, 2.0, 3.0}));
  write("varve_short.npy", whole.substr(0, whole.size() - 1));
  CHECK_THROWS_WITH(vv::load_npy("varve_short.npy", mapped), ContainsText("wants more than the 23 bytes"));
  if (int const n = maps_of("varve_short.npy"); n >= 0) CHECK(n == 0);
#if __has_include(<sys/stat.h>)
  std::remove("varve_pipe");
  REQUIRE(::mkfifo("varve_pipe", 0600) == 0);
  for (int k = 0; k < 100; ++k) { // cannot be mapped: it is read, whoever opens it first
    std::thread writer([&] { write("varve_pipe", whole); });
    if (k % 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(same(vv::load_npy("varve_pipe", mapped), tensor({1.0, 2.0, 3.0})));
    writer.join();
  }
  std::remove("varve_pipe");
#endif
}

TEST_CASE("mapped files by chance are refused or read as their copies are", "[io][mapped][fuzz]") {
  std::mt19937 random(5);
  std::string const files[] = {vv::to_npy(tensor({{1.0, 2.0}, {3.0, 4.0}})),
                               vv::to_npz({{"w", tensor({1.0, 2.0})}, {"b", tensor({true, false})}}),
                               vv::to_safetensors({{"a", tensor({1.0, 2.0})}, {"b", tensor({1, 2})}})};
  auto const read = [](std::size_t kind, auto... how) -> std::string {
    std::string const path = "varve_chance";
    vv::named_tensors all;
    try {
      if (kind == 0) all.emplace_back("x", vv::load_npy(path, how...));
      if (kind == 1) all = vv::load_npz(path, how...);
      if (kind == 2) all = vv::load_safetensors(path, how...);
    } catch (vv::error const& e) { return e.what(); }
    std::string r;
    for (auto const& [name, t] : all) r += name + " " + vv::to_npy(t);
    return r;
  };
  std::size_t refused = 0, differ = 0;
  for (int k = 0; k < 1500; ++k) {
    std::size_t const kind = random() % 3;
    std::string bytes = files[kind];
    for (int n = 0; n < 2; ++n) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    write("varve_chance", bytes);
    std::string const copy = read(kind), map = read(kind, mapped);
    refused += map.rfind("varve:", 0) == 0;
    // what has a wrong checksum is refused only as a copy
    if (copy != map && copy.find("checksum") == std::string::npos) ++differ;
  }
  CHECK(differ == 0);
  CHECK(refused > 500);
  if (int const n = maps_of("varve_chance"); n >= 0) CHECK(n == 0);
}
