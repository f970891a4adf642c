// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/number_text.hpp>
#include <varve/mode/call_log.hpp>
#include <varve/mode/flop_counter_mode.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <time.h> // clock_gettime: <chrono> would bring <sstream> into every unit
#include <vector>

namespace varve {

/// The data that a profiler records for each operator in addition to its time (`torch.profiler.profile`).
struct profiler_options {
  bool record_shapes = false; ///< operands and results, with dtypes
  bool with_flops = false;    ///< by the formulas of `flop_counter_mode`
};

class profiler_mode;
namespace detail {
/// Returns the nanoseconds of a monotonic clock.
inline long long now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<long long>(t.tv_sec) * 1000000000 + t.tv_nsec;
}
/// Formats nanoseconds as microseconds, with a decimal point in every locale.
inline std::string us_text(long long ns) {
  char s[32];
  std::snprintf(s, sizeof s, "%lld.%03lld", ns / 1000, ns % 1000);
  return s;
}
/// Returns the number of the calling thread. Threads are numbered in the order in which they were first profiled.
inline int thread_number() {
  static std::atomic<int> next{1};
  thread_local int const mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}
inline std::string json_text(std::string const& s) {
  std::string r = "\"";
  char code[8];
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      r += code;
    } else {
      r += c;
    }
  }
  return r + "\"";
}
} // namespace detail

/// A time span of one thread, from construction to destruction; spans nest (`record_function`). Made by
/// `profiler_mode::record_function`.
class profiler_span {
public:
  profiler_span(profiler_mode& to, std::string name);
  profiler_span(profiler_span const&) = delete;
  profiler_span& operator=(profiler_span const&) = delete;
  ~profiler_span();
  /// Adds an entry to the `args` of the trace: `note("shapes", "f32[3]")`.
  void note(char const* key, std::string const& text) {
    notes_ += (notes_.empty() ? "" : ",") + detail::json_text(key) + ":" + detail::json_text(text);
  }
  void note(char const* key, long long number) {
    notes_ += (notes_.empty() ? "" : ",") + detail::json_text(key) + ":" + std::to_string(number);
  }

private:
  friend class profiler_mode;
  static profiler_span*& innermost() {
    static constinit thread_local profiler_span* top = nullptr;
    return top;
  }
  profiler_mode& to_;
  std::string name_, notes_;
  profiler_span* const around_ = innermost();
  int const throwing_ = std::uncaught_exceptions();
  long long children_ = 0, start_; // nanoseconds
};

/// A mode that measures the time of every operator. The trace is written while the program runs, so it may be long. It
/// consists of Chrome's trace events in JSON, which https://ui.perfetto.dev and chrome://tracing open. Calls and spans
/// nest; every thread has a row.
///
///   profiler_mode profiler("trace.json");
///   {
///     mode_guard const on{profiler};                              // on other threads too: the mode may be shared
///     auto const step = profiler.record_function("step 1");
///     train_step(w, x);
///   }
///   std::puts(profiler.key_averages_table().c_str());
///
/// An operator that throws is recorded too, with `"threw": true`. The file is complete when the mode is destroyed.
/// Times include the work to which an operator is lowered (operators of other modes, kernels). `self` times exclude
/// nested spans. A `function_mode_guard` on the same mode records composites such as `softmax` around their operators.
class profiler_mode : public dispatch_mode<profiler_mode> {
public:
  static constexpr bool supports_higher_order_operators = true;
  /// The times of all spans of one name (`key_averages`).
  struct row {
    std::string name;
    long long calls = 0;
    double total_us = 0, self_us = 0;
  };

  /// Sums up times without writing a trace.
  profiler_mode() = default;
  explicit profiler_mode(profiler_options o) : options_(o) {}
  /// Writes a trace to a file; throws `value_error` if it cannot be opened.
  explicit profiler_mode(char const* file, profiler_options o = {})
      : options_(o), to_(std::fopen(file, "w")), owns_(true) {
    if (!to_) refuse::with<value_error>((std::string("varve: profiler_mode: cannot write ") + file).c_str());
    std::fputs("[\n", to_);
  }
  /// Writes a trace to an open file, which stays open.
  explicit profiler_mode(std::FILE* to, profiler_options o = {}) : options_(o), to_(to) { std::fputs("[\n", to_); }
  profiler_mode(profiler_mode const&) = delete;
  profiler_mode& operator=(profiler_mode const&) = delete;
  ~profiler_mode() {
    if (!to_) return;
    std::fputs("\n]\n", to_);
    owns_ ? std::fclose(to_) : std::fflush(to_);
  }

  /// Returns a span of this thread with the given name, which ends when the object is destroyed.
  [[nodiscard]] profiler_span record_function(std::string name) { return profiler_span(*this, std::move(name)); }

  std::vector<row> key_averages() {
    std::vector<row> r;
    lock_([&] { r = rows_; });
    return r;
  }
  /// Returns a table of all rows, ordered by self time.
  std::string key_averages_table() {
    auto all = key_averages();
    for (std::size_t i = 1; i < all.size(); ++i)
      for (std::size_t k = i; k && all[k].self_us > all[k - 1].self_us; --k) std::swap(all[k], all[k - 1]);
    char s[160];
    std::snprintf(s, sizeof s, "%-24s %8s %14s %14s %12s\n", "name", "calls", "self us", "total us", "us / call");
    std::string r = s;
    r += std::string(r.size() - 1, '-') + "\n";
    for (row const& o : all) {
      std::string const each = detail::fixed_text(o.total_us / static_cast<double>(o.calls), 2);
      std::snprintf(s, sizeof s, "%-24s %8lld %14s %14s %12s\n", o.name.c_str(), o.calls,
                    detail::fixed_text(o.self_us, 1).c_str(), detail::fixed_text(o.total_us, 1).c_str(), each.c_str());
      r += s;
    }
    return r;
  }

  auto process(auto const& op, auto const&... args) {
    profiler_span span(*this, op.name());
    auto y = op(args...);
    if (options_.record_shapes || options_.with_flops) {
      call_record call = describe_call(op, args...);
      describe_results(call, y);
      if (options_.record_shapes) span.note("call", to_string(call));
      if (options_.with_flops) span.note("flops", flops_.flops_of(call));
    }
    return y;
  }

private:
  friend class profiler_span;
  void ended(profiler_span const& s, long long end, bool threw) {
    long long const time = end - s.start_;
    std::string event;
    if (to_) {
      event = "{\"name\":" + detail::json_text(s.name_) + ",\"ph\":\"X\",\"ts\":" + detail::us_text(s.start_) +
              ",\"dur\":" + detail::us_text(time) + ",\"pid\":1,\"tid\":" + std::to_string(detail::thread_number());
      std::string args = s.notes_;
      if (threw) args += args.empty() ? "\"threw\":true" : ",\"threw\":true";
      event += args.empty() ? "}" : ",\"args\":{" + args + "}}";
    }
    lock_([&] {
      if (to_) {
        if (any_) std::fputs(",\n", to_);
        std::fputs(event.c_str(), to_);
        any_ = true;
      }
      row& r = row_of(s.name_);
      ++r.calls;
      r.total_us += static_cast<double>(time) * 1e-3;
      r.self_us += static_cast<double>(time - s.children_) * 1e-3;
    });
  }
  row& row_of(std::string const& name) {
    for (row& r : rows_)
      if (r.name == name) return r;
    rows_.push_back({name});
    return rows_.back();
  }
  profiler_options options_;
  std::FILE* to_ = nullptr;
  bool owns_ = false, any_ = false;
  std::vector<row> rows_;
  flop_counter_mode flops_{true};
  detail::spin_lock lock_; // `parallel_for` and `carry` share one mode between threads
};

inline profiler_span::profiler_span(profiler_mode& to, std::string name) : to_(to), name_(std::move(name)) {
  innermost() = this;
  start_ = detail::now_ns();
}
inline profiler_span::~profiler_span() {
  long long const end = detail::now_ns();
  innermost() = around_;
  profiler_span* parent = around_;
  while (parent && &parent->to_ != &to_) parent = parent->around_;
  if (parent) parent->children_ += end - start_;
  auto const tell = [&] { to_.ended(*this, end, std::uncaught_exceptions() > throwing_); };
  detail::attempt<void>(tell, [] {}); // no memory for a row: the program goes on
}

} // namespace varve

#pragma GCC diagnostic pop
