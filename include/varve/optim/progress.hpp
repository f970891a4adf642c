// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/number_text.hpp>

#include <chrono>
#include <cstdio>
#include <iterator>
#include <ranges>
#include <string>
#include <utility>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

namespace varve::optim {

namespace detail {
/// True if the file is a terminal, where a line can be rewritten.
inline bool is_terminal(std::FILE* f) {
#if __has_include(<unistd.h>)
  int const file = ::fileno(f);
  return file >= 0 && ::isatty(file) == 1;
#else
  return static_cast<void>(f), false;
#endif
}
} // namespace detail

/// A progress display for loops. On a terminal it rewrites one line, at most ten times a second. In files and pipes it
/// prints a plain line for each tenth of the work, at most two a second, and one at the end. These lines contain no
/// control characters.
///
///     progress bar(n, "epoch 1");
///     ...
///     bar.advance("loss 0.3");
///
///     for (auto const& b : progress_of(batches(64, x), "epoch 1")) ...
class progress {
public:
  explicit progress(long long total, std::string title = "", std::FILE* to = stderr)
      : title_(std::move(title)), to_(to), terminal_(detail::is_terminal(to)), total_(total < 0 ? 0 : total) {}
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  /// Ends the line.
  ~progress() {
    if (done_ > 0 && terminal_) {
      if (shown_ != done_) show();
      std::fputc('\n', to_);
    } else if (done_ > shown_) {
      show(); // the loop ended early
    }
    std::fflush(to_);
  }
  /// Records that `steps` steps are done, with a note to print beside the count. An empty note keeps the last one.
  void advance(std::string note = "", long long steps = 1) {
    done_ += steps;
    if (!note.empty()) note_ = std::move(note);
    auto const now = clock::now();
    bool const later = now - last_ >= std::chrono::milliseconds(terminal_ ? 100 : 500);
    if (done_ >= total_ || (later && (terminal_ || tenths(done_) > tenths(shown_)))) {
      last_ = now;
      show();
    }
  }
  long long done() const { return done_; }

private:
  using clock = std::chrono::steady_clock;
  long long tenths(long long n) const { return total_ == 0 ? 0 : n * 10 / total_; }
  void show() {
    double const seconds = std::chrono::duration<double>(clock::now() - start_).count();
    std::string line = title_.empty() ? "" : title_ + ": ";
    line += std::to_string(done_) + "/" + std::to_string(total_);
    if (terminal_) {
      long long const filled = total_ == 0 ? 0 : (done_ < total_ ? done_ : total_) * bar_width / total_;
      line += " [" + std::string(static_cast<std::size_t>(filled), '#') +
              std::string(static_cast<std::size_t>(bar_width - filled), '.') + "]";
    }
    line += " " + varve::detail::fixed_text(seconds, 1) + " s" + (note_.empty() ? "" : ", " + note_);
    std::size_t const width = line.size();
    if (terminal_ && width < width_) line += std::string(width_ - width, ' '); // overwrites the rest of a longer line
    width_ = width;
    shown_ = done_;
    std::fputs(((terminal_ ? "\r" : "") + line + (terminal_ ? "" : "\n")).c_str(), to_);
    std::fflush(to_);
  }
  static constexpr long long bar_width = 24;
  std::string title_, note_;
  std::FILE* to_;
  bool terminal_;
  long long total_, done_ = 0, shown_ = 0;
  std::size_t width_ = 0;
  clock::time_point start_ = clock::now(), last_ = start_;
};

/// A range that displays the progress of a loop over it.
template <class Range>
class progress_range {
public:
  progress_range(Range&& range, std::string title, std::FILE* to)
      : range_(std::forward<Range>(range)), bar_(size_of(range_), std::move(title), to) {}
  class iterator {
  public:
    explicit iterator(progress_range& of) : of_(&of), at_(of.range_.begin()) {}
    decltype(auto) operator*() const { return *at_; }
    iterator& operator++() {
      of_->bar_.advance();
      ++at_;
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return at_ == of_->range_.end(); }

  private:
    progress_range* of_;
    decltype(std::declval<std::remove_reference_t<Range>&>().begin()) at_;
  };
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

private:
  static long long size_of(std::remove_reference_t<Range> const& r) { return static_cast<long long>(r.size()); }
  Range range_;
  progress bar_;
};
template <class Range>
progress_range<Range> progress_of(Range&& range, std::string title = "", std::FILE* to = stderr) {
  return {std::forward<Range>(range), std::move(title), to};
}

} // namespace varve::optim

#pragma GCC diagnostic pop
