// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace varve {

/// A problem that `export_program` would have refused, and what the draft does instead.
struct draft_finding {
  enum class kind : unsigned char { data_dependent, constraint_violated, missing_rule };
  kind is;
  std::string what, instead;
};
/// The problems that `draft_export` found: each once, in the order in which the program met them.
struct draft_report {
  std::vector<draft_finding> findings{};

  /// True if `export_program` would have made the same program.
  bool success() const { return findings.empty(); }
  /// True if the draft can be run: it calls no operator that a graph cannot call.
  bool complete() const { return count(draft_finding::kind::missing_rule) == 0; }
  int count(draft_finding::kind k) const {
    int n = 0;
    for (auto const& f : findings) n += f.is == k;
    return n;
  }
  void add(draft_finding f) {
    for (auto const& old : findings)
      if (old.is == f.is && old.what == f.what && old.instead == f.instead) return;
    findings.push_back(std::move(f));
  }
};
/// Prints a line for each finding, and one for what the draft does instead.
inline std::ostream& operator<<(std::ostream& os, draft_report const& r) {
  constexpr char const* kinds[] = {"data-dependent", "constraint violated", "missing rule"};
  if (r.success()) return os << "nothing was found: export_program gives the same program\n";
  int k = 0;
  for (auto const& f : r.findings)
    os << std::to_string(++k) << ". " << kinds[static_cast<int>(f.is)] << ": " << f.what
       << "\n   instead: " << f.instead << "\n";
  return os;
}

} // namespace varve
