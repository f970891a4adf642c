// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>
#include <unistd.h>

// The C library keeps a string for each path that LOCPATH names, which is no leak of the tests.
extern "C" {
__attribute__((weak)) void __lsan_disable();
__attribute__((weak)) void __lsan_enable();
}

/// While it lives, C and C++ have a locale with a decimal comma and points between thousands, as programs of Qt and GTK
/// have it in Germany. Where none is installed, `localedef` makes one.
class comma_locale {
public:
  comma_locale() {
    for (char const* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "ru_RU.UTF-8", "pt_BR.UTF-8"})
      if (set(name)) return;
    auto const folder = std::filesystem::temp_directory_path() / ("varve_locales." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    std::string const at = (folder / "de_DE.UTF-8").string();
    if (std::system(("localedef -i de_DE -f UTF-8 '" + at + "' >/dev/null 2>&1").c_str()) == 0) {
      static std::string variable; // the environment keeps the pointer
      variable = "LOCPATH=" + folder.string();
      ::putenv(variable.data());
      (void)set("de_DE.UTF-8");
    }
    std::filesystem::remove_all(folder);
  }
  comma_locale(comma_locale const&) = delete;
  comma_locale& operator=(comma_locale const&) = delete;
  ~comma_locale() {
    std::locale::global(cpp_);
    std::setlocale(LC_ALL, c_.c_str());
  }
  /// False on a machine that has no such locale and no `localedef`.
  bool is_set() const { return std::localeconv()->decimal_point == std::string(","); }

private:
  static bool set(char const* name) {
    if (__lsan_disable) __lsan_disable();
    bool const known = std::setlocale(LC_ALL, name) != nullptr;
    if (known) std::locale::global(std::locale(name));
    if (__lsan_enable) __lsan_enable();
    return known && std::localeconv()->decimal_point == std::string(",");
  }
  std::string const c_ = std::setlocale(LC_ALL, nullptr);
  std::locale const cpp_;
};
