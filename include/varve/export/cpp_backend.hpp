// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/aot/aot_function.hpp>
#include <varve/export/emit_cpp.hpp>
#include <varve/export/native_library.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <thread>

namespace varve {

/// Counts of the programs of this process that were passed to `backends::cpp`.
struct cpp_programs {
  long compiled = 0, from_disk = 0;
  /// Programs that run by `backends::fused`: permanently (`fused`), and until the compiler is done (`waiting`).
  long fused = 0, waiting = 0;
};

namespace detail {
struct cpp_counters {
  std::atomic<long> compiled{0}, from_disk{0}, fused{0}, waiting{0};
};
inline cpp_counters cpp_counted;

/// Returns a graph as a C++ translation unit with one function that takes arrays of addresses.
template <class G>
std::string unit_of(G const& g) {
  std::string s = emit_cpp(g, "program"), call;
  auto const also = [&](char const* list, int k, dtype t, char const* constant) {
    call += (call.empty() ? "" : ", ") + ("static_cast<" + std::string(cpp::type_text(t))) + constant + "*>(" + list +
            "[" + std::to_string(k) + "])";
  };
  region const& whole = g.regions[0];
  for (int k = 0; k < whole.inputs; ++k) also("x", k, g.nodes[whole.node_first + k].out.type, " const");
  for (int k = 0; k < whole.result_count; ++k) also("y", k, g.nodes[g.results[whole.result_first + k]].out.type, "");
  return s +
         "extern \"C\" __attribute__((visibility(\"default\"))) void varve_program([[maybe_unused]] void const* "
         "const* x, [[maybe_unused]] void* const* y) {\n  program::run(" +
         call + ");\n}\n";
}

/// A program that runs by `backends::fused` until its library is loaded. The compiler runs on a separate thread and is
/// stopped when the last copy of the program is destroyed.
class native_program {
public:
  native_program(graph const& g, cpp_options how) : meanwhile_(fuse(g)), how_(std::move(how)) {
    cpp_counted.waiting.fetch_add(1, std::memory_order_relaxed);
    auto const begin = [&] {
      text_ = unit_of(g);
      if (how_.wait) build();
      else worker_ = std::thread([this] { build(); });
    };
    detail::attempt<std::exception>(begin, [this](std::exception const& e) { stays(e.what()); });
  }
  native_program(native_program const&) = delete;
  native_program& operator=(native_program const&) = delete;
  ~native_program() {
    stops_.store(true, std::memory_order_relaxed);
    if (worker_.joinable()) worker_.join();
  }
  boxed_args operator()(boxed_args const& x) const {
    auto const run = run_.load(std::memory_order_acquire);
    return run ? meanwhile_.call(x, run) : meanwhile_(x);
  }

private:
  using entry = void (*)(void const* const*, void* const*);
  fused_graph meanwhile_;
  cpp_options how_;
  std::string text_;
  std::atomic<entry> run_{nullptr};
  std::atomic<bool> stops_{false};
  std::thread worker_;

  void stays(std::string const& why) {
    cpp_counted.waiting.fetch_sub(1, std::memory_order_relaxed);
    cpp_counted.fused.fetch_add(1, std::memory_order_relaxed);
    if (how_.report && !stops_.load(std::memory_order_relaxed)) how_.report(why);
  }
  void build() {
    auto const compile = [&] {
      bool made = false;
      native_build native(how_, stops_);
      auto const library = native(text_, made);
      auto const f = reinterpret_cast<entry>(native_function(library, "varve_program"));
      (made ? cpp_counted.compiled : cpp_counted.from_disk).fetch_add(1, std::memory_order_relaxed);
      cpp_counted.waiting.fetch_sub(1, std::memory_order_relaxed);
      run_.store(f, std::memory_order_release);
      if (made) native.precompile();
    };
    detail::attempt<std::exception>(compile, [this](std::exception const& e) { stays(e.what()); });
    text_.clear();
  }
};
} // namespace detail

namespace backends {
/// A backend for `compile(f, backends::cpp)` that writes each program as C++ (`emit_cpp`), compiles it with the
/// system's compiler into a shared library, and loads it. Libraries are cached on disk for other and later processes;
/// the key consists of the text, the compiler, the flags and varve's headers.
///
/// The first program also precompiles varve's kernels into the cache (20 to 90 MB). Each further program then takes the
/// compiler half a second to a second. Until a program is compiled, its calls run by `backends::fused`. They continue
/// to do so if there is no compiler or an operator of the graph cannot be written as C++; this is reported. To set
/// options use `backends::cpp.with({.wait = true})`.
struct cpp_t {
  std::shared_ptr<cpp_options const> how{};

  cpp_t with(cpp_options o) const { return {std::make_shared<cpp_options const>(std::move(o))}; }
  boxed_function operator()(graph const& g) const {
    if (g.results.empty()) return [](boxed_args const&) { return boxed_args(); };
    auto const p = std::make_shared<detail::native_program>(g, how ? *how : cpp_options{});
    return [p](boxed_args const& x) { return (*p)(x); };
  }
};
inline cpp_t const cpp{};

/// Returns the counts of this process's programs.
inline cpp_programs cpp_status() {
  auto const& c = detail::cpp_counted;
  return {c.compiled.load(), c.from_disk.load(), c.fused.load(), c.waiting.load()};
}
} // namespace backends
} // namespace varve

#pragma GCC diagnostic pop
