// SPDX-License-Identifier: BSL-1.0
#include "../../examples/support/digits_csv.hpp"

#include <sstream>
#include <varve_test.hpp>

namespace {
digit_set read(std::string const& text) {
  std::istringstream file(text);
  return read_digits(file, "f");
}
std::string row(std::string const& pixel, std::string const& label) {
  std::string s;
  for (int i = 0; i < 64; ++i) s += pixel + ",";
  return s + label;
}
} // namespace

TEST_CASE("digits.csv: rows, with and without a line's end or blank lines at the end", "[example]") {
  std::string const two = row("16", "3") + "\n" + row("0", "9");
  for (std::string const end : {"", "\n", "\r\n", "\n\n", "\n\r\n", "\n  \n\n"}) {
    digit_set const set = read(two + end);
    CHECK(set.labels == std::vector<int>{3, 9});
    CHECK(set.pixels.size() == 128);
    CHECK(set.pixels[0] == 1);
    CHECK(set.pixels[127] == 0);
  }
}
TEST_CASE("digits.csv: a malformed row is an error that names line and column", "[example]") {
  std::string const good = row("1", "2") + "\n";
  CHECK_THROWS_WITH(read(good + "\n" + good), ContainsText("f:2: column 1: a number expected"));
  CHECK_THROWS_WITH(read(good + row("17", "2")), ContainsText("f:2: column 1: 17 is out of range 0 to 16"));
  CHECK_THROWS_WITH(read(row("1", "10")), ContainsText("f:1: column 65: 10 is out of range 0 to 9"));
  CHECK_THROWS_WITH(read(row("1", "2") + ",3"), ContainsText("column 66: end of line expected"));
  CHECK_THROWS_WITH(read("1,2\n"), ContainsText("column 3: a comma"));
  CHECK_THROWS_WITH(read(row("x", "2")), ContainsText("column 1: a number expected"));
  CHECK_THROWS_WITH(read(row("1", "")), ContainsText("column 65: a number expected"));
  CHECK_THROWS_WITH(read(good + "  \n" + good), ContainsText("f:2: column 1"));
  CHECK_THROWS_WITH(read(""), ContainsText("no rows"));
  CHECK_THROWS_WITH(read("\n"), ContainsText("no rows"));
}
