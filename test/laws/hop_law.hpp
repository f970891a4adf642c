// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// What the laws of operators with functions share: lists of tensors compared, and known refusals.
#include "../sample/hop_row.hpp"

#include <varve/core/error.hpp>

#include <varve_test.hpp>

namespace hop_law {
using namespace sample;

/// Empty when two lists of tensors agree; else what differs.
inline std::string difference(values const& a, values const& b, double tolerance = 1e-12) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " results instead of " + std::to_string(b.size());
  for (std::size_t k = 0; k < a.size(); ++k)
    if (auto const d = sample::difference(a[k], b[k], tolerance); !d.empty())
      return "result " + std::to_string(k) + ": " + d;
  return "";
}
inline values detached(values v) {
  for (tensor& t : v) t = t.detach();
  return v;
}
/// Random numbers of the shapes and dtypes of others.
inline values like(values const& v, std::uint64_t seed) {
  numbers draw(seed);
  values r;
  for (tensor const& t : v) r.push_back(uniform(t.sizes(), draw, -1, 1, t.dtype()));
  return r;
}

/// Checks a law: `f` returns what is wrong. A row that is known to refuse the law must throw an error with its text.
inline void law(hop_row const& r, std::string const& name, std::function<std::string()> const& f) {
  INFO(r.describe() << ": " << name);
  char const* const known = r.refuses(name);
  std::string wrong, thrown;
  try {
    wrong = f();
  } catch (varve::error const& e) { thrown = e.what(); }
  if (known) {
    CHECK_THAT(thrown, ContainsText(known));
  } else {
    CHECK(thrown == "");
    CHECK(wrong == "");
  }
}
} // namespace hop_law
