// SPDX-License-Identifier: BSL-1.0
// Random programs until time is up: fuzz [--seed n] [--programs n | --minutes n] [--derivatives] [--report] [--show n]
// With --derivatives the laws of test/random/derivatives.hpp are checked instead of stacks of transforms.
// Each lot runs in a process of its own, so that a crash or a program that does not end is a finding like others.
#include "../random/derivatives.hpp"
#include "../random/print.hpp"
#include "../random/shrink.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace random_programs;

namespace {
struct options {
  std::uint64_t seed = 1;
  long programs = 0;
  double minutes = 0;
  bool report = false, derivatives = false;
  long show = 10;
};
/// What a lot tells the process that started it.
struct shared_state {
  std::uint64_t seed; // of the program at work
  char stack[2000];   // the names of the ways at work
  char text[4000];
};
/// Ends this process after some seconds of its own time, however busy the machine is.
void give_up_after(long seconds) {
  itimerval const t{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &t, nullptr);
}
#ifdef __SANITIZE_ADDRESS__
constexpr long slower = 5;
#else
constexpr long slower = 1;
#endif
/// Seconds for a stack: five levels around a trace of symbolic sizes take 15, thousands of loops by `vjp` by rows 20.
constexpr long patience = 60 * slower;

template <class T>
T* shared() {
  return static_cast<T*>(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}
/// Runs something in a process of its own: "" or how that ended.
template <class F>
std::string apart_from_us(F const& f) {
  std::fflush(stdout);
  pid_t const child = fork();
  if (child == 0) {
    give_up_after(patience);
    f();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGPROF ? "does not end" : std::string("crash: ") + strsignal(WTERMSIG(status));
  return WEXITSTATUS(status) ? "crash: the process gave " + std::to_string(WEXITSTATUS(status)) : "";
}
void add(tally& t, tally const& more) {
  t.programs += more.programs, t.stacks += more.stacks, t.comparisons += more.comparisons;
  t.refused += more.refused, t.differences += more.differences;
  for (auto const& [text, n] : more.refusals) t.refusals[text] += n;
}
/// What is wrong with a program: in a stack, or with its derivatives.
std::string wrong_in(program const& p, stack const& s, bool derivatives) {
  law_tally t;
  return derivatives ? check_derivatives(p, t) : check_stack(p, s).what;
}
/// What is wrong with a program in all stacks, or with its derivatives.
difference checked(program const& p, std::uint64_t seed, bool derivatives, tally& t) {
  if (!derivatives) return check_program(p, seed, t);
  law_tally laws;
  std::string const what = check_derivatives(p, laws);
  add(t, laws.all);
  return {{}, what};
}
/// What is wrong with a program in a stack, found in a process of its own.
std::string isolated(program const& p, stack const& s, bool derivatives) {
  static auto* const state = shared<shared_state>();
  state->text[0] = 0;
  std::string const end = apart_from_us([&] {
    give_up_after(3 * slower);
    std::string const what = wrong_in(p, s, derivatives);
    std::snprintf(state->text, sizeof state->text, "%s", what.c_str());
  });
  return end.empty() ? state->text : end;
}
void show(std::uint64_t seed, program p, stack s, std::string const& what, bool derivatives) {
  auto const sort = [](std::string const& w) {
    return w.rfind("crash", 0) == 0 ? 1 : w == "does not end" ? 2 : w.rfind("result", 0) == 0 ? 3 : 4;
  };
  int const of = sort(isolated(p, s, derivatives));
  failing const fails = [&](program const& q, stack const& t) {
    std::string const w = isolated(q, t, derivatives);
    return sort(w) == of ? w : std::string();
  };
  if (!fails(p, s).empty()) shrink(p, s, fails);
  std::string const now = fails(p, s);
  std::printf("---- seed %llu: %s\n//   %s\n%s\n", static_cast<unsigned long long>(seed), name(s).c_str(),
              (now.empty() ? what + " (not again)" : now).c_str(), as_cpp(p, s).c_str());
}
/// The stack that a program was at when its process ended.
stack stack_of(char const* names) {
  stack s;
  for (std::string rest = names; !rest.empty();) {
    std::size_t const end = rest.find('\n');
    for (way const& w : all_ways())
      if (rest.substr(0, end) == w.name) s.push_back(&w);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return s;
}
void write(std::FILE* f, tally const& t) {
  std::fprintf(f, "%ld %ld %ld %ld %ld\n", t.programs, t.stacks, t.comparisons, t.refused, t.differences);
  for (auto const& [text, n] : t.refusals) std::fprintf(f, "%ld %s\n", n, text.c_str());
}
tally read(std::FILE* f) {
  tally t;
  if (std::fscanf(f, "%ld %ld %ld %ld %ld\n", &t.programs, &t.stacks, &t.comparisons, &t.refused, &t.differences) != 5)
    return t;
  long n = 0;
  char line[400];
  while (std::fscanf(f, "%ld ", &n) == 1 && std::fgets(line, sizeof line, f)) {
    line[std::strcspn(line, "\n")] = 0;
    t.refusals[line] += n;
  }
  return t;
}
/// Programs from a seed on, in a process; after a crash the rest in another.
tally run_lot(std::uint64_t from, std::uint64_t to, options const& o, long& shown) {
  static auto* const state = shared<shared_state>();
  tally all;
  for (std::uint64_t next = from; next < to;) {
    std::FILE* const results = std::tmpfile();
    state->seed = next;
    std::string const end = apart_from_us([&] {
      tally t;
      at_work = [](stack const& s) {
        give_up_after(patience); // each stack has as long
        std::string names;
        for (way const* w : s) names += std::string(w->name) + "\n";
        std::snprintf(state->stack, sizeof state->stack, "%s", names.c_str());
      };
      for (std::uint64_t seed = next; seed < to; ++seed) {
        state->seed = seed;
        state->stack[0] = 0;
        give_up_after(patience);
        program const p = make_program(seed);
        difference const d = checked(p, seed, o.derivatives, t);
        if (!d) continue;
        give_up_after(200);
        if (++t.differences <= o.show - shown) show(seed, p, d.ways, d.what, o.derivatives);
      }
      write(results, t);
      std::fflush(results);
    });
    std::rewind(results);
    tally const t = read(results);
    std::fclose(results);
    add(all, t), shown += t.differences;
    if (end.empty()) break;
    all.programs += static_cast<long>(state->seed - next + 1), ++all.differences;
    if (shown++ < o.show) show(state->seed, make_program(state->seed), stack_of(state->stack), end, o.derivatives);
    next = state->seed + 1;
  }
  return all;
}
options options_of(int count, char** words) {
  options o;
  o.seed = static_cast<std::uint64_t>(std::time(nullptr)) * 1000003;
  for (int k = 1; k < count; ++k) {
    std::string const w = words[k];
    char const* const value = k + 1 < count ? words[k + 1] : "";
    if (w == "--report") o.report = true;
    else if (w == "--derivatives") o.derivatives = true;
    else if (w == "--seed") o.seed = std::strtoull(value, nullptr, 10), ++k;
    else if (w == "--programs") o.programs = std::atol(value), ++k;
    else if (w == "--minutes") o.minutes = std::atof(value), ++k;
    else if (w == "--show") o.show = std::atol(value), ++k;
    else std::fprintf(stderr, "fuzz: unknown option %s\n", w.c_str()), std::exit(2);
  }
  if (o.programs == 0 && o.minutes == 0) o.programs = 1000;
  return o;
}
void report(tally const& t, bool texts) {
  if (texts) {
    std::vector<std::pair<long, std::string>> sorted;
    for (auto const& [text, n] : t.refusals) sorted.emplace_back(n, text);
    std::sort(sorted.rbegin(), sorted.rend());
    for (auto const& [n, text] : sorted) std::printf("%7ld  %s\n", n, text.c_str());
  }
  std::printf("programs %ld, stacks %ld, comparisons %ld, refusals %ld, differences %ld\n", t.programs, t.stacks,
              t.comparisons, t.refused, t.differences);
}
} // namespace

int main(int count, char** words) {
  options const o = options_of(count, words);
  auto const start = std::chrono::steady_clock::now();
  auto const goes_on = [&](std::uint64_t done) {
    if (o.programs) return done < static_cast<std::uint64_t>(o.programs);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < o.minutes * 60;
  };
  std::printf("seed %llu\n", static_cast<unsigned long long>(o.seed));
  tally t;
  long shown = 0;
  constexpr std::uint64_t lot = 200;
  for (std::uint64_t done = 0; goes_on(done); done += lot) {
    std::uint64_t const most = o.programs ? static_cast<std::uint64_t>(o.programs) - done : lot;
    add(t, run_lot(o.seed + done, o.seed + done + std::min(lot, most), o, shown));
  }
  report(t, o.report);
  return t.differences ? 1 : 0;
}
