// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Makes a failing program smaller as long as it fails: fewer ways, statements, results, inputs and elements.
#include "check.hpp"

#include <chrono>

namespace random_programs {
/// Does a program fail in a stack? "" if not.
using failing = std::function<std::string(program const&, stack const&)>;

class shrinker {
public:
  shrinker(program& p, stack& s, failing const& fails)
      : p_(p), s_(s), fails_(fails), end_(std::chrono::steady_clock::now() + std::chrono::seconds(60)) {}

  void operator()() {
    for (bool again = true; again && !late();) {
      again = false;
      again |= fewer_ways();
      again |= fewer_statements();
      again |= fewer_results(p_.body);
      again |= fewer_inputs();
      again |= smaller_inputs();
    }
  }

private:
  bool late() const { return std::chrono::steady_clock::now() > end_; }
  /// Keeps a smaller program if it fails.
  bool keep(program const& q, stack const& s) {
    if (late() || fails_(q, s).empty()) return false;
    p_ = q, s_ = s;
    return true;
  }
  bool fewer_ways() {
    bool any = false;
    for (std::size_t k = 0; k < s_.size();) {
      stack s = s_;
      s.erase(s.begin() + static_cast<std::ptrdiff_t>(k));
      if (s.empty() || !keep(p_, s)) ++k;
      else any = true;
    }
    return any;
  }
  // A statement is found by its position in the order of this walk, which every copy of the program has.
  template <class F>
  static bool visit(block& b, int& position, F const& f) {
    for (std::size_t k = 0; k < b.code.size(); ++k) {
      if (position-- == 0) return f(b, k), true;
      for (block& inner : b.code[k].bodies)
        if (visit(inner, position, f)) return true;
    }
    return false;
  }
  static void replace(block& b, int from, int to) {
    auto const in = [&](std::vector<int>& ids) {
      for (int& id : ids)
        if (id == from) id = to;
    };
    in(b.results);
    for (statement& st : b.code) {
      in(st.operands);
      for (block& f : st.bodies) replace(f, from, to);
    }
  }
  bool fewer_statements() {
    bool any = false;
    for (int k = count(p_.body) - 1; k >= 0 && !late(); --k) any |= without(k);
    return any;
  }
  static int count(block const& b) {
    int n = static_cast<int>(b.code.size());
    for (statement const& st : b.code)
      for (block const& f : st.bodies) n += count(f);
    return n;
  }
  /// Without a statement; something else stands for its results.
  bool without(int position) {
    std::vector<int> instead;
    program copy = p_;
    int at = position;
    bool stays = false;
    visit(copy.body, at, [&](block& b, std::size_t k) {
      stays = b.code[k].stays;
      instead = b.code[k].operands;
      instead.insert(instead.end(), b.parameters.begin(), b.parameters.end());
    });
    if (stays) return false;
    for (std::size_t k = 0; k < p_.inputs.size(); ++k) instead.push_back(static_cast<int>(k));
    if (instead.empty()) instead.push_back(0);
    for (int id : instead) {
      program q = p_;
      std::vector<int> gone;
      at = position;
      visit(q.body, at, [&](block& b, std::size_t k) {
        gone = b.code[k].results;
        b.code.erase(b.code.begin() + static_cast<std::ptrdiff_t>(k));
      });
      for (int g : gone) replace(q.body, g, id);
      if (keep(q, s_)) return true;
      if (gone.empty()) return false; // nothing to stand for
    }
    return false;
  }
  bool fewer_results(block const&) {
    bool any = false;
    for (std::size_t k = 0; p_.body.results.size() > 1 && k < p_.body.results.size();) {
      program q = p_;
      q.body.results.erase(q.body.results.begin() + static_cast<std::ptrdiff_t>(k));
      if (keep(q, s_)) any = true;
      else ++k;
    }
    return any;
  }
  static bool uses(block const& b, int id) {
    auto const in = [&](std::vector<int> const& ids) { return std::find(ids.begin(), ids.end(), id) != ids.end(); };
    if (in(b.results)) return true;
    for (statement const& st : b.code) {
      if (in(st.operands)) return true;
      for (block const& f : st.bodies)
        if (uses(f, id)) return true;
    }
    return false;
  }
  /// Values behind a removed input have other numbers.
  static void renumber(block& b, int removed) {
    auto const in = [&](std::vector<int>& ids) {
      for (int& id : ids) id -= id > removed;
    };
    in(b.results), in(b.parameters);
    for (statement& st : b.code) {
      in(st.operands), in(st.results);
      for (block& f : st.bodies) renumber(f, removed);
    }
  }
  bool fewer_inputs() {
    bool any = false;
    for (int k = static_cast<int>(p_.inputs.size()) - 1; k > 0; --k) {
      if (uses(p_.body, k)) continue;
      program q = p_;
      q.inputs.erase(q.inputs.begin() + k);
      q.body.parameters.erase(q.body.parameters.begin() + k);
      renumber(q.body, k);
      --q.count;
      any |= keep(q, s_);
    }
    return any;
  }
  bool smaller_inputs() {
    bool any = false;
    for (std::size_t k = 0; k < p_.inputs.size(); ++k) {
      auto const change = [&](auto const& f) {
        program q = p_;
        input& in = q.inputs[k];
        if (!f(in)) return;
        std::size_t const n = static_cast<std::size_t>(varve::numel(in.sizes));
        in.elements.resize(n, 0.5);
        any |= keep(q, s_);
      };
      change([](input& in) { return in.expanded && !(in.expanded = false); });
      change([](input& in) {
        bool const other = in.memory != sample::memory::row_major;
        in.memory = sample::memory::row_major;
        return other;
      });
      change([](input& in) {
        bool const some = in.sizes.n > 0;
        if (some) in.sizes = dims{}, in.expanded = false;
        return some;
      });
      for (int d = 0; d < p_.inputs[k].sizes.n; ++d)
        change([d](input& in) {
          if (d >= in.sizes.n || in.sizes[d] < 2) return false;
          --in.sizes[d];
          return true;
        });
      change([](input& in) {
        bool other = false;
        for (double& e : in.elements) {
          double const r = std::round(e * 4) / 4;
          other = other || (e == e && r != e), e = e == e ? r : e;
        }
        return other;
      });
    }
    return any;
  }

  program& p_;
  stack& s_;
  failing const& fails_;
  std::chrono::steady_clock::time_point end_;
};

/// Shrinks until nothing smaller fails.
inline void shrink(program& p, stack& s, failing const& fails) { shrinker(p, s, fails)(); }
} // namespace random_programs
