// SPDX-License-Identifier: BSL-1.0
// Programs that the system's compiler makes: values and gradients, what is kept on disk, and what is left to blocks.
#include "../sample/bump.hpp"
#include "../sample/value.hpp"

#include <varve/export/cpp_backend.hpp>
#include <varve/hop/wrap.hpp>
#include <varve/varve.hpp>

#include <filesystem>
#include <fstream>
#include <thread>
#include <varve_test.hpp>

namespace vv = varve;
namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using sample::difference;
using sample::vector_of;
using vv::tensor;

namespace {
/// A directory of its own, which goes with it.
struct own_cache {
  fs::path at;
  own_cache() {
    std::string name = (fs::temp_directory_path() / "varve_cpp_XXXXXX").string();
    at = ::mkdtemp(name.data());
  }
  own_cache(own_cache const&) = delete;
  own_cache& operator=(own_cache const&) = delete;
  ~own_cache() { fs::remove_all(at); }
  long libraries() const {
    long n = 0;
    for (auto const& f : fs::directory_iterator(at)) n += f.path().extension() == ".so";
    return n;
  }
  /// Files of a compiler that has not ended.
  long unfinished() const {
    long n = 0;
    for (auto const& f : fs::directory_iterator(at))
      n += f.path().extension() != ".gch" && f.path().stem().string().find('.') != std::string::npos;
    return n;
  }
  long files() const { return std::distance(fs::directory_iterator(at), fs::directory_iterator()); }
};
/// One for several cases: kernels are precompiled once.
own_cache const& common() {
  static own_cache const cache;
  return cache;
}
std::string said;
vv::cpp_options options(own_cache const& c, bool wait = true) {
  said.clear();
  return {.flags = {"-O1"},
          .cache = c.at,
          .include = VARVE_TEST_DIR "/../include",
          .wait = wait,
          .report = [](std::string const& why) { said += why; }};
}
/// What a call added to the counts.
vv::cpp_programs since(vv::cpp_programs const& before) {
  vv::cpp_programs r = vv::backends::cpp_status();
  return {r.compiled - before.compiled, r.from_disk - before.from_disk, r.fused - before.fused,
          r.waiting - before.waiting};
}
} // namespace

TEST_CASE("a program of the system's compiler gives the values and gradients of the function", "[export][cpp]") {
  own_cache const& cache = common();
  auto const backend = vv::backends::cpp.with(options(cache));
  auto const f = [](tensor const& x, tensor const& w) {
    tensor const h = vv::tanh(vv::matmul(x, w));
    return vv::logsumexp(h * 2.0, vv::ints<1>{}) + vv::sum(vv::sin(x), vv::ints<1>{});
  };
  tensor const x = vv::reshape(vv::arange(12, vv::dtype::float64) * 0.125, vv::dims{4, 3}),
               w = vv::reshape(vv::cos(vv::arange(6, vv::dtype::float64)), vv::dims{3, 2});
  auto const before = vv::backends::cpp_status();
  auto const fast = vv::compile(f, backend);
  CHECK(difference(fast(x, w), f(x, w), 1e-14) == "");
  CHECK(since(before).compiled == 1);
  CHECK(difference(fast(vv::permute(vv::contiguous(vv::permute(x, vv::dims{1, 0})), vv::dims{1, 0}), w), f(x, w),
                   1e-14) == ""); // another layout: a program of its own
  tensor a = vv::clone(x), b = vv::clone(w), c = vv::clone(x), d = vv::clone(w);
  for (tensor* t : {&a, &b, &c, &d}) t->requires_grad_();
  vv::sum(fast(a, b) * 0.5).backward();
  vv::sum(f(c, d) * 0.5).backward();
  CHECK(difference(a.grad(), c.grad(), 1e-14) == "");
  CHECK(difference(b.grad(), d.grad(), 1e-14) == "");
  CHECK(said == "");
  CHECK(since(before).fused == 0);
}

TEST_CASE("a compiled program is found on disk again, unless text, flags or compiler are others", "[export][cpp]") {
  own_cache const cache;
  tensor const x = vector_of({0.5, -1, 2});
  auto const f = [](tensor const& v) { return vv::exp(v) * v; };
  auto const made = [&](auto const& g, vv::cpp_options o) {
    auto const before = vv::backends::cpp_status();
    CHECK(difference(vv::compile(g, vv::backends::cpp.with(std::move(o)))(x), g(x), 1e-14) == "");
    auto const r = since(before);
    CHECK((r.fused == 0 && r.waiting == 0 && r.compiled + r.from_disk == 1));
    return r.compiled == 1;
  };
  CHECK(made(f, options(cache)));
  CHECK_FALSE(made(f, options(cache)));
  CHECK(made([](tensor const& v) { return vv::exp(v) + v; }, options(cache)));
  vv::cpp_options other = options(cache);
  other.flags.push_back("-DANOTHER");
  CHECK(made(f, other));
  CHECK(cache.libraries() == 3);
  CHECK(cache.files() == 3 + 2 * 2); // beside them kernels that are precompiled, by either flags
  own_cache const damaged;
  for (auto const& file : fs::directory_iterator(cache.at))
    std::ofstream(damaged.at / file.path().filename()) << "no library";
  auto const before = vv::backends::cpp_status();
  CHECK(difference(vv::compile(f, vv::backends::cpp.with(options(damaged)))(x), f(x), 1e-14) == "");
  CHECK(since(before).fused == 1);
  CHECK_THAT(said, Contains("cannot be loaded"));
  CHECK(damaged.libraries() == 2); // the damaged file was removed
  CHECK(made(f, options(damaged)));
}

TEST_CASE("set_default_backend: compile(f) compiles with it from then on", "[export][cpp]") {
  own_cache const& cache = common();
  tensor const x = vector_of({0.5, -1, 2});
  auto const f = [](tensor const& v) { return vv::exp(v) * v - 2.0; };
  auto const earlier = vv::compile(f);
  vv::set_default_backend(vv::backends::cpp.with(options(cache)));
  auto const later = vv::compile(f);
  vv::set_default_backend(nullptr);
  auto const before = vv::backends::cpp_status();
  CHECK(difference(earlier(x), f(x), 1e-14) == "");
  CHECK(difference(vv::compile(f)(x), f(x), 1e-14) == "");
  CHECK(since(before).compiled == 0);
  CHECK(difference(later(x), f(x), 1e-14) == "");
  CHECK(since(before).compiled == 1);
  tensor leaf = vv::clone(x);
  leaf.requires_grad_();
  vv::sum(later(leaf)).backward();
  CHECK(difference(leaf.grad(), vv::exp(x) * (x + 1.0), 1e-14) == "");
}

TEST_CASE("calls of functions are their text in a compiled program", "[export][cpp]") {
  own_cache const& cache = common();
  tensor const x = vector_of({0.5, -1, 2});
  auto const f = [](tensor const& v) {
    auto const body = [](tensor const& u) { return vv::sin(u) * u; };
    return vv::wrap(body, v) + vv::checkpoint(body, v * 2.0);
  };
  auto const before = vv::backends::cpp_status();
  auto const backend = vv::backends::cpp.with(options(cache));
  tensor const a = vv::clone(x), b = vv::clone(x);
  a.requires_grad_(), b.requires_grad_();
  tensor const y = vv::compile(f, backend)(a);
  CHECK(difference(y.detach(), f(x), 1e-14) == "");
  vv::sum(y).backward();
  vv::sum(f(b)).backward();
  CHECK(difference(a.grad(), b.grad(), 1e-14) == "");
  CHECK(said == "");
  CHECK(since(before).fused == 0);
  CHECK(since(before).compiled == 2);
}

TEST_CASE("what cannot be compiled runs by blocks and says why", "[export][cpp]") {
  own_cache const cache;
  tensor const x = vector_of({0.5, -1, 2});
  auto const f = [](tensor const& v) { return vv::sin(v) * 2.0; };
  auto const stays = [&](auto const& g, vv::cpp_options o, std::string const& why) {
    auto const before = vv::backends::cpp_status();
    CHECK(difference(vv::compile(g, vv::backends::cpp.with(std::move(o)))(x), g(x), 1e-14) == "");
    CHECK(since(before).fused == 1);
    CHECK_THAT(said, Contains(why));
  };
  vv::cpp_options none = options(cache);
  none.compiler = "no-such-compiler";
  stays(f, none, "there is no compiler no-such-compiler");
  vv::cpp_options wrong = options(cache);
  wrong.flags.push_back("-fno-such-flag");
  stays(f, wrong, "error");
  CHECK(cache.files() == 0);
  vv::cpp_options elsewhere = options(cache);
  elsewhere.include = cache.at;
  stays(f, elsewhere, "there are no headers of varve in " + cache.at.string());
  vv::cpp_options open = options(cache);
  fs::permissions(cache.at, fs::perms::all);
  stays(f, open, "others may write into the directory");
  fs::permissions(cache.at, fs::perms::owner_all);
  stays([](tensor const& v) { return ::sample::bump(v); }, options(cache), "none of varve's elementwise operators");
}

TEST_CASE("calls run by blocks until the compiler is done, from any thread", "[export][cpp]") {
  own_cache const cache;
  tensor const x = vector_of({0.5, -1, 2});
  auto const f = [](tensor const& v) { return vv::cos(v) - v * v; };
  tensor const right = f(x);
  auto const before = vv::backends::cpp_status();
  auto const fast = vv::compile(f, vv::backends::cpp.with(options(cache, false)));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int k = 0; k < 3; ++k)
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) wrong += difference(fast(x), right, 1e-14) != "";
    });
  for (auto& t : threads) t.join();
  for (int k = 0; k < 6000 && since(before).waiting != 0; ++k)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(since(before).compiled == 1);
  CHECK(difference(fast(x), right, 1e-14) == "");
  CHECK(wrong == 0);
  CHECK(fast.versions() == 1);
}

TEST_CASE("a program that is let go of ends its compiler", "[export][cpp]") {
  own_cache const cache;
  {
    auto const fast =
        vv::compile([](tensor const& v) { return vv::tanh(v) + 3.0; }, vv::backends::cpp.with(options(cache, false)));
    fast(vector_of({1, 2}));
  }
  CHECK(cache.unfinished() == 0); // it was done, or left nothing
}
