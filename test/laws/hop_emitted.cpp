// SPDX-License-Identifier: BSL-1.0
// Operators with functions as C++ text: all rows are one unit, which the system's compiler makes a library of.
#include "hop_law.hpp"

#include <varve/export/cpp_backend.hpp>
#include <varve/varve.hpp>

#include <filesystem>

using namespace hop_law;
namespace vv = varve;

namespace {
/// A directory of its own, which goes with it.
struct own_cache {
  std::filesystem::path at;
  own_cache() {
    std::string name = (std::filesystem::temp_directory_path() / "varve_hop_XXXXXX").string();
    at = ::mkdtemp(name.data());
  }
  own_cache(own_cache const&) = delete;
  own_cache& operator=(own_cache const&) = delete;
  ~own_cache() { std::filesystem::remove_all(at); }
};
std::string replaced(std::string text, std::string const& what, std::string const& by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}
using entry = void (*)(void const* const*, void* const*);
/// Calls an emitted function, whose results are like others.
values run(entry f, values const& x, values const& results) {
  values in, out;
  std::vector<void const*> from;
  std::vector<void*> to;
  for (tensor const& t : x)
    in.push_back(sample::from(elements(t), t.sizes(), t.dtype())), from.push_back(in.back().raw());
  for (tensor const& t : results) out.push_back(sample::blank(t.sizes(), t.dtype())), to.push_back(out.back().raw());
  f(from.data(), to.data());
  return out;
}
} // namespace

TEST_CASE("all operators with functions: the emitted C++ computes what the program computes", "[laws][hop][export]") {
  std::string text;
  std::vector<std::pair<hop_row const*, std::string>> emitted;
  for (hop_row const& r : hop_rows())
    law(r, "emit_cpp", [&] {
      std::string const name = "row_" + std::to_string(emitted.size());
      std::string const unit = vv::detail::unit_of(vv::make_fx(r.run)(make(r, 1)));
      text += replaced(replaced(unit, "#pragma once", ""), "program", name); // a namespace and a function
      emitted.emplace_back(&r, name);
      return std::string();
    });
  REQUIRE(emitted.size() > 15);
  own_cache const cache;
  vv::cpp_options const how{.flags = {"-O0"}, .cache = cache.at, .include = VARVE_TEST_DIR "/../include", .wait = true};
  std::atomic<bool> const stops{false};
  bool made = false;
  auto const library = vv::detail::native_build(how, stops)(text, made);
  CHECK(made);
  for (auto const& [r, name] : emitted) {
    INFO(r->describe());
    auto const f = reinterpret_cast<entry>(vv::detail::native_function(library, ("varve_" + name).c_str()));
    for (std::uint64_t seed : {1, 2, 3}) {
      values const x = make(*r, seed), y = r->run(x);
      CHECK(difference(run(f, x, y), y) == "");
    }
  }
}
