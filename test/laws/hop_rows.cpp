// SPDX-License-Identifier: BSL-1.0
// The table of operators with functions, and whether it has all of them.
#include "../sample/hop.hpp"

#include <varve/dispatch/higher_order.hpp>

#include <filesystem>
#include <fstream>
#include <set>
#include <varve_test.hpp>

std::vector<sample::hop_row> const& sample::hop_rows() {
  static auto const table = [] {
    std::vector<hop_row> t;
    add_branches(t);
    add_loops(t);
    add_calls(t);
    return t;
  }();
  return table;
}

TEST_CASE("samples: no operator with functions lacks a row", "[laws][sample][hop]") {
  std::set<std::string> have, found;
  for (auto const& r : sample::hop_rows()) have.insert(*r.op ? r.op : r.what);
  std::string const before = "op_name = \"";
  auto const headers = std::filesystem::path(VARVE_TEST_DIR).parent_path() / "include/varve";
  for (char const* folder : {"hop", "loop", "custom"})
    for (auto const& f : std::filesystem::directory_iterator(headers / folder)) {
      std::ifstream in(f.path());
      for (std::string line; std::getline(in, line);)
        if (auto const at = line.find(before); at != line.npos && line.find("///") == line.npos) {
          auto const from = at + before.size();
          found.insert(line.substr(from, line.find('"', from) - from));
        }
    }
  REQUIRE(found.size() >= 15);
  for (char const* effect : {"_make_token", "_sink_tokens"}) CHECK(found.erase(effect) == 1); // without functions
  for (auto const& n : found) {
    INFO(n);
    CHECK(have.count(n) == 1);
    if (n != "flex_attention" && n != "custom_function_call")
      CHECK(varve::higher_order_operator::find(n.c_str()) != nullptr);
  }
}
