// SPDX-License-Identifier: BSL-1.0
// Numbers as text and back, whatever the locale.
#include "../comma_locale.hpp"

#include <varve/core/number_text.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <varve_test.hpp>

namespace {
using namespace varve::detail;
constexpr double infinity = std::numeric_limits<double>::infinity();

double number_of(std::string const& text) {
  double x = -77;
  return read_number(text, x) ? x : -77;
}
double by_locale(std::string const& text) {
  double x = -77;
  return read_number_by_locale(text, x) ? x : -77;
}
void check_texts() {
  CHECK(number_text(0.5) == "0.5");
  CHECK(number_text(-1.25, 10) == "-1.25");
  CHECK(number_text(1.0 / 3, 6) == "0.333333");
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(1234567.5) == "1234567.5");
  CHECK(number_text(1e20) == "1e+20");
  CHECK(number_text(1e20, 6) == "1e+20");
  CHECK(number_text(-3.0) == "-3");
  CHECK(number_text(-0.0) == "-0");
  CHECK(number_text(infinity) == "inf");
  CHECK(number_text(-infinity) == "-inf");
  CHECK(number_text(std::nan("")) == "nan");
  CHECK(fixed_text(1234.56, 1) == "1234.6");
  CHECK(fixed_text(1e300, 2).size() == 304);
  CHECK(hex_text(0.1) == "0x1.999999999999ap-4");
  CHECK(hex_text(-0.0) == "-0x0p+0");
  CHECK(hex_text(-infinity) == "-inf");
}
void check_numbers() {
  struct row {
    char const* text;
    double x;
  };
  for (row const& r : std::initializer_list<row>{{"0.5", 0.5},
                                                 {"+4", 4},
                                                 {"-3e2", -300},
                                                 {".5", 0.5},
                                                 {"5.", 5},
                                                 {"1e-400", 0},
                                                 {"-1e400", -infinity},
                                                 {"1e400", infinity},
                                                 {"4.9406564584124654e-324", 5e-324},
                                                 {"0x1.8p+1", 3},
                                                 {"-0x1.8p+1", -3},
                                                 {"0x0.0000000000001p-1022", 5e-324},
                                                 {"-inf", -infinity},
                                                 {"INF", infinity},
                                                 {"infinity", infinity}}) {
    INFO(r.text);
    CHECK(number_of(r.text) == r.x);
    CHECK(by_locale(r.text) == r.x);
  }
  CHECK(std::signbit(number_of("-1e-400")));
  CHECK(std::isnan(number_of("nan")));
  CHECK(std::isnan(number_of("-NaN")));
  using namespace std::string_literals;
  for (std::string const& text : {""s, "-"s, "+"s, "+-5"s, "--5"s, " 5"s, "5 "s, "0,5"s, "1.5.2"s, "0x"s, "0x-5"s,
                                  "1e"s, "five"s, "5\0"s, "1'000"s, "nan(1)"s}) {
    INFO(text);
    CHECK(number_of(text) == -77);
  }
}
void check_round_trips() {
  std::mt19937_64 random(3);
  std::size_t wrong = 0;
  for (int k = 0; k < 20000; ++k) {
    auto const x = std::bit_cast<double>(random());
    if (!std::isfinite(x)) continue;
    wrong += number_of(number_text(x)) != x;
    wrong += number_of(hex_text(x)) != x;
    wrong += by_locale(number_text(x)) != x;
  }
  CHECK(wrong == 0);
}
} // namespace

TEST_CASE("numbers as text and back", "[core][text]") {
  check_texts();
  check_numbers();
  check_round_trips();
}
TEST_CASE("numbers as text and back in a locale with a decimal comma", "[core][text]") {
  comma_locale const german;
  if (!german.is_set()) WARN("no locale with a decimal comma here, and no localedef that makes one");
  check_texts();
  check_numbers();
  check_round_trips();
}
