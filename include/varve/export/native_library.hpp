// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/core/error.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

/// @file
/// Compilation of C++ text by the system's compiler into a shared library, which is cached on disk and loaded. POSIX
/// only.
namespace varve {

namespace detail {
inline void say_why_not_native(std::string const& why) {
  std::fprintf(stderr, "varve: backends::cpp: %s; the program runs by backends::fused\n", why.c_str());
}
} // namespace detail

/// Options for compiling with `backends::cpp`.
struct cpp_options {
  /// The compiler. If empty: `CXX` of the environment, or `c++`.
  std::string compiler{};
  /// Flags in addition to `-std=c++20 -shared -fPIC`, hidden visibility, the path of varve's headers, and `-fopenmp` if
  /// this program uses it. If empty: `-O3 -march=native -DNDEBUG`.
  std::vector<std::string> flags{};
  /// The directory for libraries and precompiled kernels. If empty: `VARVE_CACHE_DIR`, `XDG_CACHE_HOME`/varve or
  /// `HOME`/.cache/varve. It is created for this user only; a directory that others can write is refused.
  std::filesystem::path cache{};
  /// The directory that contains `varve/`. If empty: `VARVE_INCLUDE_DIR`, or the path of this header when the program
  /// was compiled.
  std::filesystem::path include{};
  /// True if the first call waits for the compiler instead of running `backends::fused` meanwhile.
  bool wait = false;
  /// Called once for each program that stays with `backends::fused`, with the reason. The default prints a line to
  /// stderr.
  void (*report)(std::string const&) = &detail::say_why_not_native;
};

namespace detail {
inline std::string from_environment(char const* name) {
  char const* const value = std::getenv(name);
  return value ? value : "";
}
/// Returns a file name for a text: two FNV-1a-like hashes.
inline std::string name_of_text(std::string const& text) {
  std::uint64_t a = 0xcbf29ce484222325u, b = 0x84222325cbf29ce4u;
  for (char const c : text) {
    auto const byte = static_cast<unsigned char>(c);
    a = (a ^ byte) * 0x100000001b3u;
    b = (b + byte) * 0x9E3779B97F4A7C15u ^ (b >> 29);
  }
  char r[33];
  std::snprintf(r, sizeof r, "%016llx%016llx", static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  return r;
}

/// Compiles text into a library. Throws `value_error` with the reason of a failure.
class native_build {
public:
  native_build(cpp_options const& how, std::atomic<bool> const& stops) : how_(how), stops_(stops) {
    if (how_.compiler.empty()) how_.compiler = from_environment("CXX");
    if (how_.compiler.empty()) how_.compiler = "c++";
    if (how_.flags.empty()) how_.flags = {"-O3", "-march=native", "-DNDEBUG"};
    find_headers();
    find_cache();
  }
  /// Returns the library of a text. Sets `made` to whether it was compiled now.
  std::filesystem::path operator()(std::string const& text, bool& made) {
    command_ = {how_.compiler,
                "-std=c++20",
                "-shared",
                "-fPIC",
                "-fvisibility=hidden",
                "-fvisibility-inlines-hidden",
                "-I" + how_.include.string()};
    if (VARVE_USE_OPENMP) command_.push_back("-fopenmp"); // emitted programs use threads as this one does
    command_.insert(command_.end(), how_.flags.begin(), how_.flags.end());
    std::string with = headers_now() + compiler_now();
    for (std::string const& word : command_) with += '\n' + word;
    std::string const name = name_of_text(text + with);
    kernels_ = how_.cache / (name_of_text(with) + ".hpp");
    std::filesystem::path const library = how_.cache / (name + ".so");
    made = !std::filesystem::exists(library);
    if (made) compile(text, name, library);
    return library;
  }
  /// Precompiles the headers of varve that programs include, unless that was done. The next program then compiles in a
  /// third of the time. Failures are ignored.
  void precompile() const {
    std::error_code none;
    if (std::filesystem::exists(precompiled(), none)) return;
    own_files const made(kernels_.string());
    std::string text;
    for (char const* header :
         {"cstddef", "cstdint", "cstring", "limits", "memory", "stdexcept", "utility", "varve/core/dims.hpp",
          "varve/kernel/convert.hpp", "varve/kernel/math.hpp", "varve/kernel/matmul.hpp",
          "varve/kernel/matmul_fixed.hpp", "varve/kernel/convolution.hpp", "varve/core/threads.hpp",
          "varve/kernel/vector_loop.hpp"})
      text += std::string("#include <") + header + ">\n";
    // A precompiled header needs the name of its header, which another process may be reading.
    if (!std::filesystem::exists(kernels_, none)) {
      if (!(std::ofstream(made.source) << text << std::flush)) return;
      if (std::rename(made.source.c_str(), kernels_.c_str()) != 0) return;
    }
    std::vector<std::string> command = command_;
    for (std::string const& word :
         {std::string("-x"), std::string("c++-header"), kernels_.string(), std::string("-o"), made.object})
      command.push_back(word);
    if (run(command, made.log) == 0) std::rename(made.object.c_str(), precompiled().c_str());
  }

private:
  cpp_options how_;
  std::atomic<bool> const& stops_;
  std::vector<std::string> command_{};
  std::filesystem::path kernels_{}; // a header that includes those of the programs

  std::filesystem::path precompiled() const { return kernels_.string() + ".gch"; }

  /// Unique file names. The files are removed at the end.
  struct own_files {
    std::string source, object, log;
    explicit own_files(std::string const& name) {
      static std::atomic<unsigned> count{0};
      std::string const mine = name + '.' + std::to_string(::getpid()) + '.' + std::to_string(count.fetch_add(1));
      source = mine + ".cpp", object = mine + ".so", log = mine + ".log";
    }
    own_files(own_files const&) = delete;
    ~own_files() {
      for (std::string const& f : {source, object, log}) ::unlink(f.c_str());
    }
  };

  [[noreturn]] static void fail(std::string const& why) { refuse::with<value_error>(why.c_str()); }
  void find_headers() {
    namespace fs = std::filesystem;
    if (how_.include.empty()) how_.include = from_environment("VARVE_INCLUDE_DIR");
    if (how_.include.empty()) how_.include = fs::path(__FILE__).parent_path().parent_path().parent_path();
    std::error_code none;
    how_.include = fs::absolute(how_.include, none);
    if (!fs::exists(how_.include / "varve" / "kernel" / "math.hpp", none))
      fail("there are no headers of varve in " + how_.include.string() + "; set VARVE_INCLUDE_DIR");
  }
  void find_cache() {
    if (how_.cache.empty()) how_.cache = from_environment("VARVE_CACHE_DIR");
    if (how_.cache.empty())
      if (std::string const d = from_environment("XDG_CACHE_HOME"); !d.empty())
        how_.cache = std::filesystem::path(d) / "varve";
    if (how_.cache.empty())
      if (std::string const d = from_environment("HOME"); !d.empty())
        how_.cache = std::filesystem::path(d) / ".cache" / "varve";
    if (how_.cache.empty()) fail("no directory for compiled programs is known; set VARVE_CACHE_DIR");
    std::error_code bad;
    if (how_.cache.has_parent_path()) std::filesystem::create_directories(how_.cache.parent_path(), bad);
    ::mkdir(how_.cache.c_str(), 0700);
    struct stat s{};
    if (::stat(how_.cache.c_str(), &s) != 0 || !S_ISDIR(s.st_mode))
      fail("the directory " + how_.cache.string() + " cannot be made");
    if (s.st_uid != ::geteuid() || (s.st_mode & (S_IWGRP | S_IWOTH)))
      fail("others may write into the directory " + how_.cache.string() + ", whose libraries would be run");
  }
  /// Returns the sizes and times of the headers that a program may include.
  std::string headers_now() const {
    std::string r;
    std::error_code none;
    for (char const* folder : {"varve/core", "varve/kernel", "varve/op", "varve/rule", "varve/special"})
      for (auto const& f : std::filesystem::directory_iterator(how_.include / folder, none)) {
        struct stat s{};
        if (::stat(f.path().c_str(), &s) == 0)
          r += f.path().filename().string() + ':' + std::to_string(s.st_size) + ':' + std::to_string(s.st_mtime) + '\n';
      }
    return r;
  }
  /// Returns the path, size and time of the compiler.
  std::string compiler_now() const {
    namespace fs = std::filesystem;
    std::vector<fs::path> places;
    if (how_.compiler.find('/') != std::string::npos) places.emplace_back("");
    std::string const path = from_environment("PATH");
    for (std::size_t from = 0; places.empty() || !places.front().empty();) {
      std::size_t const end = (std::min)(path.find(':', from), path.size());
      places.emplace_back(path.substr(from, end - from));
      if (end >= path.size()) break;
      from = end + 1;
    }
    for (fs::path const& p : places) {
      struct stat s{};
      if (::stat((p / how_.compiler).c_str(), &s) == 0 && S_ISREG(s.st_mode))
        return (p / how_.compiler).string() + std::to_string(s.st_size) + ':' + std::to_string(s.st_mtime);
    }
    fail("there is no compiler " + how_.compiler + "; set CXX");
  }
  /// Compiles a library under a temporary name, then renames it, so that other processes only find complete ones.
  void compile(std::string const& text, std::string const& name, std::filesystem::path const& library) const {
    own_files const made((how_.cache / name).string());
    if (!(std::ofstream(made.source) << text << std::flush)) fail("the file " + made.source + " cannot be written");
    std::vector<std::string> command = command_;
    for (std::string const& word : {std::string("-o"), made.object, made.source}) command.push_back(word);
    std::error_code none;
    if (std::filesystem::exists(precompiled(), none)) {
      std::vector<std::string> faster = command;
      faster.insert(faster.end(), {"-include", kernels_.string()});
      if (run(faster, made.log) == 0) return keep(made.object, library);
      std::filesystem::remove(precompiled(), none); // it may be damaged
    }
    if (int const code = run(command, made.log); code != 0) {
      std::string line;
      std::ifstream in(made.log);
      while (std::getline(in, line) && line.find("error") == std::string::npos) {}
      fail(command[0] + " gave " + std::to_string(code) + (line.empty() ? "" : ": " + line));
    }
    keep(made.object, library);
  }
  static void keep(std::string const& object, std::filesystem::path const& library) {
    if (std::rename(object.c_str(), library.c_str()) != 0) fail("the file " + library.string() + " cannot be made");
  }
  /// Runs a command to its end, or kills it when it is no longer needed.
  int run(std::vector<std::string> const& command, std::string const& log) const {
    std::vector<char*> words;
    for (std::string const& w : command) words.push_back(const_cast<char*>(w.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP); // signals then reach the compiler's own processes
    pid_t child = 0;
    int const bad = posix_spawnp(&child, words[0], &files, &how, words.data(), environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    if (bad != 0) fail("the compiler " + command[0] + " cannot be run: " + std::strerror(bad));
    int status = 0;
    for (pid_t ended = 0; ended == 0;) {
      ended = ::waitpid(child, &status, WNOHANG);
      if (ended < 0 && errno != EINTR) fail("the compiler " + command[0] + " was not seen to end");
      if (ended < 0) ended = 0;
      if (ended == 0 && stops_.load(std::memory_order_relaxed)) ::kill(-child, SIGKILL);
      if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
};
/// Returns a function of a library. The library stays loaded, because exceptions from it may outlive everything else.
inline void* native_function(std::filesystem::path const& library, char const* name) {
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    char const* const why = ::dlerror();
    std::error_code none;
    std::filesystem::remove(library, none); // a damaged file is rebuilt next time
    refuse::with<value_error>((std::string("the library cannot be loaded: ") + (why ? why : library.c_str())).c_str());
  }
  void* const f = ::dlsym(loaded, name);
  if (!f) refuse::with<value_error>(("the library " + library.string() + " has no function " + name).c_str());
  return f;
}
} // namespace detail
} // namespace varve

#pragma GCC diagnostic pop
