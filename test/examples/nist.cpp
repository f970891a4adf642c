// SPDX-License-Identifier: BSL-1.0
#include "../../examples/support/nist.hpp"

#include <sstream>
#include <varve_test.hpp>

namespace {
nist_problem read(std::string const& text) {
  std::istringstream file(text);
  return read_nist(file, "f");
}
std::string const words = "Data:          1 Response  (y)\n               y = b1 * x  +  e\n";
std::string const b1 = "  b1 =   1.5   2   2.5E+00  1E-03\n", b2 = "  b2 =   3  4  5  6\n";
std::string const sums = "Residual Sum of Squares:   1.25E-01\nNumber of Observations:     2\n";
std::string const heading = "Data:   y      x\n", two = "  1.0E0  2\n 3 4\n";
} // namespace

TEST_CASE("nist: parameters, sum of squares and data, with any end of line", "[example]") {
  for (std::string const end : {"\n", "\r\n"}) {
    std::string text;
    for (char c : words + b1 + b2 + sums + heading + two + "  \n") text += c == '\n' ? end : std::string(1, c);
    nist_problem const p = read(text);
    CHECK(p.start[0] == std::vector<double>{1.5, 3});
    CHECK(p.start[1] == std::vector<double>{2, 4});
    CHECK(p.certified == std::vector<double>{2.5, 5});
    CHECK(p.residual == 0.125);
    CHECK(p.predictors == 1);
    CHECK(p.y == std::vector<double>{1, 3});
    CHECK(p.x == std::vector<double>{2, 4});
  }
  CHECK(read(b1 + sums + "Data:   y  x1  x2\n1 2 3\n4 5 6\n").x == std::vector<double>{2, 3, 5, 6});
}
TEST_CASE("nist: a malformed file is an error that names the line", "[example]") {
  CHECK_THROWS_WITH(
      read(b1 + "  b2 = 3 4 5\n" + sums + heading + two),
      ContainsText("f:2: two starting points, the certified value and its deviation expected behind `b2 =`"));
  CHECK_THROWS_WITH(read(b1 + "  b3 = 3 4 5 6\n"), ContainsText("f:2: parameter b2 expected, not b3"));
  CHECK_THROWS_WITH(read(b1 + "Residual Sum of Squares: little\n"),
                    ContainsText("f:2: one number expected behind `Residual Sum of Squares:`"));
  CHECK_THROWS_WITH(read(b1 + sums + "Data: y\n"), ContainsText("f:4: the names of predictors"));
  CHECK_THROWS_WITH(read(b1 + sums + heading + "1 2\n3\n"), ContainsText("f:6: 2 numbers expected"));
  CHECK_THROWS_WITH(read(b1 + sums + heading + "1 2\n3 4 5\n"),
                    ContainsText("f:6: end of line expected behind 2 numbers"));
  CHECK_THROWS_WITH(read(b1 + sums + heading + "1 2\n3 four\n"), ContainsText("f:6: 2 numbers expected"));
  CHECK_THROWS_WITH(read(b1 + sums + heading + "1 2\n"), ContainsText("f:5: the file ends after 1 of 2 observations"));
  CHECK_THROWS_WITH(read(sums + heading + two), ContainsText("without parameters"));
  CHECK_THROWS_WITH(read(b1 + heading + two), ContainsText("without `Residual Sum of Squares:`"));
  CHECK_THROWS_WITH(read(b1 + sums), ContainsText("without data"));
  CHECK_THROWS_WITH(read(""), ContainsText("f:0: "));
}
