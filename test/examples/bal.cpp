// SPDX-License-Identifier: BSL-1.0
#include "../../examples/support/bal.hpp"

#include <sstream>
#include <varve_test.hpp>

namespace {
bal_problem read(std::string const& text) {
  std::istringstream file(text);
  return read_bal(file, "f");
}
std::string numbers(int first, int count) {
  std::string s;
  for (int k = 0; k < count; ++k) s += std::to_string(first + k) + "\n";
  return s;
}
std::string const seen = "0 0  1.5 2\n1 0  -3 4e1\n";
} // namespace

TEST_CASE("bal: observations, cameras and points", "[example]") {
  bal_problem const p = read("2 1 2\n" + seen + numbers(10, 18) + numbers(50, 3) + "\n");
  CHECK(p.size() == 2);
  CHECK(p.camera_of == std::vector<std::size_t>{0, 1});
  CHECK(p.point_of == std::vector<std::size_t>{0, 0});
  CHECK(p.seen == std::vector<double>{1.5, 2, -3, 40});
  CHECK(p.parameters() == std::vector<double>{10, 11, 12, 13, 14, 15, 16, 17, 18, 50, 51, 52,
                                              19, 20, 21, 22, 23, 24, 25, 26, 27, 50, 51, 52});
}
TEST_CASE("bal: a malformed line is an error that names it", "[example]") {
  CHECK_THROWS_WITH(read(""), ContainsText("f:1: the file ends, but `cameras points observations` expected"));
  CHECK_THROWS_WITH(read("2 1\n"), ContainsText("f:1: `cameras points observations` expected"));
  CHECK_THROWS_WITH(read("2 -1 2\n"), ContainsText("f:1: counts must be positive"));
  CHECK_THROWS_WITH(read("2 1 2\n" + seen.substr(0, 11) + "2 0 1 1\n"), ContainsText("f:3: camera 2 is out of range"));
  CHECK_THROWS_WITH(read("2 1 2\n" + seen.substr(0, 11) + "1 1 1 1\n"), ContainsText("f:3: point 1 is out of range"));
  CHECK_THROWS_WITH(read("2 1 2\n" + seen.substr(0, 11) + "1 0 1\n"), ContainsText("f:3: `camera point x y` expected"));
  CHECK_THROWS_WITH(read("2 1 2\n" + seen + numbers(0, 4) + "x\n"), ContainsText("f:8: a number of a camera expected"));
  CHECK_THROWS_WITH(read("2 1 2\n" + seen + numbers(0, 20)),
                    ContainsText("f:24: the file ends, but a number of a point expected"));
  CHECK_THROWS_WITH(read("2 1 2\n" + seen + numbers(0, 21) + "\n1\n"), ContainsText("f:26: end of file expected"));
}
