// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Programs that `emit_c` wrote, compiled by a C compiler of the system into a library, and called.
#include "value.hpp"

#include <varve/dispatch/boxed.hpp>
#include <varve/export/emit_c.hpp>

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace sample {
/// A program, the dtypes of whose arguments and results stand in its header.
struct c_unit {
  std::string name;
  varve::c_program text;
  int arguments, results;
};
/// The C compilers of this machine, of each kind the first that is found.
inline std::vector<std::string> c_compilers() {
  auto const is_there = [](std::string const& name) {
    return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
  };
  std::vector<std::string> r;
  if (is_there("gcc")) r.emplace_back("gcc");
  if (is_there("clang-19")) r.emplace_back("clang-19");
  else if (is_there("clang")) r.emplace_back("clang");
  if (is_there("tcc")) r.emplace_back("tcc");
  return r;
}

/// A directory of its own, which goes with it, and a library in it.
class c_library {
public:
  /// The flags under which the text must compile without a warning.
  static constexpr char const* strict = "-std=c99 -Wall -Wextra -Wshadow -pedantic -Werror -ffp-contract=off";

  c_library(std::vector<c_unit> const& units, std::string const& compiler, std::string const& flags = "-O1") {
    std::string name = (std::filesystem::temp_directory_path() / "varve_c_XXXXXX").string();
    at_ = ::mkdtemp(name.data());
    std::ofstream all(at_ / "all.c"); // one unit: the names of a program begin with its own
    for (c_unit const& u : units) {
      std::ofstream(at_ / (u.name + ".h")) << u.text.header;
      std::string list;
      for (std::size_t k = 0; k < u.text.sizes.size(); ++k)
        list += (list.empty() ? "n[" : ", n[") + std::to_string(k) + "]";
      std::string const sizes = list;
      for (int k = 0; k < u.arguments; ++k) list += (list.empty() ? "x[" : ", x[") + std::to_string(k) + "]";
      for (int k = 0; k < u.results; ++k) list += (list.empty() ? "y[" : ", y[") + std::to_string(k) + "]";
      if (u.text.work) list += list.empty() ? "work" : ", work";
      std::string const parameters = "(const size_t *n, const void *const *x, void *const *y, void *work)",
                        bytes = "size_t bytes_" + u.name + "(const size_t *n)";
      all << u.text.source << "#include <stddef.h>\nint call_" << u.name << parameters << ";\nint call_" << u.name
          << parameters << " {\n  (void)n, (void)x, (void)y, (void)work;\n  return " << u.name << "(" << list
          << ");\n}\n";
      if (u.text.work < 0)
        all << bytes << ";\n" << bytes << " {\n  (void)n;\n  return " << u.name << "_work(" << sizes << ");\n}\n";
    }
    all.close();
    std::string const log = (at_ / "log").string();
    int const code = std::system(("cd " + at_.string() + " && " + compiler + " " + strict + " " + flags +
                                  " -shared -fPIC all.c -lm -o library.so >" + log + " 2>&1")
                                     .c_str());
    if (code != 0) {
      std::ifstream in(log);
      failed_ = compiler + ": " + std::string(std::istreambuf_iterator<char>(in), {}).substr(0, 2000);
      return;
    }
    loaded_ = ::dlopen((at_ / "library.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded_) failed_ = ::dlerror();
  }
  c_library(c_library const&) = delete;
  c_library& operator=(c_library const&) = delete;
  ~c_library() {
    if (loaded_) ::dlclose(loaded_);
    std::filesystem::remove_all(at_);
  }
  /// What the compiler said, if it failed.
  std::string const& failed() const { return failed_; }

  using entry = int (*)(std::size_t const*, void const* const*, void* const*, void*);
  entry function(std::string const& name) const {
    return reinterpret_cast<entry>(::dlsym(loaded_, ("call_" + name).c_str()));
  }
  /// The bytes of `work` that a program with symbolic sizes says it needs.
  std::size_t bytes(c_unit const& u, std::vector<std::size_t> const& sizes) const {
    if (u.text.work >= 0) return static_cast<std::size_t>(u.text.work);
    return reinterpret_cast<std::size_t (*)(std::size_t const*)>(::dlsym(loaded_, ("bytes_" + u.name).c_str()))(
        sizes.data());
  }
  /// Calls a program. `results` tells shapes and dtypes. Returns what the function returned, and the results; -1 if it
  /// wrote behind its memory.
  std::pair<int, values> run(c_unit const& u, values const& arguments, values const& results,
                             std::vector<std::size_t> const& sizes = {}) const {
    values in, out;
    std::vector<void const*> from;
    std::vector<void*> to;
    for (tensor const& t : arguments)
      in.push_back(t.is_contiguous() ? t : varve::detail::contiguous_copy(t)), from.push_back(in.back().raw());
    for (tensor const& t : results) out.push_back(blank(t.sizes(), t.dtype())), to.push_back(out.back().raw());
    std::vector<unsigned char> work(bytes(u, sizes) + 64, 0xa5); // aligned as by malloc
    int const code = function(u.name)(sizes.data(), from.data(), to.data(), work.data());
    bool const inside = std::all_of(work.end() - 64, work.end(), [](unsigned char c) { return c == 0xa5; });
    return {inside ? code : -1, out};
  }

private:
  std::filesystem::path at_;
  void* loaded_ = nullptr;
  std::string failed_;
};

/// Greatest difference of two lists of results, relative to 1 + |expected|; integers count exactly.
inline double greatest_difference(values const& got, values const& expected) {
  if (got.size() != expected.size()) return 1e9;
  double worst = 0;
  for (std::size_t r = 0; r < got.size(); ++r) {
    tensor const y = expected[r].is_contiguous() ? expected[r] : varve::detail::contiguous_copy(expected[r]);
    varve::on_dtype(y.dtype(), "test", [&]<class T>() {
      for (index_t k = 0; k < y.numel(); ++k) {
        auto const a = static_cast<long double>(static_cast<T const*>(got[r].raw())[k]),
                   b = static_cast<long double>(static_cast<T const*>(y.raw())[k]);
        long double const d = std::fabs(a - b) / (1 + std::fabs(b));
        bool const same = a == b || (a != a && b != b);
        if (!same && !(d <= worst)) worst = d >= 0 && d < 1e300L ? static_cast<double>(d) : 1e9;
      }
    });
  }
  return worst;
}
} // namespace sample
